//! Why nothing was sent: closed enums without strings; the text is made when somebody prints it.

use std::fmt;

use crate::error::{Refusal, Refusals};
use crate::node::NodeId;
use crate::queue::lane::ProducerId;
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
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    ///
    /// let mut producer = node.queue::<u64>("/commands")?.producer()?;
    /// let refused = producer.try_send(&7).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::OwnerDied); // nobody consumes
    /// assert_eq!(outlive::Error::from(refused).object(), "/commands");
    /// # Ok::<(), outlive::Error>(())
    /// ```
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
            TrySendError::Failed(e) => e,
            TrySendError::Full(ref at) | TrySendError::NoConsumer(ref at) => at.error(error.kind()),
        }
    }
}

impl fmt::Display for TrySendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(at) | Self::NoConsumer(at) => at.error(self.kind()).fmt(f),
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

/// What a lane refuses with.
#[derive(Debug)]
pub(super) struct LaneRefusals {
    refusals: Refusals<3>,
    /// The lane could not grow when it last had to, and not for its bound.
    is_stuck: bool,
}

impl LaneRefusals {
    pub(super) fn new(queue: &str) -> Self {
        let kinds = [ErrorKind::OwnerDied, ErrorKind::WouldBlock, ErrorKind::Timeout];
        let words = |at: &Refusal, kind| match kind {
            ErrorKind::OwnerDied => nobody(at),
            _ => full(at, kind),
        };
        Self { refusals: Refusals::new(queue, kinds, words), is_stuck: false }
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        self.refusals.error(kind)
    }

    pub(super) fn facts(&self) -> &Refusal {
        self.refusals.facts()
    }

    /// The lane `id` is full with `used` bytes.
    pub(super) fn note_full(&self, used: u64, bound: u64, id: ProducerId) {
        self.facts().set([used, bound, id.node.get(), id.port, 0]);
    }

    /// The lane cannot grow, for `why`.
    pub(super) fn stick(&mut self, why: Error) {
        self.is_stuck = true;
        self.facts().set_cause(Some(why));
    }

    /// From here on nothing but its bound keeps the lane from growing.
    pub(super) fn unstick(&mut self) {
        if std::mem::take(&mut self.is_stuck) {
            self.facts().set_cause(None);
        }
    }
}

#[cold]
fn full(at: &Refusal, kind: ErrorKind) -> Error {
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
fn nobody(at: &Refusal) -> Error {
    Error::new(
        ErrorKind::OwnerDied,
        "sending to queue",
        at.object(),
        "no live consumer: nothing was sent; start one, or wait with wait_for_consumer",
    )
}
