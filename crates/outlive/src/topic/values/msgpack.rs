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

use serde::de::Deserialize;

pub use super::Decoded;
use crate::Result;
use crate::node::Node;
use crate::topic::builder::Builder;
use crate::topic::subscriber::sample::Sample;
use crate::topic::{publisher, subscriber};
pub use crate::types::value::msgpack::encode;
use crate::types::value::msgpack::{MsgPack, decode, undecoded};

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
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::collections::HashMap;
    ///
    /// let publisher = node.msgpack::<HashMap<String, f64>>("/gains")?.type_name("robot/Gains");
    /// let publisher = publisher.publisher()?;
    /// let subscriber = node.msgpack::<HashMap<String, f64>>("/gains")?.type_name("robot/Gains");
    /// let mut subscriber = subscriber.subscriber()?;
    /// let gains = HashMap::from([("kp".to_owned(), 1.5)]);
    /// publisher.publish_value(&gains)?;
    /// assert_eq!(*subscriber.receive_value()?.expect("sent just now"), gains);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn msgpack<T: 'static>(&self, name: &str) -> Result<Builder<MsgPack<T>>> {
        self.topic(name)
    }
}

impl<T: 'static> Builder<MsgPack<T>> {
    /// Name of the type that all members must agree on, 1 to 256 bytes, like `robot/Plan`.
    ///
    /// Without it the name is the Rust path of `T`: other languages do not know it, it changes when
    /// the type moves, and compilers do not promise to keep it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let names = node.msgpack::<Vec<String>>("/names")?.type_name("robot/Names");
    /// let _publisher = names.publisher()?;
    /// let info = domain.find_topic("/names")?.expect("opened above");
    /// assert_eq!(info.type_name, "robot/Names");
    /// let unnamed = node.msgpack::<Vec<String>>("/names")?.subscriber().unwrap_err();
    /// assert_eq!(unnamed.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn type_name(self, name: &str) -> Self {
        self.named(name)
    }
}

impl<T: 'static> Sample<MsgPack<T>> {
    /// Decodes the value; as [`MsgPack::decode`], with an error that says which message it was.
    ///
    /// # Errors
    /// `Corrupt`: the message is not MessagePack of a `T`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.msgpack::<(String, f64)>("/goal")?.publisher()?;
    /// let mut subscriber = node.msgpack::<(String, f64)>("/goal")?.subscriber()?;
    /// publisher.publish_value(&("dock".into(), 1.5))?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// assert_eq!(sample.decode()?, ("dock".to_owned(), 1.5));
    /// assert_eq!(sample.seq(), 0); // who sent it, when, what was lost: all still there
    /// # Ok::<(), outlive::Error>(())
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.msgpack::<(String, f64)>("/goal")?.publisher()?;
    /// let mut subscriber = node.msgpack::<(String, f64)>("/goal")?.subscriber()?;
    /// publisher.publish_value(&("dock".into(), 1.5))?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// let (name, speed): (&str, f64) = sample.decode_as()?; // the text lies in the sample
    /// assert_eq!((name, speed), ("dock", 1.5));
    /// let wrong = sample.decode_as::<u64>().unwrap_err();
    /// assert_eq!(wrong.kind(), outlive::ErrorKind::Corrupt);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn decode_as<'a, U: Deserialize<'a>>(&'a self) -> Result<U> {
        decode(self.as_bytes()).map_err(|why| {
            let object = format!("message {} of publisher {}", self.seq(), self.publisher());
            undecoded::<U>(&object, self.as_bytes().len(), &why)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
