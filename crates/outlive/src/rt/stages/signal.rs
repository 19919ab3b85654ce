//! One stage tells the next that a cycle is done; a sleeper is woken, one that is awake costs a
//! load.
//!
//! The sleeper's request is a word of its own file, and it sleeps on the teller's word. Both sides
//! store, fence and look, so one of them sees the other and no wake is lost (label SIGNAL).

use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, fault, fence, swap_fenced};

/// Stores `value` into `done`; true when somebody may sleep and has to be woken.
///
/// # Crash safety
/// **Strict.** Dying between the store and the wake, sleepers end by their deadline.
#[inline]
pub(crate) fn tell(done: &AtomicU64, value: u64, request: Option<&AtomicU64>) -> bool {
    // ORDERING(SIGNAL_DATA): pairs with `look`; carries what the cycle wrote.
    done.store(value, Release);
    let Some(request) = request else { return false };
    // ORDERING(SIGNAL): pairs with `about_to_sleep`.
    if !fault("signal.tell.no_fence") {
        fence(SeqCst);
    }
    request.load(Relaxed) != 0
}

/// The teller's word.
#[inline]
pub(crate) fn look(done: &AtomicU64) -> u64 {
    // ORDERING(SIGNAL_DATA): pairs with `tell`.
    done.load(Acquire)
}

/// Raises the request and looks once more: what to sleep on, if it is still below `value`.
#[inline]
pub(crate) fn about_to_sleep(done: &AtomicU64, value: u64, request: &AtomicU64) -> Option<u64> {
    // ORDERING(SIGNAL): pairs with `tell`.
    if fault("signal.sleep.no_fence") {
        request.store(1, Relaxed);
    } else {
        swap_fenced(request, 1);
    }
    let seen = done.load(SeqCst);
    (seen < value).then_some(seen)
}

/// Awake again.
#[inline]
pub(crate) fn awake(request: &AtomicU64) {
    request.store(0, Relaxed);
}
