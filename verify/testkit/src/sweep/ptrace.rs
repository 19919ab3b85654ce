//! The system call with which a process is looked at and changed.

use std::io;

/// One ptrace call whose data is passed by value.
pub(crate) fn request(what: i64, pid: i32, address: u64, data: u64) -> io::Result<()> {
    // SAFETY: callers pass addresses of the tracee, or a buffer of their own for a get request.
    match unsafe { libc::syscall(libc::SYS_ptrace, what, pid as i64, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// One ptrace call that reads a word.
pub(crate) fn peek(what: i64, pid: i32, address: u64) -> io::Result<u64> {
    let mut word = 0_u64;
    request(what, pid, address, &raw mut word as u64)?;
    Ok(word)
}
