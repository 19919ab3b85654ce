//! Publish/subscribe: typed topics, one ring per publisher, zero copy.
//!
//! | module | what |
//! |---|---|
//! | `builder` | opening a publisher or a subscriber: begin here |
//! | `publisher/` | the writing half, loans, room for reliable subscribers |
//! | `subscriber/` | the reading half: sources, samples, history |
//! | `ring/` | a publisher's ring: shared bytes, entries, who counts |
//! | `chunks/` | what is too large for an entry: pool, hazards, segments |
//! | `membership/` | what all agree on; who is there; removing what nobody needs |
//! | `msgpack` | values of serde over topics |
//! | `look/` | its members and the invariants of its bytes, from outside |

pub(crate) mod builder;
pub(crate) mod chunks;
pub(crate) mod look;
pub(crate) mod membership;
#[cfg(feature = "msgpack")]
pub mod msgpack;
pub(crate) mod publisher;
pub(crate) mod ring;
pub(crate) mod subscriber;
#[cfg(all(test, not(loom)))]
mod tests;

pub use builder::{BORROWS_DEFAULT, MEMORY_BYTES_DEFAULT, TopicBuilder};
pub use look::inspect::{HeldInfo, SourceInfo, SubscriberInfo};
pub use membership::PublisherId;
pub use publisher::Publisher;
pub use publisher::loan::Loan;
pub use publisher::refused::{TryPublishError, Unpublished};
pub use publisher::room::Waited;
pub use subscriber::Subscriber;
pub use subscriber::raw::Meta;
pub use subscriber::reader::Event;
pub use subscriber::sample::Sample;
#[cfg(feature = "async")]
pub use subscriber::stream::{Messages, News, Readable};
