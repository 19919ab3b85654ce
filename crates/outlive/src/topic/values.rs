//! Values that are encoded straight into shared memory and decoded straight from it.

use std::ops::Deref;
use std::time::Duration;

use super::publisher::Publisher;
use super::publisher::loan::Loan;
use super::ring::layout::SLICE_INLINE_BYTES_MAX;
use super::subscriber::Subscriber;
use super::subscriber::raw::Meta;
use super::subscriber::sample::Sample;
use crate::types::encoded::{ATTEMPTS_MAX, Codec, Encoded, undecoded, unencodable};
use crate::types::payload::{Blob, Payload};
use crate::types::payload_type::PAYLOAD_BYTES_MAX;
use crate::{Error, Result};

impl<T: Payload + ?Sized> Publisher<T> {
    /// Publishes what `encode` writes into the slot it gets; it returns the length, also if that is
    /// more than there is room for.
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`].
    pub(super) fn publish_encoded(
        &self,
        encode: impl Fn(&mut [u8]) -> std::result::Result<usize, String>,
    ) -> Result<u64>
    where
        T: Blob,
    {
        let encode = |to: &mut [u8]| encode(to).map_err(|why| self.unencodable(&why));
        let inline_max = self.writer.borrow().inline_bytes_max().min(SLICE_INLINE_BYTES_MAX);
        let expected = self.length_hint.get();
        // Where there is no room for another like the last one, this one may still be small.
        let mut loan = if expected > inline_max { self.loan_near(expected).ok() } else { None };
        for _ in 0..ATTEMPTS_MAX {
            // Small ones may go into the entry itself: encode them beside it.
            let mut small = [0; SLICE_INLINE_BYTES_MAX];
            let length = encode(loan.as_mut().map_or(&mut small[..], |loan| loan.room()))?;
            let filled = loan.take();
            if length <= inline_max {
                if let Some(filled) = filled {
                    small[..length].copy_from_slice(&filled.bytes()[..length]);
                }
                self.length_hint.set(length);
                return self.publish(T::new_ref(&small[..length]));
            }
            if let Some(filled) = filled
                && length <= filled.bytes().len()
            {
                self.length_hint.set(length);
                return filled.publish_first(length);
            }
            if length > PAYLOAD_BYTES_MAX {
                let why = format!("{length} bytes are more than a payload has");
                return Err(self.unencodable(&why));
            }
            loan = Some(self.loan_near(length)?);
        }
        Err(self.unencodable("its length changes from one attempt to the next"))
    }

    /// A slot for a value of `bytes` bytes, an eighth longer where there is room for that.
    fn loan_near(&self, bytes: usize) -> Result<Loan<'_, T>> {
        self.loan_bytes(bytes.saturating_add(bytes / 8)).or_else(|_| self.loan_bytes(bytes))
    }

    #[cold]
    fn unencodable(&self, why: &str) -> Error {
        unencodable(T::ENCODING, "publishing on", &self.topic(), &why)
    }
}

/// A decoded value and where it came from.
#[derive(Clone, Debug)]
pub struct Decoded<T> {
    pub(super) value: T,
    pub(super) meta: Meta,
}

impl<T> Decoded<T> {
    /// Publisher, number, time and losses.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The value alone.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Decoded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<C: Codec> Publisher<Encoded<C>> {
    /// Encodes `value` straight into shared memory and publishes it; returns its `seq`.
    ///
    /// The slot is an eighth longer than the last value, where there is room for that; a value that
    /// needs more, or finds no such slot, is encoded again into one of its own length.
    ///
    /// # Errors
    /// `InvalidArgument` when the codec cannot encode the value; else as [`Publisher::publish`].
    /// Nothing was published then.
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`].
    ///
    /// # Real-time
    /// As [`Publisher::publish`], once the topic has seen values of this size; encoding comes on
    /// top.
    pub fn publish_value(&self, value: &C::Value) -> Result<u64> {
        self.publish_encoded(|to| C::encode(value, to).map_err(|e| e.to_string()))
    }
}

impl<C: Codec> Subscriber<Encoded<C>> {
    /// The next message, decoded, or `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// `Corrupt`, naming the topic: a message cannot be decoded; it is consumed, and the next call
    /// continues after it. Else as [`Subscriber::receive`].
    pub fn receive_value(&mut self) -> Result<Option<Decoded<C::Value>>> {
        let sample = self.receive()?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    /// As [`Subscriber::receive_value`], waiting as [`Subscriber::receive_timeout`] does.
    ///
    /// # Errors
    /// As [`Subscriber::receive_value`].
    pub fn receive_value_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<Decoded<C::Value>>> {
        let sample = self.receive_timeout(timeout)?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    fn value_of(&self, sample: &Sample<Encoded<C>>) -> Result<Decoded<C::Value>> {
        let meta = *sample.meta();
        let value = C::decode(sample.as_bytes()).map_err(|why| {
            let object =
                format!("{} (message {} of publisher {})", self.topic(), meta.seq, meta.publisher);
            undecoded::<C>(&object, sample.as_bytes().len(), &why)
        })?;
        Ok(Decoded { value, meta })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
