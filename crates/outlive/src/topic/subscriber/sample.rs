//! Received messages with their type.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

use super::raw::{Meta, RawSample, Slot};
use super::reader::Reader;
use crate::topic::membership::PublisherId;
use crate::types::payload::{Payload, fault_of};
use crate::{Error, ErrorKind, Result};

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
        T::fits(raw.len()) && raw.is_aligned(align_of::<T::Element>())
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
        reader.count_lost(raw.meta().lost_before);
        if Self::suits(raw) {
            if !T::CHECKED || T::is_valid(raw.bytes()) {
                return Ok(Received::There(Filled(())));
            }
            let wrong = wrong_value::<T>(reader.topic().name.as_str(), raw.bytes());
            // SAFETY: as above; nobody uses it afterwards.
            unsafe { slot.assume_init_drop() };
            return Err(wrong);
        }
        let bytes = raw.len();
        // SAFETY: as above; nobody uses it afterwards.
        unsafe { slot.assume_init_drop() };
        Ok(Received::WrongLength(bytes))
    }

    /// Clones the payload into `to`; what is checked is checked again, in a copy that is ours.
    ///
    /// # Errors
    /// `Corrupt` when it has changed meanwhile.
    pub(in crate::topic) fn clone_to(&self, topic: &str, to: &mut T) -> Result<()>
    where
        T: Sized + Clone,
    {
        if !T::CHECKED {
            to.clone_from(self);
            return Ok(());
        }
        let mut copy = MaybeUninit::<T>::uninit();
        // SAFETY: a payload that has a size has that length (`suits`).
        let bytes = unsafe {
            let at = copy.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(self.raw.as_ptr(), at, size_of::<T>());
            std::slice::from_raw_parts(at, size_of::<T>())
        };
        if !T::is_valid(bytes) {
            return Err(wrong_value::<T>(topic, bytes));
        }
        // SAFETY: filled and just found valid.
        to.clone_from(unsafe { copy.assume_init_ref() });
        Ok(())
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

#[cold]
fn wrong_value<T: Payload + ?Sized>(topic: &str, bytes: &[u8]) -> Error {
    Error::new(ErrorKind::Corrupt, "receiving on", topic, fault_of::<T>(bytes))
}

impl<T: Payload + ?Sized> Deref for Sample<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `receive` checked length, alignment and validity (inline words are 8-aligned
        // wherever the sample moves); the bytes are initialised, private or reserved by the hazard,
        // and live as long as `self`.
        unsafe { T::cast(self.raw.as_ptr(), self.raw.len()) }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("meta", self.meta()).field("payload", &&**self).finish()
    }
}
