//! One check: a process that must end well without a fault, and badly with the one it catches.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::process::wait_until;

/// With a fault planted a check ends by then, or counts as hanging: so does a fault show, too.
const LIMIT: Duration = Duration::from_secs(20);
/// Without one it ends by then. A longer limit costs nothing here, and some kernels need it: 6.18
/// was seen to spin for 8 s and more in `wait4` (`shrink_dcache_parent`) over a child of a test.
const HEALTHY_LIMIT: Duration = Duration::from_secs(120);
/// One of the kit takes longer; its processes have watchdogs of their own.
const KIT_LIMIT: Duration = Duration::from_secs(300);
/// A sweep finds hangs by itself; this one only ends a sweep that went wrong.
const SWEEP_LIMIT: Duration = Duration::from_secs(300);

/// The program with the tests that [`Check::Value`] names.
pub(crate) const VALUES: &str = "checked_values";

/// What may catch a fault, as small as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// A test of the library by its full name.
    Unit(&'static str),
    /// A test of its public API with values that no type has, by name.
    Value(&'static str),
    /// A sweep of [`super::sweeps`].
    Sweep(&'static str),
    /// A kept history of `verify/testkit/histories`, by name.
    History(&'static str),
    /// A test of the kit, by program and name: several processes, bad files.
    Kit(&'static str, &'static str),
}

impl Check {
    /// The column of the table.
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Self::Unit(_) => "unit test",
            Self::Sweep(_) => "kill sweep",
            Self::History(_) => "histories",
            Self::Value(_) | Self::Kit("bad_input", _) => "garbage",
            Self::Kit(..) => "processes",
        }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unit(name) | Self::Value(name) | Self::Sweep(name) | Self::History(name) => {
                write!(f, "{}: {name}", self.layer())
            }
            Self::Kit(program, name) => write!(f, "{}: {program}, {name}", self.layer()),
        }
    }
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
}

/// The programs that checks run.
#[derive(Debug, Default)]
pub(crate) struct Programs(Vec<PathBuf>);

impl Programs {
    /// Builds the tests of `targets` (arguments of cargo) with the faults in them.
    pub(crate) fn build(targets: &[&str]) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
        let out = command.args(targets).stderr(Stdio::inherit()).output();
        let out = out.map_err(|e| format!("cargo: {e}"))?;
        if !out.status.success() {
            return Err(format!("cargo test --no-run {targets:?} fails"));
        }
        let text = String::from_utf8_lossy(&out.stdout);
        let after = text.split("\"executable\":\"").skip(1);
        Ok(Self(after.filter_map(|rest| Some(rest.split_once('"')?.0.into())).collect()))
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The program `name`, whose file has a hash behind the name.
    fn find(&self, name: &str) -> Result<&PathBuf, String> {
        let is = |p: &&PathBuf| {
            let file = p.file_name().map(|n| n.to_string_lossy().into_owned());
            file.is_some_and(|f| f.rsplit_once('-').is_some_and(|(begin, _)| begin == name))
        };
        self.0.iter().find(is).ok_or_else(|| format!("no test program {name} was built"))
    }

    /// Runs `check` with `fault` planted, if any.
    pub(crate) fn run(&self, check: Check, fault: Option<&str>) -> Result<Verdict, String> {
        let kit = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = kit.join("../../crates/outlive");
        let mut command = match check {
            Check::Sweep(name) => {
                let mut command = Command::new("/proc/self/exe");
                command.args(["faults", "--sweep", name]).current_dir(kit);
                command
            }
            Check::History(name) => {
                let mut command = Command::new("/proc/self/exe");
                command.args(["faults", "--history", name]).current_dir(kit);
                command
            }
            Check::Unit(name) => test(self.find("outlive")?, name, &library),
            Check::Value(name) => test(self.find(VALUES)?, name, &library),
            Check::Kit(program, name) => test(self.find(program)?, name, kit),
        };
        if let Some(fault) = fault {
            command.env("OUTLIVE_FAULT", fault);
        }
        let log = std::env::temp_dir().join(format!("outlive-fault-{}", check_id()));
        let file = std::fs::File::create(&log).map_err(|e| e.to_string())?;
        let copy = file.try_clone().map_err(|e| e.to_string())?;
        command.stdin(Stdio::null()).stdout(file).stderr(copy).process_group(0);
        let mut child = command.spawn().map_err(|e| format!("{check}: {e}"))?;
        let mut status = None;
        let limit = match check {
            Check::Unit(_) | Check::Value(_) if fault.is_none() => HEALTHY_LIMIT,
            Check::Unit(_) | Check::Value(_) => LIMIT,
            Check::Sweep(_) => SWEEP_LIMIT,
            Check::Kit(..) | Check::History(_) => KIT_LIMIT,
        };
        let ended = wait_until(limit, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        let group = child.id() as i32;
        // SAFETY: the group is the child's own; it is reaped below or was just now.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = child.wait();
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        Ok(match status {
            Some(status) if status.success() && did_something(&said) => Verdict::Passed,
            Some(status) => Verdict::Failed(format!("{status}\n{said}")),
            None => Verdict::Failed(format!("hangs, ended = {ended}\n{said}")),
        })
    }
}

/// A filter that matches nothing proves nothing.
fn did_something(said: &str) -> bool {
    !said.contains("running 0 tests")
}

fn test(program: &PathBuf, name: &str, dir: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command.args([name, "--exact", "--test-threads=1"]).current_dir(dir);
    command
}

fn check_id() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A place where the library misbehaves on purpose.
#[derive(Debug)]
pub(crate) struct Fault {
    /// As in the sources: `fault("name")`.
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) what: &'static str,
    /// By whom, besides a model that plants it too.
    pub(crate) caught_by: &'static [Check],
}

pub(crate) const fn fault(
    name: &'static str,
    what: &'static str,
    caught_by: &'static [Check],
) -> Fault {
    Fault { name, what, caught_by }
}
