//! The system calls of the command: signals as a flag, pipes, death with the parent.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use outlive::{Result, Shutdown};

/// Longest sleep before the signal flag is looked at, ns.
pub(crate) const SLICE_NS: u64 = 100_000_000;

static STOP: OnceLock<Shutdown> = OnceLock::new();

/// From here on SIGINT and SIGTERM ask to end, which [`stop_asked`] tells; [`Shutdown`] says what a
/// second one does. Also where they were ignored: a shell ignores SIGINT for what it starts in the
/// background, and scripts send it all the same.
pub(crate) fn catch_stop_signals() -> Result<()> {
    if STOP.get().is_some() {
        return Ok(());
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no pointers are passed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let shutdown = Shutdown::on_signals()?;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // A blocking read or write is to come back.
        // SAFETY: all zeroes is a valid sigaction, which the first call fills in.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action.sa_flags &= !libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let _ = STOP.set(shutdown);
    Ok(())
}

extern "C" fn go_on(_signal: libc::c_int) {}

/// A file at its limit (RLIMIT_FSIZE) is an error of the write, and no signal that ends us. Not by
/// ignoring it, which programs that we start would inherit.
pub(crate) fn survive_file_limit() {
    // SAFETY: all zeroes is a valid sigaction: no flags, an empty mask, the default.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    action.sa_sigaction = go_on as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: both are complete and writable; the handler does nothing.
    unsafe {
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut before);
        if before.sa_sigaction == libc::SIG_DFL {
            libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut());
        }
    }
}

static SAVE: AtomicBool = AtomicBool::new(false);

extern "C" fn ask_to_save(_signal: libc::c_int) {
    SAVE.store(true, Relaxed);
}

/// From here on SIGUSR1 only raises the flag that [`take_save_asked`] reads.
pub(crate) fn catch_save_signal() {
    // SAFETY: all zeroes is a valid sigaction: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ask_to_save as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: `action` is complete; its handler only stores to an atomic.
    unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
}

/// Whether SIGUSR1 came since the last call.
pub(crate) fn take_save_asked() -> bool {
    SAVE.swap(false, Relaxed)
}

/// Whether SIGINT or SIGTERM came.
pub(crate) fn stop_asked() -> bool {
    STOP.get().is_some_and(Shutdown::is_asked)
}

/// Waits until `fd` can be read, at most one slice; false when it cannot be yet.
pub(crate) fn wait_readable(fd: impl AsFd) -> io::Result<bool> {
    poll(fd, libc::POLLIN, SLICE_NS / 1_000_000)
}

/// Waits until `fd` can be written, some slices at most; false when it cannot be yet.
pub(crate) fn wait_writable(fd: impl AsFd) -> io::Result<bool> {
    poll(fd, libc::POLLOUT, 5 * SLICE_NS / 1_000_000)
}

/// Whether the last reader of the pipe `fd` is gone.
pub(crate) fn reader_is_gone(fd: impl AsFd) -> bool {
    poll(fd, 0, 0).unwrap_or(false)
}

fn poll(fd: impl AsFd, events: libc::c_short, timeout_ms: u64) -> io::Result<bool> {
    let mut one = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events, revents: 0 };
    // SAFETY: `one` is a single pollfd, writable for the call.
    match unsafe { libc::poll(&mut one, 1, timeout_ms as libc::c_int) } {
        -1 => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            e => Err(e),
        },
        ready => Ok(ready > 0),
    }
}

/// Lets a pipe hold more, so that large frames need fewer turns. What is no pipe stays as it is.
pub(crate) fn widen_pipe(fd: impl AsFd) {
    // SAFETY: no pointer is passed; the descriptor is open.
    unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, 1 << 20) };
}

/// Asks the kernel to kill this process when the thread that started it ends; ends the process
/// if process `parent` is gone already.
pub(crate) fn die_with_parent(parent: u32) {
    // SAFETY: no pointers are passed.
    let parent_now = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid()
    };
    if parent_now as u32 != parent {
        process::exit(1);
    }
}

/// Single keys of the terminal at standard input, which shows them no more until this is dropped.
pub(crate) struct Keys {
    before: libc::termios,
}

impl Keys {
    /// `None` if standard input is no terminal, or not ours at present.
    pub(crate) fn of_terminal() -> Option<Self> {
        // SAFETY: all zeroes is a valid termios; no other pointer is passed, and the call that
        // fills it in is asked whether it did.
        let before = unsafe {
            let mut before: libc::termios = std::mem::zeroed();
            let ours = libc::tcgetpgrp(0) == libc::getpgrp();
            (ours && libc::tcgetattr(0, &mut before) == 0).then_some(before)
        }?;
        let mut raw = before;
        raw.c_lflag &= !(libc::ICANON | libc::ECHO);
        // SAFETY: `raw` is a copy of what the terminal had.
        (unsafe { libc::tcsetattr(0, libc::TCSANOW, &raw) } == 0).then_some(Self { before })
    }

    /// The next key within `timeout_ns`, whole ms; of an arrow its last letter.
    pub(crate) fn next(&mut self, timeout_ns: u64) -> Option<u8> {
        let mut timeout_ms = timeout_ns / 1_000_000;
        let mut key = None;
        while poll(io::stdin(), libc::POLLIN, timeout_ms).ok()? {
            let mut byte = 0u8;
            // SAFETY: one writable byte.
            let read = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
            if read != 1 {
                // The terminal is gone: it would be ready for ever.
                std::thread::sleep(std::time::Duration::from_millis(timeout_ms));
                return None;
            }
            key = Some(byte);
            match byte {
                // What follows belongs to it.
                0x1b | b'[' => timeout_ms = 0,
                _ => break,
            }
        }
        key
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: `before` is what the terminal had.
        unsafe { libc::tcsetattr(0, libc::TCSANOW, &self.before) };
    }
}

/// Free bytes of the file system at `path`.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: all zeroes is a valid statvfs; the call fills it in.
    let mut info: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends in NUL, `info` is writable.
    let done = unsafe { libc::statvfs(path.as_ptr(), &mut info) };
    (done == 0).then(|| info.f_bavail.saturating_mul(info.f_frsize))
}

/// Takes the file lock of an open directory without waiting; false when another process has it.
pub(crate) fn try_lock(dir: &std::fs::File) -> bool {
    // SAFETY: the descriptor is open; no pointers are passed.
    unsafe { libc::flock(dir.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// A local time, in whole seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalTime {
    year: i32,
    month: i32,
    day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
}

impl LocalTime {
    /// `2026-01-31`.
    pub(crate) fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The local time of an instant, seconds since 1970.
pub(crate) fn local_time(seconds: i64) -> LocalTime {
    let seconds = seconds as libc::time_t;
    // SAFETY: all zeroes is a valid tm.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values of their types; `tm` is writable.
    unsafe { libc::localtime_r(&seconds, &mut tm) };
    LocalTime {
        year: tm.tm_year + 1900,
        month: tm.tm_mon + 1,
        day: tm.tm_mday,
        hour: tm.tm_hour,
        minute: tm.tm_min,
        second: tm.tm_sec,
    }
}

/// Columns of the terminal at standard error.
pub(crate) fn columns() -> Option<usize> {
    // SAFETY: all zeroes is a valid winsize; the call fills it in.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(2, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    }?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
