//! Values that are encoded straight into shared memory and decoded straight from it.
//! Begin with `publish_value` and `receive_value`, here; `msgpack` is for the types of serde.

#[cfg(feature = "msgpack")]
pub mod msgpack;

use std::ops::Deref;
use std::time::Duration;

use crate::Result;
use crate::topic::publisher::Publisher;
use crate::topic::publisher::loan::Loan;
use crate::topic::ring::layout::SLICE_INLINE_BYTES_MAX;
use crate::topic::subscriber::Subscriber;
use crate::topic::subscriber::raw::Meta;
use crate::topic::subscriber::sample::Sample;
use crate::types::payload_type::PAYLOAD_BYTES_MAX;
use crate::types::value::{
    ATTEMPTS_MAX, DecodeValue, EncodeValue, decode, never_the_same, too_long, unencodable,
};

const DOING: &str = "publishing on";

impl<P: EncodeValue + ?Sized> Publisher<P> {
    /// Encodes `value` straight into shared memory and publishes it; returns its `seq`.
    ///
    /// The slot is an eighth longer than the last value, where there is room for that; a value that
    /// needs more, or finds no such slot, is encoded again into one of its own length.
    ///
    /// # Errors
    /// `InvalidArgument` when serde or the codec cannot encode the value; else as
    /// [`Publisher::publish`]. Nothing was published then.
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`].
    ///
    /// # Real-time
    /// As [`Publisher::publish`], once the topic has seen values of this size; encoding comes on
    /// top.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.msgpack::<Vec<String>>("/names")?.publisher()?;
    /// let mut subscriber = node.msgpack::<Vec<String>>("/names")?.subscriber()?;
    /// assert_eq!(publisher.publish_value(&vec!["arm".into(), "base".into()])?, 0);
    /// let names = subscriber.receive_value()?.expect("sent just now");
    /// assert_eq!(*names, ["arm", "base"]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publish_value(&self, value: &P::Value) -> Result<u64> {
        let encode = |to: &mut [u8]| {
            let encoded = P::encode_value(value, to);
            encoded.map_err(|why| unencodable::<P>(DOING, &self.topic(), &why))
        };
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
                return self.publish(P::of_bytes(&small[..length]));
            }
            if let Some(filled) = filled
                && length <= filled.bytes().len()
            {
                self.length_hint.set(length);
                return filled.publish_first(length);
            }
            if length > PAYLOAD_BYTES_MAX {
                return Err(too_long::<P>(DOING, &self.topic(), length));
            }
            loan = Some(self.loan_near(length)?);
        }
        Err(never_the_same::<P>(DOING, &self.topic()))
    }

    /// A slot for a value of `bytes` bytes, an eighth longer where there is room for that.
    fn loan_near(&self, bytes: usize) -> Result<Loan<'_, P>> {
        self.loan_bytes(bytes.saturating_add(bytes / 8)).or_else(|_| self.loan_bytes(bytes))
    }
}

/// A decoded value and where it came from.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.msgpack::<String>("/goal")?.publisher()?;
/// let mut subscriber = node.msgpack::<String>("/goal")?.subscriber()?;
/// publisher.publish_value(&"dock".into())?;
/// let goal = subscriber.receive_value()?.expect("sent just now");
/// assert!(goal.starts_with("do")); // used as the value itself
/// assert_eq!((goal.meta().seq, goal.into_inner()), (0, "dock".to_owned()));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoded<T> {
    value: T,
    meta: Meta,
}

impl<T> Decoded<T> {
    /// Publisher, number, time and losses.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # let publisher = node.msgpack::<String>("/goal")?.publisher()?;
    /// # let mut subscriber = node.msgpack::<String>("/goal")?.subscriber()?;
    /// publisher.publish_value(&"dock".into())?;
    /// let goal = subscriber.receive_value()?.expect("sent just now");
    /// assert_eq!((goal.meta().publisher, goal.meta().seq), (publisher.id(), 0));
    /// assert_eq!(goal.meta().lost_before, 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The value alone.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # let publisher = node.msgpack::<String>("/goal")?.publisher()?;
    /// # let mut subscriber = node.msgpack::<String>("/goal")?.subscriber()?;
    /// publisher.publish_value(&"dock".into())?;
    /// let goal: String = subscriber.receive_value()?.expect("sent just now").into_inner();
    /// assert_eq!(goal, "dock");
    /// # Ok::<(), outlive::Error>(())
    /// ```
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

impl<P: DecodeValue + ?Sized> Subscriber<P> {
    /// The next message, decoded, or `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// `Corrupt`, naming the topic: a message cannot be decoded; it is consumed, and the next call
    /// continues after it. Else as [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.msgpack::<String>("/goal")?.publisher()?;
    /// let mut subscriber = node.msgpack::<String>("/goal")?.subscriber()?;
    /// publisher.publish_value(&"dock".into())?;
    /// assert_eq!(*subscriber.receive_value()?.expect("sent just now"), "dock");
    /// assert!(subscriber.receive_value()?.is_none());
    /// publisher.publish(outlive::MsgPack::new(&[0xc1]))?; // not MessagePack
    /// assert_eq!(subscriber.receive_value().unwrap_err().kind(), outlive::ErrorKind::Corrupt);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_value(&mut self) -> Result<Option<Decoded<P::Value>>> {
        let sample = self.receive()?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    /// As [`Subscriber::receive_value`], waiting as [`Subscriber::receive_timeout`] does.
    ///
    /// # Errors
    /// As [`Subscriber::receive_value`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut subscriber = node.msgpack::<String>("/goal")?.subscriber()?;
    /// assert!(subscriber.receive_value_timeout(Duration::from_millis(1))?.is_none());
    /// let publisher = node.msgpack::<String>("/goal")?.publisher()?;
    /// publisher.publish_value(&"dock".into())?;
    /// let goal = subscriber.receive_value_timeout(Duration::from_secs(5))?;
    /// assert_eq!(goal.expect("sent just now").into_inner(), "dock");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_value_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<Decoded<P::Value>>> {
        let sample = self.receive_timeout(timeout)?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    fn value_of(&self, sample: &Sample<P>) -> Result<Decoded<P::Value>> {
        let meta = *sample.meta();
        let (seq, publisher) = (meta.seq, meta.publisher);
        let object = || format!("{} (message {seq} of publisher {publisher})", self.topic());
        Ok(Decoded { value: decode::<P>(sample, object)?, meta })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
