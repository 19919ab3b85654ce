//! Those who live on: what they hold and wait for, and what they find.

use std::ops::DerefMut;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use outlive::lock::{
    Guard, Inherited, LockError, LockResult, LockState, PiMutex, RobustMutex, RobustRwLock,
    RobustSemaphore,
};
use outlive::{Domain, Node};

use super::super::{node, settings, text};
use super::opened::{Data, Locks, SET_FILLED, say};
use crate::sweep::Outcome;

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
const LONG: Duration = Duration::from_secs(10);
/// What a survivor's thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Mutex,
    Pi,
    Read,
    Write,
    Permit,
    Change,
}

/// Those who live on.
#[derive(Debug)]
pub struct Survivors {
    pub(super) node: Node,
    pub(super) locks: Arc<Locks>,
    /// Sleeps for what the victim has.
    waiter: Option<JoinHandle<Result<Outcome, String>>>,
    /// Has what the victim wants.
    holder: Option<Holder>,
}

impl Survivors {
    /// They hold what the victim wants, if anything.
    pub(super) fn open(dir: &Path, held: Option<Wanted>) -> Result<Self, String> {
        let node = node(dir, "survivor")?;
        let locks = Arc::new(Locks::open(&node)?);
        for id in 1..=SET_FILLED {
            locks.large.insert(id).map_err(text)?;
        }
        let holder = held.map(|held| Holder::start(&locks, held)).transpose()?;
        Ok(Self { node, locks, waiter: None, holder })
    }

    /// One of them begins to wait for what the victim has; returns once it is seen to.
    pub(super) fn wait_for(&mut self, dir: &Path, wanted: Wanted) -> Result<(), String> {
        let locks = Arc::clone(&self.locks);
        self.waiter = Some(std::thread::spawn(move || match wanted {
            Wanted::Mutex => take(&locks.mutex),
            Wanted::Pi => take_pi(&locks.pi),
            Wanted::Read => read(&locks.rwlock),
            Wanted::Write => write(&locks.rwlock),
            Wanted::Permit => permit(&locks.semaphore),
            Wanted::Change => await_change(&locks),
        }));
        let domain = Domain::of(&settings(dir, "look")).map_err(text)?;
        for _ in 0..2000 {
            std::thread::sleep(Duration::from_millis(1));
            let infos = domain.locks().map_err(text)?;
            // A writer that waits for readers has taken the lock word.
            let writes =
                |s: LockState| wanted == Wanted::Write && matches!(s, LockState::Held { .. });
            if infos.iter().any(|lock| lock.waiters || writes(lock.state)) {
                return Ok(());
            }
        }
        Err("nobody waits".into())
    }

    /// Lets go of what is held against the victim; then what the waiter found, if there is one.
    pub(super) fn end_waits(&mut self) -> Result<Option<Outcome>, String> {
        self.holder.take().map_or(Ok(()), Holder::end)?;
        let waiter = self.waiter.take();
        waiter.map(|w| w.join().map_err(|_| "the waiter panicked".to_owned())?).transpose()
    }

    /// They and a newcomer take and let go of everything; a mutex that was given up stays so.
    pub(super) fn all_works(&self, dir: &Path, given_up: bool) -> Result<(), String> {
        let newcomer = node(dir, "newcomer")?;
        let theirs = Locks::open(&newcomer)?;
        for locks in [&*self.locks, &theirs] {
            if !given_up {
                take(&locks.mutex)?;
            }
            take_pi(&locks.pi)?;
            for look in [read, write, read] {
                look(&locks.rwlock)?;
            }
            permit(&locks.semaphore)?;
            let works = locks.set.insert(9).map_err(text)? && locks.set.remove(9);
            if !works || locks.large.ids().len() < SET_FILLED as usize {
                return Err("the set does not work".into());
            }
        }
        Ok(())
    }
}

/// A thread that holds something until it is told to let go.
#[derive(Debug)]
struct Holder {
    let_go: Sender<()>,
    thread: JoinHandle<Result<(), String>>,
}

