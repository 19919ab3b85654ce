//! The peer process: holds the world across the kill and answers the driver.

use super::tracee::Ticker;
use super::{Point, Scenario};
use crate::process::{Child, fork_child};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

const MESSAGE_BYTES: usize = 8192;

/// What the driver asks of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    AtGate,
    Stopped(&'a Point),
    Dead(&'a Point),
    End,
}

/// Why a point failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Failed(String),
    Hung(String),
}

impl Trouble {
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }
}

/// The driver's handle of a peer process.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    socket: OwnedFd,
    hang_ticks: u32,
}

impl Peer {
    /// Forks the peer and waits for its setup.
    pub(crate) fn start<S: Scenario>(
        scenario: &S,
        dir: &Path,
        hang_ticks: u32,
    ) -> Result<Self, Trouble> {
        let (socket, theirs) = socket_pair().map_err(|e| Trouble::io("socketpair", &e))?;
        let child = fork_child(|| serve(scenario, dir, &theirs));
        let child = child.map_err(|e| Trouble::io("fork of the peer", &e))?;
        drop(theirs);
        let mut peer = Self { child, socket, hang_ticks };
        peer.answer("setup")?;
        Ok(peer)
    }

    /// Lets the peer do one thing; returns what it answered.
    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Result<String, Trouble> {
        let (text, what) = match ask {
            Ask::AtGate => ("gate ".to_owned(), "at_gate"),
            Ask::Stopped(point) => (format!("stop {}", point.encode()), "while_stopped"),
            Ask::Dead(point) => (format!("dead {}", point.encode()), "survivor"),
            Ask::End => ("end ".to_owned(), "teardown"),
        };
        // A failure means that the peer is gone, which `answer` explains.
        let _ = send(&self.socket, &text);
        self.answer(what)
    }

    fn answer(&mut self, what: &str) -> Result<String, Trouble> {
        let start = Ticker::now();
        loop {
            match receive(&self.socket) {
                Ok(Some(text)) => {
                    return match text.split_once(' ') {
                        Some(("ok", rest)) => Ok(rest.to_owned()),
                        _ => Err(Trouble::Failed(text.trim_start_matches("err ").to_owned())),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if Ticker::now().wrapping_sub(start) > self.hang_ticks {
                        let state = sleeping_in(self.child.pid());
                        self.child.kill();
                        return Err(Trouble::Hung(format!("{what} hangs; {state}")));
                    }
                }
                Ok(None) | Err(_) => {
                    let exit = self.child.wait();
                    return Err(Trouble::Failed(format!("the peer died in {what}: {exit}")));
                }
            }
        }
    }
}

/// The system call a process sleeps in, for the report of a hang.
pub(crate) fn sleeping_in(pid: i32) -> String {
    let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (call, channel) = (read("syscall"), read("wchan"));
    let number = call.split_whitespace().next().unwrap_or("?");
    match channel.trim() {
        "" | "0" => format!("system call: {number}"),
        channel => format!("system call: {number}, in {channel}"),
    }
}

/// The peer's life. Every answer is "ok ..." or "err ...".
fn serve<S: Scenario>(scenario: &S, dir: &Path, socket: &OwnedFd) -> i32 {
    catch_panics();
    let mut world = None;
    let made = guarded(|| {
        world = Some(scenario.setup(dir).map_err(|e| format!("setup: {e}"))?);
        Ok("")
    });
    if !reply(socket, made) {
        return 1;
    }
    while let Ok(Some(text)) = receive_patiently(socket) {
        let (order, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let point = Point::decode(rest);
        let done = guarded(|| match (order, world.as_mut(), point) {
            ("gate", Some(world), _) => scenario.at_gate(dir, world).map(|()| ""),
            ("stop", Some(world), Some(at)) => scenario.while_stopped(dir, world, &at).map(|()| ""),
            ("dead", Some(world), Some(at)) => scenario.survivor(dir, world, &at),
            ("end", Some(_), _) => {
                let world = world.take().expect("matched above");
                scenario.teardown(dir, world).map(|()| "").map_err(|e| format!("teardown: {e}"))
            }
            _ => Err(format!("no world, or a bad order: {order}")),
        });
        reply(socket, done);
        if order == "end" {
            return 0;
        }
    }
    2
}

static PANIC: Mutex<String> = Mutex::new(String::new());

/// Keeps the text of a panic for the answer instead of printing it.
fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(|e| e.into_inner()) = info.to_string();
    }));
}

fn guarded(body: impl FnOnce() -> Result<&'static str, String>) -> Result<&'static str, String> {
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(PANIC.lock().unwrap_or_else(|e| e.into_inner()).clone()))
}

fn reply(socket: &OwnedFd, done: Result<&'static str, String>) -> bool {
    let ok = done.is_ok();
    let text = done.map_or_else(|e| format!("err {e}"), |label| format!("ok {label}"));
    send(socket, &text).is_ok() && ok
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made both descriptors and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

fn send(socket: &OwnedFd, text: &str) -> io::Result<()> {
    let len = text.len().min(MESSAGE_BYTES);
    let data = text.as_ptr().cast();
    // SAFETY: `len` bytes of `text` are readable.
    let sent = unsafe { libc::send(socket.as_raw_fd(), data, len, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// One message; `None` when the other side is closed.
fn receive(socket: &OwnedFd) -> io::Result<Option<String>> {
    let mut buffer = [0_u8; MESSAGE_BYTES];
    let data = buffer.as_mut_ptr().cast();
    // SAFETY: the buffer has MESSAGE_BYTES writable bytes.
    let got = unsafe { libc::recv(socket.as_raw_fd(), data, MESSAGE_BYTES, 0) };
    match usize::try_from(got) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(0) => Ok(None),
        Ok(len) => Ok(Some(String::from_utf8_lossy(&buffer[..len]).into_owned())),
    }
}

/// Like `receive`; signals that the scenario plays with do not end the peer.
fn receive_patiently(socket: &OwnedFd) -> io::Result<Option<String>> {
    loop {
        match receive(socket) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
