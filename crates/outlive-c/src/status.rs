//! Error numbers, the detail of the last one, and panics that stop here.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use outlive::{Error, ErrorKind};

/// What a call returns: 0 is success. The numbers never change; new ones may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum outlive_status {
    /// Done.
    OUTLIVE_OK = 0,
    /// A name breaks the rules for names.
    OUTLIVE_INVALID_NAME = 1,
    /// An argument is NULL or outside its documented range.
    OUTLIVE_INVALID_ARGUMENT = 2,
    /// The object exists with another type, size, alignment, encoding or description.
    OUTLIVE_TYPE_MISMATCH = 3,
    /// The object was made by another layout version or another byte order.
    OUTLIVE_VERSION_MISMATCH = 4,
    /// Shared bytes or a file are not what the layout says.
    OUTLIVE_CORRUPT = 5,
    /// The RAM disk or a quota is full.
    OUTLIVE_NO_SPACE = 6,
    /// A directory or file belongs to someone else; a lock is not held by the calling thread.
    OUTLIVE_NOT_OWNED = 7,
    /// The kernel refused for lack of permission.
    OUTLIVE_PERMISSION = 8,
    /// No such topic, node or file.
    OUTLIVE_NOT_FOUND = 9,
    /// The object exists already.
    OUTLIVE_ALREADY_EXISTS = 10,
    /// The deadline passed.
    OUTLIVE_TIMEOUT = 11,
    /// There is nothing now, or the call would have to wait.
    OUTLIVE_WOULD_BLOCK = 12,
    /// The bound on memory of the topic or of the process is reached.
    OUTLIVE_OUT_OF_MEMORY = 13,
    /// The subscriber holds as many samples as it asked for.
    OUTLIVE_TOO_MANY_BORROWS = 14,
    /// A documented bound on members is reached.
    OUTLIVE_TOO_MANY_MEMBERS = 15,
    /// The peer is dead. Of a lock: it is taken, and its last owner died inside.
    OUTLIVE_OWNER_DIED = 16,
    /// The queue has a live consumer already.
    OUTLIVE_CONSUMER_EXISTS = 17,
    /// The service has no live server, or it died before it answered.
    OUTLIVE_SERVER_DIED = 18,
    /// The client of a request is dead or gone.
    OUTLIVE_CLIENT_DIED = 19,
    /// The server refused the request.
    OUTLIVE_REFUSED = 20,
    /// The calling thread holds the lock already.
    OUTLIVE_DEADLOCK = 21,
    /// A lock was inherited from a dead owner and released without repair.
    OUTLIVE_UNRECOVERABLE = 22,
    /// The object belongs to another domain.
    OUTLIVE_OTHER_DOMAIN = 23,
    /// The handle belongs to the parent of this forked process.
    OUTLIVE_FORKED_CHILD = 24,
    /// This kernel or build cannot do it.
    OUTLIVE_UNSUPPORTED = 25,
    /// Any other answer of the operating system.
    OUTLIVE_IO = 26,
    /// A defect of outlive, stopped at this border.
    OUTLIVE_INTERNAL = 27,
    /// No message, but an event to look at first.
    OUTLIVE_EVENT = 28,
}
use outlive_status as S;

/// Every status there is, in order of its number.
pub(crate) const ALL: [outlive_status; 29] = [
    S::OUTLIVE_OK,
    S::OUTLIVE_INVALID_NAME,
    S::OUTLIVE_INVALID_ARGUMENT,
    S::OUTLIVE_TYPE_MISMATCH,
    S::OUTLIVE_VERSION_MISMATCH,
    S::OUTLIVE_CORRUPT,
    S::OUTLIVE_NO_SPACE,
    S::OUTLIVE_NOT_OWNED,
    S::OUTLIVE_PERMISSION,
    S::OUTLIVE_NOT_FOUND,
    S::OUTLIVE_ALREADY_EXISTS,
    S::OUTLIVE_TIMEOUT,
    S::OUTLIVE_WOULD_BLOCK,
    S::OUTLIVE_OUT_OF_MEMORY,
    S::OUTLIVE_TOO_MANY_BORROWS,
    S::OUTLIVE_TOO_MANY_MEMBERS,
    S::OUTLIVE_OWNER_DIED,
    S::OUTLIVE_CONSUMER_EXISTS,
    S::OUTLIVE_SERVER_DIED,
    S::OUTLIVE_CLIENT_DIED,
    S::OUTLIVE_REFUSED,
    S::OUTLIVE_DEADLOCK,
    S::OUTLIVE_UNRECOVERABLE,
    S::OUTLIVE_OTHER_DOMAIN,
    S::OUTLIVE_FORKED_CHILD,
    S::OUTLIVE_UNSUPPORTED,
    S::OUTLIVE_IO,
    S::OUTLIVE_INTERNAL,
    S::OUTLIVE_EVENT,
];

