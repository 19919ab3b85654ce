//! Received messages without their type: borrowed from shared memory, or copied.
//!
//! # Invariants
//! - A borrowed sample's hazard word is non-zero until the sample is dropped, and the mappings of
//!   chunk and hazard live for as long as a hazard word of their subscriber is non-zero
//!   (`Reader::drop` parks them otherwise). So a sample needs no reference count.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::parked;
use crate::os::process::fork;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::topic::chunks::hazard;
use crate::topic::membership::PublisherId;
use crate::topic::ring::layout::INLINE_BYTES_MAX;

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Who sent it.
    pub publisher: PublisherId,
    /// Its number among the messages of that publisher, from 0.
    pub seq: u64,
    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher does not say
    /// ([`Builder::timestamps`](crate::topic::Builder::timestamps)). From one publisher it
    /// never goes back; two in a row may be equal.
    pub timestamp_ns: u64,
    /// Messages of that publisher lost right before this one.
    pub lost_before: u64,
}

const INLINE_WORDS: usize = INLINE_BYTES_MAX / 8;

/// Where the payload is.
enum Store {
    /// In `words`.
    Inline,
    Borrowed {
        ptr: NonNull<u8>,
        hazard: NonNull<AtomicU64>,
        generation: u32,
    },
    Copied {
        ptr: NonNull<u8>,
        layout: Layout,
    },
}

/// A received message without its type.
///
/// Built in its final place: moving words that were just stored one by one stalls the processor
/// longer than the rest of a small message takes.
pub(crate) struct RawSample {
    words: [MaybeUninit<u64>; INLINE_WORDS],
    store: Store,
    bytes: usize,
    meta: Meta,
}

/// Room for a sample that is about to be received.
pub(crate) type Slot = MaybeUninit<RawSample>;

// SAFETY: the memory behind the pointers is owned (`Copied`) or reserved through the hazard
// (`Borrowed`) for this sample alone; neither is bound to a thread.
unsafe impl Send for RawSample {}
// SAFETY: shared access only reads bytes that nobody writes while the sample lives.
unsafe impl Sync for RawSample {}

impl std::fmt::Debug for RawSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSample").field("bytes", &self.bytes).field("meta", &self.meta).finish()
    }
}

impl RawSample {
    /// Copies the body words into `slot`; the caller then checks that the entry is unchanged, and
    /// only then takes the sample out.
    #[inline]
    pub(crate) fn inline(slot: &mut Slot, body: &[AtomicU64], bytes: usize, meta: Meta) {
        debug_assert!(bytes <= body.len() * 8);
        let at = slot.as_mut_ptr();
        // SAFETY: `slot` is ours to write; nothing in it needs dropping before.
        unsafe {
            (&raw mut (*at).store).write(Store::Inline);
            (&raw mut (*at).bytes).write(bytes);
            (&raw mut (*at).meta).write(meta);
            let words = &mut (*at).words;
            // A whole entry's worth: a constant number of words copies faster than the exact one.
            if let Some(body) = body.first_chunk::<INLINE_WORDS>() {
                copy_words(words, body);
            } else if let Some(body) = body.first_chunk::<5>() {
                copy_words(words, body);
            } else {
                copy_words_slowly(words, body);
            }
        }
    }

    #[inline]
    pub(crate) fn borrowed(ptr: *const u8, bytes: usize, hazard: &AtomicU64, meta: Meta) -> Self {
        let generation = fork::fork_generation();
        let ptr = NonNull::new(ptr.cast_mut()).unwrap_or(NonNull::dangling());
        let store = Store::Borrowed { ptr, hazard: NonNull::from(hazard), generation };
        Self { words: [MaybeUninit::uninit(); INLINE_WORDS], store, bytes, meta }
    }

    /// Copies `bytes` bytes that another process may be writing; the caller then checks that the
    /// entry is unchanged. `None` without memory.
    pub(crate) fn copied(from: *const u8, bytes: usize, align: usize, meta: Meta) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(1), align.max(8)).ok()?;
        // SAFETY: the layout has a size of at least 1.
        let ptr = NonNull::new(unsafe { alloc(layout) })?;
        // SAFETY: `from` was resolved for `bytes` bytes, `ptr` was allocated for them. The source
        // may change meanwhile: the copy is used only if the entry's seq says that it did not.
        unsafe { std::ptr::copy_nonoverlapping(from, ptr.as_ptr(), bytes) };
        let words = [MaybeUninit::uninit(); INLINE_WORDS];
        Some(Self { words, store: Store::Copied { ptr, layout }, bytes, meta })
    }

    #[inline]
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        match &self.store {
            Store::Inline => self.words.as_ptr().cast(),
            Store::Borrowed { ptr, .. } | Store::Copied { ptr, .. } => ptr.as_ptr(),
        }
    }

    /// The payload.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes are initialised, private or reserved by the hazard, and live as long
        // as `self`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) }
    }

    /// Whether its payload is aligned to `align`, wherever the sample moves.
    #[inline]
    pub(crate) fn is_aligned(&self, align: usize) -> bool {
        // Inline words are 8-aligned wherever the sample moves; chunks have one address for good.
        match self.store {
            Store::Inline => align <= 8,
            _ => self.as_ptr().addr() % align == 0,
        }
    }

    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self.store, Store::Borrowed { .. })
    }
}

#[inline(always)]
fn copy_words<const N: usize>(to: &mut [MaybeUninit<u64>; INLINE_WORDS], body: &[AtomicU64; N]) {
    for (to, from) in to.iter_mut().zip(body) {
        to.write(from.load(Relaxed));
    }
}

/// For an entry of a length that only a damaged `meta` claims.
#[cold]
fn copy_words_slowly(to: &mut [MaybeUninit<u64>; INLINE_WORDS], body: &[AtomicU64]) {
    for (to, from) in to.iter_mut().zip(body) {
        to.write(from.load(Relaxed));
    }
}

impl Drop for RawSample {
    #[inline]
    fn drop(&mut self) {
        match &self.store {
            Store::Inline => {}
            Store::Borrowed { hazard, generation, .. } => {
                // In a forked child the hazard is the parent's.
                if *generation == fork::fork_generation() {
                    // SAFETY: mapped while it is non-zero (invariant of this module); this store
                    // is our last access to chunk and hazard.
                    hazard::clear(unsafe { hazard.as_ref() });
                    parked::sweep();
                }
            }
            // SAFETY: allocated with this layout in `copied`, freed once.
            Store::Copied { ptr, layout } => unsafe { dealloc(ptr.as_ptr(), *layout) },
        }
    }
}
