//! What differs between processors: the trap, registers, breakpoints, what cannot be stepped.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(any(target_arch = "aarch64", test))]
mod exclusive;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

/// Stops a traced process right here.
#[inline(always)]
pub(crate) fn trap() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a breakpoint changes no register; the tracer takes the signal.
    unsafe {
        std::arch::asm!("int3")
    };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: a plain system call; the tracer takes the signal.
    unsafe {
        libc::raise(libc::SIGTRAP)
    };
}
