//! The supervisor: one thread, one loop.
//!
//! | file | what |
//! |---|---|
//! | `instance` | one process of the file, through its lives |
//! | `adopt` | what an earlier supervisor left |
//! | `keeping` | the process that writes the logs |
//! | `turn` | what each turn of the loop looks after |
//! | `requests` | what people ask for; a changed file |
//!
//! # Dying here
//! Every process prints into a pipe that a process of its own empties, and has a session of its
//! own, so nothing of it depends on the supervisor. Who runs is written in `state.json`; who was
//! started after the last write bears marks in its environment, and what is left of a process is of
//! its session. The next supervisor looks at all three. Between fork and exec a child looks
//! whether its parent lives, and ends if not.

mod adopt;
mod instance;
mod keeping;
mod requests;
mod turn;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use outlive::{Domain, now_ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::backoff::Chance;
use crate::cgroup::Cgroup;
use crate::config::{Config, ProcessSpec};
use crate::control::Server;
use crate::logs::{Follower, Log, Plan, default_dir};
use crate::notify::Notify;
use crate::os;
use crate::printer::Printer;
use crate::proc::{Identity, end_marked};
use crate::spawn::SpawnEnv;
use crate::state::{Phase, RunDir, State};
use instance::{Instance, Life};
use keeping::Keeping;

/// Longest sleep between two looks at health.
const TURN: Duration = Duration::from_millis(50);
/// The same while something is about to change.
const SHORT_TURN: Duration = Duration::from_millis(10);

/// So many names a service manager shows; it cuts what is longer than 4 KiB.
const NAMES_MAX: usize = 8;

/// How a supervisor behaves.
#[derive(Clone, Debug, Default)]
pub struct SupervisorOptions {
    /// Print nothing of what the processes say; the logs have it.
    pub quiet: bool,
    /// End what an earlier supervisor left, whatever the file says, and start everything again.
    pub fresh: bool,
    /// Program and first arguments of the process that keeps the logs; the directory and the
    /// number for [`keep_logs`](crate::keep_logs) follow. Empty: this program with `keep-logs`.
    pub log_keeper: Vec<OsString>,
}

/// How a supervised robot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to, or all its processes were done.
    Stopped,
    /// A core or a service at its limit ended it, or all have ended and one of them failed.
    Failed,
}

/// Why it could not begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Another supervisor runs this domain.
    Running(PathBuf),
    /// The operating system refused, doing this.
    Io(String, io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running(dir) => write!(
                f,
                "another 'outlive run' has {}: look with 'outlive ps', end it with 'outlive stop'",
                dir.display()
            ),
            Self::Io(what, e) => write!(f, "{what}: {e}"),
        }
    }
}

impl std::error::Error for StartError {}

fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> StartError {
    let what = what.into();
    move |e| StartError::Io(what, e)
}

/// As long as in `outlive::Shutdown`.
const SAME_REQUEST: Duration = Duration::from_millis(250);

/// What came by signal.
#[derive(Debug)]
struct Signals {
    stop: Arc<AtomicBool>,
    /// When that was first seen.
    stopped: Option<Instant>,
    reload: Arc<AtomicBool>,
    wake: UnixStream,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
        let (stop, reload) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (wake, wakes) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload))?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, wakes.try_clone()?)?;
        }
        Ok(Self { stop, stopped: None, reload, wake })
    }

    /// Whether SIGINT or SIGTERM came, once more too. What comes soon after the first is the same
    /// request: timeout(1) signals its child, then its whole group.
    fn stop(&mut self) -> bool {
        let came = self.stop.swap(false, Relaxed);
        let is_same = self.stopped.is_some_and(|first| first.elapsed() < SAME_REQUEST);
        if came {
            self.stopped.get_or_insert_with(Instant::now);
        }
        came && !is_same
    }

    fn reload(&self) -> bool {
        self.reload.swap(false, Relaxed)
    }

    fn drain(&mut self) {
        let mut bytes = [0; 256];
        while matches!(io::Read::read(&mut self.wake, &mut bytes), Ok(n) if n > 0) {}
    }
}

