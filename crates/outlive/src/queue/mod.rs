//! Queues: many producers, one consumer, in shared memory that grows on demand.
//!
//! # Theory of operation
//! Each producer writes a *lane* of its own; the consumer reads all lanes and writes only how far
//! it is. Neither waits for the other, and nobody writes what another writes.
//!
//! | file                          | written by       | read by                                   |
//! |-------------------------------|------------------|-------------------------------------------|
//! | `lane.<node>.<port>.<k>`      | that producer    | the consumer: records, `lane`             |
//! | `consumer`                    | the consumer     | producers: who consumes, how far; `table` |
//! | `bell`                        | any member       | the consumer: a lane came or went         |
//! | `meta`                        | nobody           | all: type and shape of the messages       |
//!
//! A send loads who consumes and that node's liveness token; writes the payload behind the last
//! record; and commits by storing the record's header. A full lane goes on in a new segment of
//! twice the size; a `JUMP` leads the consumer there, who unlinks the old one. At the bound the
//! producer sleeps on its position word, on the consumer's token and on the word that names it.
//!
//! The consumer holds the file lock on `consumer` for life. Whoever gets it next takes the file
//! over and goes on at its positions. A death between two stores leaves a state that is legal by
//! itself: see the tables in `lane` and `position`.
//!
//! | file | what |
//! |---|---|
//! | `layout`, `meta`, `table` | shared bytes; what all members agree on; who consumes |
//! | `lane`, `tail`, `head`, `position` | the algorithms: records, both ends, progress |
//! | `segment` | a lane's file |
//! | `membership` | who is there |
//! | `reclaim` | removing what nobody needs, on proof |
//! | `writer`, `room` | the producing half without types; room for the next record |
//! | `reader`, `hand` | the consuming half; the messages it is about to receive |
//! | `attach`, `asleep`, `later`, `order` | its taking over, sleeping, second tries, order |
//! | `producer`, `slot`, `consumer`, `received`, `builder` | the public types |
//! | `admin` | listing, cleaning, and the invariants of the shared bytes |

pub(crate) mod admin;
mod asleep;
mod attach;
mod builder;
mod consumer;
mod hand;
pub(crate) mod head;
pub(crate) mod lane;
mod later;
pub(crate) mod layout;
pub(crate) mod membership;
pub(crate) mod meta;
mod order;
pub(crate) mod position;
mod producer;
pub(crate) mod reader;
mod received;
pub(crate) mod reclaim;
mod room;
pub(crate) mod segment;
mod slot;
pub(crate) mod table;
pub(crate) mod tail;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

pub use admin::{LaneInfo, QueueInfo};
pub use builder::{BOUND_BYTES_DEFAULT, QueueBuilder};
pub use consumer::{Consumer, Held};
pub use producer::Producer;
pub use reader::QueueEvent;
pub use received::Received;
pub use slot::Slot;
pub use table::ProducerId;
