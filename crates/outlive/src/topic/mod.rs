// May use `os`, `domain`, `types`, `node` and `wait`; not `queue`, `lock` or `rt`. After `builder`
// read `ring/entries`, then `publisher/writer` and `subscriber/reader`.

//! Publish/subscribe: typed topics, one ring per publisher, zero copy.
//!
//! [`Node::topic`](crate::Node::topic) gives a [`Builder`], which opens a [`Publisher`] or a
//! [`Subscriber`]. What a subscriber learns of its publishers is an [`Event`]; tools list topics
//! with [`Domain::topics`](crate::Domain::topics).
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::topic;
//!
//! let publisher = node.topic::<f64>("/speed")?.publisher()?;
//! let mut subscriber = node.topic::<f64>("/speed")?.subscriber()?;
//! publisher.publish(&1.5)?;
//! let sample = subscriber.receive()?.expect("sent just now");
//! assert_eq!((*sample, sample.publisher()), (1.5, publisher.id()));
//! assert_eq!(subscriber.next_event(), Some(topic::Event::PublisherJoined(publisher.id())));
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Where it is
//!
//! | module | what |
//! |---|---|
//! | `builder` | opening a publisher or a subscriber: begin here |
//! | `publisher/` | the writing half, loans, room for reliable subscribers |
//! | `subscriber/` | the reading half: sources, samples, history |
//! | `ring/` | a publisher's ring: shared bytes, entries, who counts |
//! | `chunks/` | what is too large for an entry: pool, hazards, segments |
//! | `membership/` | what all agree on; who is there; removing what nobody needs |
//! | `values/` | encoded values over topics; those of serde |
//! | `look/` | its members and the invariants of its bytes, from outside |

pub(crate) mod builder;
pub(crate) mod chunks;
pub(crate) mod look;
pub(crate) mod membership;
pub(crate) mod publisher;
pub(crate) mod ring;
pub(crate) mod subscriber;
#[cfg(all(test, not(loom)))]
mod tests;
pub(crate) mod values;

pub use builder::{BORROWS_DEFAULT, Builder, MEMORY_BYTES_DEFAULT};
pub use chunks::segments;
pub use look::inspect::{HeldInfo, Info, PublisherInfo, SourceInfo, SubscriberInfo};
pub use membership::entry::PublisherId;
pub use publisher::loan::Unpublished;
pub use publisher::refused::TryPublishError;
pub use publisher::room::Waited;
#[doc(no_inline)]
pub use publisher::{Publisher, loan::Loan};
pub use subscriber::raw::Meta;
pub use subscriber::reader::Event;
#[cfg(feature = "async")]
pub use subscriber::stream::{Messages, News, Readable};
#[doc(no_inline)]
pub use subscriber::{Subscriber, sample::Sample};
pub use values::Decoded;
