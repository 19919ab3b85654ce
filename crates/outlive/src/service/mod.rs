// May use `topic`, `queue`, `lock`, `rt` and all that those may use; of the four it uses `queue`
// alone. After `builder` read `wire/frame`, then `client/` and `server/`.

//! Services: typed requests and responses between processes, over queues.
//!
//! [`Node::service`](crate::Node::service) gives a [`Builder`], which opens a [`Client`] or the
//! [`Server`]. A [`Request`] may be answered at once, later, or in several parts.
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::service::Request;
//!
//! let square = |request: &Request<u64>| **request * **request;
//! let mut server = node.service::<u64, u64>("/square")?.server()?;
//! let mut client = node.service::<u64, u64>("/square")?.client()?;
//! let ticket = client.send(&7)?;
//! let request = server.receive()?.expect("sent just now");
//! let answer = square(&request);
//! server.respond(request, &answer)?;
//! let reply = client.receive()?.expect("answered just now");
//! assert_eq!((reply.ticket(), *reply.body()?), (ticket, 49));
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Theory of operation
//! | directory of a service | what |
//! |---|---|
//! | `requests/` | a queue: the server consumes, each client is a producer |
//! | `reply.<node>.<port>/` | a queue: that client consumes, the server is a producer |
//!
//! A request carries an id of the client's, and the *term* of the server it was sent to: the number
//! that changes whenever another process serves. A server answers requests of its own term only,
//! so what was sent to its predecessor is either sent again by a client that resumes, or has failed
//! for good; it is never done twice by two servers behind the client's back.
//!
//! The client's wait is for a reply, for the server's token and for the word that names the server.
//! When the server dies the client drains what it had still answered, then fails the rest with
//! `ServerDied` or sends it again. The server finds a client dead when it answers (`ClientDied`),
//! and passes over requests of clients that are dead already. All of it rests on what queues do;
//! the only shared bytes of a service's own are the heads of its messages, see `frame`.
//!
//! | module | what |
//! |---|---|
//! | `builder` | opening a client or the server: begin here |
//! | `client/`, `server/` | the two halves and what they hand out |
//! | `wire/` | where the queues are, the heads and bodies of messages |
//! | `admin` | listing, cleaning, auditing |

pub(crate) mod admin;
mod builder;
pub(crate) mod client;
pub(crate) mod server;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

pub use admin::Info;
pub use builder::Builder;
#[doc(no_inline)]
pub use client::Client;
pub use client::reply::{Reply, Response, Ticket};
#[doc(no_inline)]
pub use server::Server;
pub use server::request::Request;
