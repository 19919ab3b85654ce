//! Received messages without their type: borrowed from shared memory, or copied.
//!
//! # Theory of operation
//! A sample is one word: the address of a [`Record`], which says where the payload lies and from
//! whom it is. A message that travels in its entry is copied once, into the record, and stays
//! there: a copy of what was just stored word by word would stall the processor for longer than
//! the rest of a small message takes. Records are the subscriber's ([`super::records`]); it uses
//! one again once its sample was dropped.
//!
//! # Invariants
//! - A borrowed sample's hazard word is non-zero until the sample is dropped, and the mappings of
//!   chunk and hazard live for as long as a hazard word of their subscriber is non-zero
//!   (`Reader::drop` parks them otherwise). So a sample needs no reference count.
//! - While `held` is 1 the record is the sample's, and nobody writes to it; while it is 0 it is the
//!   subscriber's. The memory of a record whose sample outlives the subscriber is parked as well.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::parked;
use crate::os::process::fork;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64};
use crate::topic::chunks::hazard;
use crate::topic::membership::entry::PublisherId;
use crate::topic::ring::body;

/// Where a message comes from.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<u64>("/n")?.publisher()?;
/// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
/// publisher.publish(&7)?;
/// let mut n = 0;
/// let meta = subscriber.copy_to(&mut n)?.expect("sent just now");
/// assert_eq!((meta.publisher, meta.seq, meta.lost_before), (publisher.id(), 0, 0));
/// let age_ns = outlive::now_ns() - meta.timestamp_ns; // the same clock in every process
/// println!("{n}, {age_ns} ns old");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Who sent it.
    pub publisher: PublisherId,
    /// Its number among the messages of that publisher, from 0.
    pub seq: u64,
    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher leaves it out
    /// ([`Builder::timestamps`](crate::topic::Builder::timestamps)). From one publisher it never
    /// decreases; two in a row may be equal.
    pub timestamp_ns: u64,
    /// Messages of that publisher lost right before this one.
    pub lost_before: u64,
}

/// A received message without its type.
#[repr(transparent)]
pub(crate) struct RawSample(NonNull<Record>);

/// Where the payload of a received message is, and from whom. The words of one that travelled in
/// its entry follow it in memory.
#[repr(C)]
pub(super) struct Record {
    held: AtomicU32,
    /// Whether `place` is another than `Inline`: all that the drop of most samples looks at.
    gives_back: bool,
    place: Place,
    ptr: NonNull<u8>,
    bytes: usize,
    meta: Meta,
}

/// What a sample gives back when it is dropped.
enum Place {
    /// The words behind the record: nothing.
    Inline,
    /// The hazard, of the process of that generation.
    Borrowed(NonNull<AtomicU64>, u32),
    Copied(Layout),
}

// SAFETY: the memory behind the pointers is the sample's alone: the record (invariant), what is
// behind it (`Copied`), or reserved through the hazard (`Borrowed`). None is bound to a thread.
unsafe impl Send for RawSample {}
// SAFETY: shared access only reads bytes that nobody writes while the sample lives.
unsafe impl Sync for RawSample {}

impl std::fmt::Debug for RawSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSample").field("bytes", &self.len()).field("meta", self.meta()).finish()
    }
}

/// A record that no sample has, to receive a message into.
pub(super) struct Vacant<'a> {
    record: NonNull<Record>,
    /// Length of the memory behind it, in words.
    words: usize,
    _records: PhantomData<&'a mut Record>,
}

const _: () = assert!(size_of::<Record>() % 8 == 0 && align_of::<Record>() == 8);

impl Record {
    /// A record that no sample has; the words behind it are not looked at before they are written.
    pub(super) fn vacant() -> Self {
        let meta = Meta {
            publisher: PublisherId { node: crate::node::NodeId(0), port: 0 },
            seq: 0,
            timestamp_ns: 0,
            lost_before: 0,
        };
        Self {
            held: AtomicU32::new(0),
            gives_back: false,
            place: Place::Inline,
            ptr: NonNull::dangling(),
            bytes: 0,
            meta,
        }
    }

    /// Whether a sample has it.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        // ORDERING(RECORD): pairs with the drop of its sample, perhaps by another thread; from here
        // on we may write where that has read.
        self.held.load(Acquire) != 0
    }
}

