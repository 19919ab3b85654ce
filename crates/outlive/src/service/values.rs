//! Requests and responses that are values: MessagePack of any serde type, or those of a codec.

use std::time::Duration;

use super::client::Client;
use super::request::Request;
use super::server::Server;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::types::Payload;
use crate::types::value::{DecodeValue, EncodeValue, decode, encode};

impl<Q: EncodeValue + ?Sized, R: DecodeValue + ?Sized> Client<Q, R> {
    /// Sends a value and waits for the answer, decoded; as [`Client::call_timeout`].
    ///
    /// # Errors
    /// `InvalidArgument` when serde or the codec cannot encode the value; `Corrupt` when the answer
    /// cannot be decoded; else as [`Client::call_timeout`].
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
    pub fn call_value(&mut self, request: &Q::Value, timeout: Duration) -> Result<R::Value> {
        let bytes = encode::<Q>(request, "calling", self.service())?;
        let answer = self.call_until(Q::of_bytes(&bytes), Deadline::after(timeout))?;
        decode::<R>(&answer, || format!("an answer of {}", self.service()))
    }
}

impl<Q: Payload + ?Sized, R: EncodeValue + ?Sized> Server<Q, R> {
    /// Answers with a value; as [`Server::respond`].
    ///
    /// # Errors
    /// `InvalidArgument` when serde or the codec cannot encode the value, and the client gets
    /// `Refused`; else as [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::MsgPack;
    ///
    /// let mut server = node.service::<u32, MsgPack<Vec<String>>>("/names")?.server()?;
    /// let mut client = node.service::<u32, MsgPack<Vec<String>>>("/names")?.client()?;
    /// client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond_value(request, &vec!["arm".to_owned()])?;
    /// let reply = client.receive()?.expect("answered just now");
    /// assert_eq!(reply.body()?.decode()?, ["arm"]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn respond_value(&mut self, request: Request<Q>, response: &R::Value) -> Result<()> {
        match encode::<R>(response, "answering on", self.service()) {
            Ok(bytes) => self.respond(request, R::of_bytes(&bytes)),
            Err(e) => {
                self.refuse(request, &e.to_string())?;
                Err(e)
            }
        }
    }
}
