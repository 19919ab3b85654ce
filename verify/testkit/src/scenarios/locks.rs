//! Locks, killed at every instruction: of taking, letting go, taking over, repairing.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use outlive::lock::{
    LockError, LockState, LocklessSet, PiMutex, RobustCondvar, RobustMutex, RobustRwLock,
    RobustSemaphore,
};
use outlive::{Domain, Node};

use super::{audit, node, nothing_left, settings, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// Two words that change together.
type Data = [u64; 2];

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
const LONG: Duration = Duration::from_secs(10);
/// Sleeps of the survivors: a lost wake is a hang, not a delay.
const SLICE_NS: u64 = 600_000_000_000;
const SET_FILLED: u64 = 99;

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes a free mutex, changes the data, lets go.
    Mutex,
    /// Lets go of a mutex that a survivor sleeps for.
    UnlockWanted,
    /// Takes a mutex over from a dead process, repairs it, lets go.
    TakeOver,
    /// Takes it over and gives it up.
    GiveUp,
    /// Waits for a mutex that a survivor holds, in vain.
    MutexInVain,
    /// As `Mutex`, with priority inheritance.
    PiMutex,
    /// As `UnlockWanted`, with priority inheritance.
    PiUnlockWanted,
    /// As `TakeOver`, with priority inheritance.
    PiTakeOver,
    /// As `MutexInVain`, with priority inheritance.
    PiInVain,
    /// Reads.
    Read,
    /// Ends reading while a writer waits.
    ReadWanted,
    /// Takes a reader/writer lock for writing, changes the data, lets go.
    Write,
    /// Ends writing while a reader waits.
    WriteWanted,
    /// Waits for a survivor to end reading, in vain.
    WriteInVain,
    /// Takes a reader/writer lock over from a dead writer.
    WriteOver,
    /// Takes a permit and gives it back.
    Permit,
    /// Gives a permit back that a survivor sleeps for.
    PermitWanted,
    /// Takes a dead process's permit over.
    PermitOver,
    /// Waits for a permit in vain.
    PermitInVain,
    /// Puts an id into a small set and takes it out.
    Set,
    /// Puts an id into a large set that is nearly full.
    LargeSet,
    /// Notifies a sleeping survivor.
    Notify,
    /// Makes a lock, registers as a thread, takes it for the first time.
    Create,
    /// Leaves with locks that it used.
    Leave,
}

impl Op {
    /// Short operations, for sweeps of every instruction.
    pub const HOT: [Self; 16] = [
        Self::Mutex,
        Self::UnlockWanted,
        Self::TakeOver,
        Self::GiveUp,
        Self::PiMutex,
        Self::PiUnlockWanted,
        Self::PiTakeOver,
        Self::Read,
        Self::ReadWanted,
        Self::Write,
        Self::WriteWanted,
        Self::WriteOver,
        Self::Permit,
        Self::PermitWanted,
        Self::PermitOver,
        Self::Set,
    ];
    /// Operations that wait or make files, for sweeps of system calls and changes.
    pub const LONG: [Self; 8] = [
        Self::MutexInVain,
        Self::PiInVain,
        Self::WriteInVain,
        Self::PermitInVain,
        Self::LargeSet,
        Self::Notify,
        Self::Create,
        Self::Leave,
    ];

    /// What a survivor waits for while the victim is at it.
    fn wanted(self) -> Option<Wanted> {
        match self {
            Self::UnlockWanted => Some(Wanted::Mutex),
            Self::PiUnlockWanted => Some(Wanted::Pi),
            Self::ReadWanted => Some(Wanted::Write),
            Self::WriteWanted => Some(Wanted::Read),
            Self::PermitWanted => Some(Wanted::Permit),
            Self::Notify => Some(Wanted::Change),
            _ => None,
        }
    }
}

/// What a survivor's thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Mutex,
    Pi,
    Read,
    Write,
    Permit,
    Change,
}

#[derive(Debug)]
struct Locks {
    mutex: RobustMutex<Data>,
    pi: PiMutex<Data>,
    rwlock: RobustRwLock<Data>,
    semaphore: RobustSemaphore,
    set: LocklessSet,
    large: LocklessSet,
    condvar: RobustCondvar,
}

impl Locks {
    fn open(node: &Node) -> Result<Self, String> {
        let open = || {
            Ok(Self {
                mutex: node.mutex("/sweep/mutex")?,
                pi: node.pi_mutex("/sweep/pi")?,
                rwlock: node.rwlock("/sweep/rwlock")?,
                semaphore: node.semaphore("/sweep/semaphore", 1)?,
                set: node.lockless_set("/sweep/set", 4)?,
                large: node.lockless_set("/sweep/large", SET_FILLED as usize + 1)?,
                condvar: node.condvar("/sweep/condvar")?,
            })
        };
        open().map_err(text)
    }
}

