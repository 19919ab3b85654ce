//! A word that a forked child finds 0.
//!
//! A fast path looks at a word of its own anyway. Kept here, it sends a child to the slow path,
//! which knows that it is not the node: no look at `fork_generation` for each message.
#![allow(unsafe_code)]

use std::ptr;
use std::ptr::NonNull;

use crate::Result;
use crate::os::PAGE;
use crate::os::syserr;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};

/// A word in a page that the kernel clears in children (`MADV_WIPEONFORK`). 0 at first.
#[derive(Debug)]
pub(crate) struct Wiped(NonNull<AtomicU64>);

// SAFETY: an owned page of an atomic word.
unsafe impl Send for Wiped {}
// SAFETY: as above.
unsafe impl Sync for Wiped {}

impl Wiped {
    /// Errors: `OutOfMemory`; `Io` before Linux 4.14.
    pub(crate) fn new() -> Result<Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new map at an address of the kernel's choice.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, prot, flags, -1, 0) };
        let Some(word) = NonNull::new(page.cast()).filter(|_| page != libc::MAP_FAILED) else {
            return Err(syserr::last("map", "a page that a forked child finds empty"));
        };
        let wiped = Self(word);
        let advice = if fault("wiped.kept") { libc::MADV_NORMAL } else { libc::MADV_WIPEONFORK };
        // SAFETY: the page just mapped.
        if unsafe { libc::madvise(page, PAGE, advice) } != 0 {
            return Err(syserr::last("clear in forked children", "a page"));
        }
        Ok(wiped)
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        // SAFETY: in the page, which `self` owns.
        unsafe { self.0.as_ref() }.load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        // SAFETY: as in `get`.
        unsafe { self.0.as_ref() }.store(value, Relaxed);
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        // SAFETY: the page of `new`, not used any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::fork_child;

    #[test]
    fn a_forked_child_finds_zero_and_its_parent_what_it_stored() {
        let word = Wiped::new().unwrap();
        assert_eq!(word.get(), 0);
        word.set(7);
        assert_eq!(fork_child(|| word.get() as i32).wait(), 0);
        assert_eq!(word.get(), 7);
    }
}
