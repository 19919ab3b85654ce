//! What went wrong, on what, and what to do next.

use std::fmt;

/// What went wrong, as a closed list that callers match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The machine has no `libcuda.so.1`.
    NoDriver,
    /// The driver is there, and no device that it could use.
    NoDevice,
    /// The driver lacks functions that this crate calls; the error names them.
    DriverTooOld,
    /// The driver refused; its code (`CUresult`).
    Driver(i32),
    /// The device, or its driver, cannot do this.
    Unsupported,
    /// An argument is outside its documented range.
    InvalidArgument,
    /// A copy was not done in the time given; what it writes stays reserved.
    Timeout,
    /// The peer died before it had finished.
    PeerDied,
    /// The sample is a copy, so that nothing reserves the device memory it names.
    NotHeld,
    /// What another process said makes no sense.
    Corrupt,
    /// An error of the operating system.
    Io,
    /// An error of outlive itself.
    Outlive(outlive::ErrorKind),
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver => f.write_str("no CUDA driver"),
            Self::NoDevice => f.write_str("no CUDA device"),
            Self::DriverTooOld => f.write_str("the CUDA driver is too old"),
            Self::Driver(code) => write!(f, "the CUDA driver answered {code}"),
            Self::Unsupported => f.write_str("unsupported"),
            Self::InvalidArgument => f.write_str("invalid argument"),
            Self::Timeout => f.write_str("timed out"),
            Self::PeerDied => f.write_str("the peer died"),
            Self::NotHeld => f.write_str("not held"),
            Self::Corrupt => f.write_str("corrupt"),
            Self::Io => f.write_str("input/output error"),
            Self::Outlive(kind) => kind.fmt(f),
        }
    }
}

/// Result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What failed, why, and what to do next.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    what: String,
    remedy: String,
    source: Option<outlive::Error>,
}

impl Error {
    /// Builds an error; `what` is the operation and its object, `remedy` what to do.
    #[cold]
    pub fn new(kind: ErrorKind, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, what: what.into(), remedy: remedy.into(), source: None }))
    }

    /// The kind to match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What to do next.
    pub fn remedy(&self) -> &str {
        &self.0.remedy
    }
}

impl From<outlive::Error> for Error {
    #[cold]
    fn from(source: outlive::Error) -> Self {
        Self(Box::new(Inner {
            kind: ErrorKind::Outlive(source.kind()),
            what: String::new(),
            remedy: source.remedy().into_owned(),
            source: Some(source),
        }))
    }
}

impl From<Error> for outlive::Error {
    /// For programs that know one kind of error; what is the driver's becomes `Unsupported`.
    #[cold]
    fn from(e: Error) -> Self {
        let kind = match e.0.kind {
            ErrorKind::NoDriver | ErrorKind::NoDevice => outlive::ErrorKind::NotFound,
            ErrorKind::InvalidArgument => outlive::ErrorKind::InvalidArgument,
            ErrorKind::Timeout => outlive::ErrorKind::Timeout,
            ErrorKind::PeerDied => outlive::ErrorKind::OwnerDied,
            ErrorKind::Corrupt => outlive::ErrorKind::Corrupt,
            ErrorKind::Io => outlive::ErrorKind::Io,
            ErrorKind::Driver(2) => outlive::ErrorKind::OutOfMemory,
            _ => outlive::ErrorKind::Unsupported,
        };
        match e.0.source {
            Some(source) => source,
            None => {
                let why = format!("{}; {}", e.0.kind, e.0.remedy);
                Self::new(kind, e.0.what, "on a GPU", why)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.0;
        if let Some(source) = &e.source {
            return source.fmt(f);
        }
        write!(f, "{}: {}", e.what, e.kind)?;
        if e.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", e.remedy) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}
