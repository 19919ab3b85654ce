// May use `os`, `domain`, `types`, `node` and `wait`; not `topic`, `lock` or `rt`. After `builder`
// read `lane/record`, then `lane/tail` and `lane/head`.

//! Queues: many producers, one consumer, in shared memory that grows on demand.
//!
//! [`Node::queue`](crate::Node::queue) gives a [`Builder`], which opens a [`Producer`] or the
//! [`Consumer`]. Nothing is overwritten: a message waits for the consumer or its successor, until
//! `clean` finds no member left.
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::queue::TrySendError;
//!
//! let mut producer = node.queue::<u64>("/orders")?.producer()?;
//! assert!(matches!(producer.try_send(&1), Err(TrySendError::NoConsumer(_))));
//! let mut consumer = node.queue::<u64>("/orders")?.consumer()?;
//! producer.send(&2)?;
//! let order = consumer.receive()?.expect("sent just now");
//! assert_eq!(order.producer(), producer.id());
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Theory of operation
//! Each producer writes a *lane* of its own; the consumer reads all lanes and writes only how far
//! it has read. Neither waits for the other, and nobody writes what another writes.
//!
//! | file                          | written by       | read by                                   |
//! |-------------------------------|------------------|-------------------------------------------|
//! | `lane.<node>.<port>.<k>`      | that producer    | the consumer: records, `lane`             |
//! | `consumer`                    | the consumer     | producers: who consumes, how far; `table` |
//! | `bell`                        | any member       | the consumer: a lane came or went         |
//! | `meta`                        | nobody           | all: type and shape of the messages       |
//!
//! A send loads who consumes and that node's liveness token; writes the payload behind the last
//! record; and commits by storing the record's header. A full lane continues in a new segment of
//! twice the size; a `JUMP` leads the consumer there, and it unlinks the old one. At the bound the
//! producer sleeps on its position word, on the consumer's token and on the word that names it.
//!
//! The consumer holds the file lock on `consumer` for life. The next process to get it takes the
//! file over and continues at its positions. A death between two stores leaves a state that is
//! legal by itself: see the tables in `lane` and `position`.
//!
//! | module | what |
//! |---|---|
//! | `builder` | opening a producer or the consumer: begin here |
//! | `producer/` | the producing half; room for the next record |
//! | `consumer/` | the consuming half: what is in hand, taking over, sleeping, order |
//! | `event` | what happened to the producers, for the consumer |
//! | `lane/` | a lane's files and the algorithms: records, both ends, progress |
//! | `membership/` | what all agree on; who consumes; removing what nobody needs, on proof |
//! | `admin` | listing, cleaning, and the invariants of the shared bytes |
//! | `peek` | copies of unread messages, for tools |

pub(crate) mod admin;
pub(crate) mod builder;
pub(crate) mod consumer;
pub(crate) mod event;
pub(crate) mod lane;
pub(crate) mod membership;
pub(crate) mod peek;
pub(crate) mod producer;
#[cfg(test)]
mod tests;

pub use admin::{Info, LaneInfo};
pub use builder::{BOUND_BYTES_DEFAULT, Builder};
pub use consumer::Held;
#[doc(no_inline)]
pub use consumer::{Consumer, received::Received};
pub use event::Event;
pub use lane::ProducerId;
pub use peek::Unread;
#[doc(no_inline)]
pub use producer::Producer;
pub use producer::refused::TrySendError;
pub use producer::slot::Slot;
