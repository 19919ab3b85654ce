//! A machine that is slower than usual, such as an emulated one: what depends on time takes longer
//! there, and a thread seems to compute while the machine itself has no processor.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

static TIMES: AtomicU32 = AtomicU32::new(1);

/// How many times slower this machine is.
pub fn times() -> u32 {
    TIMES.load(Relaxed)
}

/// Sets it, before anything runs; at least 1.
pub fn set_times(times: u32) {
    TIMES.store(times.max(1), Relaxed);
}
