//! Monotonic time in nanoseconds, behind a seam for tests.
use super::monotonic::raw_ns;

/// A cheap time stamp for messages, in ns of CLOCK_MONOTONIC. Two in a row may be equal: a TSC may
/// tick every 10 ns. By one line of `tsc` it never goes back on one thread; from one line to the
/// next it may by a little (2 ns were seen; no bound is proven). A publisher's own never do.
///
/// On x86_64 with a kernel that itself keeps time by the TSC it agrees with `now_ns` to well under
/// 1 us (see `tsc`); elsewhere it is `now_ns`.
#[inline]
pub(crate) fn timestamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    let stamp = super::tsc::timestamp();
    #[cfg(not(target_arch = "x86_64"))]
    let stamp = raw_ns();
    #[cfg(test)]
    let stamp = stamp.saturating_add_signed(TEST_OFFSET.with(std::cell::Cell::get));
    stamp
}

/// CLOCK_MONOTONIC in ns, the unit and clock of every deadline of this crate.
#[inline]
pub(crate) fn now_ns() -> u64 {
    #[cfg(test)]
    return raw_ns().saturating_add_signed(TEST_OFFSET.with(std::cell::Cell::get));
    #[cfg(not(test))]
    raw_ns()
}

/// An instant as the kernel wants it, by the kernel's own clock.
pub(in crate::os) fn kernel_time(ns: u64) -> libc::timespec {
    #[cfg(test)]
    let ns = ns.saturating_add_signed(-TEST_OFFSET.with(std::cell::Cell::get));
    timespec(ns)
}

/// A time as the kernel wants it.
pub(in crate::os) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

#[cfg(test)]
thread_local! {
    static TEST_OFFSET: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

/// Shifts `now_ns` and `timestamp` of the calling thread by `ns` (tests of deadlines without
/// sleeping, and of a clock that jumps).
#[cfg(test)]
pub(crate) fn set_test_offset(ns: i64) {
    TEST_OFFSET.with(|c| c.set(ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stamp_lies_between_two_looks_at_the_clock() {
        // Long enough for several lines of `tsc`. The margin is for NTP, not for speed.
        const MARGIN_NS: u64 = 100_000;
        let end = raw_ns() + 700_000_000;
        while raw_ns() < end {
            let (before, stamp, after) = (raw_ns(), timestamp(), raw_ns());
            assert!(stamp + MARGIN_NS >= before, "{stamp} is before {before}");
            assert!(stamp <= after + MARGIN_NS, "{stamp} is after {after}");
        }
    }

    #[test]
    fn time_stamps_of_threads_never_go_back_by_one_line() {
        // Known to go back by some ns from one line to the next, which others may lay meanwhile.
        const NEXT_LINE_NS: u64 = 8_000;
        let threads: Vec<_> = (0..3)
            .map(|_| {
                std::thread::spawn(|| {
                    let (mut last, mut line) = (0, lines_laid());
                    for _ in 0..1_000_000 {
                        let (now, after) = (timestamp(), lines_laid());
                        let allowed = if line == after { 0 } else { NEXT_LINE_NS };
                        assert!(now + allowed >= last, "{now} after {last}, {line} {after}");
                        (last, line) = (now, after);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    /// Changes whenever a line is laid; read after one stamp and after the next.
    fn lines_laid() -> u32 {
        #[cfg(target_arch = "x86_64")]
        return crate::os::time::tsc::lines_laid();
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    #[test]
    fn a_test_can_shift_its_own_clock() {
        let real = now_ns();
        set_test_offset(3_600_000_000_000);
        assert!(now_ns() >= real + 3_600_000_000_000);
        std::thread::spawn(move || assert!(now_ns() < real + 3_600_000_000_000)).join().unwrap();
        set_test_offset(0);
    }

    #[test]
    fn a_moment_splits_into_seconds_and_ns() {
        let ts = timespec(5_000_000_007);
        assert_eq!((ts.tv_sec, ts.tv_nsec), (5, 7));
    }
}
