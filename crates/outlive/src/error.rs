//! The one error type of the crate: what failed, on which object, and what to do next.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// What went wrong, to match on. The list grows: a kind you do not know is an error like `Io`.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::ErrorKind;
///
/// let _publisher = node.topic::<f64>("/speed")?.publisher()?;
/// let refused = node.topic::<f32>("/speed")?.subscriber().unwrap_err();
/// let advice = match refused.kind() {
///     ErrorKind::TypeMismatch => "build both programs with the same type",
///     ErrorKind::NoSpace | ErrorKind::OutOfMemory => "free memory, then try again",
///     _ => "report it", // also kinds that a later version adds
/// };
/// assert_eq!(advice, "build both programs with the same type");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name breaks the rules for names.
    InvalidName,
    /// An argument is outside its documented range.
    InvalidArgument,
    /// The object exists with another type, size, alignment, encoding or schema.
    TypeMismatch,
    /// The object was made by another layout version or another byte order.
    VersionMismatch,
    /// Shared bytes or a file are not what the layout says.
    Corrupt,
    /// The RAM disk or a quota is full.
    NoSpace,
    /// A directory or file belongs to someone else, or others may write to it.
    NotOwned,
    /// The kernel refused for lack of permission.
    Permission,
    /// No such topic, node or file.
    NotFound,
    /// The object exists already.
    AlreadyExists,
    /// The deadline passed.
    Timeout,
    /// The call would have to wait.
    WouldBlock,
    /// The bound on memory of the topic or of the process is reached.
    OutOfMemory,
    /// The subscriber holds as many samples as it asked for.
    TooManyBorrows,
    /// A documented bound on members is reached.
    TooManyMembers,
    /// The peer is dead.
    OwnerDied,
    /// The queue has a live consumer already.
    ConsumerExists,
    /// The service has no live server, or it died before it answered.
    ServerDied,
    /// The client of a request is dead or gone.
    ClientDied,
    /// The server refused the request.
    Refused,
    /// The caller holds the lock already: waiting for it would never end.
    Deadlock,
    /// A lock was inherited from a dead owner and released without repair.
    Unrecoverable,
    /// The object belongs to another domain.
    OtherDomain,
    /// The handle belongs to the parent of this forked process.
    ForkedChild,
    /// This kernel or build cannot do it.
    Unsupported,
    /// Any other answer of the operating system.
    Io,
}

impl ErrorKind {
    /// Each once, in order.
    pub(crate) const ALL: [Self; 26] = {
        use ErrorKind::*;
        [
            InvalidName,
            InvalidArgument,
            TypeMismatch,
            VersionMismatch,
            Corrupt,
            NoSpace,
            NotOwned,
            Permission,
            NotFound,
            AlreadyExists,
            Timeout,
            WouldBlock,
            OutOfMemory,
            TooManyBorrows,
            TooManyMembers,
            OwnerDied,
            ConsumerExists,
            ServerDied,
            ClientDied,
            Refused,
            Deadlock,
            Unrecoverable,
            OtherDomain,
            ForkedChild,
            Unsupported,
            Io,
        ]
    };

    /// A short phrase for people.
    ///
    /// # Examples
    /// ```
    /// use outlive::ErrorKind;
    ///
    /// assert_eq!(ErrorKind::NoSpace.as_str(), "no space");
    /// assert_eq!(format!("sorry: {}", ErrorKind::NoSpace), "sorry: no space");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidName => "invalid name",
            Self::InvalidArgument => "invalid argument",
            Self::TypeMismatch => "type mismatch",
            Self::VersionMismatch => "layout version mismatch",
            Self::Corrupt => "corrupt",
            Self::NoSpace => "no space",
            Self::NotOwned => "not owned",
            Self::Permission => "permission denied",
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Timeout => "timed out",
            Self::WouldBlock => "would block",
            Self::OutOfMemory => "out of memory",
            Self::TooManyBorrows => "too many borrowed samples",
            Self::TooManyMembers => "too many members",
            Self::OwnerDied => "owner died",
            Self::ConsumerExists => "consumer exists",
            Self::ServerDied => "server died",
            Self::ClientDied => "client died",
            Self::Refused => "refused",
            Self::Deadlock => "held by the caller already",
            Self::Unrecoverable => "unrecoverable",
            Self::OtherDomain => "of another domain",
            Self::ForkedChild => "handle of the parent process",
            Self::Unsupported => "unsupported",
            Self::Io => "input/output error",
        }
    }
}

// Holds as long as `Io` is the last one.
const _: () = assert!(ErrorKind::ALL.len() == ErrorKind::Io as usize + 1);

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Result of every fallible call of this crate, except hot calls with an error of their own.
pub type Result<T> = std::result::Result<T, Error>;

