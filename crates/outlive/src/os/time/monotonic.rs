//! The kernel's clock itself, below `clock` and `tsc`.
#![allow(unsafe_code)]

/// CLOCK_MONOTONIC, whatever a test has shifted.
#[inline]
pub(in crate::os) fn raw_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec for the call to fill; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}
