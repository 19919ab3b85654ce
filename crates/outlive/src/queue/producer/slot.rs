//! A writable place in a producer's lane.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::writer::Writer;
use crate::types::Payload;

/// A place in the lane lent by [`crate::Producer::reserve`]. Write through it, then
/// [`Slot::commit`]; dropping it uncommitted sends nothing.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut consumer = node.queue::<[f32]>("/scans")?.consumer()?;
/// let mut producer = node.queue::<[f32]>("/scans")?.producer()?;
/// let mut ranges = producer.reserve_slice(360)?;
/// ranges.fill(4.5); // holds whatever was there before
/// ranges[0] = 1.5;
/// ranges.commit();
/// assert_eq!(consumer.receive()?.expect("committed")[..2], [1.5, 4.5]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it sends nothing"]
pub struct Slot<'p, T: Payload + ?Sized> {
    writer: &'p mut Writer,
    ptr: *mut u8,
    bytes: usize,
    _type: PhantomData<&'p mut T>,
}

impl<'p, T: Payload + ?Sized> Slot<'p, T> {
    /// `ptr` is what `Writer::reserve` gave for `bytes` bytes.
    pub(in crate::queue) fn new(writer: &'p mut Writer, ptr: *mut u8, bytes: usize) -> Self {
        debug_assert!(T::fits(bytes) && ptr.addr() % align_of::<T::Element>() == 0);
        // SAFETY: a place of that length, aligned for the queue's type, where nobody reads.
        unsafe { T::clear(ptr, bytes) };
        Self { writer, ptr, bytes, _type: PhantomData }
    }

    /// Sends what was written. In a forked child it does nothing: the place is its parent's.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the record's header.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[u8; 4]>("/colours")?.consumer()?;
    /// let mut producer = node.queue::<[u8; 4]>("/colours")?.producer()?;
    /// producer.reserve()?.fill(1); // dropped: not sent
    /// let mut colour = producer.reserve()?;
    /// colour.copy_from_slice(&[255, 128, 0, 255]);
    /// colour.commit();
    /// assert_eq!(consumer.receive()?.expect("committed")[1], 128);
    /// assert!(consumer.receive()?.is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn commit(self) {
        if self.writer.is_forked() {
            return;
        }
        let shape = *self.writer.shape();
        self.writer.commit(self.bytes as u64, &shape);
    }
}

impl<T: Payload + ?Sized> Deref for Slot<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `T::fits(bytes)`; payloads are aligned for the queue's type; the place is behind
        // the last committed record, where nobody reads, and valid since `clear`.
        unsafe { T::cast(self.ptr, self.bytes) }
    }
}

impl<T: Payload + ?Sized> DerefMut for Slot<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the writer is borrowed exclusively, so nobody else writes.
        unsafe { T::cast_mut(self.ptr, self.bytes) }
    }
}
