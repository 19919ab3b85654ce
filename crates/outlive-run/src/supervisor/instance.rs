//! One process of the file, through its lives.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, pidfd_send_signal, waitpid};

use crate::backoff::Restarts;
use crate::cgroup::Cgroup;
use crate::config::{Kind, ProcessSpec};
use crate::health::Pulse;
use crate::leftover::{group_signal, kill_all, signal_group_of};
use crate::logs::Log;
use crate::proc::Identity;
use crate::spawn::form;
use crate::state::{Phase, Status};

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) identity: Identity,
    /// Can be read once it has ended.
    pub(super) fd: OwnedFd,
    pub(super) since_ns: u64,
    /// Whether it is our child; others can be watched and not be asked how they ended.
    pub(super) child: bool,
    /// When we first looked whether it is ready: the time that it has for that begins there.
    pub(super) sought_ns: Option<u64>,
    /// From our first look at its heartbeat on.
    pub(super) pulse: Option<Pulse>,
    /// Where one could be had.
    pub(super) cgroup: Option<Cgroup>,
}

impl Process {
    /// A signal for it and its group. Of a child that needs no free descriptor: it keeps its number
    /// until it is reaped. Another one's is asked for, and it has the signal alone if nobody knows.
    fn signal_group(&self, number: i32) {
        let identity = self.identity;
        let sent = match self.child {
            true => signal_group_of(identity.pid, number),
            false => group_signal(identity, number),
        };
        if !sent && let Some(signal) = Signal::from_named_raw(number) {
            let _ = pidfd_send_signal(&self.fd, signal);
        }
    }

    /// SIGKILL for it, its group and its session.
    fn kill(&self) {
        self.signal_group(libc::SIGKILL);
        kill_all(self.identity);
    }
}

/// What follows the end that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It is started again at once.
    Restart,
    /// It counts as an end of its own, for this reason.
    Failure(String),
    /// It stays ended.
    Stop,
    /// Its section is gone.
    Remove,
}

/// Where it is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Waiting,
    Starting,
    Ready,
    Ending {
        kill_ns: u64,
        after: After,
    },
    Backoff {
        until_ns: u64,
    },
    Stopped,
    Done,
    Failed,
    /// To be taken off the list.
    Gone,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) text: String,
    pub(super) success: bool,
}

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) spec: ProcessSpec,
    pub(super) log: Log,
    pub(super) life: Life,
    pub(super) process: Option<Process>,
    pub(super) restarts: Restarts,
    pub(super) last_end: Option<String>,
    /// It was down when an earlier supervisor died, and nobody waits for it.
    pub(super) left_down: bool,
}

impl Instance {
    pub(super) fn new(spec: ProcessSpec, log: Log) -> Self {
        let (restarts, life) = (Restarts::default(), Life::Waiting);
        let (process, last_end, left_down) = (None, None, false);
        Self { spec, log, life, process, restarts, last_end, left_down }
    }

    pub(super) fn is_core(&self) -> bool {
        self.spec.kind == Kind::Core
    }

    pub(super) fn phase(&self) -> Phase {
        match self.life {
            Life::Waiting => Phase::Waiting,
            Life::Starting => Phase::Starting,
            Life::Ready => Phase::Ready,
            Life::Ending { .. } => Phase::Ending,
            Life::Backoff { .. } => Phase::Backoff,
            Life::Stopped | Life::Gone => Phase::Stopped,
            Life::Done => Phase::Done,
            Life::Failed => Phase::Failed,
        }
    }

    pub(super) fn status(&self, now_ns: u64) -> Status {
        let wait_ms = match self.life {
            Life::Backoff { until_ns } => Some(until_ns.saturating_sub(now_ns) / 1_000_000),
            _ => None,
        };
        let identity = self.process.as_ref().map(|p| p.identity);
        Status {
            name: self.spec.name.clone(),
            kind: self.spec.kind,
            phase: self.phase(),
            process: identity,
            adopted: self.process.as_ref().is_some_and(|p| !p.child),
            since_ns: self.process.as_ref().map_or(0, |p| p.since_ns),
            restarts: self.restarts.total,
            last_end: self.last_end.clone(),
            wait_ms,
            log: self.log.path().into(),
            on_supervisor_death: self.spec.on_supervisor_death,
            stop_signal: self.spec.stop_signal,
            grace_ms: self.spec.grace.as_millis() as u64,
            form: form(&self.spec),
            stays_down: matches!(self.life, Life::Ending { after: After::Stop, .. }),
            memory_bytes: identity.and_then(|i| i.memory_bytes()),
            cpu_s: identity.and_then(|i| i.cpu_s()),
        }
    }

    /// Asks it to end; SIGKILL follows after its grace. It is asked once: a second signal kills a
    /// program that is about to end in order. What follows is what was wanted last, but nothing is
    /// started that is no longer in the file.
    pub(super) fn ask_to_end(&mut self, after: After, now_ns: u64) {
        let Some(process) = &self.process else { return };
        if let Life::Ending { after: before, .. } = &mut self.life {
            if *before != After::Remove {
                *before = after;
            }
            return;
        }
        process.signal_group(self.spec.stop_signal);
        let kill_ns = now_ns + self.spec.grace.as_nanos() as u64;
        self.life = Life::Ending { kill_ns, after };
    }

    /// SIGKILL for it and all of its session.
    pub(super) fn kill(&mut self, after: After) {
        let Some(process) = &self.process else { return };
        process.kill();
        self.life = Life::Ending { kill_ns: u64::MAX, after };
    }

    /// Its process has ended: ends what is left of its session, then frees the pid.
    pub(super) fn reap(&mut self) -> Option<(End, Duration)> {
        let process = self.process.take()?;
        process.kill();
        if let Some(cgroup) = &process.cgroup {
            cgroup.end();
        }
        let ran = Duration::from_nanos(outlive::now_ns().saturating_sub(process.since_ns));
        let end = match Pid::from_raw(process.identity.pid).filter(|_| process.child) {
            Some(pid) => end_of(pid),
            None => End { text: "ended".into(), success: false },
        };
        Some((end, ran))
    }
}

fn end_of(pid: Pid) -> End {
    let status = loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some((_, status))) => break status,
            _ => return End { text: "ended".into(), success: false },
        }
    };
    if let Some(code) = status.exit_status() {
        return End { text: format!("ended with code {code}"), success: code == 0 };
    }
    let number = status.terminating_signal().unwrap_or(0);
    End { text: format!("was ended by {}", signal_name(number)), success: false }
}

pub(super) fn signal_name(number: i32) -> String {
    let known = [
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGHUP, "SIGHUP"),
    ];
    let found = known.iter().find(|(n, _)| *n == number);
    found.map_or(format!("signal {number}"), |(_, name)| (*name).to_owned())
}
