//! The cheapest clock there is: the processor's own counter where we know it, else the kernel's.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The counter now. Both cores of a machine count alike; only differences mean anything.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 processor has the instruction, and Linux lets user space execute it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Length of a tick in nanoseconds, measured once against the kernel's clock.
pub(crate) fn ns_per_tick() -> f64 {
    static LENGTH: OnceLock<f64> = OnceLock::new();
    *LENGTH.get_or_init(|| {
        let (start, ticks) = (Instant::now(), now());
        while start.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        start.elapsed().as_nanos() as f64 / now().wrapping_sub(ticks) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_kernel_within_a_tenth() {
        ns_per_tick();
        let (start, ticks) = (Instant::now(), now());
        while start.elapsed() < Duration::from_millis(20) {}
        let kernel = start.elapsed().as_nanos() as f64;
        let ours = now().wrapping_sub(ticks) as f64 * ns_per_tick();
        assert!((0.9..1.1).contains(&(ours / kernel)), "{ours} against {kernel} ns");
    }
}
