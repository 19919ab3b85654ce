//! The process that writes the logs: started, replaced, and started again when it has ended.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use outlive::now_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

use super::{Supervisor, has_ended};
use crate::logs::{DRAFT, LOCK, PLAN, Plan, end_keeper, keeper_of};
use crate::os;
use crate::proc::Identity;

/// One that cannot be started, or ends at once, is tried again after so long.
const REST: Duration = Duration::from_secs(1);
/// For one that starts.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Keeper {
    identity: Identity,
    fd: OwnedFd,
    since: Instant,
}

/// The keeper, if there is one now.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    keeper: Option<Keeper>,
    plan: Option<Plan>,
    not_before: Option<Instant>,
}

impl Keeping {
    /// Can be read once it has ended.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(|k| k.fd.as_fd())
    }

    /// Its pid, to tell it from other children.
    pub(super) fn is(&self, pid: i32) -> bool {
        self.keeper.as_ref().is_some_and(|k| k.identity.pid == pid)
    }
}

impl Supervisor {
    /// Has the logs kept as the file says now. A keeper that does so goes on; any other one, also
    /// of an earlier supervisor, is asked to end first. Who prints meanwhile prints into its pipe.
    pub(super) fn keep_logs(&mut self) -> io::Result<()> {
        let logs = std::iter::once(&self.log).chain(self.instances.iter().map(|i| &i.log));
        let plan = Plan {
            number: self.keeping.plan.as_ref().map_or(0, |old| old.number),
            supervisor: Identity::own(),
            bytes_max: self.config.log_bytes,
            keep: self.config.log_files,
            rate: self.config.log_rate,
            logs: logs.map(|l| (l.pipe_path().into(), l.path().into())).collect(),
        };
        if self.keeping.keeper.is_some() && self.keeping.plan.as_ref() == Some(&plan) {
            return Ok(());
        }
        let old = keeper_of(self.dir.path());
        self.forget_keeper();
        self.keeping.plan = Some(plan);
        // The new one has the pipes open before the old one ends: what is in them is never alone.
        let begun = self.start_keeper().map(await_ready);
        if let Some(old) = old {
            end_keeper(old);
        }
        begun
    }

    /// Starts one; the end of what it prints.
    fn start_keeper(&mut self) -> io::Result<Option<ChildStdout>> {
        let Some(plan) = &mut self.keeping.plan else { return Ok(None) };
        self.keeping.not_before = Some(Instant::now() + REST);
        plan.number = now_ns();
        let dir = self.dir.path();
        File::options().create(true).append(true).open(dir.join(LOCK))?;
        let draft = dir.join(DRAFT);
        fs::write(&draft, serde_json::to_vec(plan)?)?;
        fs::rename(draft, dir.join(PLAN))?;
        let own = ["/proc/self/exe".into(), "keep-logs".into()];
        let program = &self.options.log_keeper;
        let program = if program.is_empty() { &own[..] } else { program };
        let mut command = Command::new(&program[0]);
        command
            .args(&program[1..])
            .arg(&self.spawn_env.dir)
            .arg(OsStr::new(&plan.number.to_string()));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        // Ctrl-C is for the supervisor: the keeper hears the robot's last words.
        os::in_child(&mut command, || setsid().map(drop).map_err(io::Error::from));
        let mut child = command.spawn()?;
        let (pid, says) = (child.id() as i32, child.stdout.take());
        let identity = Identity::of_child(pid)?;
        let fd = identity.open_child()?;
        self.keeping.keeper = Some(Keeper { identity, fd, since: Instant::now() });
        Ok(says)
    }

    /// Starts it again if it has ended.
    pub(super) fn look_after_keeper(&mut self) {
        if self.keeping.keeper.as_ref().is_some_and(|k| has_ended(&k.fd)) {
            let ran = self.keeping.keeper.as_ref().map_or(Duration::ZERO, |k| k.since.elapsed());
            self.forget_keeper();
            self.say("the log keeper ended; starting another");
            if ran > REST {
                self.keeping.not_before = None;
            }
        }
        let rested = self.keeping.not_before.is_none_or(|until| Instant::now() >= until);
        if self.keeping.keeper.is_none()
            && rested
            && let Err(e) = self.start_keeper()
        {
            self.say(&format!("cannot start the log keeper: {e}"));
        }
    }

    /// Reaps it, if it is there and has ended.
    fn forget_keeper(&mut self) {
        let Some(keeper) = self.keeping.keeper.take() else { return };
        if let Some(pid) = Pid::from_raw(keeper.identity.pid) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// Nothing runs any more: everything that was printed is to be in the logs.
    pub(super) fn end_keeping(&mut self) {
        let begun = Instant::now();
        self.log.push();
        if self.keeping.keeper.is_none() {
            let _ = self.start_keeper();
        }
        if let Some(keeper) = &self.keeping.keeper {
            // One that was started just now has to be known by its lock first.
            let known = || keeper_of(self.dir.path()) == Some(keeper.identity);
            while !known() && !has_ended(&keeper.fd) && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(2));
            }
            end_keeper(keeper.identity);
        }
        self.forget_keeper();
    }
}

/// Waits until it has the pipes open, has ended, or takes too long.
fn await_ready(says: Option<ChildStdout>) {
    let Some(says) = says else { return };
    let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(&says, PollFlags::IN)], Some(&timeout));
}
