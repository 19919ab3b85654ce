//! How a payload gets into the body of an entry and out again, while the other side may be at it.
//!
//! A short one goes word by word: each word is whole, and for a length that the compiler knows the
//! copy is a few moves. A long one goes by `memcpy`, which is several times as fast. Either way the
//! reader uses its copy only if the entry's `seq` says that nobody wrote meanwhile. Where a tool
//! watches for races (loom, ThreadSanitizer) all go word by word.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// Longer ones go by `memcpy`.
const BY_WORDS_MAX: usize = if cfg!(any(loom, tsan)) { usize::MAX } else { 256 };

/// Copies `bytes` into `body`, where they fit.
#[inline(always)]
pub(crate) fn copy_in(body: &[AtomicU64], bytes: &[u8]) {
    // One check of the room for all: what is as long at each call is stored without a loop.
    let body = &body[..bytes.len().div_ceil(8)];
    if bytes.len() > BY_WORDS_MAX {
        // SAFETY: `body` is at least as long and, being of atomics, ours to write through; readers
        // of these bytes find `seq` changed.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), body.as_ptr() as *mut u8, bytes.len()) };
        return;
    }
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        body[i].store(u64::from_ne_bytes(*word), Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        body[words.len()].store(u64::from_ne_bytes(last), Relaxed);
    }
}

/// Copies at least the first `bytes` bytes of `body` into `to`, which is as long as `body`.
#[inline]
pub(crate) fn copy_out(to: &mut [MaybeUninit<u64>], body: &[AtomicU64], bytes: usize) {
    // A constant number of words, where entries are of the usual sizes, is faster than the exact
    // one.
    match (body.first_chunk::<5>(), body.first_chunk::<8>(), body.first_chunk::<13>()) {
        (_, Some(body), _) if bytes <= 64 => by_words(to, body),
        (_, _, Some(body)) if bytes <= 104 => by_words(to, body),
        (Some(body), _, _) if bytes <= 40 => by_words(to, body),
        _ => copy_many(to, &body[..bytes.div_ceil(8)]),
    }
}

/// Copies the first bytes of `body`, which has as many, into `to`.
#[inline(always)]
pub(crate) fn copy_value<T>(to: &mut MaybeUninit<T>, body: &[AtomicU64]) {
    let (bytes, at) = (size_of::<T>(), to.as_mut_ptr().cast::<u8>());
    let body = &body[..bytes.div_ceil(8)];
    if bytes > BY_WORDS_MAX {
        // SAFETY: both are that long, and `to` is this process's own. What may change meanwhile is
        // used only if `seq` says that it did not.
        return unsafe { ptr::copy_nonoverlapping(body.as_ptr().cast(), at, bytes) };
    }
    for (i, word) in body.iter().enumerate() {
        let word = word.load(Relaxed).to_ne_bytes();
        let len = (bytes - 8 * i).min(8);
        // SAFETY: the `len` bytes from 8 i on are inside `to`.
        unsafe { ptr::copy_nonoverlapping(word.as_ptr(), at.add(8 * i), len) };
    }
}

#[inline(always)]
fn by_words(to: &mut [MaybeUninit<u64>], body: &[AtomicU64]) {
    for (to, from) in to.iter_mut().zip(body) {
        to.write(from.load(Relaxed));
    }
}

fn copy_many(to: &mut [MaybeUninit<u64>], body: &[AtomicU64]) {
    if body.len() * 8 <= BY_WORDS_MAX {
        return by_words(to, body);
    }
    let to = &mut to[..body.len()];
    // SAFETY: as long as each other, and they do not overlap: one is this process's own. What may
    // change meanwhile is used only if `seq` says that it did not.
    unsafe { ptr::copy_nonoverlapping(body.as_ptr().cast(), to.as_mut_ptr(), body.len()) };
}