/// Runs the processes of a file.
#[derive(Debug)]
pub struct Supervisor {
    config: Config,
    options: SupervisorOptions,
    dir: RunDir,
    _lock: File,
    domain: Domain,
    spawn_env: SpawnEnv,
    logs: PathBuf,
    instances: Vec<Instance>,
    control: Option<Server>,
    signals: Signals,
    notify: Notify,
    printer: Printer,
    /// Who shows what the processes say, if anybody does.
    follower: Option<Follower>,
    log: Log,
    keeping: Keeping,
    chance: Chance,
    /// When SIGHUP came: to read the file again, or because the terminal goes away.
    hung_up: Option<Instant>,
    /// Set once the robot is to stop: how it ended.
    ending: Option<Outcome>,
    /// The state on disk is old.
    dirty: bool,
    told_ready: bool,
    told_full: bool,
    /// When it was last said that a look failed.
    told_blind: Option<Instant>,
    /// The file as it was read.
    stamp: Option<Stamp>,
    /// Another one, and since when: it may be half written.
    newer: Option<(Stamp, Instant)>,
}

impl Supervisor {
    /// Takes the lock, finds what an earlier supervisor left, and adopts or ends it.
    ///
    /// Call it from the thread that will call [`Supervisor::run`]: processes that are to die with
    /// their supervisor die with that thread.
    ///
    /// # Errors
    /// Another supervisor is there; a directory, log or socket cannot be made.
    pub fn start(
        config: Config,
        domain: Domain,
        options: SupervisorOptions,
    ) -> Result<Self, StartError> {
        let dir = RunDir::of(&domain);
        dir.create().map_err(doing(format!("make {}", dir.path().display())))?;
        let lock = dir.lock().map_err(doing(format!("lock {}", dir.path().display())))?;
        let lock = lock.ok_or_else(|| StartError::Running(dir.path().into()))?;
        let signals = Signals::catch().map_err(doing("catch signals"))?;
        os::adopt_grandchildren();
        let logs = config.logs.clone().unwrap_or_else(|| default_dir(&config.name));
        let made = fs::create_dir_all(&logs);
        let what = format!(
            "make the directory of logs {} (`logs` of [robot] names another)",
            logs.display()
        );
        made.map_err(doing(what))?;
        let log = Log::open(&logs, dir.path(), "run").map_err(doing("open run.log"))?;
        let control = Server::open(dir.path()).map_err(doing("open the control socket"))?;
        let width = config.processes.iter().map(|p| p.name.len()).max().unwrap_or(0).max(3);
        // They run in directories of their own: a relative path would lead them elsewhere.
        let real = dir.real();
        let root = real.parent().unwrap_or(&real);
        let spawn_env = SpawnEnv {
            dir: real.to_string_lossy().into_owned(),
            root: root.to_string_lossy().into_owned(),
            domain: domain.name().into(),
        };
        let keeping = Keeping::new(dir.path(), &spawn_env.dir, &options.log_keeper);
        let mut new = Self {
            stamp: Stamp::of(&config),
            newer: None,
            options,
            dir,
            _lock: lock,
            domain,
            spawn_env,
            logs,
            instances: Vec::new(),
            control: Some(control),
            signals,
            notify: Notify::from_environment(),
            printer: Printer::new(width).map_err(doing("start a thread"))?,
            follower: None,
            log,
            keeping,
            chance: Chance::new(now_ns() ^ (u64::from(std::process::id()) << 32)),
            hung_up: None,
            ending: None,
            dirty: true,
            told_ready: false,
            told_full: false,
            told_blind: None,
            config,
        };
        if !new.options.quiet
            && let Some(lines) = new.printer.lines()
        {
            new.follower = Some(Follower::start(lines).map_err(doing("start a thread"))?);
        }
        for (number, spec) in new.config.processes.clone().into_iter().enumerate() {
            let log = Log::open(&new.logs, new.dir.path(), &spec.name)
                .map_err(doing(format!("open the log of {}", spec.name)))?;
            new.add(spec, log, number);
        }
        new.keep_logs().map_err(doing("start the log keeper"))?;
        let robot = new.config.name.clone();
        let count = new.instances.len();
        new.say(&format!("{robot}: {count} processes, logs in {}", new.logs.display()));
        new.take_over();
        Ok(new)
    }

    /// Supervises until the robot stops; then nothing of it runs any more.
    pub fn run(mut self) -> Outcome {
        loop {
            let outcome = self.turn();
            // Again in the next turn.
            let _ = self.save();
            self.tend_logs();
            if let Some(outcome) = outcome {
                return self.leave(outcome);
            }
            self.notify.alive(!self.told_ready || self.ending.is_some());
            self.sleep();
        }
    }

    fn leave(mut self, outcome: Outcome) -> Outcome {
        // What has left its session, and its group, still bears the marks.
        end_marked(&self.spawn_env.dir, None);
        Cgroup::end_all(&self.spawn_env.dir);
        while os::ended_child().is_some_and(os::reap) {}
        self.say(match outcome {
            Outcome::Stopped => "stopped: nothing runs any more",
            Outcome::Failed => "stopped after a failure: nothing runs any more",
        });
        self.log.push();
        self.keeping.end();
        self.follower = None;
        self.printer.end();
        self.dir.remove();
        outcome
    }

