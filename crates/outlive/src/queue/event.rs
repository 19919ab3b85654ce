//! What happened to the producers of a queue, for its consumer.

use super::lane::ProducerId;

/// What happened to the producers of a queue, in the order in which the consumer noticed.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::queue::Event;
///
/// let mut jobs = node.queue::<u64>("/jobs")?.consumer()?;
/// node.queue::<u64>("/jobs")?.producer()?.send(&7)?; // joins, sends and leaves
/// while jobs.receive()?.is_some() {} // finds out
/// let mut gone = 0;
/// while let Some(event) = jobs.next_event() {
///     match event {
///         Event::ProducerLeft(_) | Event::ProducerDied(_) => gone += 1,
///         Event::ProducerCorrupt { producer, why } => println!("{producer}: {why}"),
///         other => println!("{other:?}"),
///     }
/// }
/// assert_eq!(gone, 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A producer was found.
    ProducerJoined(ProducerId),
    /// A producer left cleanly; everything it sent has been received.
    ProducerLeft(ProducerId),
    /// A producer's process died; everything it had sent has been received.
    ProducerDied(ProducerId),
    /// A producer's bytes are invalid; its lane is no longer read.
    ProducerCorrupt {
        /// Whose bytes they are.
        producer: ProducerId,
        /// What is wrong and what to do.
        why: String,
    },
}
