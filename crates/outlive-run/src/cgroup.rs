//! A cgroup for each process, where this supervisor may make some: then all that a process started
//! ends with it, also what has left its session and cleared its environment.
//!
//! Only version 2, no controllers: nothing is bounded by it. Where none can be had the marks in the
//! environment have to do.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::proc::fingerprint;

/// How the name of ours begins.
const BEGIN: &str = "outlive-run.";
/// For the kernel, which takes processes out of it as they end.
const PATIENCE: Duration = Duration::from_millis(200);

/// A cgroup of a process and all that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes the one of process `name` below our own; `None` where that cannot be. `dir` is that of
    /// the supervisor: two robots of one machine may be in one cgroup.
    pub(crate) fn create(dir: &str, name: &str) -> Option<Self> {
        let path = own()?.join(format!("{}{name}", begin(dir)));
        // What a dead supervisor left in it.
        if path.exists() {
            Self(path.clone()).end();
        }
        match fs::create_dir(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        Some(Self(path)).filter(|group| group.procs().is_ok())
    }

    /// Ends all that supervisors of `dir` have made below our own.
    pub(crate) fn end_all(dir: &str) {
        let Some(entries) = own().and_then(|own| fs::read_dir(own).ok()) else { return };
        let begin = begin(dir);
        let ours =
            entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&begin));
        ours.for_each(|entry| Self(entry.path()).end());
    }

    /// That of a process which an earlier supervisor started.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let path = path_of(&format!("/proc/{pid}/cgroup"))?;
        let name = path.file_name()?.to_str()?;
        name.starts_with(BEGIN).then_some(Self(path))
    }

    /// A child that writes `0` to it is in the cgroup.
    pub(crate) fn procs(&self) -> std::io::Result<File> {
        OpenOptions::new().write(true).open(self.0.join("cgroup.procs"))
    }

    /// Kills all that is in it, and removes it.
    pub(crate) fn end(&self) {
        let begun = Instant::now();
        while remove(&self.0).is_err() && begun.elapsed() < PATIENCE {
            if !self.0.exists() {
                return;
            }
            // Since Linux 5.14; one by one before.
            if fs::write(self.0.join("cgroup.kill"), "1").is_err() {
                let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
                for pid in text.lines().filter_map(|pid| pid.parse().ok()) {
                    if let Some(identity) = crate::proc::Identity::of(pid) {
                        identity.signal(libc::SIGKILL);
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Removes a cgroup and those in it, which nested supervisors have made.
fn remove(path: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// How all names of one supervisor begin.
fn begin(dir: &str) -> String {
    // Names of cgroups are short.
    format!("{BEGIN}{:016x}.", fingerprint(dir.as_bytes()))
}

/// Our own, or the one that ours is of, if an earlier supervisor of ours made it.
fn own() -> Option<PathBuf> {
    path_of("/proc/self/cgroup")
}

fn path_of(file: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .iter()
        .map(Path::new)
        .find(|root| root.join("cgroup.procs").exists())
        .map(|root| root.join(path))
}
