//! Received messages with their type.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

use super::raw::{Meta, RawSample};
use crate::sync::fault;
use crate::topic::membership::entry::PublisherId;
use crate::types::payload::{Payload, fault_of};
use crate::{Error, ErrorKind, Result};

/// A received message. Large ones are borrowed: they lie in shared memory, are yours to read for as
/// long as you keep the sample, and count against the subscriber's `borrows`. The publisher's death
/// does not affect them.
///
/// A borrowed sample trusts its publisher to keep to the protocol; [`crate::Subscriber::copy_to`]
/// trusts nobody.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// let mut subscriber = node.topic::<[u8]>("/image")?.subscriber()?;
/// publisher.publish(&[7; 10_000])?;
/// let image = subscriber.receive()?.expect("sent just now");
/// drop((publisher, subscriber, node));
/// assert_eq!((image.len(), image[9_999]), (10_000, 7)); // yours for as long as you keep it
/// # Ok::<(), outlive::Error>(())
/// ```
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
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// publisher.publish(&7)?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// let meta = *sample.meta(); // a copy, to keep it longer than the sample
    /// drop(sample);
    /// assert_eq!((meta.publisher, meta.seq, meta.lost_before), (publisher.id(), 0, 0));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn meta(&self) -> &Meta {
        self.raw.meta()
    }

    /// Number of this message among its publisher's, from 0.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut late = node.topic::<u64>("/n")?.history(1).subscriber()?;
    /// let sent = publisher.publish(&7)?;
    /// let sample = late.receive()?.expect("sent just now");
    /// assert_eq!(sample.seq(), sent);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn seq(&self) -> u64 {
        self.raw.meta().seq
    }

    /// Who sent it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut wheels = node.topic::<u32>("/wheel")?.subscriber()?;
    /// let left = node.topic::<u32>("/wheel")?.publisher()?;
    /// let right = node.topic::<u32>("/wheel")?.publisher()?;
    /// right.publish(&7)?;
    /// let sample = wheels.receive()?.expect("sent just now");
    /// assert!(sample.publisher() == right.id() && sample.publisher() != left.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publisher(&self) -> PublisherId {
        self.raw.meta().publisher
    }

    /// When it was published, ns of CLOCK_MONOTONIC; 0 when its publisher leaves it out.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// let before_ns = outlive::now_ns();
    /// publisher.publish(&7)?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// let age_ns = outlive::now_ns() - sample.timestamp_ns();
    /// assert!(sample.timestamp_ns() >= before_ns, "{age_ns} ns old");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn timestamp_ns(&self) -> u64 {
        self.raw.meta().timestamp_ns
    }

    /// Messages of this publisher lost right before this one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.depth(4).publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// for n in 0..10 {
    ///     publisher.publish(&n)?;
    /// }
    /// let mut lost = Vec::new();
    /// while let Some(sample) = subscriber.receive()? {
    ///     lost.push(sample.lost_before());
    /// }
    /// assert_eq!(lost, [6, 0, 0, 0]); // 0 to 5 were overwritten
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lost_before(&self) -> u64 {
        self.raw.meta().lost_before
    }

    /// The payload's bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u16]>("/depth")?.publisher()?;
    /// let mut subscriber = node.topic::<[u16]>("/depth")?.subscriber()?;
    /// publisher.publish(&[1, 2])?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// assert_eq!(sample.as_bytes(), [1, 0, 2, 0]); // for a file or a socket
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        self.deref().bytes()
    }

    /// Whether the payload lies in shared memory, without a copy.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8]>("/bytes")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/bytes")?.subscriber()?;
    /// publisher.publish(&[7; 10])?;
    /// publisher.publish(&[7; 10_000])?;
    /// let (small, large) = (subscriber.receive()?, subscriber.receive()?);
    /// assert!(!small.expect("sent above").is_borrowed(), "copied out of the ring");
    /// assert!(large.expect("sent above").is_borrowed());
    /// # Ok::<(), outlive::Error>(())
    /// ```
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
