//! What a thread holds of a semaphore.

use std::sync::Arc;

use outlive::lock::{Permit, RobustSemaphore};

/// What a thread holds; it goes before the semaphore that is kept for it.
pub(crate) struct Held(pub(crate) Permit<'static>, pub(crate) Arc<RobustSemaphore>);

impl Held {
    pub(crate) fn forget(self) {
        let Self(permit, semaphore) = self;
        std::mem::forget(permit);
        drop(semaphore);
    }
}
