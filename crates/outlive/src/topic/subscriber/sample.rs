//! Received messages with their type.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

use super::raw::{Meta, RawSample};
use crate::sync::fault;
use crate::topic::membership::PublisherId;
use crate::types::payload::{Payload, fault_of};
use crate::{Error, ErrorKind, Result};

/// A received message. Large ones are borrowed: they lie in shared memory, are yours to read for as
/// long as you keep the sample, and count against the subscriber's `borrows`. The publisher's death
/// does not affect them.
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
        let suits = Self::suits(&raw)
            && (!T::CHECKED || T::is_valid(raw.bytes()) || fault("sample.value_unchecked"));
        if suits { Ok(Self { raw, _type: PhantomData }) } else { Err(raw) }
    }

    /// Length and alignment.
    #[inline]
    fn suits(raw: &RawSample) -> bool {
        T::fits(raw.len()) && raw.as_ptr().addr() % align_of::<T::Element>() == 0
    }

    /// What is wrong with `raw`, which `of` did not take.
    #[cold]
    pub(in crate::topic) fn fault(topic: &str, raw: &RawSample) -> Error {
        if Self::suits(raw) {
            return wrong_value::<T>(topic, raw.bytes());
        }
        Error::new(
            ErrorKind::Corrupt,
            "receiving on",
            topic,
            format!(
                "a message of {} bytes does not match its type: restart its publisher",
                raw.len()
            ),
        )
    }

    /// Clones the payload into `to`; what is checked is checked again, in a copy that is ours.
    ///
    /// # Errors
    /// `Corrupt` when it has changed meanwhile.
    pub(in crate::topic) fn clone_to(&self, topic: &str, to: &mut T) -> Result<()>
    where
        T: Sized + Clone,
    {
        if T::CHECKED {
            *to = self.value(topic)?
        } else {
            to.clone_from(self)
        }
        Ok(())
    }

    /// The payload, copied; what is checked is checked again, in a copy that is ours.
    ///
    /// # Errors
    /// `Corrupt` when it has changed meanwhile.
    pub(in crate::topic) fn value(&self, topic: &str) -> Result<T>
    where
        T: Sized,
    {
        let mut copy = MaybeUninit::<T>::uninit();
        // SAFETY: a payload that has a size has that length (`suits`).
        unsafe {
            let at = copy.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(self.raw.as_ptr(), at, size_of::<T>());
        }
        // SAFETY: filled above.
        if !unsafe { is_value(&copy) } {
            return Err(wrong_value::<T>(topic, self.raw.bytes()));
        }
        // SAFETY: filled and just found valid.
        Ok(unsafe { copy.assume_init() })
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

    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher leaves it out.
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

/// Whether the bytes in `copy` are a `T`.
///
/// # Safety
/// All of them were written.
#[inline(always)]
pub(super) unsafe fn is_value<T: Payload>(copy: &MaybeUninit<T>) -> bool {
    let at = copy.as_ptr().cast::<u8>();
    // SAFETY: promised by the caller.
    let bytes = || unsafe { std::slice::from_raw_parts(at, size_of::<T>()) };
    !T::CHECKED || T::is_valid(bytes()) || fault("sample.value_unchecked")
}

#[cold]
fn wrong_value<T: Payload + ?Sized>(topic: &str, bytes: &[u8]) -> Error {
    Error::new(ErrorKind::Corrupt, "receiving on", topic, fault_of::<T>(bytes))
}

impl<T: Payload + ?Sized> Deref for Sample<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `of` checked length, alignment and validity; the bytes are initialised, private
        // or reserved by the hazard, and live as long as `self`.
        unsafe { T::cast(self.raw.as_ptr(), self.raw.len()) }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("meta", self.meta()).field("payload", &&**self).finish()
    }
}
