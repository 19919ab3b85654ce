//! Publish/subscribe: typed topics, one ring per publisher, zero copy.
//!
//! | file | what |
//! |---|---|
//! | `layout`, `meta`, `attributes` | shared bytes; what all members agree on |
//! | `ring`, `hazard`, `listing`, `pool` | the algorithms: entries, borrows, who counts, chunks |
//! | `membership` | who is there; removing what nobody needs |
//! | `writer`, `source`, `history`, `reader`, `parked` | the two halves without types |
//! | `publisher`, `loan`, `subscriber`, `sample`, `builder` | the public types |
//! | `payload`, `headed`, `msgpack`, `payload_type` | what may travel |
//! | `audit`, `inspect` | the invariants of the shared bytes, and its members, seen from outside |

#[cfg(all(test, not(loom)))]
mod age_tests;
pub(crate) mod attributes;
pub(crate) mod audit;
mod builder;
#[cfg(all(test, not(loom)))]
mod chase_tests;
#[cfg(test)]
mod clock_tests;
pub(crate) mod hazard;
mod headed;
mod history;
pub(crate) mod inspect;
pub(crate) mod layout;
#[cfg(all(test, not(loom)))]
mod leave_tests;
mod listing;
mod loan;
pub(crate) mod membership;
pub(crate) mod meta;
#[cfg(all(test, not(loom)))]
mod modes_tests;
#[cfg(feature = "msgpack")]
pub mod msgpack;
mod parked;
pub(crate) mod payload;
mod payload_type;
mod pool;
mod publisher;
mod pulse;
mod reader;
pub(crate) mod reclaim;
#[cfg(all(test, not(loom)))]
mod refused_tests;
pub(crate) mod ring;
mod room;
mod sample;
mod source;
#[cfg(feature = "async")]
mod stream;
mod subscriber;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(test)]
mod threads;
#[cfg(all(test, not(loom)))]
mod types_tests;
mod writer;

pub use builder::{BORROWS_DEFAULT, MEMORY_BYTES_DEFAULT, TopicBuilder};
pub use headed::Headed;
pub use inspect::{HeldInfo, SourceInfo, SubscriberInfo};
pub use loan::Loan;
pub use membership::PublisherId;
pub use payload::{Encoding, Message, Payload};
pub use payload_type::PayloadType;
pub use publisher::Publisher;
pub use reader::Event;
pub use room::Waited;
pub use sample::{Meta, Sample};
#[cfg(feature = "async")]
pub use stream::{Messages, News, Readable};
pub use subscriber::Subscriber;
