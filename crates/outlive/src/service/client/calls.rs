//! A request and the wait for its last answer in one call.

use std::time::Duration;

use super::Client;
use super::reply::Response;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::types::Payload;
use crate::types::value::{DecodeValue, EncodeValue, decode, encode};

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Client<Q, R> {
    /// Sends a request and waits for the last answer, for as long as the server lives; earlier
    /// parts of a streamed answer are dropped.
    ///
    /// # Errors
    /// `ServerDied` at once when it dies; `Refused` with the server's words; as [`Client::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let answering = std::thread::spawn(move || {
    ///     let timeout = std::time::Duration::from_secs(5);
    ///     let request = server.receive_timeout(timeout)?.expect("it calls");
    ///     let answer = *request * 2;
    ///     server.respond(request, &answer)
    /// });
    /// assert_eq!(*client.call(&21)?, 42);
    /// answering.join().unwrap()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn call(&mut self, request: &Q) -> Result<Response<R>> {
        self.call_until(request, Deadline::NEVER)
    }

    /// As [`Client::call`], waiting at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`, and the request is cancelled; else as [`Client::call`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let server = node.service::<u32, u32>("/plan")?.server()?; // never answers
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let late = client.call_timeout(&7, std::time::Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(late.kind(), outlive::ErrorKind::Timeout);
    /// drop(server); // a kill does the same
    /// assert_eq!(client.call(&7).unwrap_err().kind(), outlive::ErrorKind::ServerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn call_timeout(&mut self, request: &Q, timeout: Duration) -> Result<Response<R>> {
        self.call_until(request, Deadline::after(timeout))
    }

    /// As [`Client::call_timeout`], waiting until `deadline`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// use outlive::{Deadline, ErrorKind};
    ///
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let _server = node.service::<u32, u32>("/plan")?.server()?; // never answers
    /// let deadline = Deadline::after(Duration::from_millis(1)); // of this cycle
    /// let late = client.call_until(&7, deadline).unwrap_err();
    /// assert_eq!((late.kind(), client.waiting()), (ErrorKind::Timeout, 0)); // it is cancelled
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn call_until(&mut self, request: &Q, deadline: Deadline) -> Result<Response<R>> {
        let ticket = self.send_until(request, deadline)?;
        loop {
            match self.receive_for(ticket, deadline) {
                Ok(reply) if !reply.is_last() => {}
                Ok(reply) => return reply.into_response(),
                Err(e) => {
                    let _ = self.cancel(ticket);
                    return Err(e);
                }
            }
        }
    }
}

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
