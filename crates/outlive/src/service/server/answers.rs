//! Answering: parts, the last one, a refusal.

use super::Server;
use super::owed::{is_final, no_answer};
use super::request::Request;
use crate::service::wire::frame;
use crate::types::Payload;
use crate::types::value::{EncodeValue, encode};
use crate::{Error, ErrorKind, Result};

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Server<Q, R> {
    /// Answers a request.
    ///
    /// # Errors
    /// `ClientDied`: the client died or left. An answer that is only late, or cancelled, is sent.
    /// `WouldBlock`: the client is so far behind that the bound is reached, or it may be ending.
    /// `InvalidArgument`: larger than the bound, or the request is of another server.
    /// `NoSpace`, `Corrupt`. A live client whose answer could not be sent gets `Refused` as soon as
    /// there is room for that; with 1024 of these untaken, its further requests wait.
    ///
    /// # Crash safety
    /// **Strict.** As [`crate::Producer::send`]. If the process dies first, the client gets
    /// `ServerDied`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// drop(client); // a kill does the same
    /// let gone = server.respond(request, &2).unwrap_err();
    /// assert_eq!(gone.kind(), outlive::ErrorKind::ClientDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn respond(&mut self, request: Request<Q>, response: &R) -> Result<()> {
        self.end(&request, frame::LAST, response.bytes())
    }

    /// Sends one part of the answer; more parts follow, and [`Server::respond`] sends the last.
    ///
    /// # Errors
    /// As [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/count")?.server()?;
    /// let mut client = node.service::<u32, u32>("/count")?.client()?;
    /// client.send(&2)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond_part(&request, &1)?;
    /// server.respond(request, &2)?;
    ///
    /// let mut parts = Vec::new();
    /// while let Some(reply) = client.receive()? {
    ///     parts.push((*reply.body()?, reply.is_last()));
    /// }
    /// assert_eq!(parts, [(1, false), (2, true)]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn respond_part(&mut self, request: &Request<Q>, response: &R) -> Result<()> {
        let done = self.ways.put(request.client, request.id, frame::PART, response.bytes());
        done.map_err(|e| self.not_answered(request, e))
    }

    /// Refuses a request and says why; the client gets `Refused`.
    ///
    /// # Errors
    /// As [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/grip")?.server()?;
    /// let mut client = node.service::<u32, u32>("/grip")?.client()?;
    /// client.send(&900)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.refuse(request, "at most 500 N")?;
    /// let error = client.receive()?.expect("refused just now").into_response().unwrap_err();
    /// assert_eq!(error.kind(), outlive::ErrorKind::Refused);
    /// assert!(error.to_string().contains("at most 500 N"));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn refuse(&mut self, request: Request<Q>, why: &str) -> Result<()> {
        self.end(&request, frame::REFUSED, why.as_bytes())
    }

    /// Sends the last answer to a request; a client must not wait for one that cannot be sent.
    fn end(&mut self, request: &Request<Q>, kind: u64, bytes: &[u8]) -> Result<()> {
        let done = self.ways.put(request.client, request.id, kind, bytes);
        if let Err(e) = &done
            && !is_final(e)
        {
            self.will_not_answer(request.client, request.id, no_answer(e));
        }
        self.cancelled.retain(|known| *known != (request.client, request.id));
        done.map_err(|e| self.not_answered(request, e))
    }

    /// A client of another service is unknown here, which does not say that it died.
    #[cold]
    fn not_answered(&self, request: &Request<Q>, why: Error) -> Error {
        if why.kind() != ErrorKind::ClientDied || request.of == self.address() {
            return why;
        }
        Error::new(
            ErrorKind::InvalidArgument,
            format!("answering client {} of service", request.client),
            self.service(),
            "the request is of another server: answer it there",
        )
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
