//! Requests and responses that are MessagePack of any serde type, or values of a codec.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::ser::Serialize;

use super::client::Client;
use super::request::Request;
use super::server::Server;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::types::encoded::{ATTEMPTS_MAX, Codec, Encoded, unencodable};
use crate::types::msgpack::{MsgPack, encode};
use crate::types::payload_type::PAYLOAD_BYTES_MAX;

/// Room for the first attempt at a value, bytes.
const ROOM_BYTES: usize = 512;

impl<Q, R> Client<MsgPack<Q>, MsgPack<R>>
where
    Q: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    /// Sends a value and waits for the answer, decoded; as [`Client::call_timeout`].
    ///
    /// # Errors
    /// `InvalidArgument` when serde cannot encode the value; `Corrupt` when the answer is not
    /// MessagePack of an `R`; else as [`Client::call_timeout`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// use outlive::MsgPack;
    ///
    /// type Asked = MsgPack<(String, u32)>;
    /// type Answered = MsgPack<Option<String>>;
    /// let mut server = node.service::<Asked, Answered>("/repeat")?.server()?;
    /// let mut client = node.service::<Asked, Answered>("/repeat")?.client()?;
    /// let asking = std::thread::spawn(move || {
    ///     client.call_value(&("ho".into(), 3), Duration::from_secs(5))
    /// });
    /// let request = server.receive_timeout(Duration::from_secs(5))?.expect("it asks");
    /// let (what, times) = request.decode()?;
    /// server.respond_value(request, &Some(what.repeat(times as usize)))?;
    /// assert_eq!(asking.join().unwrap()?, Some("hohoho".to_owned()));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn call_value(&mut self, request: &Q, timeout: Duration) -> Result<R> {
        let bytes = encode(request)?;
        self.call_until(MsgPack::new(&bytes), Deadline::after(timeout))?.decode()
    }
}

impl<Q: 'static, R: Serialize + 'static> Server<MsgPack<Q>, MsgPack<R>> {
    /// Answers with a value; as [`Server::respond`].
    ///
    /// # Errors
    /// `InvalidArgument` when serde cannot encode the value, and the client gets `Refused`; else
    /// as [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    pub fn respond_value(&mut self, request: Request<MsgPack<Q>>, response: &R) -> Result<()> {
        match encode(response) {
            Ok(bytes) => self.respond(request, MsgPack::new(&bytes)),
            Err(e) => {
                self.refuse(request, &e.to_string())?;
                Err(e)
            }
        }
    }
}

impl<Q: Codec, R: Codec> Client<Encoded<Q>, Encoded<R>> {
    /// Sends a value and waits for the answer, decoded; as [`Client::call_timeout`].
    ///
    /// # Errors
    /// `InvalidArgument` when the codec cannot encode the value; `Corrupt` when the answer is not
    /// one of its own; else as [`Client::call_timeout`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::error::Error;
    /// use std::time::Duration;
    /// use outlive::{Codec, Encoded, Encoding};
    ///
    /// /// A number as JSON.
    /// struct Number;
    ///
    /// impl Codec for Number {
    ///     type Value = i64;
    ///     const ENCODING: Encoding = Encoding::Json;
    ///
    ///     fn type_name() -> String {
    ///         "example/Number".into()
    ///     }
    ///
    ///     fn schema() -> Vec<u8> {
    ///         br#"{"type": "integer"}"#.into()
    ///     }
    ///
    ///     fn encode(value: &i64, to: &mut [u8]) -> Result<usize, Box<dyn Error + Send + Sync>> {
    ///         let json = value.to_string();
    ///         if let Some(to) = to.get_mut(..json.len()) {
    ///             to.copy_from_slice(json.as_bytes());
    ///         }
    ///         Ok(json.len())
    ///     }
    ///
    ///     fn decode(bytes: &[u8]) -> Result<i64, Box<dyn Error + Send + Sync>> {
    ///         Ok(std::str::from_utf8(bytes)?.parse()?)
    ///     }
    /// }
    ///
    /// type Json = Encoded<Number>;
    /// let mut server = node.service::<Json, Json>("/next")?.server()?;
    /// let mut client = node.service::<Json, Json>("/next")?.client()?;
    /// let asking = std::thread::spawn(move || client.call_value(&41, Duration::from_secs(5)));
    /// let request = server.receive_timeout(Duration::from_secs(5))?.expect("it asks");
    /// let number = request.decode()?;
    /// server.respond_value(request, &(number + 1))?;
    /// assert_eq!(asking.join().unwrap()?, 42);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn call_value(&mut self, request: &Q::Value, timeout: Duration) -> Result<R::Value> {
        let bytes = encoded::<Q>(request, "calling", self.service())?;
        self.call_until(Encoded::new(&bytes), Deadline::after(timeout))?.decode()
    }
}

impl<Q: Codec, R: Codec> Server<Encoded<Q>, Encoded<R>> {
    /// Answers with a value; as [`Server::respond`].
    ///
    /// # Errors
    /// `InvalidArgument` when the codec cannot encode the value, and the client gets `Refused`;
    /// else as [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    pub fn respond_value(
        &mut self,
        request: Request<Encoded<Q>>,
        response: &R::Value,
    ) -> Result<()> {
        match encoded::<R>(response, "answering on", self.service()) {
            Ok(bytes) => self.respond(request, Encoded::new(&bytes)),
            Err(e) => {
                self.refuse(request, &e.to_string())?;
                Err(e)
            }
        }
    }
}

/// The value's bytes. Requests and responses are copied anyhow.
fn encoded<C: Codec>(value: &C::Value, doing: &'static str, service: &str) -> Result<Vec<u8>> {
    let wrong = |why: &dyn std::fmt::Display| unencodable(C::ENCODING, doing, service, why);
    let mut bytes = vec![0; ROOM_BYTES];
    for _ in 0..ATTEMPTS_MAX {
        let length = C::encode(value, &mut bytes).map_err(|e| wrong(&e))?;
        if length <= bytes.len() {
            bytes.truncate(length);
            return Ok(bytes);
        }
        if length > PAYLOAD_BYTES_MAX {
            return Err(wrong(&format_args!("{length} bytes are more than a payload has")));
        }
        bytes = vec![0; length];
    }
    Err(wrong(&"its length changes from one attempt to the next"))
}
