//! Values that are encoded straight into shared memory and decoded straight from it.

use std::ops::Deref;
use std::time::Duration;

use super::publisher::Publisher;
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
        let encode = |to: &mut [u8]| {
            let length = encode(to).map_err(|why| self.unencodable(&why))?;
            self.length_hint.set(length);
            Ok::<_, Error>(length)
        };
        let inline_max = self.writer.borrow().inline_bytes_max().min(SLICE_INLINE_BYTES_MAX);
        let mut wanted = self.length_hint.get();
        for _ in 0..ATTEMPTS_MAX {
            // Small ones may go into the entry itself: encode them beside it.
            let mut small = [0; SLICE_INLINE_BYTES_MAX];
            let length = if wanted <= inline_max {
                let length = encode(&mut small)?;
                if length <= inline_max {
                    return self.publish(T::new_ref(&small[..length]));
                }
                length
            } else {
                let mut loan = self.loan_bytes(wanted.saturating_add(wanted / 8))?;
                let length = encode(loan.room())?;
                if length <= inline_max {
                    small[..length].copy_from_slice(&loan.bytes()[..length]);
                    drop(loan);
                    return self.publish(T::new_ref(&small[..length]));
                }
                if length <= loan.bytes().len() {
                    return loan.publish_first(length);
                }
                length
            };
            if length > PAYLOAD_BYTES_MAX {
                let why = format!("{length} bytes are more than a payload has");
                return Err(self.unencodable(&why));
            }
            wanted = length;
        }
        Err(self.unencodable("its length changes from one attempt to the next"))
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
    /// The slot is an eighth longer than the last value; a value that needs more is encoded again
    /// into a larger one.
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
