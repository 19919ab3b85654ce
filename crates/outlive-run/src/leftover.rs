//! Ends what a dead supervisor left.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cgroup::Cgroup;
use crate::config::Orphan;
use crate::logs::{end_keeper, keeper_of};
use crate::proc::{Identity, marked};
use crate::state::{Phase, RunDir, Status};

/// No grace is longer here.
const GRACE_MAX: Duration = Duration::from_secs(60);

/// Who has been asked to end already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nobody,
    /// The process alone: by the kernel, when its supervisor died.
    Itself,
    /// It and its group.
    Group,
}

/// Somebody who is to end.
#[derive(Clone, Debug)]
pub(crate) struct Leftover {
    pub(crate) name: String,
    pub(crate) identity: Identity,
    pub(crate) signal: i32,
    pub(crate) grace: Duration,
    pub(crate) asked: Asked,
}

impl Asked {
    /// By the kernel, of a child of the supervisor that has died.
    pub(crate) fn by_its_death(identity: Identity, on_death: Orphan) -> Self {
        // Of a program with rights of its own the kernel has dropped the wish.
        match on_death {
            Orphan::Stop if !identity.is_secure() => Self::Itself,
            _ => Self::Nobody,
        }
    }

    fn before(status: &Status, identity: Identity) -> Self {
        match status.phase {
            Phase::Ending => Self::Group,
            _ if status.adopted => Self::Nobody,
            _ => Self::by_its_death(identity, status.on_supervisor_death),
        }
    }
}

impl Leftover {
    /// The process of `status`, or, when it is gone, those of its session.
    pub(crate) fn of(status: &Status) -> Vec<Self> {
        let Some(identity) = status.process else { return Vec::new() };
        let grace = Duration::from_millis(status.grace_ms).min(GRACE_MAX);
        let leftover = |name: String, identity, asked| {
            let signal = status.stop_signal;
            Self { name, identity, signal, grace, asked }
        };
        if identity.is_alive() {
            let asked = Asked::before(status, identity);
            return vec![leftover(status.name.clone(), identity, asked)];
        }
        let helper = |member: Identity| {
            let asked = match status.phase {
                Phase::Ending if member.is_of_group(identity.pid) => Asked::Group,
                _ => Asked::Nobody,
            };
            leftover(format!("a helper of {}", status.name), member, asked)
        };
        identity.session().into_iter().map(helper).collect()
    }

    /// Asks those of its group who were not asked yet; false if it leads none.
    fn ask_group(&self) -> bool {
        match self.asked {
            Asked::Nobody => return group_signal(self.identity, self.signal),
            Asked::Itself => {
                let others = self.identity.session().into_iter();
                others.filter(|member| member.is_of_group(self.identity.pid)).for_each(|member| {
                    member.signal(self.signal);
                });
            }
            Asked::Group => {}
        }
        true
    }
}

/// Asks them all to end, waits for each one's grace, kills the rest. `turn` is called meanwhile.
pub(crate) fn end(leftovers: &[Leftover], mut turn: impl FnMut()) {
    let cgroups: Vec<_> = leftovers.iter().filter_map(|l| Cgroup::of(l.identity.pid)).collect();
    // Each is asked once: a second signal kills a program that is about to end in order.
    let (asked, others): (Vec<_>, Vec<_>) = leftovers.iter().partition(|left| left.ask_group());
    for left in others {
        if !asked.iter().any(|leader| left.identity.is_of_group(leader.identity.pid)) {
            left.identity.signal(left.signal);
        }
    }
    let begun = Instant::now();
    // A process in an uninterruptible sleep outlives SIGKILL.
    while begun.elapsed() < GRACE_MAX + Duration::from_secs(10) {
        let mut alive = leftovers.iter().filter(|left| left.identity.is_alive()).peekable();
        if alive.peek().is_none() {
            break;
        }
        alive.filter(|l| begun.elapsed() >= l.grace).for_each(|left| kill_all(left.identity));
        turn();
        thread::sleep(Duration::from_millis(5));
    }
    leftovers.iter().for_each(|left| kill_all(left.identity));
    cgroups.iter().for_each(Cgroup::end);
}