impl Holder {
    fn start(locks: &Arc<Locks>, what: Wanted) -> Result<Self, String> {
        let (holds, is_held) = channel();
        let (let_go, end) = channel::<()>();
        let locks = Arc::clone(locks);
        let thread = std::thread::spawn(move || {
            let wait = || {
                let _ = holds.send(());
                let _ = end.recv();
            };
            match what {
                Wanted::Mutex => drop((locks.mutex.lock().map_err(say)?, wait())),
                Wanted::Pi => drop((locks.pi.lock().map_err(say)?, wait())),
                Wanted::Read => drop((locks.rwlock.read().map_err(say)?, wait())),
                _ => drop((locks.semaphore.acquire().map_err(say)?, wait())),
            }
            Ok(())
        });
        is_held.recv().map_err(say)?;
        Ok(Self { let_go, thread })
    }

    fn end(self) -> Result<(), String> {
        let _ = self.let_go.send(());
        self.thread.join().map_err(|_| "the holder panicked".to_owned())?
    }
}

fn whole(data: &Data) -> Result<Outcome, String> {
    match data {
        [0, 0] => Ok("before"),
        [1, 1] => Ok("after"),
        _ => Err(format!("torn: {data:?}")),
    }
}

/// What a survivor finds when it takes a lock; it repairs what a dead owner left.
fn found<G: Guard + DerefMut<Target = Data>>(
    what: &str,
    taken: LockResult<G, Inherited<G>>,
) -> Result<Outcome, String> {
    match taken {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(mut left)) => {
            left[1] = left[0];
            drop(left.mark_consistent());
            Ok("owner died")
        }
        Err(e) => Err(format!("{what}: {e}")),
    }
}

pub(super) fn take(mutex: &RobustMutex<Data>) -> Result<Outcome, String> {
    match mutex.lock_timeout(LONG) {
        Err(LockError::Unrecoverable) => Ok("given up"),
        taken => found("mutex", taken),
    }
}

pub(super) fn take_pi(mutex: &PiMutex<Data>) -> Result<Outcome, String> {
    found("pi-mutex", mutex.lock_timeout(LONG))
}

pub(super) fn write(rwlock: &RobustRwLock<Data>) -> Result<Outcome, String> {
    found("write", rwlock.write_timeout(LONG))
}

pub(super) fn read(rwlock: &RobustRwLock<Data>) -> Result<Outcome, String> {
    match rwlock.read_timeout(LONG) {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(_)) => write(rwlock),
        Err(e) => Err(format!("read: {e}")),
    }
}

pub(super) fn permit(semaphore: &RobustSemaphore) -> Result<Outcome, String> {
    match semaphore.acquire_timeout(LONG) {
        Ok(permit) if permit.owner_died() => Ok("owner died"),
        Ok(_) => Ok("free"),
        Err(e) => Err(format!("semaphore: {e}")),
    }
}

fn await_change(locks: &Locks) -> Result<Outcome, String> {
    let guard = locks.mutex.lock().map_err(say)?;
    match locks.condvar.wait_timeout(guard, Duration::from_millis(300)) {
        Ok((_, true)) => Ok("after"),
        Ok((_, false)) => Ok("before"),
        Err(e) => Err(format!("condvar: {e}")),
    }
}

/// A process that dies with everything in its hands.
pub(super) fn leave_the_dead(dir: &Path) -> Result<(), String> {
    let child = crate::fork_child(|| {
        let die = || -> Result<(), String> {
            let node = node(dir, "dead")?;
            let locks = Locks::open(&node)?;
            std::mem::forget(locks.mutex.lock().map_err(say)?);
            std::mem::forget(locks.pi.lock().map_err(say)?);
            std::mem::forget(locks.rwlock.write().map_err(say)?);
            std::mem::forget(locks.semaphore.acquire().map_err(say)?);
            std::mem::forget((locks, node));
            Ok(())
        };
        i32::from(die().is_err())
    });
    let exit = child.map_err(say)?.wait();
    if exit.success() { Ok(()) } else { Err(format!("the dead one failed: {exit}")) }
}
