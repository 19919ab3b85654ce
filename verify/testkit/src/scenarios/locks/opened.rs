//! The locks that the victim and the survivors have open.

use outlive::Node;
use outlive::lock::{
    LocklessSet, PiMutex, RobustCondvar, RobustMutex, RobustRwLock, RobustSemaphore,
};

use super::super::text;

/// The large set has room for one more.
pub(super) const SET_FILLED: u64 = 99;

/// Two words that change together.
pub(super) type Data = [u64; 2];

/// One of each, and two sets.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) mutex: RobustMutex<Data>,
    pub(super) pi: PiMutex<Data>,
    pub(super) rwlock: RobustRwLock<Data>,
    pub(super) semaphore: RobustSemaphore,
    pub(super) set: LocklessSet,
    pub(super) large: LocklessSet,
    pub(super) condvar: RobustCondvar,
}

impl Locks {
    pub(super) fn open(node: &Node) -> Result<Self, String> {
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

pub(super) fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}
