//! Received messages: borrowed from shared memory, or copied.
//!
//! # Invariants
//! - A borrowed sample's hazard word is non-zero until the sample is dropped, and the mappings of
//!   chunk and hazard live for as long as a hazard word of their subscriber is non-zero
//!   (`Reader::drop` parks them otherwise). So a sample needs no reference count.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

use super::parked;
use super::reader::Reader;
use crate::Result;
use crate::os::process::fork;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::topic::chunks::hazard;
use crate::topic::membership::PublisherId;
use crate::topic::ring::layout::INLINE_BYTES_MAX;
use crate::types::payload::Payload;

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

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

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

/// A received message. Large ones are borrowed: they lie in shared memory, are yours to read for
/// as long as you keep the sample, and count against the subscriber's `borrows`. The publisher's
/// death changes nothing about them.
///
/// A borrowed sample trusts its publisher to keep to the protocol; [`crate::Subscriber::copy_to`]
/// trusts nobody.
#[repr(transparent)]
pub struct Sample<T: Payload + ?Sized> {
    raw: RawSample,
    _type: PhantomData<fn() -> Box<T>>,
}

/// What a look at the rings gave.
pub(in crate::topic) enum Received {
    /// A sample, in the memory that was given for it.
    There(Filled),
    Nothing,
    /// A message that is no `T`; its length.
    WrongLength(usize),
}

/// Says that the memory given to `Sample::receive_into` holds a sample: only that makes one.
pub(in crate::topic) struct Filled(());

impl<T: Payload + ?Sized> Sample<T> {
    /// What `receive_into` puts into the memory it is given, moved once.
    #[inline(always)]
    pub(in crate::topic) fn received(
        receive_into: impl FnOnce(&mut MaybeUninit<Self>) -> Result<Option<Filled>>,
    ) -> Result<Option<Self>> {
        let mut to = MaybeUninit::uninit();
        match receive_into(&mut to)? {
            // SAFETY: the caller had no other memory to fill; `Filled` says that this one is.
            Some(Filled(())) => Ok(Some(unsafe { to.assume_init() })),
            None => Ok(None),
        }
    }

    /// Whether a received message is a `T`.
    #[inline]
    fn suits(raw: &RawSample) -> bool {
        // Inline words are 8-aligned wherever the sample moves; chunks have one address for good.
        let aligned = match raw.store {
            Store::Inline => align_of::<T::Element>() <= 8,
            _ => raw.as_ptr().addr() % align_of::<T::Element>() == 0,
        };
        T::fits(raw.bytes) && aligned
    }

    /// Puts what `take` takes from `reader` into `to`, if it takes something and that is a `T`.
    #[inline]
    pub(in crate::topic) fn receive_into(
        to: &mut MaybeUninit<Self>,
        reader: &mut Reader,
        take: impl FnOnce(&mut Reader, &mut Slot) -> Result<bool>,
    ) -> Result<Received> {
        // SAFETY: a sample is nothing but its `RawSample`, by its representation.
        let slot = unsafe { &mut *(&raw mut *to).cast::<Slot>() };
        if !take(reader, slot)? {
            return Ok(Received::Nothing);
        }
        // SAFETY: `take` answered true, so it has filled the slot.
        let raw = unsafe { slot.assume_init_ref() };
        reader.count_lost(raw.meta.lost_before);
        if Self::suits(raw) {
            return Ok(Received::There(Filled(())));
        }
        let bytes = raw.bytes;
        // SAFETY: as above; nobody uses it afterwards.
        unsafe { slot.assume_init_drop() };
        Ok(Received::WrongLength(bytes))
    }

    /// Publisher, number, time and losses.
    pub fn meta(&self) -> &Meta {
        self.raw.meta()
    }

    /// Number of this message among its publisher's, from 0.
    pub fn seq(&self) -> u64 {
        self.raw.meta.seq
    }

    /// Who sent it.
    pub fn publisher(&self) -> PublisherId {
        self.raw.meta.publisher
    }

    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher does not say.
    pub fn timestamp_ns(&self) -> u64 {
        self.raw.meta.timestamp_ns
    }

    /// Messages of this publisher lost right before this one.
    pub fn lost_before(&self) -> u64 {
        self.raw.meta.lost_before
    }

    /// The payload's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.deref().bytes()
    }

    /// Whether the payload lies in shared memory, without a copy.
    pub fn is_borrowed(&self) -> bool {
        self.raw.is_borrowed()
    }
}

impl<T: Payload + ?Sized> Deref for Sample<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `receive` checked length and alignment (inline words are 8-aligned wherever the
        // sample moves); the bytes are initialised, private or reserved by the hazard, and live
        // as long as `self`.
        unsafe { T::cast(self.raw.as_ptr(), self.raw.len()) }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("meta", self.meta()).field("payload", &&**self).finish()
    }
}
