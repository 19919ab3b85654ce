//! Services: typed requests and responses between processes, over queues.
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
//! | `client`, `reply`; `server`, `request` | the two halves and what they hand out |
//! | `values` | requests and responses that are MessagePack |
//! | `wire/` | where the queues are, the heads and bodies of messages |
//! | `admin` | listing, cleaning, auditing |

pub(crate) mod admin;
mod builder;
mod client;
mod reply;
mod request;
mod server;
#[cfg(test)]
mod tests;
#[cfg(feature = "msgpack")]
mod values;
pub(crate) mod wire;

pub use admin::ServiceInfo;
pub use builder::ServiceBuilder;
pub use client::Client;
pub use reply::{Reply, Response, Ticket};
pub use request::Request;
pub use server::Server;
