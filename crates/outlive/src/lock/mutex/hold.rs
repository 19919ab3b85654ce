//! What a mutex rests on, whichever kind it is.

use std::fmt::Debug;

use super::word::Got;
use crate::Result;
use crate::lock::error::LockResult;
use crate::os::time::deadline::Deadline;

/// How a thread takes a mutex and lets it go.
pub trait Hold: Debug + Send + Sync {
    /// The calling thread's id, as it is in the lock word, if it is at hand and this is no forked
    /// child.
    fn own_id(&self) -> Option<u64>;

    /// The same, made where there is none yet.
    ///
    /// # Errors
    /// `ForkedChild`; too many threads.
    fn id(&self) -> Result<u64>;

    /// The fast path: free, nobody waits, the thread is known, no forked child.
    fn take_free(&self) -> Option<u64>;

    /// Takes it or waits for it; returns who we are.
    ///
    /// # Errors
    /// All of [`LockError`](crate::lock::LockError) but `OwnerDied`.
    fn take_slow(&self, until: Deadline) -> LockResult<(u64, Got)>;

    /// Lets it go, if `me` holds it; whether it did. In a forked child nothing happens: the parent
    /// holds it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS. A death before its wake-up call wakes the waiters, too.
    fn release(&self, me: u64) -> bool;

    /// As `release`, and the next one is told that the owner died.
    ///
    /// # Crash safety
    /// **Strict.** One store; a death before it has the same effect.
    fn abandon(&self, me: u64) -> bool;

    /// The holder `me` has repaired what it inherited, if it did inherit; whether `me` holds it.
    ///
    /// # Crash safety
    /// **Strict.** One store; before it the next taker is told again.
    fn mark_consistent(&self, me: u64) -> bool;
}
