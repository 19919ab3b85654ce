//! Why nothing was published: a closed enum without strings; the text is made when somebody
//! prints it.

use std::fmt;

use crate::error::{Refusal, Refusals};
use crate::topic::chunks::pool;
use crate::{Error, ErrorKind};

/// Why a call that does not wait published or lent nothing.
///
/// A refusal allocates nothing. `?` turns it into an [`Error`] with the same message. The list is
/// closed: any other failure is `Failed`.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::TryPublishError;
///
/// let topic = || node.topic::<u64>("/counter");
/// let _slow = topic()?.depth(2).reliable(true).subscriber()?;
/// let publisher = topic()?.publisher()?;
/// for n in 0..3 {
///     match publisher.try_publish(&n) {
///         Ok(seq) => assert_eq!(seq, n),
///         Err(TryPublishError::Behind(_)) => println!("in the next cycle"),
///         Err(TryPublishError::NoMemory(_)) => println!("all chunks are in use"),
///         Err(TryPublishError::Failed(e)) => return Err(e),
///     }
/// }
/// assert_eq!(publisher.published(), 2);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub enum TryPublishError {
    /// A reliable subscriber has yet to read what the message would overwrite. A loan is never
    /// refused for that, only its publishing.
    Behind(Refusal),
    /// All chunks are loaned, held or published, and the publisher's memory is at its bound.
    NoMemory(Refusal),
    /// Any other error of [`Publisher::publish`](crate::Publisher::publish).
    Failed(Error),
}

impl TryPublishError {
    /// The kind of the [`Error`] it turns into.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{ErrorKind, topic::TryPublishError};
    ///
    /// let _slow = node.topic::<u64>("/n")?.depth(1).reliable(true).subscriber()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// publisher.publish(&0)?;
    /// let refused: TryPublishError = publisher.try_publish(&1).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    /// assert_eq!(outlive::Error::from(refused).kind(), ErrorKind::WouldBlock);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Behind(_) => ErrorKind::WouldBlock,
            Self::NoMemory(_) => ErrorKind::OutOfMemory,
            Self::Failed(e) => e.kind(),
        }
    }
}

impl From<TryPublishError> for Error {
    #[cold]
    fn from(error: TryPublishError) -> Self {
        match error {
            TryPublishError::Failed(e) => e,
            TryPublishError::Behind(ref at) | TryPublishError::NoMemory(ref at) => {
                at.error(error.kind())
            }
        }
    }
}

impl fmt::Display for TryPublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behind(at) | Self::NoMemory(at) => at.error(self.kind()).fmt(f),
            Self::Failed(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for TryPublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(e) => e.source(),
            _ => None,
        }
    }
}

/// What a writer's calls give.
pub(in crate::topic) type Published<T> = std::result::Result<T, Refused>;

/// Why a writer published nothing. Words are for who asks: see `Writer::error`.
#[derive(Debug)]
pub(in crate::topic) enum Refused {
    /// A reliable subscriber is behind, and the call does not wait.
    Behind,
    /// The same, when the time allowed had passed.
    Late,
    NoMemory,
    Failed(Error),
}

impl From<Error> for Refused {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

/// What a publisher of `topic` refuses with. Its figures are the node of the slowest reliable
/// subscriber (0: not known), the depth, and the pool's bytes, segments and bytes allowed.
pub(super) fn refusals(topic: &str) -> Refusals<3> {
    let kinds = [ErrorKind::WouldBlock, ErrorKind::Timeout, ErrorKind::OutOfMemory];
    Refusals::new(topic, kinds, |at, kind| match kind {
        ErrorKind::OutOfMemory => no_memory(at),
        _ => behind(at, kind),
    })
}

fn behind(at: &Refusal, kind: ErrorKind) -> Error {
    let [node, depth, ..] = at.figures();
    let who = if node == 0 { "?".into() } else { node.to_string() };
    Error::new(
        kind,
        "publishing on",
        at.object(),
        format!(
            "the reliable subscriber of node {who} has {depth} messages to read: wait longer, make \
             the topic deeper, or stop that node if it hangs"
        ),
    )
}

fn no_memory(at: &Refusal) -> Error {
    let [_, _, bytes, segments, max] = at.figures();
    pool::at_bound(at.object(), bytes, segments, max)
}
