//! Copies by the processor.
#![allow(unsafe_code)]

use std::num::NonZero;
use std::thread::Builder;

use super::job::{HostRow, Job};
use super::way::{Copier, Started};
use crate::Result;
use crate::handle::Stream;

/// The C library's `memcpy`.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

// SAFETY: copies each row and returns.
unsafe impl Copier for Plain {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn can(&self, job: &Job) -> bool {
        job.is_on_host()
    }

    unsafe fn start(&self, job: &Job, _stream: Stream) -> Result<Started> {
        for row in job.host_rows() {
            // SAFETY: the caller's ranges.
            unsafe { std::ptr::copy_nonoverlapping(row.from, row.to, row.bytes) };
        }
        Ok(Started::Done)
    }
}

/// The processor's string move; x86-64 alone.
#[derive(Clone, Copy, Debug)]
pub struct RepMovsb;

// SAFETY: copies each row and returns.
unsafe impl Copier for RepMovsb {
    fn name(&self) -> &'static str {
        "rep movsb"
    }

    fn can(&self, job: &Job) -> bool {
        cfg!(target_arch = "x86_64") && job.is_on_host()
    }

    unsafe fn start(&self, job: &Job, _stream: Stream) -> Result<Started> {
        for row in job.host_rows() {
            // SAFETY: the caller's ranges.
            unsafe { string_move(row) };
        }
        Ok(Started::Done)
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn string_move(row: HostRow) {
    // SAFETY: the caller's ranges; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") row.bytes => _,
            inout("rdi") row.to => _,
            inout("rsi") row.from => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn string_move(row: HostRow) {
    // SAFETY: the caller's ranges.
    unsafe { std::ptr::copy_nonoverlapping(row.from, row.to, row.bytes) };
}

/// Stores past the caches (AVX): for what the processor will not look at again soon.
#[derive(Clone, Copy, Debug)]
pub struct NonTemporal;

// SAFETY: copies each row, fences, and returns.
unsafe impl Copier for NonTemporal {
    fn name(&self) -> &'static str {
        "non-temporal"
    }

    fn can(&self, job: &Job) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            job.is_on_host() && std::arch::is_x86_feature_detected!("avx")
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = job;
            false
        }
    }

    unsafe fn start(&self, job: &Job, _stream: Stream) -> Result<Started> {
        for row in job.host_rows() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's ranges; `can` found AVX.
            unsafe {
                stream_row(row);
            }
            #[cfg(not(target_arch = "x86_64"))]
            // SAFETY: the caller's ranges.
            unsafe {
                string_move(row);
            }
        }
        Ok(Started::Done)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream_row(row: HostRow) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    const BLOCK: usize = 128;
    let HostRow { to, from, bytes } = row;
    let head = to.align_offset(32).min(bytes);
    let blocks = (bytes - head) / BLOCK;
    let tail = head + blocks * BLOCK;
    // SAFETY: all offsets are below `bytes` of the caller's ranges; `to + head` is 32-aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for block in 0..blocks {
            let at = head + block * BLOCK;
            let (source, target) = (from.add(at).cast::<__m256i>(), to.add(at).cast::<__m256i>());
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| _mm256_loadu_si256(source.add(i)));
            _mm256_stream_si256(target, a);
            _mm256_stream_si256(target.add(1), b);
            _mm256_stream_si256(target.add(2), c);
            _mm256_stream_si256(target.add(3), d);
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
        // The stores are seen before whatever commits them.
        _mm_sfence();
    }
}

/// Several threads of its own for each copy; the caller copies for those that cannot be started.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// How many, the caller's among them.
    pub count: NonZero<usize>,
}

#[derive(Clone, Copy)]
struct Part(HostRow);

// SAFETY: the caller's ranges, which it leaves to the copy; no two parts overlap.
unsafe impl Send for Part {}

// SAFETY: copies each row, joins its threads, and returns.
unsafe impl Copier for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn can(&self, job: &Job) -> bool {
        job.is_on_host()
    }

    unsafe fn start(&self, job: &Job, _stream: Stream) -> Result<Started> {
        for row in job.host_rows() {
            let share = row.bytes.div_ceil(self.count.get()).max(1).next_multiple_of(64);
            let parts = (0..row.bytes).step_by(share).map(|at| {
                Part(HostRow {
                    to: row.to.wrapping_add(at),
                    from: row.from.wrapping_add(at),
                    bytes: share.min(row.bytes - at),
                })
            });
            std::thread::scope(|scope| {
                let mut parts = parts.peekable();
                while let Some(part) = parts.next() {
                    let copy = move || {
                        let Part(row) = { part };
                        // SAFETY: a part of the caller's ranges.
                        unsafe { std::ptr::copy_nonoverlapping(row.from, row.to, row.bytes) };
                    };
                    let is_last = parts.peek().is_none();
                    if is_last || Builder::new().spawn_scoped(scope, copy).is_err() {
                        copy();
                    }
                }
            });
        }
        Ok(Started::Done)
    }
}