/// What failed (`what`), on which object (topic, file, node), why, and what to do next.
///
/// A call that a port refuses for now (full, behind, nobody there) makes no text until somebody
/// asks for it: its figures are then those of the port's latest refusal.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::ErrorKind;
///
/// let error = node.topic::<u64>("two words").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidName);
/// println!("{error}"); // what failed, on which object, why, and what to do
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

enum Inner {
    Told(Told),
    /// The port keeps it, and the text is made when somebody asks for it.
    Refused(ErrorKind, Refusal),
}

struct Told {
    kind: ErrorKind,
    what: String,
    object: String,
    remedy: String,
    source: Option<io::Error>,
}

impl Error {
    /// Builds an error; `what` is the operation, `object` what it acted on, `remedy` what to do.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Corrupt, "reading", "floor.map", "record the map again");
    /// assert_eq!(error.to_string(), "reading floor.map: corrupt; record the map again");
    /// ```
    #[cold]
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        object: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self(Arc::new(Inner::Told(Told {
            kind,
            what: what.into(),
            object: object.into(),
            remedy: remedy.into(),
            source: None,
        })))
    }

    /// One to keep where it may be answered often: a clone of it allocates nothing, and `words`
    /// makes the text once somebody asks for it.
    pub(crate) fn kept(
        kind: ErrorKind,
        object: &str,
        words: fn(&Refusal, ErrorKind) -> Self,
    ) -> Self {
        Refusals::new(object, [kind], words).error(kind)
    }

    /// Adds the operating system's own answer as the cause.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Error, ErrorKind};
    /// use std::error::Error as _;
    ///
    /// let missing = std::fs::read("/nowhere/floor.map").unwrap_err();
    /// let error = Error::new(ErrorKind::NotFound, "reading", "floor.map", "record a map first");
    /// let error = error.with_source(missing);
    /// assert!(error.source().is_some() && error.to_string().contains("os error 2"));
    /// ```
    #[cold]
    #[must_use]
    pub fn with_source(mut self, source: io::Error) -> Self {
        if let Some(Inner::Told(told)) = Arc::get_mut(&mut self.0) {
            told.source = Some(source);
            return self;
        }
        let own = match &*self.0 {
            Inner::Told(t) => Self::new(t.kind, &*t.what, &*t.object, &*t.remedy),
            Inner::Refused(kind, by) => by.error(*kind),
        };
        own.with_source(source)
    }

    /// The kind to match on.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let error = node.topic::<u64>("two words").unwrap_err();
    /// assert_eq!(error.kind(), outlive::ErrorKind::InvalidName);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Inner::Told(told) => told.kind,
            Inner::Refused(kind, _) => *kind,
        }
    }

    /// The object the call acted on: a topic, a file, a node.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _publisher = node.topic::<f64>("/speed")?.publisher()?;
    /// let refused = node.topic::<f32>("/speed")?.subscriber().unwrap_err();
    /// assert_eq!(refused.object(), "/speed");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn object(&self) -> &str {
        match &*self.0 {
            Inner::Told(told) => &told.object,
            Inner::Refused(_, by) => by.object(),
        }
    }

    /// What to do next.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut producer = node.queue::<u64>("/orders")?.producer()?;
    /// let refused = producer.send(&7).unwrap_err();
    /// let remedy = refused.remedy(); // the last part of the error's text
    /// assert!(remedy.contains("no live consumer") && refused.to_string().ends_with(&*remedy));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn remedy(&self) -> Cow<'_, str> {
        match &*self.0 {
            Inner::Told(told) => Cow::Borrowed(&told.remedy),
            Inner::Refused(kind, by) => Cow::Owned(by.error(*kind).remedy().into_owned()),
        }
    }

    /// The same, with more about what to do next.
    #[cold]
    pub(crate) fn and_remedy(&self, more: &str) -> Self {
        match &*self.0 {
            Inner::Told(t) => {
                Self::new(t.kind, &*t.what, &*t.object, format!("{}; {more}", t.remedy))
            }
            Inner::Refused(kind, by) => by.error(*kind).and_remedy(more),
        }
    }

    /// There is too little of something now.
    pub(crate) fn is_lack(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::OutOfMemory)
    }

    /// What an audit says of an object that it could not read.
    ///
    /// # Errors
    /// Itself, if there is too little of something now: that says nothing of the object.
    pub(crate) fn into_fault(self) -> crate::Result<String> {
        if self.is_lack() { Err(self) } else { Ok(self.to_string()) }
    }

    /// Of a file: there is nothing to read in it, and not only that we cannot see it.
    pub(crate) fn is_absent(&self) -> bool {
        use ErrorKind::{Corrupt, NotFound, VersionMismatch};
        matches!(self.kind(), NotFound | Corrupt | VersionMismatch)
    }

    /// Of a file: gone, garbage, of another layout, or somebody else's.
    pub(crate) fn is_unreadable(&self) -> bool {
        use ErrorKind::{Corrupt, NotFound, NotOwned, Permission, VersionMismatch};
        matches!(self.kind(), NotFound | Corrupt | VersionMismatch | NotOwned | Permission)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = match &*self.0 {
            Inner::Told(told) => told,
            Inner::Refused(kind, by) => return by.error(*kind).fmt(f),
        };
        write!(f, "{} {}: {}", e.what, e.object, e.kind)?;
        if let Some(source) = &e.source {
            write!(f, " ({source})")?;
        }
        if !e.remedy.is_empty() {
            write!(f, "; {}", e.remedy)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Inner::Told(told) => told.source.as_ref().map(|e| e as _),
            Inner::Refused(..) => None,
        }
    }
}

