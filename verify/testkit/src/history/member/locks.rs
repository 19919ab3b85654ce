//! Mutexes and reader/writer locks, as a member uses them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use outlive::lock::{LockError, PiMutex, RobustCondvar, RobustMutex, RobustRwLock};

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use super::things::locks::{Data, Guard, Held, Lock};
use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

/// Of a mutex (0), a reader/writer lock (1), a mutex with priority inheritance (2).
fn name(number: u64, kind: u64) -> String {
    format!("/h/{}{number}", ["mutex", "rwlock", "pi"][kind as usize])
}

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Lock, Fails> {
    let node = shared.node(step.arg("node"));
    let number = step.arg("mutex");
    Ok(match step.verb {
        Verb::Mutex => Lock::Mutex(Arc::new(node.mutex(&name(number, 0))?)),
        Verb::PiMutex => Lock::Pi(Arc::new(node.pi_mutex(&name(number, 2))?)),
        _ => Lock::Rw(Arc::new(node.rwlock(&name(number, 1))?)),
    })
}

pub(super) fn remove(shared: &Shared, step: &Step) -> Result<(), Fails> {
    let node = shared.node(step.arg("node"));
    node.remove_lock(&name(step.arg("mutex"), step.arg("rw")))?;
    Ok(())
}

/// Takes a lock; nothing where what a dead owner left is given up at once.
pub(super) fn take(
    shared: &Shared,
    step: &Step,
    reply: &mut Reply,
) -> Result<Option<Guard>, Fails> {
    let on = step.arg("on");
    // Others use it meanwhile.
    let lock = match shared.things.lock().unwrap().get(&on) {
        Some(Thing::Lock(lock)) => lock.clone(),
        _ => panic!("handle {on} is not a lock"),
    };
    let wait = Some(Duration::from_millis(step.arg("ms"))).filter(|wait| !wait.is_zero());
    let held = match &lock {
        Lock::Mutex(mutex) => {
            // SAFETY: kept beside the guard, and dropped after it.
            let mutex: &'static RobustMutex<Data> = unsafe { &*Arc::as_ptr(mutex) };
            match wait.map_or_else(|| mutex.try_lock(), |wait| mutex.lock_timeout(wait)) {
                Ok(guard) => Held::Mutex(guard),
                Err(LockError::OwnerDied(left)) => Held::MutexLeft(left),
                Err(e) => return Err(outlive::Error::from(e).into()),
            }
        }
        Lock::Pi(mutex) => {
            // SAFETY: as above.
            let mutex: &'static PiMutex<Data> = unsafe { &*Arc::as_ptr(mutex) };
            match wait.map_or_else(|| mutex.try_lock(), |wait| mutex.lock_timeout(wait)) {
                Ok(guard) => Held::Pi(guard),
                Err(LockError::OwnerDied(left)) => Held::PiLeft(left),
                Err(e) => return Err(outlive::Error::from(e).into()),
            }
        }
        Lock::Rw(rwlock) => {
            // SAFETY: as above.
            let rwlock: &'static RobustRwLock<Data> = unsafe { &*Arc::as_ptr(rwlock) };
            if step.verb == Verb::Read {
                let got = wait.map_or_else(|| rwlock.try_read(), |wait| rwlock.read_timeout(wait));
                Held::Read(got.map_err(outlive::Error::from)?)
            } else {
                match wait.map_or_else(|| rwlock.try_write(), |wait| rwlock.write_timeout(wait)) {
                    Ok(guard) => Held::Write(guard),
                    Err(LockError::OwnerDied(left)) => Held::WriteLeft(left),
                    Err(e) => return Err(outlive::Error::from(e).into()),
                }
            }
        }
    };
    let guard = Guard(held, lock);
    reply.data = guard.data();
    Ok(inherit(guard, step.arg("heal"), reply))
}

/// Waits for a notification; nothing where what a dead owner left is given up at once. Says 1 for
/// a death and 2 for a notification.
pub(super) fn sleep(
    shared: &Shared,
    guard: Guard,
    step: &Step,
    reply: &mut Reply,
) -> Result<Option<Guard>, Fails> {
    let on = step.arg("on");
    let condvar = match shared.things.lock().unwrap().get(&on) {
        Some(Thing::Condvar(condvar)) => condvar.clone(),
        _ => panic!("handle {on} is not a condition variable"),
    };
    let Guard(Held::Mutex(held), lock) = guard else { panic!("a mutex in good order") };
    let mut notified = false;
    shared.sleeps.fetch_add(1, Relaxed);
    let held = match condvar.wait_timeout(held, Duration::from_millis(step.arg("ms"))) {
        Ok((held, came)) => {
            notified = came;
            Held::Mutex(held)
        }
        Err(LockError::OwnerDied(left)) => Held::MutexLeft(left),
        Err(e) => return Err(outlive::Error::from(e).into()),
    };
    let guard = Guard(held, lock);
    reply.data = guard.data();
    let guard = inherit(guard, step.arg("heal"), reply);
    reply.value += 2 * u64::from(notified);
    Ok(guard)
}

pub(super) fn condvar(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let node = shared.node(step.arg("node"));
    let it: RobustCondvar = node.condvar(&format!("/h/condvar{}", step.arg("condvar")))?;
    Ok(Thing::Condvar(Arc::new(it)))
}

pub(super) fn notify(shared: &Shared, step: &Step) {
    let on = step.arg("on");
    match shared.things.lock().unwrap().get(&on) {
        Some(Thing::Condvar(it)) if step.arg("all") == 1 => it.notify_all(),
        Some(Thing::Condvar(it)) => it.notify_one(),
        _ => panic!("handle {on} is not a condition variable"),
    }
}

/// How a lock that was inherited by a forked child answers.
pub(super) fn refuses(lock: &Lock) -> String {
    let said = match lock {
        Lock::Mutex(mutex) => mutex.try_lock().map(drop).map_err(|e| e.kind()),
        Lock::Rw(rwlock) => rwlock.try_read().map(drop).map_err(|e| e.kind()),
        Lock::Pi(mutex) => mutex.try_lock().map(drop).map_err(|e| e.kind()),
    };
    said.map_or_else(|kind| format!("{kind:?}"), |()| "ok".into())
}

/// What a dead owner left is made whole, given up, or kept as it is.
fn inherit(guard: Guard, heal: u64, reply: &mut Reply) -> Option<Guard> {
    let Guard(held, lock) = guard;
    let held = match (held, heal) {
        (Held::MutexLeft(_) | Held::WriteLeft(_) | Held::PiLeft(_), 0) => {
            reply.value = 1;
            return None;
        }
        (Held::MutexLeft(mut left), 1) => {
            reply.value = 1;
            *left = [left[0]; 4];
            Held::Mutex(left.mark_consistent())
        }
        (Held::WriteLeft(mut left), 1) => {
            reply.value = 1;
            *left = [left[0]; 4];
            Held::Write(left.mark_consistent())
        }
        (Held::PiLeft(mut left), 1) => {
            reply.value = 1;
            *left = [left[0]; 4];
            Held::Pi(left.mark_consistent())
        }
        (held, _) => {
            let left = matches!(held, Held::MutexLeft(_) | Held::WriteLeft(_) | Held::PiLeft(_));
            reply.value = u64::from(left);
            held
        }
    };
    Some(Guard(held, lock))
}
