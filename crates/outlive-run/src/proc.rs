//! Who a process is, by `/proc`: a pid alone is used again, a pid with its start time is not.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, getpgid, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// Names the directory of the supervisor, in the environment of all that it starts.
pub(crate) const MARK_DIR: &str = "OUTLIVE_RUN_DIR";
/// Names the process of the robot file.
pub(crate) const MARK_NAME: &str = "OUTLIVE_RUN_NAME";
/// What it was made of, see [`form`](crate::spawn::form).
pub(crate) const MARK_FORM: &str = "OUTLIVE_RUN_FORM";

/// FNV-1a: the same number in every build.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A process, for as long as the machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its process id.
    pub pid: i32,
    /// Its start time, in ticks since the machine's start.
    pub start: u64,
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// It has ended and is not reaped. One whose main thread alone has ended runs.
    zombie: bool,
    session: i32,
    start: u64,
}

/// `/proc/<pid>/stat`. The name in it is what the process made of it, UTF-8 or not.
fn stat_text(pid: i32) -> io::Result<String> {
    fs::read(format!("/proc/{pid}/stat")).map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&stat_text(pid).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The name in brackets may hold anything, brackets too.
    let rest = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        // The state is that of the main thread; others may run on.
        zombie: matches!(*fields.first()?, "Z" | "X") && number(17)? <= 1,
        session: fields.get(3)?.parse().ok()?,
        start: number(19)?,
    })
}

impl Identity {
    /// The process that has `pid` now.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// The same of a child that is not reaped.
    ///
    /// # Errors
    /// `/proc` cannot be read, as without a free descriptor, or does not show it.
    pub(crate) fn of_child(pid: i32) -> io::Result<Self> {
        let text = match stat_text(pid) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            text => text.unwrap_or_default(),
        };
        let stat = parse(&text).ok_or_else(|| io::Error::other("/proc does not show it"))?;
        Ok(Self { pid, start: stat.start })
    }

    /// This process.
    pub(crate) fn own() -> Self {
        let pid = std::process::id() as i32;
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }

    /// Whether any thread of it runs; one that has ended and is not reaped does not.
    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start == self.start && !stat.zombie)
    }

    /// A descriptor that can be read once it has ended; `None` if it has.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        let fd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Looked at after opening: the descriptor is of this process and no later one.
        self.is_alive().then_some(fd)
    }

    /// The same of a child that is not reaped, whether or not it has ended.
    pub(crate) fn open_child(&self) -> std::io::Result<OwnedFd> {
        let pid = Pid::from_raw(self.pid).ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Sends a signal to it and to no other; false if it is gone.
    pub fn signal(&self, signal: i32) -> bool {
        let signal = Signal::from_named_raw(signal);
        let Some((fd, signal)) = self.open().zip(signal) else { return false };
        pidfd_send_signal(fd, signal).is_ok()
    }

    /// All that live in the session that this process leads or led, itself left out.
    pub(crate) fn session(&self) -> Vec<Self> {
        // Somebody else leads it: the number was used again, so nobody of ours is left.
        if stat(self.pid).is_some_and(|stat| stat.start != self.start) {
            return Vec::new();
        }
        let of_session = |pid: &i32| {
            *pid != self.pid && stat(*pid).is_some_and(|s| s.session == self.pid && !s.zombie)
        };
        all().filter(of_session).filter_map(Self::of).collect()
    }

    /// Whether it is of the process group that `leader` leads or led.
    pub(crate) fn is_of_group(&self, leader: i32) -> bool {
        let group = Pid::from_raw(self.pid).and_then(|pid| getpgid(Some(pid)).ok());
        group.is_some_and(|group| Some(group) == Pid::from_raw(leader))
    }

    /// Whether its program gave it rights that who started it has not, or that cannot be seen.
    pub(crate) fn is_secure(&self) -> bool {
        // Of two words each: what it is, and its value.
        const SECURE: usize = 23;
        const WORD: usize = size_of::<usize>();
        let Ok(auxv) = fs::read(format!("/proc/{}/auxv", self.pid)) else { return true };
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
        let mut pairs = auxv.chunks_exact(2 * WORD).map(|pair| pair.split_at(WORD));
        pairs.find(|(key, _)| word(key) == SECURE).is_none_or(|(_, value)| word(value) != 0)
    }

    /// Whether its command line is `command`, or that of a script's interpreter with it.
    pub(crate) fn runs(&self, command: &[String]) -> bool {
        let Some(line) = of_any_thread(self.pid, "cmdline") else { return false };
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        let words: Vec<_> = line.split(|b| *b == 0).map(OsStr::from_bytes).collect();
        let Some(at) = words.len().checked_sub(command.len()) else { return false };
        let mut both = words[at..].iter().zip(command);
        let file = |path| Path::new(path).file_name();
        both.next().is_some_and(|(a, b)| file(*a) == file(OsStr::new(b)))
            && both.all(|(a, b)| *a == b.as_str())
    }

    /// Resident memory, bytes.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }

    /// Time on CPUs so far, s.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let text = stat_text(self.pid).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

/// Whether the live process `pid` belongs to the session of `leader`; `None` if there is no such
/// process here, as when it lives in another PID namespace, or it is hidden from us.
///
/// # Errors
/// `/proc` cannot be read now, as without a free descriptor.
pub(crate) fn is_of_session(pid: u32, leader: Identity) -> io::Result<Option<bool>> {
    match stat_text(pid as i32) {
        Ok(text) => Ok(parse(&text).map(|stat| stat.session == leader.pid)),
        // The second one by `hidepid=`.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(None),
        // It ends meanwhile.
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) => Err(e),
    }
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process that bears the marks of a supervisor.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) identity: Identity,
    /// Which process of the file it is, or descends from.
    pub(crate) name: String,
    /// What that was made of; one that was started by an older version does not say.
    pub(crate) form: Option<u64>,
    /// Whether it leads a session, as all that the supervisor itself starts.
    pub(crate) leads: bool,
}