/// Those who live on.
#[derive(Debug)]
pub struct Survivors {
    node: Node,
    locks: Arc<Locks>,
    /// Sleeps for what the victim has.
    waiter: Option<JoinHandle<Result<Outcome, String>>>,
    /// Has what the victim wants.
    holder: Option<Holder>,
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

fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The two halves of a change; the second makes it whole.
fn change(data: &mut Data) {
    data[0] += 1;
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    data[1] += 1;
}

fn whole(data: &Data) -> Result<Outcome, String> {
    match data {
        [0, 0] => Ok("before"),
        [1, 1] => Ok("after"),
        _ => Err(format!("torn: {data:?}")),
    }
}

/// What a survivor finds when it takes the mutex.
fn take(mutex: &RobustMutex<Data>) -> Result<Outcome, String> {
    match mutex.lock_timeout(LONG) {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(mut left)) => {
            left[1] = left[0];
            drop(left.mark_consistent());
            Ok("owner died")
        }
        Err(LockError::Unrecoverable) => Ok("given up"),
        Err(e) => Err(format!("mutex: {e}")),
    }
}

fn take_pi(mutex: &PiMutex<Data>) -> Result<Outcome, String> {
    match mutex.lock_timeout(LONG) {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(mut left)) => {
            left[1] = left[0];
            drop(left.mark_consistent());
            Ok("owner died")
        }
        Err(e) => Err(format!("pi-mutex: {e}")),
    }
}

fn write(rwlock: &RobustRwLock<Data>) -> Result<Outcome, String> {
    match rwlock.write_timeout(LONG) {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(mut left)) => {
            left[1] = left[0];
            drop(left.mark_consistent());
            Ok("owner died")
        }
        Err(e) => Err(format!("write: {e}")),
    }
}

fn read(rwlock: &RobustRwLock<Data>) -> Result<Outcome, String> {
    match rwlock.read_timeout(LONG) {
        Ok(guard) => whole(&guard),
        Err(LockError::OwnerDied(_)) => write(rwlock),
        Err(e) => Err(format!("read: {e}")),
    }
}

