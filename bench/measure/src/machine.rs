//! What a figure depends on: processor, kernel, compiler, commit, and how much time others took.

use std::{env, fs};

use serde::Serialize;

/// The machine and the build, for the head of a report.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Of outlive.
    pub version: &'static str,
    /// Of the source.
    pub commit: String,
    /// The compiler that built this program.
    pub rustc: String,
    /// The processor's model.
    pub cpu: String,
    /// How many the kernel has online.
    pub cores: usize,
    /// Its release.
    pub kernel: String,
}

impl Machine {
    /// Unknown parts say `unknown`.
    pub fn describe() -> Self {
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
        let exe = fs::read("/proc/self/exe").unwrap_or_default();
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            // Set by `make bench`; a binary does not know where it was built.
            commit: known(env::var("OUTLIVE_COMMIT").ok().filter(|c| !c.is_empty())),
            rustc: known(compiler_in(&exe)),
            cpu: known(cpu_model(&cpus)),
            cores: cpus.lines().filter(|l| l.starts_with("processor")).count(),
            kernel: known(kernel.map(|k| k.trim().into())),
        }
    }
}

/// The compiler's name for itself, which it leaves in the `.comment` section of a program.
fn compiler_in(program: &[u8]) -> Option<String> {
    let mark = b"rustc version ";
    // The constant above is in the program too; only the real note goes on with a number.
    let at = program
        .windows(mark.len() + 1)
        .position(|w| w.starts_with(mark) && w[mark.len()].is_ascii_digit())?;
    let note = &program[at + mark.len()..];
    let end = note.iter().position(|b| !matches!(b, b' '..=b'~'))?;
    Some(String::from_utf8_lossy(&note[..end]).into_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let of = |key: &str| {
        let line = cpuinfo.lines().find(|l| l.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    of("model name").or_else(|| of("CPU part").map(|part| format!("ARM part {part}")))
}

/// Processor time of all cores since boot, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    steal: u64,
    all: u64,
}

impl CpuTime {
    /// `None` where the kernel does not say.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|t| t.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is inside user.
        (ticks.len() >= 8).then(|| Self { steal: ticks[7], all: ticks[..8].iter().sum() })
    }

    /// Share of the time since `earlier` that the host gave to others, 0 to 1.
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        self.steal.saturating_sub(earlier.steal) as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::describe();
        assert!(machine.cores > 0);
        assert!(machine.kernel.contains('.'), "{machine:?}");
        assert!(machine.rustc.starts_with("1."), "{machine:?}");
    }

    #[test]
    fn steal_is_the_eighth_column() {
        let before = CpuTime::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1\n").unwrap();
        let after = CpuTime::parse("cpu  40 0 20 120 0 0 0 20 5 0\n").unwrap();
        assert_eq!(before, CpuTime { steal: 10, all: 100 });
        assert_eq!(after.stolen_since(before), 0.1);
        assert_eq!(before.stolen_since(before), 0.0);
        assert_eq!(CpuTime::parse("cpu 1 2 3\n"), None);
        assert_eq!(CpuTime::parse("intr 1\n"), None);
    }

    #[test]
    fn models_of_both_architectures_are_read() {
        assert_eq!(cpu_model("a: b\nmodel name\t: X 1\n").as_deref(), Some("X 1"));
        assert_eq!(cpu_model("CPU part\t: 0xd0c\n").as_deref(), Some("ARM part 0xd0c"));
        assert_eq!(cpu_model(""), None);
    }
}