impl Vacant<'_> {
    /// # Safety
    /// `record` is valid for reads and writes while this lives, together with `words` words behind
    /// it, and no sample has it; nobody else looks at it meanwhile.
    #[inline]
    pub(super) unsafe fn new(record: NonNull<Record>, words: usize) -> Self {
        Self { record, words, _records: PhantomData }
    }

    #[inline]
    fn record(&mut self) -> &mut Record {
        // SAFETY: promised to `new`.
        unsafe { self.record.as_mut() }
    }

    /// Copies the words of an entry's body; the caller then checks that the entry is unchanged.
    #[inline]
    pub(super) fn inline(&mut self, body: &[AtomicU64], bytes: usize, meta: Meta) {
        debug_assert!(bytes <= body.len() * 8);
        // SAFETY: the words follow the record, whose size is a multiple of theirs.
        let words = unsafe { self.record.add(1) }.cast::<MaybeUninit<u64>>();
        // SAFETY: promised to `new`.
        let to = unsafe { std::slice::from_raw_parts_mut(words.as_ptr(), self.words) };
        body::copy_out(&mut to[..body.len()], body, bytes);
        let record = self.record();
        record.gives_back = false;
        record.ptr = words.cast();
        record.bytes = bytes;
        record.meta = meta;
    }

    /// Names a chunk that `hazard` reserves.
    #[inline]
    pub(super) fn borrowed(
        &mut self,
        ptr: *const u8,
        bytes: usize,
        hazard: &AtomicU64,
        meta: Meta,
    ) {
        let record = self.record();
        record.gives_back = true;
        record.place = Place::Borrowed(NonNull::from(hazard), fork::fork_generation());
        record.ptr = NonNull::new(ptr.cast_mut()).unwrap_or(NonNull::dangling());
        record.bytes = bytes;
        record.meta = meta;
    }

    /// Copies `bytes` bytes that another process may be writing; the caller then checks that the
    /// entry is unchanged, and if not calls `give_back`. `false` without memory.
    pub(super) fn copied(
        &mut self,
        from: *const u8,
        bytes: usize,
        align: usize,
        meta: Meta,
    ) -> bool {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), align.max(8)) else { return false };
        // SAFETY: the layout has a size of at least 1.
        let Some(ptr) = NonNull::new(unsafe { alloc(layout) }) else { return false };
        // SAFETY: `from` was resolved for `bytes` bytes, `ptr` was allocated for them. The source
        // may change meanwhile: the copy is used only if the entry's seq says that it did not.
        unsafe { std::ptr::copy_nonoverlapping(from, ptr.as_ptr(), bytes) };
        let record = self.record();
        record.gives_back = true;
        record.place = Place::Copied(layout);
        record.ptr = ptr;
        record.bytes = bytes;
        record.meta = meta;
        true
    }

    /// Frees what `copied` allocated.
    pub(super) fn give_back(&mut self) {
        give_back(self.record());
    }

    /// The sample that was received into it.
    #[inline]
    pub(super) fn hold(mut self) -> RawSample {
        self.record().held.store(1, Relaxed);
        RawSample(self.record)
    }
}

impl RawSample {
    #[inline]
    fn record(&self) -> &Record {
        // SAFETY: the record is ours to read until we are dropped (invariant of this module).
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(crate) fn meta(&self) -> &Meta {
        &self.record().meta
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.record().bytes
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.record().ptr.as_ptr()
    }

    /// The payload.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes are initialised, private or reserved by the hazard, and live as long
        // as `self`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    pub(crate) fn is_borrowed(&self) -> bool {
        self.record().gives_back && matches!(self.record().place, Place::Borrowed(..))
    }
}

impl Drop for RawSample {
    #[inline]
    fn drop(&mut self) {
        if self.record().gives_back {
            give_back(self.record());
        }
        // ORDERING(RECORD): pairs with `Record::is_held`; our last access to the record.
        self.record().held.store(0, Release);
        parked::sweep();
    }
}

/// Ends what the payload of a record with `gives_back` needed; once.
fn give_back(record: &Record) {
    match record.place {
        Place::Inline => {}
        // In a forked child the hazard is the parent's.
        Place::Borrowed(hazard, generation) if generation == fork::fork_generation() => {
            // SAFETY: mapped while it is non-zero (invariant of this module); this store is our
            // last access to chunk and hazard.
            hazard::clear(unsafe { hazard.as_ref() });
        }
        Place::Borrowed(..) => {}
        // SAFETY: allocated with this layout in `copied`, and freed once: the next message into
        // the record sets `gives_back` anew.
        Place::Copied(layout) => unsafe { dealloc(record.ptr.as_ptr(), layout) },
    }
}
