//! Why recording, reading or playing does not go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Every failure of this crate; its text names the thing and the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From a topic or the domain.
    Outlive(outlive::Error),
    /// From the file system: what was done, to which file.
    Io {
        /// What was done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not a recording, or its bytes are wrong.
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An argument makes no sense.
    Usage(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.into(), source }
    }

    /// A failure while writing `path`.
    pub(crate) fn writing(path: &Path, error: mcap::McapError) -> Self {
        match error {
            mcap::McapError::Io(source) => Self::io("write", path, source),
            mcap::McapError::TooManyChannels => {
                let why = "one file takes no more than 65536 channels, one for each publisher: \
                           --split-seconds begins the next before that, a shorter --last has fewer";
                Self::io("write", path, io::Error::other(why))
            }
            other => Self::io("write", path, io::Error::other(other)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outlive(error) => error.fmt(f),
            Self::Io { what, path, source } => write!(f, "{what} {}: {source}", path.display()),
            Self::Corrupt { path, why } => {
                write!(f, "{} cannot be read as a recording: {why}", path.display())
            }
            Self::Usage(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Outlive(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<outlive::Error> for Error {
    fn from(error: outlive::Error) -> Self {
        Self::Outlive(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_full_of_publishers_names_options_that_help() {
        let path = Path::new("run.mcap");
        let told = Error::writing(path, mcap::McapError::TooManyChannels).to_string();
        assert!(told.contains("run.mcap") && told.contains("--split-seconds"), "{told}");
    }
}
