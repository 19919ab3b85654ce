//! The victim: does one operation between the gates.

use std::ops::DerefMut;
use std::path::Path;
use std::time::Duration;

use outlive::Node;
use outlive::lock::{Guard, Inherited, LockError, LockResult};

use super::super::{node, text};
use super::op::Op;
use super::opened::{Data, Locks, say};
use crate::sweep::Gate;

/// A wait that ends in vain.
const SHORT: Duration = Duration::from_millis(1);

/// The two halves of a change; the second makes it whole.
fn change(data: &mut Data) {
    data[0] += 1;
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    data[1] += 1;
}

/// An operation, between the gates.
#[inline(always)]
fn inside<T>(gate: &Gate, operation: impl FnOnce() -> T) -> T {
    gate.enter();
    let done = operation();
    gate.leave();
    done
}

/// Takes a lock, changes the data, lets go.
#[inline(always)]
fn turn<G: Guard + DerefMut<Target = Data>>(
    gate: &Gate,
    take: impl Fn() -> LockResult<G, Inherited<G>>,
) -> Result<(), String> {
    // The first time is another way.
    drop(take().map_err(say)?);
    inside(gate, || take().map(|mut guard| change(&mut guard))).map_err(say)
}

/// Takes over what a dead process holds, repairs it, lets go.
#[inline(always)]
fn take_over<G: Guard + DerefMut<Target = Data>>(
    gate: &Gate,
    take: impl FnOnce() -> LockResult<G, Inherited<G>>,
) -> Result<(), String> {
    inherited(inside(gate, || match take() {
        Err(LockError::OwnerDied(mut left)) => {
            change(&mut left);
            drop(left.mark_consistent());
            true
        }
        _ => false,
    }))
}

fn inherited(inherited: bool) -> Result<(), String> {
    if inherited { Ok(()) } else { Err("nothing to inherit".into()) }
}

/// Makes locks, registers as a thread, takes them for the first time.
fn create(node: Node, gate: &Gate) -> Result<(), String> {
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
    read.and(done)
}

/// The victim of `op`.
pub(super) fn act(op: Op, dir: &Path, gate: &Gate) -> Result<(), String> {
    let node = node(dir, "victim")?;
    if op == Op::Create {
        return create(node, gate);
    }
    let locks = Locks::open(&node)?;
    match op {
        Op::Mutex => turn(gate, || locks.mutex.lock())?,
        Op::PiMutex => turn(gate, || locks.pi.lock())?,
        Op::Write => turn(gate, || locks.rwlock.write())?,
        Op::UnlockWanted => {
            let mut guard = locks.mutex.lock().map_err(say)?;
            change(&mut guard);
            inside(gate, || drop(guard));
        }
        Op::PiUnlockWanted => {
            let mut guard = locks.pi.lock().map_err(say)?;
            change(&mut guard);
            inside(gate, || drop(guard));
        }
        Op::WriteWanted => {
            let mut guard = locks.rwlock.write().map_err(say)?;
            change(&mut guard);
            inside(gate, || drop(guard));
        }
        Op::TakeOver => take_over(gate, || locks.mutex.lock())?,
        Op::PiTakeOver => take_over(gate, || locks.pi.lock())?,
        Op::WriteOver => take_over(gate, || locks.rwlock.write())?,
        Op::GiveUp => inherited(inside(gate, || match locks.mutex.lock() {
            Err(LockError::OwnerDied(left)) => {
                drop(left);
                true
            }
            _ => false,
        }))?,
        Op::MutexInVain => {
            let late = inside(gate, || locks.mutex.lock_timeout(SHORT).is_err());
            assert!(late, "a held mutex was taken");
        }
        Op::PiInVain => {
            let late = inside(gate, || locks.pi.lock_timeout(SHORT).is_err());
            assert!(late, "a held mutex was taken");
        }
        Op::WriteInVain => {
            let late = inside(gate, || locks.rwlock.write_timeout(SHORT).is_err());
            assert!(late, "a lock was taken while somebody reads");
        }
        Op::PermitInVain => {
            let late = inside(gate, || locks.semaphore.acquire_timeout(SHORT).is_err());
            assert!(late, "a permit was taken that is held");
        }
        Op::Read => {
            drop(locks.rwlock.read().map_err(say)?);
            let sum = inside(gate, || locks.rwlock.read().map(|guard| guard[0] + guard[1]));
            assert!(matches!(sum, Ok(0)));
        }
        Op::ReadWanted => {
            let guard = locks.rwlock.read().map_err(say)?;
            inside(gate, || drop(guard));
        }
        Op::Permit => {
            drop(locks.semaphore.acquire().map_err(say)?);
            inside(gate, || locks.semaphore.acquire().map(drop)).map_err(say)?;
        }
        Op::PermitWanted => {
            let permit = locks.semaphore.acquire().map_err(say)?;
            inside(gate, || drop(permit));
        }
        Op::PermitOver => {
            let taken = inside(gate, || locks.semaphore.acquire().map(|p| p.owner_died()));
            assert!(matches!(taken, Ok(true)));
        }
        Op::Set => {
            let new =
                inside(gate, || locks.set.insert(7).is_ok_and(|new| new) && locks.set.remove(7));
            assert!(new);
        }
        Op::LargeSet => {
            let new = inside(gate, || locks.large.insert(1 << 40).is_ok_and(|new| new));
            assert!(new);
        }
        Op::Notify => inside(gate, || locks.condvar.notify_one()),
        Op::Leave => {
            drop(locks.mutex.lock().map_err(say)?);
            drop(locks.rwlock.read().map_err(say)?);
            inside(gate, || drop((locks, node)));
            return Ok(());
        }
        Op::Create => {}
    }
    std::mem::forget((locks, node));
    Ok(())
}