impl From<ErrorKind> for outlive_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidName => S::OUTLIVE_INVALID_NAME,
            ErrorKind::InvalidArgument => S::OUTLIVE_INVALID_ARGUMENT,
            ErrorKind::TypeMismatch => S::OUTLIVE_TYPE_MISMATCH,
            ErrorKind::VersionMismatch => S::OUTLIVE_VERSION_MISMATCH,
            ErrorKind::Corrupt => S::OUTLIVE_CORRUPT,
            ErrorKind::NoSpace => S::OUTLIVE_NO_SPACE,
            ErrorKind::NotOwned => S::OUTLIVE_NOT_OWNED,
            ErrorKind::Permission => S::OUTLIVE_PERMISSION,
            ErrorKind::NotFound => S::OUTLIVE_NOT_FOUND,
            ErrorKind::AlreadyExists => S::OUTLIVE_ALREADY_EXISTS,
            ErrorKind::Timeout => S::OUTLIVE_TIMEOUT,
            ErrorKind::WouldBlock => S::OUTLIVE_WOULD_BLOCK,
            ErrorKind::OutOfMemory => S::OUTLIVE_OUT_OF_MEMORY,
            ErrorKind::TooManyBorrows => S::OUTLIVE_TOO_MANY_BORROWS,
            ErrorKind::TooManyMembers => S::OUTLIVE_TOO_MANY_MEMBERS,
            ErrorKind::OwnerDied => S::OUTLIVE_OWNER_DIED,
            ErrorKind::ConsumerExists => S::OUTLIVE_CONSUMER_EXISTS,
            ErrorKind::ServerDied => S::OUTLIVE_SERVER_DIED,
            ErrorKind::ClientDied => S::OUTLIVE_CLIENT_DIED,
            ErrorKind::Refused => S::OUTLIVE_REFUSED,
            ErrorKind::Deadlock => S::OUTLIVE_DEADLOCK,
            ErrorKind::Unrecoverable => S::OUTLIVE_UNRECOVERABLE,
            ErrorKind::OtherDomain => S::OUTLIVE_OTHER_DOMAIN,
            ErrorKind::ForkedChild => S::OUTLIVE_FORKED_CHILD,
            ErrorKind::Unsupported => S::OUTLIVE_UNSUPPORTED,
            ErrorKind::Io => S::OUTLIVE_IO,
            _ => S::OUTLIVE_INTERNAL,
        }
    }
}

