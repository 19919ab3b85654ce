//! One table from `errno` to the crate's error: kind and remedy.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{Error, ErrorKind, Result};

/// The error of the system call that just failed on this thread.
#[cold]
pub(crate) fn last(what: &'static str, object: impl Into<String>) -> Error {
    from_io(what, object, io::Error::last_os_error())
}

/// The error for a pthread-style return code.
#[cold]
pub(crate) fn from_code(what: &'static str, object: impl Into<String>, errno: i32) -> Error {
    from_io(what, object, io::Error::from_raw_os_error(errno))
}

/// Wraps an operating system error: `what` is the operation, `object` what it acted on.
#[cold]
pub(crate) fn from_io(what: &'static str, object: impl Into<String>, e: io::Error) -> Error {
    let (kind, remedy) = classify(e.raw_os_error().unwrap_or(0));
    Error::new(kind, what, object, remedy).with_source(e)
}

/// The last error number of this thread.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sets the calling thread's errno: by who must leave it as it was.
pub(super) fn set_errno(value: i32) {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = value };
}

/// The path as messages show it.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The path for the C library. Errors: `InvalidName` when it holds a NUL byte.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        Error::new(ErrorKind::InvalidName, "use path", show(path), "remove the NUL byte")
    })
}

fn classify(errno: i32) -> (ErrorKind, &'static str) {
    use ErrorKind::*;
    match errno {
        libc::ENOSPC => (NoSpace, "free space there (`df`), run `outlive clean`, or use less"),
        libc::EDQUOT => (NoSpace, "the quota is used up: free space or raise the quota"),
        libc::EFBIG => {
            (NoSpace, "raise the file size limit (RLIMIT_FSIZE, `ulimit -f`) or use less")
        }
        libc::EMFILE => (Io, "raise `ulimit -n`"),
        libc::ENFILE => (Io, "the machine is out of file handles: raise fs.file-max"),
        libc::EACCES | libc::EPERM => (Permission, "run as the owner, or choose another directory"),
        libc::EROFS => (Permission, "the file system is read-only: choose another directory"),
        libc::ENOMEM => (OutOfMemory, "free memory, or raise the limit on mappings or memory"),
        libc::EAGAIN => {
            (Io, "out of threads or of locked memory: raise `ulimit -u` or `ulimit -l`")
        }
        libc::ELOOP => (Corrupt, "a symbolic link lies where a file should: remove it"),
        libc::ENOTDIR | libc::EISDIR | libc::ENXIO => {
            (Corrupt, "something of another type lies in its place: remove it")
        }
        libc::ENOENT => (NotFound, "check the name, or create it first"),
        libc::EEXIST => (AlreadyExists, "use another name, or open the existing one"),
        libc::ENAMETOOLONG => (InvalidName, "use a shorter name"),
        libc::ENOSYS | libc::EOPNOTSUPP => (Unsupported, "this kernel or file system lacks it"),
        libc::ETIMEDOUT => (Timeout, "allow more time"),
        _ => (Io, "see the cause"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_object_and_remedy() {
        for errno in 1..134 {
            let error = from_code("open", "/dev/shm/x", errno);
            assert_eq!(error.object(), "/dev/shm/x");
            assert!(!error.remedy().is_empty());
            assert!(std::error::Error::source(&error).is_some());
        }
        assert_eq!(from_code("reserve", "x", libc::ENOSPC).kind(), ErrorKind::NoSpace);
        assert!(from_code("open", "x", libc::EMFILE).remedy().contains("ulimit -n"));
    }

    #[test]
    fn a_path_with_a_nul_byte_is_an_invalid_name() {
        assert_eq!(c_path(Path::new("a\0b")).unwrap_err().kind(), ErrorKind::InvalidName);
    }
}
