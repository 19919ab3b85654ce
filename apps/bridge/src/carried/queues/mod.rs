//! Queues across machines: where the consumer is, the bridge is a producer (`Sink`); where
//! producers are, it is the consumer (`Source`). A message leaves its lane when it is in the
//! other's: one round trip each, and none is lost, whoever dies.
//!
//! | what ends | who is told |
//! |---|---|
//! | the consumer, its machine, the link | producers elsewhere: `OwnerDied`; what is unread stays |
//! | a producer elsewhere | nobody; what it had sent is carried |
//! | a bridge | the message under way comes again: once more only if the bridge that has put it |
//! | | into the consumer's lane dies before that is known on the other side |
//!
//! Begin with `source`, where a message comes from; `sink` is the other end.

pub(crate) mod sink;
pub(crate) mod source;

/// The name of a queue's counters, and in the log.
fn counters_of(name: &str) -> String {
    format!("queue {name}")
}