/// What refused a call: the text of an error, which costs nothing until somebody prints it.
///
/// It shares the name with the port that made it instead of copying it; figures in the text are
/// those of the port's latest refusal.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::queue::TrySendError;
///
/// let mut producer = node.queue::<u64>("/orders")?.producer()?;
/// match producer.try_send(&7) {
///     Err(TrySendError::NoConsumer(refusal)) => assert_eq!(refusal.object(), "/orders"),
///     other => panic!("nobody consumes, but: {other:?}"),
/// }
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone)]
pub struct Refusal(Arc<Facts>);

struct Facts {
    object: Box<str>,
    words: fn(&Refusal, ErrorKind) -> Error,
    figures: [AtomicU64; 5],
    cause: Mutex<Option<Error>>,
}

impl Refusal {
    fn new(object: &str, words: fn(&Self, ErrorKind) -> Error) -> Self {
        let figures = std::array::from_fn(|_| AtomicU64::new(0));
        Self(Arc::new(Facts { object: object.into(), words, figures, cause: Mutex::new(None) }))
    }

    /// The text of a refusal of this kind, with the figures as they are now.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        (self.0.words)(self, kind)
    }

    /// The object that the call acted on: a queue, a topic.
    ///
    /// Example: [`Refusal`].
    pub fn object(&self) -> &str {
        &self.0.object
    }

    /// Stores what the text is to say.
    pub(crate) fn set(&self, figures: [u64; 5]) {
        for (to, figure) in self.0.figures.iter().zip(figures) {
            to.store(figure, Relaxed);
        }
    }

    pub(crate) fn figures(&self) -> [u64; 5] {
        self.0.figures.each_ref().map(|figure| figure.load(Relaxed))
    }

    /// What is behind it, to be named in the text.
    pub(crate) fn set_cause(&self, cause: Option<Error>) {
        *self.0.cause.lock().unwrap_or_else(|e| e.into_inner()) = cause;
    }

    pub(crate) fn cause(&self) -> Option<String> {
        self.0.cause.lock().unwrap_or_else(|e| e.into_inner()).as_ref().map(Error::to_string)
    }
}

/// What a port refuses with: made when it opens, so that a refused call allocates nothing.
#[derive(Debug)]
pub(crate) struct Refusals<const N: usize> {
    facts: Refusal,
    errors: [Error; N],
}

impl<const N: usize> Refusals<N> {
    /// Of a port of `object` which refuses as one of `kinds`. `words` makes the text, and gives an
    /// error of its own.
    pub(crate) fn new(
        object: &str,
        kinds: [ErrorKind; N],
        words: fn(&Refusal, ErrorKind) -> Error,
    ) -> Self {
        let facts = Refusal::new(object, words);
        let errors = kinds.map(|kind| Error(Arc::new(Inner::Refused(kind, facts.clone()))));
        Self { facts, errors }
    }

    pub(crate) fn facts(&self) -> &Refusal {
        &self.facts
    }

    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        let kept = self.errors.iter().find(|e| e.kind() == kind);
        kept.cloned().unwrap_or_else(|| self.facts.error(kind))
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Refusal").field(&self.object()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn a_kept_refusal_tells_the_latest_figures_and_takes_a_cause_of_its_own() {
        let refusals = Refusals::new("/q", [ErrorKind::WouldBlock], |at, kind| {
            Error::new(kind, "sending to", at.object(), format!("{} bytes", at.figures()[0]))
        });
        let [first, second] = [(); 2].map(|()| refusals.error(ErrorKind::WouldBlock));
        refusals.facts().set([7, 0, 0, 0, 0]);
        assert_eq!(first.to_string(), "sending to /q: would block; 7 bytes");
        assert_eq!((first.object(), &*first.remedy()), ("/q", "7 bytes"));

        let caused = first.clone().with_source(io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(caused.source().is_some() && caused.to_string().contains("os error 12"));
        assert!(second.source().is_none() && first.source().is_none());
        let again = caused.clone().with_source(io::Error::from_raw_os_error(libc::EIO));
        assert!(again.to_string().contains("os error 5") && !again.to_string().contains("12"));
        // Of a kind that is not kept.
        assert_eq!(refusals.error(ErrorKind::Timeout).kind(), ErrorKind::Timeout);
    }
}
