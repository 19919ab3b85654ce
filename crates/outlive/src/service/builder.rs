//! Opening the ends of a service.

use std::fmt;
use std::marker::PhantomData;

use super::client::Client;
use super::server::Server;
use super::server::ways::Replies;
use super::wire::site;
use super::wire::site::Uncalled;
use crate::domain::name::TopicName;
use crate::node::Node;
use crate::queue::BOUND_BYTES_DEFAULT;
use crate::queue::consumer::reader::Reader;
use crate::queue::lane::layout::{CAPACITY_BYTES_MIN, FIRST_BYTES};
use crate::queue::membership::Queue;
use crate::queue::membership::meta::Meta;
use crate::queue::producer::writer::Writer;
use crate::types::{Payload, PayloadType};
use crate::{Error, ErrorKind, Result};

/// A service about to be opened; see [`Node::service`].
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut server = node.service::<[f64; 2], [f64]>("/plan")?.bound_bytes(1 << 20).server()?;
/// let mut client = node.service::<[f64; 2], [f64]>("/plan")?.client()?;
/// client.send(&[1.0, 2.0])?;
/// let request = server.receive()?.expect("sent just now");
/// server.respond(request, &[0.5, 1.0, 1.5])?; // as long as it must be
/// assert_eq!(client.receive()?.expect("answered just now").body()?.len(), 3);
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "it opens no end until `client` or `server`"]
pub struct Builder<Q: ?Sized, R: ?Sized> {
    options: ServiceOptions,
    _types: PhantomData<fn(&Q) -> Box<R>>,
}

/// Of both types together.
const TYPE_NAMES_BYTES_MAX: usize = 900;

/// What was asked for, of whatever type.
#[derive(Clone, Debug)]
struct ServiceOptions {
    node: Node,
    name: TopicName,
    bound_bytes: u64,
    resume: bool,
    request: PayloadType,
    reply: PayloadType,
}

// A derived one would ask for types of known size.
impl<Q: ?Sized, R: ?Sized> Clone for Builder<Q, R> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), _types: PhantomData }
    }
}

impl<Q: ?Sized, R: ?Sized> fmt::Debug for Builder<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Builder").field(&self.options).finish()
    }
}

impl Node {
    /// A builder that opens service `name`, which answers requests of type `Q` with responses of
    /// type `R`.
    ///
    /// # Errors
    /// `InvalidName`: names are like `/planner/plan`, at most 200 bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<f64, f64>("/root")?.server()?;
    /// let mut client = node.service::<f64, f64>("/root")?.client()?;
    /// client.send(&2.25)?;
    /// let request = server.receive()?.expect("sent just now");
    /// let root = request.sqrt();
    /// server.respond(request, &root)?;
    /// assert_eq!(*client.receive()?.expect("answered just now").body()?, 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn service<Q, R>(&self, name: &str) -> Result<Builder<Q, R>>
    where
        Q: Payload + ?Sized,
        R: Payload + ?Sized,
    {
        let options = ServiceOptions {
            node: self.clone(),
            name: TopicName::of("service name", name)?,
            bound_bytes: BOUND_BYTES_DEFAULT,
            resume: false,
            request: PayloadType::of::<Q>(),
            reply: PayloadType::of::<R>(),
        };
        Ok(Builder { options, _types: PhantomData })
    }
}

