//! Requests and responses that are MessagePack of any serde type.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::ser::Serialize;

use super::client::Client;
use super::request::Request;
use super::server::Server;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::types::msgpack::{MsgPack, encode};

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
