//! Where a victim died.

use std::fmt;

/// The place in the operation at which the victim is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// After this many instructions.
    Instruction(u64),
    /// At the entry of a system call (0-based), before the kernel acts: ordinal and number.
    SyscallEntry(u64, i64),
    /// At the return from a system call (0-based): ordinal and number.
    SyscallExit(u64, i64),
    /// Right after shared bytes changed: system calls made before, and steps since the last one.
    Change(u64, u64),
    /// At the n-th hit (1-based) of a named crash point.
    CrashPoint(String, u32),
    /// A system call (0-based ordinal, number) answers this error instead of being made; with
    /// `true` so does every later one that can, until the operation has returned. The victim lives
    /// on.
    Failing(u64, i64, i32, bool),
    /// Asleep in a system call.
    Asleep,
    /// So many nanoseconds after the start of the operation.
    Instant(u64),
    /// After the operation.
    AfterOp,
}

impl Place {
    /// A short form that [`Place::parse`] reads: `i12`, `e3:202`, `x3:202`, `c3:17`, `f3:202:12`,
    /// `F3:202:12`, `n2:name`, `asleep`, `t900`, `done`.
    pub fn code(&self) -> String {
        match self {
            Self::Instruction(k) => format!("i{k}"),
            Self::SyscallEntry(s, number) => format!("e{s}:{number}"),
            Self::SyscallExit(s, number) => format!("x{s}:{number}"),
            Self::Change(s, d) => format!("c{s}:{d}"),
            Self::Failing(s, number, error, lasts) => {
                format!("{}{s}:{number}:{error}", if *lasts { 'F' } else { 'f' })
            }
            Self::CrashPoint(name, hit) => format!("n{hit}:{name}"),
            Self::Asleep => "asleep".into(),
            Self::Instant(ns) => format!("t{ns}"),
            Self::AfterOp => "done".into(),
        }
    }

    /// Sorts places as the operation passes them.
    pub(crate) fn rank(&self) -> (u64, u64, u64) {
        match *self {
            Self::Instruction(k) => (k, 0, 0),
            Self::Change(s, d) => (s, 0, d),
            Self::SyscallEntry(s, _) => (s, 1, 0),
            Self::SyscallExit(s, _) => (s, 2, 0),
            Self::Failing(s, _, error, lasts) => (s, 3 + u64::from(lasts), error as u64),
            Self::CrashPoint(_, hit) => (u64::from(hit), 0, 0),
            Self::Instant(ns) => (ns, 0, 0),
            Self::Asleep | Self::AfterOp => (u64::MAX, 0, 0),
        }
    }

    /// Reads the short form.
    pub fn parse(code: &str) -> Option<Self> {
        match code {
            "done" => return Some(Self::AfterOp),
            "asleep" => return Some(Self::Asleep),
            _ => {}
        }
        let rest = code.get(1..)?;
        match code.as_bytes()[0] {
            b'i' => return rest.parse().ok().map(Self::Instruction),
            b't' => return rest.parse().ok().map(Self::Instant),
            _ => {}
        }
        let (first, second) = rest.split_once(':')?;
        let ordinal: u64 = first.parse().ok()?;
        Some(match code.as_bytes()[0] {
            b'e' => Self::SyscallEntry(ordinal, second.parse().ok()?),
            b'x' => Self::SyscallExit(ordinal, second.parse().ok()?),
            b'c' => Self::Change(ordinal, second.parse().ok()?),
            kind @ (b'f' | b'F') => {
                let (number, error) = second.split_once(':')?;
                let (number, error) = (number.parse().ok()?, error.parse().ok()?);
                Self::Failing(ordinal, number, error, kind == b'F')
            }
            b'n' => Self::CrashPoint(second.into(), ordinal.try_into().ok()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction(k) => write!(f, "after {k} instructions"),
            Self::SyscallEntry(s, number) => write!(f, "entering system call #{s} (nr {number})"),
            Self::SyscallExit(s, number) => write!(f, "leaving system call #{s} (nr {number})"),
            Self::Change(s, d) => {
                write!(f, "after a change of shared bytes, {d} steps past {s} system calls")
            }
            Self::Failing(s, number, error, lasts) => {
                let whole = std::io::Error::from_raw_os_error(*error);
                let lasts = if *lasts { ", and all that can after it," } else { "" };
                write!(f, "system call #{s} (nr {number}){lasts} answers: {whole}")
            }
            Self::CrashPoint(name, hit) => write!(f, "at hit {hit} of crash point {name}"),
            Self::Asleep => f.write_str("asleep in a system call"),
            Self::Instant(ns) => write!(f, "{ns} ns after the start"),
            Self::AfterOp => f.write_str("after the operation"),
        }
    }
}

/// What a survivor may know about the death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Where the kill was aimed.
    pub place: Place,
    /// The operation had returned: its effect must be there.
    pub finished: bool,
    /// The last number the victim passed to [`super::Gate::mark`], 0 at first.
    pub mark: u64,
    /// Address of the instruction that would have come next.
    pub instruction_pointer: u64,
}

impl Point {
    pub(crate) fn encode(&self) -> String {
        let (finished, ip) = (u8::from(self.finished), self.instruction_pointer);
        format!("{finished} {} {ip} {}", self.mark, self.place.code())
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ' ');
        let finished = parts.next()? == "1";
        let mark = parts.next()?.parse().ok()?;
        let instruction_pointer = parts.next()?.parse().ok()?;
        Some(Self { place: Place::parse(parts.next()?)?, finished, mark, instruction_pointer })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.finished { "operation finished" } else { "operation unfinished" };
        write!(f, "{}, {state}, {}", self.place, locate(self.instruction_pointer))
    }
}

/// Module and offset of an address, as `addr2line -e <module> <offset>` takes them.
///
/// The address is looked up in this process: a victim is a fork and has the same layout.
pub fn locate(address: u64) -> String {
    match find_module(address) {
        Some((module, offset)) => format!("{module}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
}

/// The function and line of an address, when the tool `addr2line` is installed.
pub fn symbolize(address: u64) -> Option<String> {
    let (module, offset) = find_module(address)?;
    let mut tool = std::process::Command::new("addr2line");
    tool.args(["-Cfpe", &module, &format!("{offset:#x}")]);
    let output = tool.stderr(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty() && !text.starts_with("??")).then_some(text)
}

fn find_module(address: u64) -> Option<(String, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    // The first mapping of a module is its load base.
    let mut base = (0, "");
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let name = fields.nth(4).unwrap_or("");
        if name.is_empty() || name != base.1 {
            base = (start, name);
        }
        if (start..end).contains(&address) {
            return (!name.is_empty()).then(|| (name.to_owned(), address - base.0));
        }
    }
    None
}
