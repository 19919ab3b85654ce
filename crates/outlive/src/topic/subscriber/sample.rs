//! Received messages with their type.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use super::raw::{Meta, RawSample};
use crate::topic::membership::PublisherId;
use crate::types::payload::Payload;

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

impl<T: Payload + ?Sized> Sample<T> {
    /// `raw` as a `T`; what is none is handed back.
    #[inline]
    pub(in crate::topic) fn of(raw: RawSample) -> std::result::Result<Self, RawSample> {
        let aligned = raw.as_ptr().addr() % align_of::<T::Element>() == 0;
        let suits = aligned && T::fits(raw.len());
        if suits { Ok(Self { raw, _type: PhantomData }) } else { Err(raw) }
    }

    /// Publisher, number, time and losses.
    pub fn meta(&self) -> &Meta {
        self.raw.meta()
    }

    /// Number of this message among its publisher's, from 0.
    pub fn seq(&self) -> u64 {
        self.raw.meta().seq
    }

    /// Who sent it.
    pub fn publisher(&self) -> PublisherId {
        self.raw.meta().publisher
    }

    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher does not say.
    pub fn timestamp_ns(&self) -> u64 {
        self.raw.meta().timestamp_ns
    }

    /// Messages of this publisher lost right before this one.
    pub fn lost_before(&self) -> u64 {
        self.raw.meta().lost_before
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
        // SAFETY: `of` checked length and alignment; the bytes are initialised, private or reserved
        // by the hazard, and live as long as `self`.
        unsafe { T::cast(self.raw.as_ptr(), self.raw.len()) }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("meta", self.meta()).field("payload", &&**self).finish()
    }
}
