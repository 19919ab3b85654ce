//! Subscribers whose samples outlive them: port, maps and node stay until the last sample is gone.
//!
//! The last sample closes the port. It looks whether anybody is parked right after it cleared its
//! hazard, without a fence in between; if it is dropped in the same instant as its subscriber by
//! another thread, both may miss the other. Then the next sample or subscriber to go does it.

use std::fmt::Debug;
use std::sync::TryLockError;

use crate::os::process::fork::per_process::PerProcess;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicU32, MutexGuard};

static PARKED: PerProcess<Vec<Parked>> = PerProcess::new();
/// How many are parked: all that a sample looks at.
static COUNT: AtomicU32 = AtomicU32::new(0);

type Parked = Box<dyn Remains>;

/// What the samples of a dropped subscriber need.
pub(super) trait Remains: Debug + Send {
    /// Whether a sample still does.
    fn is_held(&mut self) -> bool;

    /// Whether this process may use it: not in a forked child, where a port is the parent's and
    /// inherited samples may still be read.
    fn is_ours(&self) -> bool;

    /// The last sample is gone.
    fn close(self: Box<Self>);
}

/// Keeps what a dropped subscriber's samples need.
#[cold]
pub(super) fn park(remains: impl Remains + 'static) {
    let mut all = PARKED.get().lock().unwrap_or_else(|e| e.into_inner());
    all.push(Box::new(remains));
    COUNT.store(all.len() as u32, SeqCst);
}

/// Closes the ports of dropped subscribers whose last sample is gone.
#[inline]
pub(in crate::topic) fn sweep() {
    if COUNT.load(Relaxed) != 0 {
        sweep_slow();
    }
}

#[cold]
fn sweep_slow() {
    // Who holds it is sweeping.
    let Some(mut all) = try_lock() else { return };
    let mut done = Vec::new();
    for mut parked in std::mem::take(&mut *all) {
        if !parked.is_ours() {
            std::mem::forget(parked);
        } else if parked.is_held() {
            all.push(parked);
        } else {
            done.push(parked);
        }
    }
    COUNT.store(all.len() as u32, Relaxed);
    drop(all);
    // Outside the lock: the last reference may close a node, and that takes time.
    done.into_iter().for_each(|parked| parked.close());
}

fn try_lock() -> Option<MutexGuard<'static, Vec<Parked>>> {
    match PARKED.get().try_lock() {
        Ok(all) => Some(all),
        Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
