//! MessagePack of any serde type, written straight into shared memory and decoded straight from it.
//!
//! For data whose shape changes or that has strings, maps and options in it. A fixed-size
//! [`Message`](crate::Message) costs nothing to encode and is the better choice where it will do.
//!
//! Structs travel as maps with the names of their fields, so that every MessagePack library reads
//! them and fields may be added (`#[serde(default)]`). Byte arrays are quick with the crate
//! `serde_bytes` only: serde takes a plain `Vec<u8>` for a list of numbers.
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Debug, PartialEq)]
//! struct Plan {
//!     goal: String,
//!     /// Path points, m.
//!     points: Vec<(f64, f64)>,
//! }
//!
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! let publisher = node.msgpack::<Plan>("/plan")?.type_name("robot/Plan").publisher()?;
//! let mut subscriber = node.msgpack::<Plan>("/plan")?.type_name("robot/Plan").subscriber()?;
//!
//! let plan = Plan { goal: "dock".into(), points: vec![(0.0, 0.5), (1.0, 0.5)] };
//! publisher.publish_value(&plan)?;
//! let got = subscriber.receive_value_timeout(Duration::from_secs(1))?.expect("sent just now");
//! assert_eq!(*got, plan);
//!
//! // Without a copy of its text: the type borrows from the sample, which lies in shared memory.
//! #[derive(Deserialize)]
//! struct PlanRef<'a> {
//!     goal: &'a str,
//! }
//!
//! publisher.publish_value(&plan)?;
//! let sample = subscriber.receive()?.expect("sent just now");
//! let plan: PlanRef = sample.decode_as()?;
//! assert_eq!(plan.goal, "dock");
//! # Ok::<(), outlive::Error>(())
//! ```

use std::io;
use std::time::Duration;

use serde::de::{Deserialize, DeserializeOwned};
use serde::ser::Serialize;

use super::builder::Builder;
use super::subscriber::sample::Sample;
pub use super::values::Decoded;
use super::{publisher, subscriber};
use crate::Result;
use crate::node::Node;
pub use crate::types::msgpack::encode;
use crate::types::msgpack::{MsgPack, decode, undecoded};

/// Publishes values of type `T`; see [`publish_value`](publisher::Publisher::publish_value).
pub type Publisher<T> = publisher::Publisher<MsgPack<T>>;
/// Receives values of type `T`; see [`receive_value`](subscriber::Subscriber::receive_value).
pub type Subscriber<T> = subscriber::Subscriber<MsgPack<T>>;

impl Node {
    /// A builder that opens topic `name` for values of type `T` as MessagePack; the same as
    /// `topic::<MsgPack<T>>(name)`.
    ///
    /// # Errors
    /// As [`Node::topic`].
    pub fn msgpack<T: 'static>(&self, name: &str) -> Result<Builder<MsgPack<T>>> {
        self.topic(name)
    }
}

impl<T: 'static> Builder<MsgPack<T>> {
    /// Name of the type that all members must agree on, 1 to 256 bytes, like `robot/Plan`.
    ///
    /// Without it the name is the Rust path of `T`: other languages do not know it, it changes when
    /// the type moves, and compilers do not promise to keep it.
    pub fn type_name(self, name: &str) -> Self {
        self.named(name)
    }
}

impl<T: Serialize + 'static> publisher::Publisher<MsgPack<T>> {
    /// Encodes `value` straight into shared memory and publishes it; returns its `seq`.
    ///
    /// The slot is an eighth longer than the last value; a value that needs more is encoded again
    /// into a larger one.
    ///
    /// # Errors
    /// `InvalidArgument` when serde cannot encode the value; else as
    /// [`publish`](publisher::Publisher::publish). Nothing was published then.
    ///
    /// # Crash safety
    /// **Strict.** As [`publish`](publisher::Publisher::publish).
    ///
    /// # Real-time
    /// As [`publish`](publisher::Publisher::publish), once the topic has seen values of this size;
    /// serialising `T` comes on top.
    pub fn publish_value(&self, value: &T) -> Result<u64> {
        self.publish_encoded(|to| {
            let mut room = Room { to, length: 0 };
            let mut serializer = rmp_serde::Serializer::new(&mut room).with_struct_map();
            value.serialize(&mut serializer).map_err(|e| e.to_string())?;
            Ok(room.length)
        })
    }
}

/// A slot to encode into. What does not fit is counted, so that the next one fits.
struct Room<'a> {
    to: &'a mut [u8],
    length: usize,
}

impl io::Write for Room<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.length + bytes.len();
        if let Some(to) = self.to.get_mut(self.length..end) {
            to.copy_from_slice(bytes);
        }
        self.length = end;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: 'static> Sample<MsgPack<T>> {
    /// Decodes the value; as [`MsgPack::decode`], with an error that says which message it was.
    ///
    /// # Errors
    /// `Corrupt`: the message is not MessagePack of a `T`.
    pub fn decode<'a>(&'a self) -> Result<T>
    where
        T: Deserialize<'a>,
    {
        self.decode_as()
    }

    /// Decodes as another type; as [`MsgPack::decode_as`].
    ///
    /// # Errors
    /// `Corrupt`: the message is not MessagePack of a `U`.
    pub fn decode_as<'a, U: Deserialize<'a>>(&'a self) -> Result<U> {
        decode(self.as_bytes()).map_err(|why| {
            let object = format!("message {} of publisher {}", self.seq(), self.publisher());
            undecoded::<U>(&object, self.as_bytes().len(), &why)
        })
    }
}

impl<T: DeserializeOwned + 'static> subscriber::Subscriber<MsgPack<T>> {
    /// The next message, decoded, or `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// `Corrupt`, naming the topic: a message is not MessagePack of a `T`; it is consumed, and the
    /// next call continues after it. Else as [`receive`](subscriber::Subscriber::receive).
    pub fn receive_value(&mut self) -> Result<Option<Decoded<T>>> {
        let sample = self.receive()?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    /// As [`receive_value`](subscriber::Subscriber::receive_value), waiting as
    /// [`receive_timeout`](subscriber::Subscriber::receive_timeout) does.
    ///
    /// # Errors
    /// As [`receive_value`](subscriber::Subscriber::receive_value).
    pub fn receive_value_timeout(&mut self, timeout: Duration) -> Result<Option<Decoded<T>>> {
        let sample = self.receive_timeout(timeout)?;
        sample.map(|sample| self.value_of(&sample)).transpose()
    }

    fn value_of(&self, sample: &Sample<MsgPack<T>>) -> Result<Decoded<T>> {
        let meta = *sample.meta();
        let value = decode(sample.as_bytes()).map_err(|why| {
            let object =
                format!("{} (message {} of publisher {})", self.topic(), meta.seq, meta.publisher);
            undecoded::<T>(&object, sample.as_bytes().len(), &why)
        })?;
        Ok(Decoded { value, meta })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
