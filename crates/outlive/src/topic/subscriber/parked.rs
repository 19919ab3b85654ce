//! Subscribers whose samples outlive them: port, maps and node stay until the last sample is gone.
//!
//! The last sample closes the port. It looks whether anybody is parked right after it cleared its
//! hazard, without a fence in between; if it is dropped in the same instant as its subscriber by
//! another thread, both may miss the other. Then the next sample or subscriber to go does it.

use std::fmt::Debug;
use std::sync::{Arc, TryLockError};

use super::records::Records;
use crate::node::OwnPort;
use crate::os::process::per_process::PerProcess;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicU32, MutexGuard};
use crate::topic::chunks::hazard;
use crate::topic::membership::{Ports, Topic};

static PARKED: PerProcess<Vec<Parked>> = PerProcess::new();
/// How many are parked: all that a sample looks at.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What the samples of a dropped subscriber need.
#[derive(Debug)]
pub(in crate::topic) enum Parked {
    /// What borrowed ones lie in.
    Port {
        topic: Arc<Topic>,
        own: OwnPort,
        /// What maps the chunks: kept, and looked at by nobody.
        maps: Box<dyn Debug + Send>,
    },
    /// What says where they lie, or what they lie in; no sample has those before that number.
    Records(Records, usize),
}

impl Parked {
    fn is_held(&mut self) -> bool {
        match self {
            Self::Port { own, .. } => hazard::held_count(own.view().hazards()) > 0,
            Self::Records(records, first) => match records.held_from(*first) {
                Some(held) => {
                    *first = held;
                    true
                }
                None => false,
            },
        }
    }

    /// Whether this process may use it: not in a forked child, where a port is the parent's and
    /// inherited samples may still be read.
    fn is_ours(&self) -> bool {
        match self {
            Self::Port { topic, .. } => topic.node.is_own_process(),
            Self::Records(..) => true,
        }
    }

    fn close(self) {
        if let Self::Port { topic, own, maps } = self {
            topic.node.release_port(own.id());
            drop(maps);
            topic.ring_bell(Ports::Subscribers);
        }
    }
}

/// Keeps what a dropped subscriber's samples need.
#[cold]
pub(in crate::topic) fn park(parked: Parked) {
    let mut all = PARKED.get().lock().unwrap_or_else(|e| e.into_inner());
    all.push(parked);
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
    done.into_iter().for_each(Parked::close);
}

fn try_lock() -> Option<MutexGuard<'static, Vec<Parked>>> {
    match PARKED.get().try_lock() {
        Ok(all) => Some(all),
        Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
