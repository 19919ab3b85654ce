//! A received message, still in its lane.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use super::hand::InHand;
use super::reader::Reader;
use super::table::ProducerId;
use crate::sync::fault;
use crate::{NodeId, Payload};

/// A message, or several in a row, lent from the lane. It counts as received when it is dropped:
/// if the consumer dies before, its successor receives it again.
///
/// It trusts the producer to keep to the protocol; [`crate::Consumer::copy_to`] trusts nobody.
pub struct Received<'c, T: Payload + ?Sized> {
    reader: &'c mut Reader,
    ptr: *const u8,
    bytes: usize,
    count: u32,
    _type: PhantomData<&'c T>,
}

impl<'c, T: Payload + ?Sized> Received<'c, T> {
    /// The first `count` messages of `hand`, which `reader` just gave; together a `T`.
    #[inline(always)]
    pub(super) fn new(reader: &'c mut Reader, hand: InHand, count: u32) -> Self {
        let bytes = hand.bytes * count as usize;
        debug_assert!(T::fits(bytes) && count <= hand.count);
        if fault("receive.taken_early") {
            reader.take(count);
        }
        Self { reader, ptr: hand.ptr, bytes, count, _type: PhantomData }
    }

    /// Who sent it.
    pub fn producer(&self) -> ProducerId {
        // There is one while a message is in hand.
        self.reader.sender().unwrap_or(ProducerId { node: NodeId::from_raw(0), port: 0 })
    }

    /// When it was sent, ns of CLOCK_MONOTONIC, in a queue with time stamps. Messages of one batch
    /// share one.
    pub fn timestamp_ns(&self) -> Option<u64> {
        self.reader.stamp()
    }

    /// The payload's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.deref().bytes()
    }
}

// SAFETY: a borrow of the reader, which may be sent, and of bytes that nobody writes meanwhile.
unsafe impl<T: Payload + ?Sized> Send for Received<'_, T> {}
// SAFETY: shared access only reads those bytes.
unsafe impl<T: Payload + ?Sized> Sync for Received<'_, T> {}

impl<T: Payload + ?Sized> Deref for Received<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lane's end checked length and alignment, and any bytes are a valid `T`. The
        // position is not past them before `self` is dropped, so no producer writes there, and the
        // reader, borrowed exclusively, keeps the segment mapped.
        unsafe { T::cast(self.ptr, self.bytes) }
    }
}

impl<T: Payload + ?Sized> Drop for Received<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !fault("receive.taken_early") {
            self.reader.take(self.count);
        }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Received<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let producer = self.producer();
        f.debug_struct("Received").field("producer", &producer).field("payload", &&**self).finish()
    }
}
