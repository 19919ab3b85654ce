//! Waiting for the death of a node, without a thread of ours.

use std::sync::Arc;
use std::time::Duration;

use super::peer::{NodeId, Peer};
use super::{POLL_NS, slice_ns_max};
use crate::os::clock;
use crate::os::futex::{self, WaitWord, Woken};
use crate::os::robust;
use crate::sync::Ordering::Relaxed;

/// Tells of a node's death in the instant of it.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("guard").open()?;
/// let other = outlive::Node::builder().root(dir.path()).name("camera").open()?;
/// let watch = node.watch(other.id())?;
/// assert!(watch.is_alive());
/// drop(other);
/// assert!(watch.wait(std::time::Duration::from_secs(5)), "told at once");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    peer: Arc<Peer>,
}

impl Watch {
    pub(crate) fn new(peer: Arc<Peer>) -> Self {
        Self { peer }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The node that is watched.
    pub fn node(&self) -> NodeId {
        self.peer.id()
    }

    /// Whether the node lives: one load while it does, a look at its file lock when its word
    /// says dead. A stopped process is alive.
    ///
    /// # Real-time
    /// No system call while the node lives, 0.6 ns.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.peer.is_alive()
    }

    /// Whether the node lives as far as its word tells, whatever its file lock says: a hint, for
    /// reacting early. A death shows in tens of microseconds, however large the process, where
    /// `is_alive` waits until the kernel has given its memory back (most of a second for 4 GB).
    /// `false` may also mean that the token is just passing from a thread that ended to another.
    ///
    /// # Real-time
    /// No system call, 0.6 ns.
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.looks_alive()
    }

    /// Waits until the node dies or leaves; `false` when `timeout` passed first.
    ///
    /// The kernel wakes the caller when the thread that holds the node's token dies. While the
    /// token passes between threads the file lock is polled every 2 ms.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = clock::now_ns().saturating_add(timeout.as_nanos().min(1 << 62) as u64);
        loop {
            let word = self.peer.token();
            let seen = word.load(Relaxed);
            if !self.peer.is_alive() {
                // The kernel wakes one waiter at a death: pass it on.
                futex::wake(word, i32::MAX);
                return true;
            }
            let now = clock::now_ns();
            if now >= deadline {
                return false;
            }
            let slice = if robust::is_alive_word(seen) { slice_ns_max() } else { POLL_NS };
            // If we die after being woken, the kernel passes the wake on for us.
            let _pending = robust::pending_guard(word);
            let until = deadline.min(now + slice);
            let woken = futex::wait_many(&[WaitWord { word, expected: seen }], Some(until))
                .unwrap_or_else(|_| futex::wait(word, seen, Some(until)));
            // The kernel may have been unable to mark the word: ask the file lock now and then.
            if woken == Woken::Timeout {
                self.peer.is_gone();
            }
        }
    }
}
