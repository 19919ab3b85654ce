//! Mutexes and reader/writer locks, as a member uses them.

use std::sync::Arc;
use std::time::Duration;

use outlive::lock::{
    Inherited, LockError, MutexGuard, ReadGuard, RobustMutex, RobustRwLock, WriteGuard,
};

use super::{Fails, Shared, Thing};
use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

/// What a lock of a history protects: equal words, where nobody was stopped half way.
type Data = [u64; 4];

/// A lock of either kind.
#[derive(Clone)]
pub(super) enum Lock {
    Mutex(Arc<RobustMutex<Data>>),
    RwLock(Arc<RobustRwLock<Data>>),
}

enum Held {
    Mutex(MutexGuard<'static, Data>),
    MutexLeft(Inherited<MutexGuard<'static, Data>>),
    Read(ReadGuard<'static, Data>),
    Write(WriteGuard<'static, Data>),
    WriteLeft(Inherited<WriteGuard<'static, Data>>),
}

/// What a thread holds; it goes before the lock that is kept for it.
pub(super) struct Guard(Held, Lock);

impl Guard {
    pub(super) fn write(&mut self, step: &Step) {
        let words = if step.arg("half") == 1 { 2 } else { 4 };
        let data: &mut Data = match &mut self.0 {
            Held::Mutex(guard) => guard,
            Held::MutexLeft(guard) => guard,
            Held::Write(guard) => guard,
            Held::WriteLeft(guard) => guard,
            Held::Read(_) => panic!("a reader does not write"),
        };
        data[..words].fill(step.arg("value"));
    }

    /// What it protects, as it is.
    pub(super) fn data(&self) -> Vec<u64> {
        match &self.0 {
            Held::Mutex(guard) => guard.to_vec(),
            Held::MutexLeft(guard) => guard.to_vec(),
            Held::Read(guard) => guard.to_vec(),
            Held::Write(guard) => guard.to_vec(),
            Held::WriteLeft(guard) => guard.to_vec(),
        }
    }

    pub(super) fn forget(self) {
        let Self(held, lock) = self;
        std::mem::forget(held);
        drop(lock);
    }
}

fn name(number: u64, shared: bool) -> String {
    format!("/h/{}{number}", if shared { "rwlock" } else { "mutex" })
}

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Lock, Fails> {
    let node = shared.node(step.arg("node"));
    let number = step.arg("mutex");
    Ok(match step.verb {
        Verb::Mutex => Lock::Mutex(Arc::new(node.mutex(&name(number, false))?)),
        _ => Lock::RwLock(Arc::new(node.rwlock(&name(number, true))?)),
    })
}

pub(super) fn remove(shared: &Shared, step: &Step) -> Result<(), Fails> {
    let node = shared.node(step.arg("node"));
    node.remove_lock(&name(step.arg("mutex"), step.arg("rw") == 1))?;
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
        Lock::RwLock(rwlock) => {
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

/// How a lock that was inherited by a forked child answers.
pub(super) fn refuses(lock: &Lock) -> String {
    let said = match lock {
        Lock::Mutex(mutex) => mutex.try_lock().map(drop).map_err(|e| e.kind()),
        Lock::RwLock(rwlock) => rwlock.try_read().map(drop).map_err(|e| e.kind()),
    };
    said.map_or_else(|kind| format!("{kind:?}"), |()| "ok".into())
}

/// What a dead owner left is made whole, given up, or kept as it is.
fn inherit(guard: Guard, heal: u64, reply: &mut Reply) -> Option<Guard> {
    let Guard(held, lock) = guard;
    let held = match (held, heal) {
        (Held::MutexLeft(_) | Held::WriteLeft(_), 0) => {
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
        (held, _) => {
            reply.value = u64::from(matches!(held, Held::MutexLeft(_) | Held::WriteLeft(_)));
            held
        }
    };
    Some(Guard(held, lock))
}