impl outlive_status {
    fn text(self) -> &'static CStr {
        match self {
            S::OUTLIVE_OK => c"ok",
            S::OUTLIVE_INVALID_NAME => c"invalid name",
            S::OUTLIVE_INVALID_ARGUMENT => c"invalid argument",
            S::OUTLIVE_TYPE_MISMATCH => c"type mismatch",
            S::OUTLIVE_VERSION_MISMATCH => c"layout version mismatch",
            S::OUTLIVE_CORRUPT => c"corrupt",
            S::OUTLIVE_NO_SPACE => c"no space",
            S::OUTLIVE_NOT_OWNED => c"not owned",
            S::OUTLIVE_PERMISSION => c"permission denied",
            S::OUTLIVE_NOT_FOUND => c"not found",
            S::OUTLIVE_ALREADY_EXISTS => c"already exists",
            S::OUTLIVE_TIMEOUT => c"timed out",
            S::OUTLIVE_WOULD_BLOCK => c"would block",
            S::OUTLIVE_OUT_OF_MEMORY => c"out of memory",
            S::OUTLIVE_TOO_MANY_BORROWS => c"too many borrowed samples",
            S::OUTLIVE_TOO_MANY_MEMBERS => c"too many members",
            S::OUTLIVE_OWNER_DIED => c"owner died",
            S::OUTLIVE_CONSUMER_EXISTS => c"consumer exists",
            S::OUTLIVE_SERVER_DIED => c"server died",
            S::OUTLIVE_CLIENT_DIED => c"client died",
            S::OUTLIVE_REFUSED => c"refused",
            S::OUTLIVE_DEADLOCK => c"held by the caller already",
            S::OUTLIVE_UNRECOVERABLE => c"unrecoverable",
            S::OUTLIVE_OTHER_DOMAIN => c"of another domain",
            S::OUTLIVE_FORKED_CHILD => c"handle of the parent process",
            S::OUTLIVE_UNSUPPORTED => c"unsupported",
            S::OUTLIVE_IO => c"input/output error",
            S::OUTLIVE_INTERNAL => c"defect of outlive",
            S::OUTLIVE_EVENT => c"an event to look at",
        }
    }

    /// The number of `errno` that is closest.
    pub(crate) fn errno(self) -> c_int {
        match self {
            S::OUTLIVE_OK => 0,
            S::OUTLIVE_INVALID_NAME | S::OUTLIVE_INVALID_ARGUMENT => libc::EINVAL,
            S::OUTLIVE_TYPE_MISMATCH | S::OUTLIVE_VERSION_MISMATCH => libc::EPROTOTYPE,
            S::OUTLIVE_CORRUPT => libc::EBADMSG,
            S::OUTLIVE_NO_SPACE => libc::ENOSPC,
            S::OUTLIVE_NOT_OWNED | S::OUTLIVE_FORKED_CHILD => libc::EPERM,
            S::OUTLIVE_PERMISSION => libc::EACCES,
            S::OUTLIVE_NOT_FOUND => libc::ENOENT,
            S::OUTLIVE_ALREADY_EXISTS => libc::EEXIST,
            S::OUTLIVE_TIMEOUT => libc::ETIMEDOUT,
            S::OUTLIVE_WOULD_BLOCK | S::OUTLIVE_EVENT => libc::EAGAIN,
            S::OUTLIVE_OUT_OF_MEMORY => libc::ENOMEM,
            S::OUTLIVE_TOO_MANY_BORROWS | S::OUTLIVE_TOO_MANY_MEMBERS => libc::EMFILE,
            S::OUTLIVE_OWNER_DIED | S::OUTLIVE_SERVER_DIED | S::OUTLIVE_CLIENT_DIED => {
                libc::EOWNERDEAD
            }
            S::OUTLIVE_CONSUMER_EXISTS => libc::EBUSY,
            S::OUTLIVE_REFUSED => libc::ECONNREFUSED,
            S::OUTLIVE_DEADLOCK => libc::EDEADLK,
            S::OUTLIVE_UNRECOVERABLE => libc::ENOTRECOVERABLE,
            S::OUTLIVE_OTHER_DOMAIN => libc::EXDEV,
            S::OUTLIVE_UNSUPPORTED => libc::ENOTSUP,
            S::OUTLIVE_IO | S::OUTLIVE_INTERNAL => libc::EIO,
        }
    }
}

/// Why a call did not end well.
pub(crate) enum Fail {
    /// With a detail for `outlive_last_error`.
    Error(Error),
    /// What is no error: nothing there, time up.
    Quiet(outlive_status),
}

impl From<Error> for Fail {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(e) => e.fmt(f),
            Self::Quiet(status) => f.write_str(&status.text().to_string_lossy()),
        }
    }
}

pub(crate) type Done = Result<(), Fail>;

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

fn remember(detail: &str) {
    let text = CString::new(detail.replace('\0', "?")).unwrap_or_default();
    // Gone while the thread ends: then nobody asks any more.
    let _ = LAST.try_with(|last| last.replace(Some(text)));
}

/// Runs the body of a call and says how it ended.
#[inline(always)]
pub(crate) fn run(body: impl FnOnce() -> Done) -> outlive_status {
    // One word comes out of `catch_unwind`, by way of the stack: what is written there in parts
    // and read whole makes the processor wait.
    let status = catch_unwind(AssertUnwindSafe(|| match body() {
        Ok(()) => S::OUTLIVE_OK,
        Err(Fail::Quiet(status)) => status,
        Err(Fail::Error(e)) => failed(&e),
    }));
    status.unwrap_or_else(|panic| panicked(&*panic))
}

#[cold]
fn failed(e: &Error) -> outlive_status {
    remember(&e.to_string());
    e.kind().into()
}

