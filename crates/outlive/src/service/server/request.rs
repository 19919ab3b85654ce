//! A request as its server holds it.

use std::ops::Deref;

use crate::os::time::deadline::Deadline;
use crate::queue::ProducerId;
use crate::service::wire::body::Body;
use crate::types::Payload;

/// A request, copied out of shared memory. Answer it with [`crate::Server::respond`].
///
/// If it is dropped without an answer, its client waits until its deadline, or until the server
/// dies or leaves.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut server = node.service::<[f64; 2], f64>("/add")?.server()?;
/// let mut client = node.service::<[f64; 2], f64>("/add")?.client()?;
/// client.send(&[1.0, 2.0])?;
/// let request = server.receive()?.expect("sent just now");
/// let sum = request[0] + request[1];
/// server.respond(request, &sum)?; // takes it: there is one last answer
/// assert_eq!(*client.receive()?.expect("answered just now").body()?, 3.0);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "its client waits for an answer"]
pub struct Request<Q: Payload + ?Sized> {
    pub(super) client: ProducerId,
    pub(super) id: u64,
    /// Which service's server received it: where that has its queue.
    pub(super) of: usize,
    pub(super) deadline: Deadline,
    pub(super) body: Body<Q>,
}

impl<Q: Payload + ?Sized> Request<Q> {
    /// Who sent it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let plan = node.service::<u32, u32>("/plan")?;
    /// let mut clients = [plan.clone().client()?, plan.client()?];
    /// clients[0].send(&1)?;
    /// clients[1].send(&2)?;
    /// let requests = [server.receive()?, server.receive()?].map(|r| r.expect("sent just now"));
    /// assert_ne!(requests[0].client(), requests[1].client());
    /// assert_eq!(requests[0].client().node, node.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn client(&self) -> ProducerId {
        self.client
    }

    /// Its number among the requests of that client.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&7)?;
    /// client.send(&8)?;
    /// let requests = [server.receive()?, server.receive()?].map(|r| r.expect("sent just now"));
    /// assert!(requests[0].id() < requests[1].id()); // counted for each client
    /// # requests.into_iter().try_for_each(|request| server.respond(request, &0))?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn id(&self) -> u64 {
        self.id
    }

    /// When its client stops waiting.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let soon = Deadline::after(Duration::from_secs(5));
    /// client.send_until(&7, soon)?;
    /// let request = server.receive()?.expect("sent just now");
    /// assert_eq!(request.deadline(), soon); // plan for no longer than that
    /// # server.respond(request, &8)?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}

impl<Q: Payload + ?Sized> Deref for Request<Q> {
    type Target = Q;

    #[inline]
    fn deref(&self) -> &Q {
        &self.body
    }
}
