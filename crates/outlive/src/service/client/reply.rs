//! Replies as their client holds them.
#![allow(unsafe_code)]

use std::ops::Deref;

use crate::queue::membership::Queue;
use crate::service::wire::body::{Body, NoBody};
use crate::service::wire::frame;
use crate::types::Payload;
use crate::{Error, ErrorKind, Result};

/// Names a request that was sent and is not answered yet.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut server = node.service::<u32, u32>("/double")?.server()?;
/// let mut client = node.service::<u32, u32>("/double")?.client()?;
/// let (first, second) = (client.send(&1)?, client.send(&2)?);
/// let requests = [server.receive()?, server.receive()?].map(|r| r.expect("sent just now"));
/// for request in requests.into_iter().rev() {
///     let answer = *request * 2;
///     server.respond(request, &answer)?; // the second one first
/// }
/// let replies = [client.receive()?, client.receive()?].map(|r| r.expect("answered").ticket());
/// assert_eq!(replies, [second, first]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(super) u64);

impl Ticket {
    /// Its number among the requests of this client.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let ticket = client.send(&7)?;
    /// let request = server.receive()?.expect("sent just now");
    /// assert_eq!(request.id(), ticket.get()); // the same number in the logs of both
    /// # server.respond(request, &8)?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn get(self) -> u64 {
        self.0
    }
}

/// What a server answered, copied out of shared memory.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let mut server = node.service::<u32, [u32]>("/count")?.server()?;
/// let mut client = node.service::<u32, [u32]>("/count")?.client()?;
/// let answering = std::thread::spawn(move || {
///     let request = server.receive_timeout(Duration::from_secs(5))?.expect("sent below");
///     server.respond(request, &[1, 2, 3])
/// });
/// let response = client.call_timeout(&3, Duration::from_secs(5))?;
/// drop(client); // it is a copy
/// assert_eq!(*response, [1, 2, 3]);
/// # answering.join().unwrap()?;
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Response<R: Payload + ?Sized>(pub(super) Body<R>);

impl<R: Payload + ?Sized> Deref for Response<R> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.0
    }
}

/// How a request went on.
#[derive(Debug)]
pub(super) enum Outcome<R: Payload + ?Sized> {
    Part(Body<R>),
    Last(Body<R>),
    /// Its time is up, or its server died: an error that the client keeps.
    Ended(Error),
    Failed(Box<Failure>),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) service: String,
    pub(super) why: Why,
}

#[derive(Debug)]
pub(super) enum Why {
    /// In the server's words.
    Refused(String),
    /// Its answers cannot be read; what is wrong with them.
    Unreadable(String),
    /// This answer has a value that its type does not have; which.
    WrongValue(String),
}

/// An answer, or the news that there will be none.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let server = node.service::<u32, u32>("/plan")?.server()?;
/// let mut client = node.service::<u32, u32>("/plan")?.client()?;
/// let ticket = client.send(&7)?;
/// drop(server); // a kill does the same
/// let reply = client.receive()?.expect("there will be no answer");
/// assert_eq!(reply.ticket(), ticket);
/// assert_eq!(reply.body().unwrap_err().kind(), outlive::ErrorKind::ServerDied);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Reply<R: Payload + ?Sized> {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome<R>,
}

impl<R: Payload + ?Sized> Reply<R> {
    /// The request that it answers.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/double")?.server()?;
    /// let mut client = node.service::<u32, u32>("/double")?.client()?;
    /// let ticket = client.send(&7)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &14)?;
    /// let reply = client.receive()?.expect("answered just now");
    /// assert_eq!(reply.ticket(), ticket);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether it is the last for that request.
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
    /// assert!(!client.receive()?.expect("a part").is_last());
    /// server.refuse(request, "cannot count further")?;
    /// assert!(client.receive()?.expect("the end").is_last()); // also without an answer
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_last(&self) -> bool {
        !matches!(self.outcome, Outcome::Part(_))
    }