/// All live processes that a supervisor with this directory has started, and their descendants.
pub(crate) fn marked(dir: &str) -> Vec<Marked> {
    let own = std::process::id() as i32;
    let dir_mark = format!("{MARK_DIR}={dir}");
    let (name_mark, form_mark) = (format!("{MARK_NAME}="), format!("{MARK_FORM}="));
    let mut out = Vec::new();
    for pid in all().filter(|pid| *pid != own) {
        let Some(before) = stat(pid).filter(|stat| !stat.zombie) else { continue };
        let Some(environment) = of_any_thread(pid, "environ") else { continue };
        let variables = environment.split(|b| *b == 0);
        if !variables.clone().any(|v| v == dir_mark.as_bytes()) {
            continue;
        }
        let value = |mark: &str| {
            let value = variables.clone().find_map(|v| v.strip_prefix(mark.as_bytes()));
            value.map(|v| String::from_utf8_lossy(v).into_owned())
        };
        let name = value(&name_mark).unwrap_or_default();
        let form = value(&form_mark).and_then(|form| form.parse().ok());
        let identity = Identity { pid, start: before.start };
        // The same process before and after its environment was read.
        if identity.is_alive() {
            out.push(Marked { identity, name, form, leads: before.session == pid });
        }
    }
    out
}

/// Kills all that bears the marks of the supervisor with this directory, or of one process of it,
/// and what that started meanwhile.
pub(crate) fn end_marked(dir: &str, name: Option<&str>) {
    const ROUNDS_MAX: usize = 20;
    for _ in 0..ROUNDS_MAX {
        let mut found = marked(dir);
        found.retain(|found| name.is_none_or(|name| found.name == name));
        if found.is_empty() {
            return;
        }
        found.iter().for_each(|found| {
            found.identity.signal(libc::SIGKILL);
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a process was started with, its environment or arguments. Where its main thread has ended,
/// another thread shows it.
fn of_any_thread(pid: i32, file: &str) -> Option<Vec<u8>> {
    let some = |dir: &Path| fs::read(dir.join(file)).ok().filter(|text| !text.is_empty());
    let dir = PathBuf::from(format!("/proc/{pid}"));
    some(&dir).or_else(|| {
        let mut threads = fs::read_dir(dir.join("task")).ok()?.flatten();
        threads.find_map(|thread| some(&thread.path()))
    })
}

/// Changes with each start of the machine.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_named_like_the_file_is_read_all_the_same() {
        let line = "7 (a) b (c)) S 1 7 5 0 -1 4 1 2 3 4 55 66 0 0 20 0 1 0 4711 8 9\n";
        assert_eq!(parse(line), Some(Stat { zombie: false, session: 5, start: 4711 }));
        assert_eq!(parse("7 (a) Z 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        let zombie = |state: &str, threads: u32| {
            let line =
                format!("7 (a) {state} 1 7 5 0 -1 4 1 2 3 4 5 6 0 0 20 0 {threads} 0 4711 8");
            parse(&line).unwrap().zombie
        };
        assert!(zombie("Z", 1) && zombie("Z", 0) && zombie("X", 0));
        assert!(!zombie("Z", 2) && !zombie("S", 1));
    }

    /// It counted as dead: a takeover started a second one beside it.
    #[test]
    fn a_process_with_a_name_that_is_no_text_is_alive() {
        let dir = std::env::temp_dir().join(format!("outlive-run-name-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let program = dir.join(OsStr::from_bytes(b"\xff"));
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut command = std::process::Command::new(&program);
        let command = command.args(["-c", "read x"]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The child has our name until it is the program.
        let name = loop {
            let name = fs::read(format!("/proc/{}/comm", child.id())).unwrap();
            if name == b"\xff\n" || child.try_wait().unwrap().is_some() {
                break name;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        let seen = Identity::of(child.id() as i32);
        let (alive, time) = (seen.map(|of| of.is_alive()), seen.and_then(|of| of.cpu_s()));
        let of_session = is_of_session(child.id(), Identity { pid: 1, start: 0 });
        drop(child.stdin.take());
        child.wait().unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(name, b"\xff\n");
        assert_eq!((alive, time.is_some()), (Some(true), true));
        assert_eq!(of_session.unwrap(), Some(false));
    }

    #[test]
    fn a_pid_with_another_start_time_is_another_process() {
        let own = Identity::own();
        assert!(own.is_alive() && own.open().is_some() && !own.is_secure());
        let other = Identity { start: own.start + 1, ..own };
        assert!(!other.is_alive() && !other.signal(libc::SIGKILL));
        assert!(other.session().is_empty());
    }
}
