//! Exit codes, frozen: scripts depend on them.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use outlive::{Error, ErrorKind};

use crate::status;

/// How the command ended. A number never changes its meaning; `docs/book/cli.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Done.
    Done = 0,
    /// Failed for a reason without a number of its own.
    Failed = 1,
    /// Wrong arguments or an illegal name.
    Usage = 2,
    /// Done, but messages were lost; standard error says how many.
    Loss = 3,
    /// No such topic, or timed out.
    NotFound = 4,
    /// Shared bytes are corrupt, or of another layout version.
    Corrupt = 5,
    /// Another type, or one without a description.
    Mismatch = 6,
    /// A directory or file belongs to another user or is open to others, or access was denied.
    Refused = 7,
    /// Disk, RAM disk, quota, file size, memory bound, number of members or threads exhausted.
    NoRoom = 8,
    /// Standard input ended inside a frame.
    Partial = 9,
}

/// The list for `--help`.
pub(crate) const CODES_HELP: &str = "\
Exit codes:
  0 done                  1 failed                2 wrong usage
  3 done, with loss       4 not found, timed out  5 corrupt or other version
  6 other type            7 access refused        8 out of room
  9 input ended inside a frame";

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidName | ErrorKind::InvalidArgument => Self::Usage,
            ErrorKind::NotFound | ErrorKind::Timeout => Self::NotFound,
            ErrorKind::Corrupt | ErrorKind::VersionMismatch => Self::Corrupt,
            ErrorKind::TypeMismatch => Self::Mismatch,
            ErrorKind::NotOwned | ErrorKind::Permission => Self::Refused,
            ErrorKind::NoSpace | ErrorKind::OutOfMemory | ErrorKind::TooManyMembers => Self::NoRoom,
            _ => Self::Failed,
        }
    }
}

/// Why the command did not do what it was asked; printed as one line.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failure of the operating system while doing `what`.
    pub(crate) fn io(what: &str, source: &io::Error) -> Self {
        Self::new(Self::code_of(source.kind()), format!("{what}: {source}"))
    }

    /// The same with the file or directory that it did it to.
    pub(crate) fn io_at(what: &str, path: &Path, source: &io::Error) -> Self {
        Self::io(&format!("{what} {}", path.display()), source)
    }

    pub(crate) fn code_of(kind: io::ErrorKind) -> Code {
        match kind {
            io::ErrorKind::PermissionDenied => Code::Refused,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::OutOfMemory => Code::NoRoom,
            _ => Code::Failed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        // What differs has lines of its own. Names in all others may be anybody's.
        let text = if error.kind() == ErrorKind::TypeMismatch { text } else { one_line(&text) };
        Self::new(Code::from(error.kind()), text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What every subcommand answers.
pub(crate) type Outcome = Result<Code, Failure>;

/// Prints the failure, if any, and makes the process's exit code.
pub(crate) fn finish(outcome: Outcome) -> ExitCode {
    let code = outcome.unwrap_or_else(|failure| {
        note(&failure);
        failure.code
    });
    ExitCode::from(code as u8)
}

/// A line for the person at the terminal; one who does not listen is no reason to fail.
/// Names in it may be anybody's: nothing in it moves the cursor or changes colours.
pub(crate) fn note(line: impl fmt::Display) {
    status::clear();
    let _ = writeln!(io::stderr(), "outlive: {}", plain(&line.to_string()));
}

/// The same text with control characters written out.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() && !"\n\t".contains(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// The same with ends of lines written out, too: for a name within a line.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_room_has_the_same_code() {
        for error in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::ENOMEM] {
            let error = io::Error::from_raw_os_error(error);
            assert_eq!(Failure::io("write x", &error).code, Code::NoRoom, "{error}");
        }
    }
}