    /// The answer.
    ///
    /// # Errors
    /// `Refused` with the server's words; `Timeout`: its deadline had passed, and no answer was
    /// there when the client looked; `ServerDied`: the server may or may not have done what was
    /// asked; `Corrupt`, with the same doubt: the lane of its replies is, or this reply has a value
    /// that `R` does not have.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind};
    ///
    /// let mut server = node.service::<u32, u32>("/grip")?.server()?;
    /// let mut client = node.service::<u32, u32>("/grip")?.client()?;
    /// client.send_until(&400, Deadline::AT_ONCE)?;
    /// let late = client.receive()?.expect("its deadline has passed");
    /// assert_eq!(late.body().unwrap_err().kind(), ErrorKind::Timeout);
    ///
    /// client.send(&900)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.refuse(request, "at most 500 N")?;
    /// let refused = client.receive()?.expect("refused just now");
    /// assert_eq!(refused.body().unwrap_err().kind(), ErrorKind::Refused);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn body(&self) -> Result<&R> {
        match &self.outcome {
            Outcome::Part(body) | Outcome::Last(body) => Ok(body),
            Outcome::Ended(e) => Err(e.clone()),
            Outcome::Failed(failure) => Err(failure.error()),
        }
    }

    /// The answer, owned.
    ///
    /// # Errors
    /// As [`Reply::body`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, [u32]>("/count")?.server()?;
    /// let mut client = node.service::<u32, [u32]>("/count")?.client()?;
    /// client.send(&2)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &[1, 2])?;
    /// let counted = client.receive()?.expect("answered just now").into_response()?;
    /// assert_eq!(*counted, [1, 2]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn into_response(self) -> Result<Response<R>> {
        match self.outcome {
            Outcome::Part(body) | Outcome::Last(body) => Ok(Response(body)),
            Outcome::Ended(e) => Err(e),
            Outcome::Failed(failure) => Err(failure.error()),
        }
    }
}

impl Failure {
    #[cold]
    fn error(&self) -> Error {
        match &self.why {
            Why::Refused(words) => refused(&self.service, words),
            Why::Unreadable(what) => unreadable(&self.service, what),
            Why::WrongValue(what) => wrong_value(&self.service, what),
        }
    }
}

fn refused(service: &str, why: &str) -> Error {
    Error::new(ErrorKind::Refused, "calling service", service, format!("the server said: {why}"))
}

#[cold]
pub(super) fn late(service: &str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        "calling service",
        service,
        "the server lives and has not answered: allow more time",
    )
}

#[cold]
pub(super) fn unreadable(service: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "receiving replies of service",
        service,
        format!(
            "{what}, so no reply of this server is read any more: what was asked may be done or \
             not; open the client again, and restart the server if it comes back"
        ),
    )
}

fn wrong_value(service: &str, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "receiving a reply of service", service, what)
}

#[cold]
pub(super) fn server_died(service: &str) -> Error {
    Error::new(
        ErrorKind::ServerDied,
        "calling service",
        service,
        "it may have done what was asked, or not: ask again once a server is there if that is safe",
    )
}

#[cold]
pub(super) fn no_server(service: &str) -> Error {
    Error::new(
        ErrorKind::ServerDied,
        "calling service",
        service,
        "no live server: nothing was sent; start one, or wait with wait_for_server",
    )
}

/// What a reply's kind and payload say; `None` for what no server writes.
///
/// # Safety
/// `from` is valid for reads of `bytes` bytes.
pub(super) unsafe fn outcome<R: Payload + ?Sized>(
    kind: u64,
    from: *const u8,
    bytes: usize,
    queue: &Queue,
) -> Result<Option<Outcome<R>>> {
    let body = |make: fn(Body<R>) -> Outcome<R>| {
        // SAFETY: by the caller.
        match unsafe { Body::copy(from, bytes, &queue.meta) } {
            Ok(body) => Ok(Some(make(body))),
            Err(NoBody::Length) => Ok(None),
            Err(NoBody::Value(what)) => {
                Ok(Some(failed(queue.name.as_str(), Why::WrongValue(what))))
            }
            Err(NoBody::Memory(e)) => Err(e),
        }
    };
    Ok(match kind {
        frame::PART => body(Outcome::Part)?,
        frame::LAST => body(Outcome::Last)?,
        frame::REFUSED => {
            // SAFETY: by the caller; copied at once.
            let text = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
            let words = String::from_utf8_lossy(&text).into_owned();
            Some(failed(queue.name.as_str(), Why::Refused(words)))
        }
        _ => None,
    })
}

#[cold]
pub(super) fn failed<R: Payload + ?Sized>(service: &str, why: Why) -> Outcome<R> {
    Outcome::Failed(Box::new(Failure { service: service.to_owned(), why }))
}
