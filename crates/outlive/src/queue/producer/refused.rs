//! Why nothing was sent: closed enums without strings; the text is made when somebody prints it.

use std::fmt;

use crate::error::Refusal;
use crate::node::NodeId;
use crate::queue::membership::table::ProducerId;
use crate::{Error, ErrorKind};

/// Why a call that does not wait sent nothing.
///
/// A refusal allocates nothing. `?` turns it into an [`Error`] with the same message. The list is
/// closed: any other failure is `Failed`.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::queue::TrySendError;
///
/// let mut producer = node.queue::<u64>("/commands")?.producer()?;
/// match producer.try_send(&7) {
///     Ok(()) => {}
///     Err(TrySendError::Full(_)) => println!("the consumer is behind: try again later"),
///     Err(TrySendError::NoConsumer(_)) => println!("nobody is there"),
///     Err(TrySendError::Failed(e)) => return Err(e),
/// }
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub enum TrySendError {
    /// The lane is at its bound, or cannot grow for lack of space.
    Full(Refusal),
    /// No live consumer reads the queue.
    NoConsumer(Refusal),
    /// Any other error of [`Producer::send`](crate::Producer::send).
    Failed(Error),
}

impl TrySendError {
    /// The kind of the [`Error`] it turns into.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Full(_) => ErrorKind::WouldBlock,
            Self::NoConsumer(_) => ErrorKind::OwnerDied,
            Self::Failed(e) => e.kind(),
        }
    }
}

impl From<TrySendError> for Error {
    #[cold]
    fn from(error: TrySendError) -> Self {
        match error {
            TrySendError::Full(at) => full(&at, ErrorKind::WouldBlock),
            TrySendError::NoConsumer(at) => nobody(&at),
            TrySendError::Failed(e) => e,
        }
    }
}

impl fmt::Display for TrySendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(at) => full(at, ErrorKind::WouldBlock).fmt(f),
            Self::NoConsumer(at) => nobody(at).fmt(f),
            Self::Failed(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for TrySendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(e) => e.source(),
            _ => None,
        }
    }
}

/// What a writer's calls give.
pub(crate) type Sent<T> = std::result::Result<T, Refused>;

/// Why a writer sent nothing. Words are for who asks: see `Writer::error`.
#[derive(Debug)]
pub(crate) enum Refused {
    /// No live consumer, by its word.
    Nobody,
    /// The lane is at its bound, and the call does not wait.
    Full,
    /// The same, when the deadline passed.
    Late,
    Failed(Error),
}

impl From<Error> for Refused {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

/// What a lane's refusals say, once somebody prints them.
#[derive(Debug)]
pub(super) struct Refusals {
    refusal: Refusal,
    /// The lane could not grow when it last had to, and not for its bound.
    is_stuck: bool,
}

impl Refusals {
    pub(super) fn new(queue: &str) -> Self {
        Self { refusal: Refusal::new(queue), is_stuck: false }
    }

    /// There is no live consumer.
    pub(super) fn of_nobody(&self) -> &Refusal {
        &self.refusal
    }

    /// The lane `id` is full with `used` bytes.
    pub(super) fn of_full(&self, used: u64, bound: u64, id: ProducerId) -> &Refusal {
        self.refusal.set([used, bound, id.node.get(), id.port, 0]);
        &self.refusal
    }

    /// The lane cannot grow, for `why`.
    pub(super) fn stick(&mut self, why: Error) {
        self.is_stuck = true;
        self.refusal.set_cause(Some(why));
    }

    /// From here on nothing but its bound keeps the lane from growing.
    pub(super) fn unstick(&mut self) {
        if std::mem::take(&mut self.is_stuck) {
            self.refusal.set_cause(None);
        }
    }
}

#[cold]
pub(super) fn full(at: &Refusal, kind: ErrorKind) -> Error {
    let [used, bound, node, port, _] = at.figures();
    if let Some(why) = at.cause() {
        let id = ProducerId { node: NodeId::from_raw(node), port };
        return Error::new(
            kind,
            format!("sending as producer {id} to queue"),
            at.object(),
            format!(
                "its lane is full with {used} bytes and cannot grow towards its bound of {bound}, \
                 for lack of space: nothing was sent; let the consumer catch up, or free some: \
                 {why}"
            ),
        );
    }
    Error::new(
        kind,
        "sending to queue",
        at.object(),
        format!(
            "{used} of {bound} bytes are in use: nothing was sent; let the consumer catch up, or \
             raise bound_bytes"
        ),
    )
}

#[cold]
pub(super) fn nobody(at: &Refusal) -> Error {
    Error::new(
        ErrorKind::OwnerDied,
        "sending to queue",
        at.object(),
        "no live consumer: nothing was sent; start one, or wait with wait_for_consumer",
    )
}
