//! A writable slot in shared memory, lent to a publisher.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::refused::TryPublishError;
use super::writer::Writer;
use crate::topic::chunks::hazard::Location;
use crate::types::payload::Payload;
use crate::{Error, Result};

/// A slot lent by [`Publisher::loan`](crate::Publisher::loan). Write through it, then
/// [`Loan::publish`]; dropped unpublished, the slot is free again.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<[u32; 1000]>("/table")?.publisher()?;
/// let mut table = publisher.loan()?;
/// table[999] = 7; // the other elements hold whatever was there before
/// drop(table); // publishes nothing
/// let mut table = publisher.loan()?;
/// table.fill(7);
/// table.publish()?;
/// assert_eq!(publisher.published(), 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it publishes nothing"]
pub struct Loan<'p, T: Payload + ?Sized> {
    writer: &'p RefCell<Writer>,
    location: Location,
    ptr: *mut u8,
    bytes: usize,
    _type: PhantomData<&'p mut T>,
}

/// A loan that could not be published, filled as it was, and why.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{ErrorKind, topic::Unpublished};
///
/// let mut slow = node.topic::<[f64; 6]>("/joints")?.depth(1).reliable(true).subscriber()?;
/// let publisher = node.topic::<[f64; 6]>("/joints")?.publisher()?;
/// publisher.publish(&[0.1; 6])?;
/// let mut joints = publisher.loan()?;
/// joints.fill(0.2);
/// let Unpublished { loan, why } = joints.try_publish().unwrap_err();
/// assert_eq!((why.kind(), loan[5]), (ErrorKind::WouldBlock, 0.2));
/// slow.receive()?; // makes room
/// loan.publish()?;
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "its loan is still to be published"]
pub struct Unpublished<'p, T: Payload + ?Sized> {
    /// To publish later, or to drop.
    pub loan: Loan<'p, T>,
    /// Why it was not published.
    pub why: TryPublishError,
}

impl<T: Payload + ?Sized> From<Unpublished<'_, T>> for Error {
    #[cold]
    fn from(refused: Unpublished<'_, T>) -> Self {
        refused.why.into()
    }
}

impl<T: Payload + ?Sized> fmt::Display for Unpublished<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: Payload + ?Sized + fmt::Debug> std::error::Error for Unpublished<'_, T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.source()
    }
}

impl<'p, T: Payload + ?Sized> Loan<'p, T> {
    /// `ptr` is the chunk at `location`, taken from the pool of `writer` for `bytes` bytes.
    #[inline]
    pub(in crate::topic) fn new(
        writer: &'p RefCell<Writer>,
        location: Location,
        ptr: *mut u8,
        bytes: usize,
    ) -> Self {
        debug_assert!(T::fits(bytes) && ptr.addr() % align_of::<T::Element>() == 0);
        // SAFETY: a chunk of that length, aligned for the topic's type and exclusively ours.
        unsafe { T::clear(ptr, bytes) };
        Self { writer, location, ptr, bytes, _type: PhantomData }
    }

    /// Makes the filled slot visible to subscribers; returns its `seq`.
    ///
    /// # Errors
    /// As [`Publisher::publish`](crate::Publisher::publish); the slot is free again then.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the entry's `seq`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[f64; 6]>("/joints")?.publisher()?;
    /// let mut subscriber = node.topic::<[f64; 6]>("/joints")?.subscriber()?;
    /// let mut joints = publisher.loan()?;
    /// joints.fill(0.1);
    /// assert!(subscriber.receive()?.is_none()); // not before it is published
    /// assert_eq!(joints.publish()?, 0);
    /// assert_eq!(subscriber.receive()?.expect("sent just now")[5], 0.1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn publish(self) -> Result<u64> {
        let this = ManuallyDrop::new(self);
        let mut writer = this.writer.borrow_mut();
        writer.publish_chunk(this.location, this.bytes, false).map_err(|refused| {
            writer.give_back(this.location);
            writer.error(refused)
        })
    }

    /// As [`Loan::publish`], without waiting for a reliable subscriber; a refusal hands the filled
    /// loan back.
    ///
    /// # Errors
    /// As [`Publisher::try_publish`](crate::Publisher::try_publish), except `NoMemory`.
    ///
    /// # Crash safety
    /// **Strict.** As [`Loan::publish`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut slow = node.topic::<[f64; 6]>("/joints")?.depth(1).reliable(true).subscriber()?;
    /// let publisher = node.topic::<[f64; 6]>("/joints")?.publisher()?;
    /// publisher.publish(&[0.1; 6])?;
    /// let mut joints = publisher.loan()?;
    /// joints.fill(0.2);
    /// let refused = joints.try_publish().unwrap_err();
    /// assert_eq!(*slow.receive()?.expect("the first one"), [0.1; 6]);
    /// refused.loan.publish()?; // filled as it was
    /// assert_eq!(*slow.receive()?.expect("the second one"), [0.2; 6]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_publish(self) -> std::result::Result<u64, Unpublished<'p, T>> {
        let this = ManuallyDrop::new(self);
        let mut writer = this.writer.borrow_mut();
        let sent = writer.publish_chunk(this.location, this.bytes, true);
        let sent = sent.map_err(|refused| writer.not_published(refused));
        drop(writer);
        sent.map_err(|why| Unpublished { loan: ManuallyDrop::into_inner(this), why })
    }

    /// The slot's bytes, to fill it without regard to its type. Does not compile for types with a
    /// `bool`, `char` or enum, for which some bytes are not a value.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::io::Read;
    ///
    /// let mut camera: &[u8] = &[1, 0, 2, 0, 3, 0]; // or a file, or a socket
    /// let publisher = node.topic::<[u16]>("/depth")?.publisher()?;
    /// let mut subscriber = node.topic::<[u16]>("/depth")?.subscriber()?;
    /// let mut pixels = publisher.loan_slice(3)?;
    /// camera.read_exact(pixels.as_bytes_mut()).unwrap();
    /// pixels.publish()?;
    /// assert_eq!(*subscriber.receive()?.expect("sent just now"), [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        const { assert!(!T::CHECKED, "not any bytes are a value of this type") };
        // SAFETY: the chunk is exclusively ours until published, `bytes` long, and holds what was
        // there before; any bytes are a valid `T` (just required).
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.bytes) }
    }

    /// Publishes only the first `bytes` bytes, a payload by themselves.
    pub(in crate::topic) fn publish_first(mut self, bytes: usize) -> Result<u64> {
        assert!(bytes <= self.bytes && T::fits(bytes));
        self.bytes = bytes;
        self.publish()
    }

    /// Fills the slot from `bytes`, which have its length.
    #[inline]
    pub(in crate::topic) fn copy_from(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.bytes);
        // SAFETY: the chunk is exclusively ours (pool invariant) and `bytes` long; `bytes` cannot
        // overlap it, since no reference into a loaned chunk exists but through this loan.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr, bytes.len()) };
    }
}

impl<T: Payload + ?Sized> Deref for Loan<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `T::fits(bytes)`; chunks are aligned for the topic's type; the chunk is
        // exclusively ours until published, and valid since `clear`.
        unsafe { T::cast(self.ptr, self.bytes) }
    }
}

impl<T: Payload + ?Sized> DerefMut for Loan<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { T::cast_mut(self.ptr, self.bytes) }
    }
}

impl<T: Payload + ?Sized> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        self.writer.borrow_mut().give_back(self.location);
    }
}
