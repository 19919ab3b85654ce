//! What a supervisor says about itself in a directory beside the domain's: who runs, so that a
//! successor, or `outlive ps`, finds them when it is dead.
//!
//! | file | what |
//! |---|---|
//! | `lock` | locked by the live supervisor |
//! | `state.json` | the last state, replaced whole |
//! | `control` | socket for requests |
//! | `NAME.out` | pipe that a process prints into |
//! | `logs.lock`, `logs.json` | who keeps the logs, and what it is to keep |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::config::{Kind, Orphan};
use crate::logs::{DRAFT as PLAN_DRAFT, LOCK as LOGS_LOCK, PIPE_END, PLAN};
use crate::proc::{Identity, boot_id};

const VERSION: u32 = 1;
/// A supervisor that was killed in mid-fork leaves its lock to a child for an instant.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// How a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Those it comes after are not ready.
    Waiting,
    /// It runs and is not ready yet.
    Starting,
    /// It runs, and its topics, services and nodes are there.
    Ready,
    /// It was asked to end.
    Ending,
    /// It ended and will be started again.
    Backoff,
    /// Somebody stopped it.
    Stopped,
    /// It ended by itself and must not be restarted.
    Done,
    /// A core that ended, or a service at its limit.
    Failed,
}

impl Phase {
    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Ending => "ending",
            Self::Backoff => "backoff",
            Self::Stopped => "stopped",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// One process, as its supervisor sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its name in the file.
    pub name: String,
    /// Core or service.
    pub kind: Kind,
    /// How it is doing.
    pub phase: Phase,
    /// The running process.
    pub process: Option<Identity>,
    /// Whether an earlier supervisor started it.
    pub adopted: bool,
    /// When it began to run, ns of CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// Restarts in all.
    pub restarts: u64,
    /// How it ended last.
    pub last_end: Option<String>,
    /// Until it is started again, ms.
    pub wait_ms: Option<u64>,
    /// Its log.
    pub log: PathBuf,
    /// What becomes of it when its supervisor dies.
    pub on_supervisor_death: Orphan,
    /// The signal that asks it to end.
    pub stop_signal: i32,
    /// How long after that SIGKILL follows.
    pub grace_ms: u64,
    /// Differs when it would be started in another way.
    pub form: u64,
    /// Whether it stays down after the end it was asked for.
    #[serde(default)]
    pub stays_down: bool,
    /// Resident memory, bytes; in answers only.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Time on CPUs, s; in answers only.
    #[serde(default)]
    pub cpu_s: Option<f64>,
}

/// What a supervisor says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    version: u32,
    boot: String,
    /// The supervisor.
    pub supervisor: Identity,
    /// Its file.
    pub file: PathBuf,
    /// Its robot's name.
    pub robot: String,
    /// Whether it is stopping the robot.
    pub ending: bool,
    /// Its processes, in the order in which they start.
    pub processes: Vec<Status>,
}

impl State {
    pub(crate) fn new(file: &Path, robot: &str, ending: bool, processes: Vec<Status>) -> Self {
        let (file, robot, supervisor) = (file.into(), robot.into(), Identity::own());
        Self { version: VERSION, boot: boot_id(), supervisor, file, robot, ending, processes }
    }

    /// Whether its supervisor lives.
    pub fn is_supervised(&self) -> bool {
        self.supervisor.is_alive()
    }

    /// Processes that run now, whether or not somebody supervises them.
    pub fn running(&self) -> impl Iterator<Item = (&Status, Identity)> {
        let live = |s: &'_ Status| s.process.filter(Identity::is_alive);
        self.processes.iter().filter_map(move |s| live(s).map(|identity| (s, identity)))
    }
}

/// The directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// That of the supervisor of a domain.
    pub fn of(domain: &outlive::Domain) -> Self {
        let dir = domain.dir();
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        // No domain's name begins with a point.
        Self { path: dir.with_file_name(format!(".run-{name}")) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory by its one true path: supervisors that were started in other places, or by
    /// way of links, name it alike in the marks of their processes.
    pub(crate) fn real(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// What the last supervisor said; `None` if there is nothing, or of another start of the
    /// machine.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn read(&self) -> io::Result<Option<State>> {
        let text = match fs::read(self.path.join("state.json")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let state: State = serde_json::from_slice(&text)?;
        Ok(Some(state).filter(|s| s.version == VERSION && s.boot == boot_id()))
    }

    /// Replaces what was said. Killed at any instant, the old or the new is there.
    pub(crate) fn write(&self, state: &State) -> io::Result<()> {
        let draft = self.path.join("state.new");
        fs::write(&draft, serde_json::to_vec_pretty(state)?)?;
        fs::rename(draft, self.path.join("state.json"))
    }

    /// Removes what was said, which takes no room: the marks of the processes have to do.
    pub(crate) fn forget(&self) {
        for name in ["state.json", "state.new"] {
            let _ = fs::remove_file(self.path.join(name));
        }
    }

    /// Makes the directory, or checks that the one that is there is ours alone.
    pub(crate) fn create(&self) -> io::Result<()> {
        for dir in [self.path.parent().unwrap_or(Path::new("/")), &self.path] {
            match DirBuilder::new().mode(0o700).create(dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        let seen = fs::symlink_metadata(&self.path)?;
        let own = seen.uid() == rustix::process::geteuid().as_raw();
        if !seen.is_dir() || !own || seen.mode() & 0o077 != 0 {
            let what = format!("{} is not a directory of ours alone", self.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        Ok(())
    }

    /// Takes the supervisor's lock; `None` when another one has it.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.path.join("lock");
        let begun = Instant::now();
        loop {
            let mut open = OpenOptions::new();
            let file = open.write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                // The one before may have removed it in between.
                let (ours, there) = (file.metadata()?, fs::metadata(&path));
                if there.is_ok_and(|m| m.ino() == ours.ino()) {
                    return Ok(Some(file));
                }
            } else if begun.elapsed() > LOCK_PATIENCE {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Removes everything; the holder of the lock calls it when nothing runs any more.
    pub(crate) fn remove(&self) {
        let pipes = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let pipes = pipes.map(|entry| entry.path());
        pipes.filter(|p| p.to_string_lossy().ends_with(PIPE_END)).for_each(|p| {
            let _ = fs::remove_file(p);
        });
        let state = ["control", "state.json", "state.new"];
        for name in state.into_iter().chain([PLAN, PLAN_DRAFT, LOGS_LOCK, "lock"]) {
            let _ = fs::remove_file(self.path.join(name));
        }
        let _ = fs::remove_dir(&self.path);
        // The directory of the domains too, if this was the last in it.
        if let Some(root) = self.path.parent() {
            let _ = fs::remove_dir(root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `outlive stop` waited for it to go.
    #[test]
    fn a_draft_that_a_full_disk_left_is_removed_with_the_directory() {
        let root = std::env::temp_dir().join(format!("outlive-run-state-{}", std::process::id()));
        let dir = RunDir { path: root.join(".run-default") };
        fs::create_dir_all(&dir.path).unwrap();
        for name in ["lock", "state.json", "state.new", "logs.json", "logs.new", "camera.out"] {
            fs::write(dir.path.join(name), "").unwrap();
        }
        dir.remove();
        assert!(!root.exists());
    }
}
