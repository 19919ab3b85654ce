//! The process that writes the logs: started, replaced, and started again when it has ended.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use outlive::now_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::setsid;

use crate::logs::{DRAFT, LOCK, PLAN, Plan, end_keeper, keeper_of};
use crate::os::{self, has_ended};
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
#[derive(Debug)]
pub(super) struct Keeping {
    /// The supervisor's directory.
    dir: PathBuf,
    /// The same as the keeper is told it.
    real: String,
    /// What is started, without the directory and the number.
    program: Vec<OsString>,
    keeper: Option<Keeper>,
    plan: Option<Plan>,
    not_before: Option<Instant>,
}

impl Keeping {
    /// `program`: see [`SupervisorOptions::log_keeper`](super::SupervisorOptions::log_keeper).
    pub(super) fn new(dir: &Path, real: &str, program: &[OsString]) -> Self {
        let own = ["/proc/self/exe".into(), "keep-logs".into()];
        let program = if program.is_empty() { &own[..] } else { program };
        let (dir, real, program) = (dir.into(), real.into(), program.into());
        Self { dir, real, program, keeper: None, plan: None, not_before: None }
    }

    /// Can be read once it has ended.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(|k| k.fd.as_fd())
    }

    /// Its pid, to tell it from other children.
    pub(super) fn is(&self, pid: i32) -> bool {
        self.keeper.as_ref().is_some_and(|k| k.identity.pid == pid)
    }

    /// Has the logs kept by this plan, whatever its number. A keeper that does so goes on; any
    /// other one, also of an earlier supervisor, is asked to end first. Who prints meanwhile prints
    /// into its pipe.
    pub(super) fn keep(&mut self, plan: Plan) -> io::Result<()> {
        let number = self.plan.as_ref().map_or(0, |old| old.number);
        let plan = Plan { number, ..plan };
        if self.keeper.is_some() && self.plan.as_ref() == Some(&plan) {
            return Ok(());
        }
        let old = keeper_of(&self.dir);
        self.forget();
        self.plan = Some(plan);
        // The new one has the pipes open before the old one ends: what is in them is never alone.
        let begun = self.start().map(await_ready);
        if let Some(old) = old {
            end_keeper(old);
        }
        begun
    }

    /// Starts one; the end of what it prints.
    fn start(&mut self) -> io::Result<Option<ChildStdout>> {
        let Some(plan) = &mut self.plan else { return Ok(None) };
        self.not_before = Some(Instant::now() + REST);
        plan.number = now_ns();
        File::options().create(true).append(true).open(self.dir.join(LOCK))?;
        let draft = self.dir.join(DRAFT);
        fs::write(&draft, serde_json::to_vec(plan)?)?;
        fs::rename(draft, self.dir.join(PLAN))?;
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).arg(&self.real).arg(OsStr::new(&plan.number.to_string()));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        // Ctrl-C is for the supervisor: the keeper hears the robot's last words.
        os::in_child(&mut command, || setsid().map(drop).map_err(io::Error::from));
        let mut child = command.spawn()?;
        let (pid, says) = (child.id() as i32, child.stdout.take());
        let identity = Identity::of_child(pid)?;
        let fd = identity.open_child()?;
        self.keeper = Some(Keeper { identity, fd, since: Instant::now() });
        Ok(says)
    }

    /// Starts it again if it has ended. What there is to say about it.
    pub(super) fn look_after(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(keeper) = self.keeper.as_ref().filter(|k| has_ended(&k.fd)) {
            let ran = keeper.since.elapsed();
            self.forget();
            said.push("the log keeper ended; starting another".into());
            if ran > REST {
                self.not_before = None;
            }
        }
        let rested = self.not_before.is_none_or(|until| Instant::now() >= until);
        if self.keeper.is_none()
            && rested
            && let Err(e) = self.start()
        {
            said.push(format!("cannot start the log keeper: {e}"));
        }
        said
    }

    /// Reaps it, if it is there and has ended.
    fn forget(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            os::reap(keeper.identity.pid);
        }
    }

    /// Nothing runs any more: everything that was printed is to be in the logs.
    pub(super) fn end(&mut self) {
        let begun = Instant::now();
        if self.keeper.is_none() {
            let _ = self.start();
        }
        if let Some(keeper) = &self.keeper {
            // One that was started just now has to be known by its lock first.
            let known = || keeper_of(&self.dir) == Some(keeper.identity);
            while !known() && !has_ended(&keeper.fd) && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(2));
            }
            end_keeper(keeper.identity);
        }
        self.forget();
    }
}

/// Waits until it has the pipes open, has ended, or takes too long.
fn await_ready(says: Option<ChildStdout>) {
    let Some(says) = says else { return };
    let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(&says, PollFlags::IN)], Some(&timeout));
}