/// Ends all that the dead supervisor of `dir` left running; their names and pids. `None` when a
/// supervisor lives.
///
/// # Errors
/// Those of reading its state and of the lock.
pub fn end_orphans(dir: &RunDir) -> io::Result<Option<Vec<(String, i32)>>> {
    if !dir.path().exists() {
        return Ok(Some(Vec::new()));
    }
    let Some(_lock) = dir.lock()? else { return Ok(None) };
    let statuses = dir.read()?.map(|state| state.processes).unwrap_or_default();
    let mut all: Vec<Leftover> = statuses.iter().flat_map(Leftover::of).collect();
    for found in marked(&dir.real().to_string_lossy()) {
        if !all.iter().any(|l| l.identity == found.identity) {
            let (signal, grace) = (libc::SIGTERM, Duration::from_secs(1));
            let (name, identity, asked) = (found.name, found.identity, Asked::Nobody);
            all.push(Leftover { name, identity, signal, grace, asked });
        }
    }
    end(&all, || {});
    Cgroup::end_all(&dir.real().to_string_lossy());
    if let Some(keeper) = keeper_of(dir.path()) {
        end_keeper(keeper);
    }
    dir.remove();
    Ok(Some(all.into_iter().map(|left| (left.name, left.identity.pid)).collect()))
}

/// A signal for a process and its group; nothing, and false, if the pid is another one's by now or
/// that cannot be found out. One that has ended and is not reaped still keeps its number.
pub(crate) fn group_signal(identity: Identity, number: i32) -> bool {
    Identity::of(identity.pid) == Some(identity) && signal_group_of(identity.pid, number)
}

/// The same for a number that is known to be the process's own.
pub(crate) fn signal_group_of(pid: i32, number: i32) -> bool {
    let both = Pid::from_raw(pid).zip(Signal::from_named_raw(number));
    both.is_some_and(|(pid, signal)| kill_process_group(pid, signal).is_ok())
}

/// SIGKILL for a process, its group and its session.
pub(crate) fn kill_all(identity: Identity) {
    group_signal(identity, libc::SIGKILL);
    identity.signal(libc::SIGKILL);
    for member in identity.session() {
        member.signal(libc::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use rustix::process::setsid;

    use super::*;
    use crate::os;

    /// The second one killed a program that had begun to end in order.
    #[test]
    fn what_is_left_is_asked_once_to_end_alone_or_with_its_group() {
        // It goes on for a while, so that a second one would find it.
        let counts = "n=0; trap 'n=1; echo asked' TERM; echo $$; \
            while [ $n -lt 50000 ]; do [ $n = 0 ] || n=$((n+1)); done";
        for helpers in [0, 1] {
            let mut command = Command::new("sh");
            let script = format!("for n in $(seq {helpers}); do sh -c \"$0\" & done; eval \"$0\"");
            command.args(["-c", &script, counts]).stdout(Stdio::piped());
            os::in_child(&mut command, || setsid().map(drop).map_err(io::Error::from));
            let mut child = command.spawn().unwrap();
            let mut says = child.stdout.take().unwrap();
            // Each says who it is once its trap is set.
            let mut said = String::new();
            while said.lines().count() < 1 + helpers || !said.ends_with('\n') {
                let mut byte = [0];
                says.read_exact(&mut byte).unwrap();
                said.push(char::from(byte[0]));
            }
            let left = said.lines().map(|pid| Leftover {
                name: pid.into(),
                identity: Identity::of(pid.parse().unwrap()).unwrap(),
                signal: libc::SIGTERM,
                grace: GRACE_MAX,
                asked: Asked::Nobody,
            });
            end(&left.collect::<Vec<_>>(), || {
                let _ = child.try_wait();
            });
            let mut said = String::new();
            says.read_to_string(&mut said).unwrap();
            assert_eq!(said, "asked\n".repeat(1 + helpers), "{helpers} helpers");
        }
    }
}
