//! The processors of a sweep, which pins itself, and of peers that must not be pinned.

use crate::process::Affinity;
use std::sync::OnceLock;

/// The processors this process could use before the sweep pinned it.
static ALLOWED: OnceLock<Affinity> = OnceLock::new();

/// Those; before the first pinning they are what the process can use now.
pub(crate) fn allowed() -> &'static Affinity {
    ALLOWED.get_or_init(Affinity::current)
}

/// Lets the calling thread use every processor again; for peers whose threads must run in parallel.
pub fn unpin() {
    if let Some(allowed) = ALLOWED.get() {
        allowed.apply();
    }
}