    /// A line of the supervisor's own, for the terminal and its log.
    fn say(&mut self, text: &str) {
        self.printer.line("run", 0, text);
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = seconds.map_or(0.0, |s| s.as_secs_f64());
        self.log.add(&format!("{seconds:.3} {text}"));
    }

    fn state(&self) -> State {
        let now_ns = now_ns();
        let processes = self.instances.iter().map(|i| i.status(now_ns)).collect();
        State::new(&self.config.file, &self.config.name, self.ending.is_some(), processes)
    }

    /// Writes the state down if it has changed. An error is said once.
    fn save(&mut self) -> io::Result<()> {
        if self.dirty {
            let written = self.dir.write(&self.state());
            if let Err(e) = &written
                && !self.told_full
            {
                self.told_full = true;
                self.printer.line("run", 0, &format!("cannot write state.json: {e}"));
            }
            self.dirty = written.is_err();
            return written;
        }
        Ok(())
    }

    /// Has the logs kept as the file says now.
    fn keep_logs(&mut self) -> io::Result<()> {
        let logs = std::iter::once(&self.log).chain(self.instances.iter().map(|i| &i.log));
        self.keeping.keep(Plan {
            number: 0,
            supervisor: Identity::own(),
            bytes_max: self.config.log_bytes,
            keep: self.config.log_files,
            rate: self.config.log_rate,
            logs: logs.map(|l| (l.pipe_path().into(), l.path().into())).collect(),
        })
    }

    /// What has to do with the logs, and waits for none of them.
    fn tend_logs(&mut self) {
        self.log.push();
        for Instance { log, process, .. } in &self.instances {
            log.set_silent(process.is_none());
        }
    }

    /// Adds a process that has not begun; `number` is for its colour.
    fn add(&mut self, spec: ProcessSpec, log: Log, number: usize) {
        if let Some(follower) = &mut self.follower {
            follower.follow(&log, &spec.name, number);
        }
        self.instances.push(Instance::new(spec, log));
    }

    fn sleep(&mut self) {
        let soon = |i: &Instance| {
            !matches!(i.life, Life::Ready | Life::Stopped | Life::Done | Life::Failed)
        };
        let turn = if self.instances.iter().any(soon) { SHORT_TURN } else { TURN };
        let timeout = Timespec { tv_sec: 0, tv_nsec: turn.as_nanos() as i64 };
        let processes = self.instances.iter().filter_map(|i| i.process.as_ref());
        let mut fds: Vec<PollFd<'_>> =
            processes.map(|p| PollFd::new(&p.fd, PollFlags::IN)).collect();
        let control = self.control.iter().flat_map(Server::fds);
        fds.extend(control.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.extend(self.keeping.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.push(PollFd::from_borrowed_fd(self.signals.wake.as_fd(), PollFlags::IN));
        let _ = poll(&mut fds, Some(&timeout));
        drop(fds);
        self.signals.drain();
    }

    /// Tells a service manager once everything is ready, and until then and later what is not.
    fn tell_readiness(&mut self) {
        let ready = |i: &Instance| matches!(i.phase(), Phase::Ready | Phase::Done);
        if !self.told_ready && self.instances.iter().all(|i| ready(i) || i.left_down) {
            self.told_ready = true;
            let all = self.instances.iter().all(ready);
            self.say(if all { "all ready" } else { "all others ready" });
            self.notify.send("READY=1");
        }
        let missing = || self.instances.iter().filter(|i| !ready(i));
        let count = missing().count();
        if count > 0 {
            let told = missing().take(NAMES_MAX);
            let told: Vec<String> =
                told.map(|i| format!("{} {}", i.spec.name, i.phase().name())).collect();
            let more = if count > NAMES_MAX { ", ..." } else { "" };
            self.notify.status(&format!("{}{more}", told.join(", ")));
            return;
        }
        self.notify.status("all ready");
    }
}

/// What changes with a file: time, size, and which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(SystemTime, u64, u64);

impl Stamp {
    fn of(config: &Config) -> Option<Self> {
        let meta = fs::metadata(&config.file).ok()?;
        Some(Self(meta.modified().ok()?, meta.len(), meta.ino()))
    }
}

/// The identities of all processes of instances.
fn identities(instances: &[Instance]) -> Vec<Identity> {
    instances.iter().filter_map(|i| i.process.as_ref().map(|p| p.identity)).collect()
}