impl Builder<[u8], [u8]> {
    /// Opens ends for requests and responses of types known only at run time, instead of raw bytes.
    /// They stay bytes; a length that the type cannot have is refused.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{ErrorKind, PayloadType};
    ///
    /// let number = PayloadType::of::<u32>(); // or read from a file or from the domain
    /// let double = node.service::<[u8], [u8]>("/double")?.of_types(&number, &number);
    /// let mut client = double.client()?;
    /// let mut server = node.service::<u32, u32>("/double")?.server()?;
    /// client.send(&7u32.to_ne_bytes())?;
    /// let request = server.receive()?.expect("sent just now");
    /// let double = *request * 2;
    /// server.respond(request, &double)?;
    /// let reply = client.receive()?.expect("answered just now");
    /// assert_eq!(*reply.body()?, 14u32.to_ne_bytes());
    /// assert_eq!(client.send(&[7]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn of_types(mut self, request: &PayloadType, reply: &PayloadType) -> Self {
        (self.options.request, self.options.reply) = (request.clone(), reply.clone());
        self
    }
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Builder<Q, R> {
    /// Most shared memory for messages in flight from this end to another, bytes; 64 MiB unless
    /// given. For a server: to each client.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _busy = node.service::<[u8; 1000], u32>("/detect")?.server()?; // receives nothing
    /// let detect = node.service::<[u8; 1000], u32>("/detect")?.bound_bytes(16 << 10);
    /// let mut client = detect.client()?;
    /// let full = (0..100).find_map(|_| client.send(&[0; 1000]).err());
    /// assert_eq!(full.expect("100 do not fit").kind(), outlive::ErrorKind::WouldBlock);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn bound_bytes(mut self, bytes: u64) -> Self {
        self.options.bound_bytes = bytes;
        self
    }

    /// For a client: what happens to unanswered requests when the server dies or leaves. Unless
    /// set, they fail with `ServerDied`. If set, they are kept and sent to the next server, which
    /// may do again what the first had already done.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.resume(true).client()?;
    /// let ticket = client.send(&7)?;
    /// drop(server); // it never answered
    ///
    /// let mut next = node.service::<u32, u32>("/plan")?.server()?;
    /// let request = loop {
    ///     // The client sends again while it waits.
    ///     assert!(client.receive_timeout(Duration::from_millis(10))?.is_none());
    ///     if let Some(request) = next.receive()? {
    ///         break request;
    ///     }
    /// };
    /// let answer = *request + 1;
    /// next.respond(request, &answer)?;
    /// let reply = client.receive_timeout(Duration::from_secs(5))?.expect("answered just now");
    /// assert_eq!((reply.ticket(), *reply.body()?), (ticket, 8));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn resume(mut self, resume: bool) -> Self {
        self.options.resume = resume;
        self
    }

    /// Names of the types, like `robot/Goal`, on which all members must agree; together at most 900
    /// bytes, and neither empty: else `client` and `server` return `InvalidArgument`. For
    /// MessagePack, whose types are otherwise named by their Rust paths.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::MsgPack;
    ///
    /// type Ask = MsgPack<(String, u32)>;
    /// let ask = || node.service::<Ask, MsgPack<bool>>("/ask");
    /// let _server = ask()?.type_names("robot/Ask", "robot/Answer").server()?;
    /// let unnamed = ask()?.client().unwrap_err(); // its names are Rust paths
    /// assert_eq!(unnamed.kind(), outlive::ErrorKind::TypeMismatch);
    /// ask()?.type_names("robot/Ask", "robot/Answer").client()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn type_names(mut self, request: &str, response: &str) -> Self {
        (self.options.request, self.options.reply) =
            (self.options.request.renamed(request), self.options.reply.renamed(response));
        self
    }

    fn check_types(&self) -> Result<()> {
        let ServiceOptions { name, request, reply, .. } = &self.options;
        let lens = [request, reply].map(|of| of.name().len());
        if lens.contains(&0) || lens.iter().sum::<usize>() > TYPE_NAMES_BYTES_MAX {
            let why = format!(
                "its type names have {} and {} bytes: use 1 or more each, {TYPE_NAMES_BYTES_MAX} \
                 together at most",
                lens[0], lens[1]
            );
            let (kind, what) = (ErrorKind::InvalidArgument, "opening service");
            return Err(Error::new(kind, what, name.as_str(), why));
        }
        request.check_schema()?;
        reply.check_schema()
    }

    fn request_meta(&self) -> Meta {
        Meta::of_requests(
            &self.options.request,
            &self.options.reply,
            site::type_name(&self.options.request, &self.options.reply),
        )
    }

    /// What both ends expect of a reply queue.
    fn reply_meta(&self) -> Meta {
        Meta::of_replies(
            &self.options.reply,
            site::type_name(&self.options.request, &self.options.reply),
        )
    }

    /// Joins as a client, creating the service if it does not exist. It may join before the server;
    /// requests fail with `ServerDied` until there is one.
    ///
    /// # Errors
    /// `TypeMismatch` naming both types; `InvalidArgument` for a bound that is too small;
    /// `NoSpace`; `Corrupt`, `VersionMismatch` or `NotOwned` naming the file.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of its lane of requests. What it made before is removed
    /// by the next member that joins or leaves, or by `clean`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?; // before the server
    /// assert!(!client.has_server());
    /// assert_eq!(client.send(&7).unwrap_err().kind(), ErrorKind::ServerDied);
    /// let _server = node.service::<u32, u32>("/plan")?.server()?;
    /// assert!(client.wait_for_server(Duration::from_secs(5))?);
    /// client.send(&7)?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn client(self) -> Result<Client<Q, R>> {
        self.options.node.tend()?;
        self.check_types()?;
        let domain = self.options.node.domain();
        let _ = site::sweep(domain, &site::dir(domain, &self.options.name));
        let port = self.options.node.next_port_serial();
        let replies = site::replies(domain, &self.options.name, self.options.node.id(), port);
        let (queue, joining) = Queue::join(&self.options.node, &replies, &self.reply_meta())?;
        let reader = queue.enter(joining, |queue| Reader::open(queue, None))?;
        let requests = site::requests(domain, &self.options.name);
        let (queue, joining) = Queue::join(&self.options.node, &requests, &self.request_meta())?;
        let open = |queue| Writer::open(queue, self.options.bound_bytes, FIRST_BYTES);
        let writer = queue.enter(joining, open)?;
        Ok(Client::new(reader, writer, port, self.options.resume))
    }

    /// Joins as the server, creating the service if it does not exist.
    ///
    /// # Errors
    /// `ConsumerExists` while another server lives; `InvalidArgument` for a bound that is too
    /// small; else as [`Builder::client`].
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store that names this node as the server.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let server = node.service::<u32, u32>("/plan")?.server()?;
    /// let second = node.service::<u32, u32>("/plan")?.server().unwrap_err();
    /// assert_eq!(second.kind(), outlive::ErrorKind::ConsumerExists);
    /// drop(server); // a kill does the same
    /// let mut next = node.service::<u32, u32>("/plan")?.server()?;
    /// assert!(next.receive()?.is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn server(self) -> Result<Server<Q, R>> {
        self.options.node.tend()?;
        self.check_types()?;
        if self.options.bound_bytes < CAPACITY_BYTES_MIN {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "serving",
                self.options.name.as_str(),
                format!(
                    "a bound of {} bytes holds no answer: use {CAPACITY_BYTES_MIN} or more",
                    self.options.bound_bytes
                ),
            ));
        }
        let domain = self.options.node.domain();
        let dir = site::dir(domain, &self.options.name);
        let _ = site::sweep(domain, &dir);
        let requests = site::requests(domain, &self.options.name);
        let (queue, joining) = Queue::join(&self.options.node, &requests, &self.request_meta())?;
        let opened = queue.enter(joining, |queue| Reader::open(queue, None));
        let reader = opened.map_err(|e| match e.kind() {
            ErrorKind::ConsumerExists => Error::new(
                ErrorKind::ConsumerExists,
                "serving",
                self.options.name.as_str(),
                "another process serves it: end that one first, or use another name",
            ),
            _ => e,
        })?;
        let uncalled = Uncalled::after_call(domain, &dir);
        let meta = self.reply_meta();
        let ServiceOptions { node, name: service, bound_bytes, .. } = self.options;
        Ok(Server::new(reader, Replies { node, service, meta, bound_bytes }, uncalled))
    }
}