fn permit(semaphore: &RobustSemaphore) -> Result<Outcome, String> {
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
fn leave_the_dead(dir: &Path) -> Result<(), String> {
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

impl Scenario for Op {
    type World = Survivors;

    fn name(&self) -> String {
        let name = format!("{self:?}");
        let words = name.chars().enumerate().flat_map(|(i, c)| {
            let space = (c.is_uppercase() && i > 0).then_some(' ');
            space.into_iter().chain(c.to_lowercase())
        });
        format!("lock: {}", words.collect::<String>())
    }

    fn must_see(&self) -> &[Outcome] {
        match self {
            Self::Mutex | Self::PiMutex | Self::Write => &["before", "owner died", "after"],
            Self::UnlockWanted | Self::PiUnlockWanted | Self::WriteWanted => {
                &["owner died", "after"]
            }
            Self::TakeOver | Self::PiTakeOver | Self::WriteOver => &["owner died", "after"],
            Self::GiveUp => &["owner died", "given up"],
            Self::Permit => &["free", "owner died"],
            Self::Set => &["absent", "present"],
            _ => &[],
        }
    }

    fn setup(&self, dir: &Path) -> Result<Survivors, String> {
        outlive::internals::set_slice_ns_max(SLICE_NS);
        let inherits = [Self::TakeOver, Self::GiveUp, Self::PiTakeOver, Self::WriteOver];
        if inherits.contains(self) || *self == Self::PermitOver {
            leave_the_dead(dir)?;
        }
        let node = node(dir, "survivor")?;
        let locks = Arc::new(Locks::open(&node)?);
        for id in 1..=SET_FILLED {
            locks.large.insert(id).map_err(text)?;
        }
        let held = match self {
            Self::MutexInVain => Some(Wanted::Mutex),
            Self::PiInVain => Some(Wanted::Pi),
            Self::WriteInVain => Some(Wanted::Read),
            Self::PermitInVain => Some(Wanted::Permit),
            _ => None,
        };
        let holder = held.map(|held| Holder::start(&locks, held)).transpose()?;
        Ok(Survivors { node, locks, waiter: None, holder })
    }

    fn at_gate(&self, dir: &Path, world: &mut Survivors) -> Result<(), String> {
        let Some(wanted) = self.wanted() else { return Ok(()) };
        let locks = Arc::clone(&world.locks);
        world.waiter = Some(std::thread::spawn(move || match wanted {
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

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        if *self == Self::Create {
            gate.enter();
            let mutex = node.mutex::<Data>("/sweep/new").map_err(text);
            let rwlock = node.rwlock::<Data>("/sweep/new-too").map_err(text);
            let read = rwlock.map(|rwlock| {
                drop(rwlock.read());
                std::mem::forget(rwlock);
            });
            let done = mutex.map(|mutex| {
                if let Ok(mut guard) = mutex.lock() {
                    change(&mut guard);
                }
                std::mem::forget(mutex);
            });
            gate.leave();
            std::mem::forget(node);
            return read.and(done);
        }
        let locks = Locks::open(&node)?;
        match self {
            Self::Mutex => {
                drop(locks.mutex.lock().map_err(say)?);
                gate.enter();
                let taken = locks.mutex.lock().map(|mut guard| change(&mut guard));
                gate.leave();
                taken.map_err(say)?;
            }
            Self::UnlockWanted => {
                let mut guard = locks.mutex.lock().map_err(say)?;
                change(&mut guard);
                gate.enter();
                drop(guard);
                gate.leave();
            }
            Self::TakeOver | Self::GiveUp => {
                gate.enter();
                let inherited = match locks.mutex.lock() {
                    Err(LockError::OwnerDied(mut left)) if *self == Self::TakeOver => {
                        change(&mut left);
                        drop(left.mark_consistent());
                        true
                    }
                    Err(LockError::OwnerDied(left)) => {
                        drop(left);
                        true
                    }
                    _ => false,
                };
                gate.leave();
                if !inherited {
                    return Err("nothing to inherit".into());
                }
            }
            Self::PiMutex => {
                drop(locks.pi.lock().map_err(say)?);
                gate.enter();
                let taken = locks.pi.lock().map(|mut guard| change(&mut guard));
                gate.leave();
                taken.map_err(say)?;
            }
            Self::PiUnlockWanted => {
                let mut guard = locks.pi.lock().map_err(say)?;
                change(&mut guard);
                gate.enter();
                drop(guard);
                gate.leave();
            }
            Self::PiTakeOver => {
                gate.enter();
                let inherited = match locks.pi.lock() {
                    Err(LockError::OwnerDied(mut left)) => {
                        change(&mut left);
                        drop(left.mark_consistent());
                        true
                    }
                    _ => false,
                };
                gate.leave();
                if !inherited {
                    return Err("nothing to inherit".into());
                }
            }
            Self::PiInVain => {
                gate.enter();
                let late = locks.pi.lock_timeout(Duration::from_millis(1)).is_err();
                gate.leave();
                assert!(late, "a held mutex was taken");
            }
            Self::WriteOver => {
                gate.enter();
                let inherited = match locks.rwlock.write() {
                    Err(LockError::OwnerDied(mut left)) => {
                        change(&mut left);
                        drop(left.mark_consistent());
                        true
                    }
                    _ => false,
                };
                gate.leave();
                if !inherited {
                    return Err("nothing to inherit".into());
                }
            }
            Self::MutexInVain => {
                gate.enter();
                let late = locks.mutex.lock_timeout(Duration::from_millis(1)).is_err();
                gate.leave();
                assert!(late, "a held mutex was taken");
            }
            Self::WriteInVain => {
                gate.enter();
                let late = locks.rwlock.write_timeout(Duration::from_millis(1)).is_err();
                gate.leave();
                assert!(late, "a lock was taken while somebody reads");
            }
            Self::PermitInVain => {
                gate.enter();
                let late = locks.semaphore.acquire_timeout(Duration::from_millis(1)).is_err();
                gate.leave();
                assert!(late, "a permit was taken that is held");
            }
            Self::Read => {
                drop(locks.rwlock.read().map_err(say)?);
                gate.enter();
                let sum = locks.rwlock.read().map(|guard| guard[0] + guard[1]);
                gate.leave();
                assert!(matches!(sum, Ok(0)));
            }
            Self::ReadWanted => {
                let guard = locks.rwlock.read().map_err(say)?;
                gate.enter();
                drop(guard);
                gate.leave();
            }
            Self::Write => {
                drop(locks.rwlock.write().map_err(say)?);
                gate.enter();
                let taken = locks.rwlock.write().map(|mut guard| change(&mut guard));
                gate.leave();
                taken.map_err(say)?;
            }
            Self::WriteWanted => {
                let mut guard = locks.rwlock.write().map_err(say)?;
                change(&mut guard);
                gate.enter();
                drop(guard);
                gate.leave();
            }
            Self::Permit => {
                drop(locks.semaphore.acquire().map_err(say)?);
                gate.enter();
                let taken = locks.semaphore.acquire().map(drop);
                gate.leave();
                taken.map_err(say)?;
            }
            Self::PermitWanted => {
                let permit = locks.semaphore.acquire().map_err(say)?;
                gate.enter();
                drop(permit);
                gate.leave();
            }
            Self::PermitOver => {
                gate.enter();
                let taken = locks.semaphore.acquire().map(|permit| permit.owner_died());
                gate.leave();
                assert!(matches!(taken, Ok(true)));
            }
            Self::Set => {
                gate.enter();
                let new = locks.set.insert(7).is_ok_and(|new| new) && locks.set.remove(7);
                gate.leave();
                assert!(new);
            }
            Self::LargeSet => {
                gate.enter();
                let new = locks.large.insert(1 << 40).is_ok_and(|new| new);
                gate.leave();
                assert!(new);
            }
            Self::Notify => {
                gate.enter();
                locks.condvar.notify_one();
                gate.leave();
            }
            Self::Leave => {
                drop(locks.mutex.lock().map_err(say)?);
                drop(locks.rwlock.read().map_err(say)?);
                gate.enter();
                drop((locks, node));
                gate.leave();
                return Ok(());
            }
            Self::Create => {}
        }
        std::mem::forget((locks, node));
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut Survivors, at: &Point) -> Result<Outcome, String> {
        let locks = &world.locks;
        // What the survivors hold against the victim goes first.
        world.holder.take().map_or(Ok(()), Holder::end)?;
        let waited = match world.waiter.take() {
            Some(waiter) => Some(waiter.join().map_err(|_| "the waiter panicked".to_owned())??),
            None => None,
        };
        let outcome = match (self, waited) {
            (_, Some(outcome)) => outcome,
            (Self::Mutex | Self::TakeOver | Self::GiveUp, _) => take(&locks.mutex)?,
            (Self::PiMutex | Self::PiTakeOver | Self::PiInVain, _) => take_pi(&locks.pi)?,
            (Self::Write | Self::WriteOver, _) => read(&locks.rwlock)?,
            (Self::Permit | Self::PermitOver, _) => permit(&locks.semaphore)?,
            (Self::Set, _) => {
                if locks.set.remove(7) {
                    "present"
                } else {
                    "absent"
                }
            }
            (Self::LargeSet, _) => {
                let there = locks.large.contains(1 << 40);
                if there != locks.large.ids().contains(&(1 << 40)) || (at.finished && !there) {
                    return Err("the set and its members disagree".into());
                }
                if there { "present" } else { "absent" }
            }
            (Self::Create, _) => {
                let mutex = world.node.mutex::<Data>("/sweep/new").map_err(text)?;
                let rwlock = world.node.rwlock::<Data>("/sweep/new-too").map_err(text)?;
                if write(&rwlock)? != "before" {
                    return Err("a reader changed something".into());
                }
                take(&mutex)?
            }
            _ => "goes on",
        };
        let undone = outcome == "before" && self.changes();
        if at.finished && (undone || outcome == "owner died") {
            return Err(format!("it was finished, yet: {outcome}"));
        }
        if outcome == "owner died" && matches!(self, Self::Read | Self::ReadWanted) {
            return Err("a reader's death was taken for a writer's".into());
        }
        audit(dir)?;
        self.all_works(dir, world)?;
        audit(dir)?;
        Ok(outcome)
    }

    fn teardown(&self, dir: &Path, world: Survivors) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

impl Op {
    /// Whether the data or somebody's knowledge is another once it is finished.
    fn changes(self) -> bool {
        use Op::{Create, Mutex, Notify, TakeOver, UnlockWanted, Write, WriteOver, WriteWanted};
        use Op::{PiMutex, PiTakeOver, PiUnlockWanted};
        matches!(
            self,
            Mutex | UnlockWanted | TakeOver | Write | WriteWanted | WriteOver | Create | Notify
        ) || matches!(self, PiMutex | PiUnlockWanted | PiTakeOver)
    }

    /// Survivors and a newcomer take and let go of everything.
    fn all_works(self, dir: &Path, world: &Survivors) -> Result<(), String> {
        let newcomer = node(dir, "newcomer")?;
        let theirs = Locks::open(&newcomer)?;
        for locks in [&*world.locks, &theirs] {
            // Where the victim gave it up it stays given up.
            if self != Self::GiveUp {
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
