//! What a robot file says, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A robot: its processes in the order in which they start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// The file.
    pub file: PathBuf,
    /// For messages and log directories.
    pub name: String,
    /// Domain that its processes join, if the file says so.
    pub domain: Option<String>,
    /// Directory of the logs, if the file says so.
    pub logs: Option<PathBuf>,
    /// No file of a log is larger, bytes.
    pub log_bytes: u64,
    /// How much of each process's output is kept in the long run, bytes a second.
    pub log_rate: u64,
    /// Rotated logs kept for each process.
    pub log_files: u32,
    /// Whether a changed file is read again at once, or at SIGHUP only.
    pub watch: bool,
    /// The processes; each comes after those that it names in `after`.
    pub processes: Vec<ProcessSpec>,
}

/// What a process's end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Fail-stop: it is never restarted.
    Core,
    /// It is restarted.
    Service,
}

/// What happens when a core ends, or a service reaches its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// All processes are stopped, in reverse order, and `run` ends with code 1.
    StopRobot,
    /// The others keep running.
    Stay,
}

/// When a service is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// However it ended.
    Always,
    /// Unless it ended with code 0.
    OnFailure,
    /// Never.
    Never,
}

/// What becomes of a process when its supervisor dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Orphan {
    /// It keeps running; the next `run` takes it over.
    Adopt,
    /// The kernel sends it its stop signal at once; the next `run` ends what is left.
    Stop,
    /// The kernel kills it at once.
    Kill,
}

/// How long to wait before a restart, and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Backoff {
    /// Before the first restart.
    pub first: Duration,
    /// At most.
    pub max: Duration,
    /// How much longer each wait is than the last, as a factor.
    pub factor: f64,
    /// Random share of a wait, 0 to 1.
    pub jitter: f64,
    /// Restarts within [`Backoff::within`], after which it counts as failed.
    pub limit: u32,
    /// The time in which restarts count; a process that runs longer starts counting again.
    pub within: Duration,
}

/// When a process counts as ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ready {
    /// Topics that it publishes.
    pub topics: Vec<String>,
    /// Services that it answers.
    pub services: Vec<String>,
    /// Names of nodes that it opens.
    pub nodes: Vec<String>,
    /// A process that is not ready by then is ended and restarted.
    pub timeout: Duration,
}

impl Ready {
    /// Ready as soon as it runs.
    pub(crate) fn is_at_once(&self) -> bool {
        self.topics.is_empty() && self.services.is_empty() && self.nodes.is_empty()
    }
}

/// What shows that a running process works.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heartbeat {
    /// It must have a live node.
    pub node: bool,
    /// Topics on which messages must come.
    pub topics: Vec<String>,
    /// Silence or absence this long means that it hangs: it is killed and restarted.
    pub timeout: Duration,
}

/// A user that a process runs as.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// Its name; its number if it has none.
    pub name: String,
    /// Its home directory.
    pub home: String,
}

/// What a process has of its supervisor's environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InheritEnv {
    /// All of it: the default of a process that runs as the supervisor does.
    All,
    /// `PATH`, `LANG`, `TZ` and these variables. An empty list is the default of a process that
    /// runs as another user.
    Named(Vec<String>),
}

/// One process of a robot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessSpec {
    /// Its name.
    pub name: String,
    /// Core or service.
    pub kind: Kind,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub dir: PathBuf,
    /// Set or changed in its environment.
    pub env: BTreeMap<String, String>,
    /// It starts when these are ready.
    pub after: Vec<String>,
    /// When it is ready.
    pub ready: Ready,
    /// When it hangs; services only.
    pub heartbeat: Option<Heartbeat>,
    /// CPUs it may run on; all if empty.
    pub cores: Vec<usize>,
    /// SCHED_FIFO priority.
    pub fifo: Option<u8>,
    /// Niceness.
    pub nice: Option<i8>,
    /// Bound on its private memory (RLIMIT_DATA), bytes; shared memory does not count.
    pub memory: Option<u64>,
    /// Bound on its addresses (RLIMIT_AS), bytes; shared memory counts in full.
    pub address_space: Option<u64>,
    /// Whom it runs as.
    pub user: Option<User>,
    /// What it has of the supervisor's environment.
    pub inherit_env: InheritEnv,
    /// Whether a crash may leave its memory on disk.
    pub core_dumps: bool,
    /// The signal that asks it to end.
    pub stop_signal: i32,
    /// How long after that SIGKILL follows.
    pub grace: Duration,
    /// When its supervisor dies.
    pub on_supervisor_death: Orphan,
    /// At the end of a core; of a service that has reached its limit.
    pub on_end: Then,
    /// Whether it is restarted; a core never is.
    pub restart: Restart,
    /// How it is restarted.
    pub backoff: Backoff,
}