#[cold]
fn panicked(panic: &(dyn std::any::Any + Send)) -> outlive_status {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    remember(&format!("a defect of outlive: {text}; please report it"));
    S::OUTLIVE_INTERNAL
}

#[cold]
pub(crate) fn invalid(what: &str, why: &str) -> Fail {
    Fail::Error(Error::new(ErrorKind::InvalidArgument, "calling with", what, why))
}

/// Refuses NULL.
#[inline(always)]
pub(crate) fn need<T>(argument: Option<T>, what: &str) -> Result<T, Fail> {
    argument.ok_or_else(|| invalid(what, "it is NULL"))
}

/// A C string.
pub(crate) fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str, Fail> {
    if from.is_null() {
        return Err(invalid(what, "it is NULL"));
    }
    // SAFETY: the caller's part: a string that ends in 0 and stays during the call.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| invalid(what, "it is not UTF-8"))
}

/// As `text`, of what is only for people: nothing for NULL, U+FFFD for what is not UTF-8.
pub(crate) fn lossy<'a>(from: *const c_char) -> Cow<'a, str> {
    if from.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: as in `text`.
    unsafe { CStr::from_ptr(from) }.to_string_lossy()
}

/// `size` bytes; NULL only where they are none.
#[inline(always)]
pub(crate) fn bytes<'a>(from: *const std::ffi::c_void, size: usize) -> Result<&'a [u8], Fail> {
    match (from.is_null(), size) {
        (false, _) if size <= isize::MAX as usize => {
            // SAFETY: the caller's part: readable, and unchanged during the call.
            Ok(unsafe { std::slice::from_raw_parts(from.cast(), size) })
        }
        (true, 0) => Ok(&[]),
        _ => Err(invalid("data", "it is NULL, or its size is over PTRDIFF_MAX")),
    }
}

/// A short phrase for a status, in English; valid for ever. NULL for a number that is not a status.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_strerror(status: c_int) -> *const c_char {
    let found = ALL.iter().find(|s| **s as c_int == status);
    found.map_or(std::ptr::null(), |s| s.text().as_ptr())
}

/// The detail of the calling thread's last error: what failed, on which object, what to do next.
/// Stays until the thread's next call of outlive that fails. Empty before the first.
///
/// Results that are not errors do not change it: nothing there now, deadline passed, an event.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_last_error() -> *const c_char {
    let empty = c"".as_ptr();
    let last = |last: &RefCell<Option<CString>>| last.borrow().as_ref().map(|text| text.as_ptr());
    LAST.try_with(last).ok().flatten().unwrap_or(empty)
}

/// The number of `errno` that is closest to a status: `EOWNERDEAD`, `EAGAIN`, `ETIMEDOUT` ...
#[unsafe(no_mangle)]
pub extern "C" fn outlive_errno(status: c_int) -> c_int {
    let found = ALL.iter().find(|s| **s as c_int == status);
    found.map_or(libc::EINVAL, |s| s.errno())
}

/// Now, ns of CLOCK_MONOTONIC: the clock of all deadlines and time stamps.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_now_ns() -> u64 {
    outlive::now_ns()
}

/// The version of the bytes in shared memory; members of one object must have the same.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_layout_version() -> u32 {
    outlive::LAYOUT_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_number_a_text_and_an_errno() {
        for (i, status) in ALL.iter().enumerate() {
            assert_eq!(*status as usize, i);
            assert!(!outlive_strerror(i as c_int).is_null());
            assert_eq!(outlive_errno(i as c_int) == 0, i == 0);
        }
        assert!(outlive_strerror(-1).is_null() && outlive_strerror(29).is_null());
    }

    #[test]
    fn every_kind_of_error_has_a_status_of_its_own() {
        let mut seen = vec![S::OUTLIVE_OK, S::OUTLIVE_INTERNAL, S::OUTLIVE_EVENT];
        for kind in outlive::internals::ERROR_KINDS {
            let status = outlive_status::from(*kind);
            assert!(!seen.contains(&status), "{kind:?} is {status:?}");
            seen.push(status);
        }
    }

    #[test]
    fn a_panic_stops_here_and_says_what_it_was() {
        let status = run(|| panic!("on purpose"));
        assert_eq!(status, S::OUTLIVE_INTERNAL);
        // SAFETY: stays until the next error of this thread.
        let detail = unsafe { CStr::from_ptr(outlive_last_error()) };
        assert!(detail.to_str().unwrap().contains("on purpose"));
    }
}
