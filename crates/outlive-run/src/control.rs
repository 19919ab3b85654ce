//! Requests to a running supervisor: a line of JSON over a Unix socket, a line back. It works
//! when the shared memory of the robot does not.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use crate::state::{RunDir, State};

/// Longest request, bytes.
const REQUEST_MAX: usize = 4096;
/// Who says nothing for so long is not listened to any more.
const PATIENCE: Duration = Duration::from_secs(5);
const CLIENTS_MAX: usize = 32;

/// What may be asked of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// How are they doing?
    Ps,
    /// End this one if it runs, and start it.
    Restart(String),
    /// End this one and leave it; without a name the whole robot.
    Stop(Option<String>),
    /// Read the file again.
    Reload,
}

/// The answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is done or begun; the state at that moment.
    Done(State),
    /// It is not, for this reason.
    Refused(String),
}

/// Asks the supervisor of `dir`.
///
/// # Errors
/// `NotFound` and `ConnectionRefused` when there is none; `TimedOut` when it does not answer, and
/// it may still do what was asked; else what went wrong on the way.
pub fn ask(dir: &RunDir, request: &Request, timeout: Duration) -> io::Result<Answer> {
    let line = say(dir.path(), &serde_json::to_string(request)?, timeout).map_err(|e| {
        // So the kernel says that the time is over.
        if e.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { e }
    })?;
    Ok(serde_json::from_str(&line)?)
}

/// A line to the supervisor; the line that comes back.
fn say(path: &Path, line: &str, timeout: Duration) -> io::Result<String> {
    let mut stream = connect(path, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

/// By way of a descriptor: the path itself may be longer than an address can hold.
fn address(dir: &fs::File) -> String {
    format!("/proc/self/fd/{}/control", dir.as_raw_fd())
}

/// Nothing that is done with it takes longer than `timeout`, nor does this: whoever accepts nobody
/// lets only so many wait.
fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let dir = fs::File::open(path)?;
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let stream = UnixStream::from(socket_with(family, SocketType::STREAM, flags, None)?);
    stream.set_write_timeout(Some(timeout))?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(address(&dir))?)?;
    Ok(stream)
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    said: Vec<u8>,
    since: Instant,
}

/// The supervisor's end; never blocks.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    /// Without a free descriptor, perhaps.
    cannot_accept: bool,
    clients: Vec<Client>,
}

impl Server {
    /// The caller holds the lock: a socket that is there is a dead supervisor's.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let dir = fs::File::open(path)?;
        let _ = fs::remove_file(path.join("control"));
        let listener = UnixListener::bind(address(&dir))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, cannot_accept: false, clients: Vec::new() })
    }

    /// What to wait for. One that could not be accepted is there at once again: it waits a turn.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|c| c.stream.as_fd());
        (!self.cannot_accept).then(|| self.listener.as_fd()).into_iter().chain(clients)
    }

    /// Takes what has come; the answers of `act` are sent.
    pub(crate) fn serve(&mut self, mut act: impl FnMut(Request) -> Answer) {
        self.cannot_accept = loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.clients.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
                        let since = Instant::now();
                        self.clients.push(Client { stream, said: Vec::new(), since });
                    }
                }
                Err(e) => break e.kind() != io::ErrorKind::WouldBlock,
            }
        };
        self.clients.retain_mut(|client| match client.read() {
            None => client.since.elapsed() < PATIENCE,
            Some(line) => {
                let answer = match line.map(|line| serde_json::from_slice(&line)) {
                    Some(Ok(request)) => act(request),
                    Some(Err(e)) => Answer::Refused(format!("not a valid request: {e}")),
                    None => return false,
                };
                let mut text = serde_json::to_vec(&answer).unwrap_or_default();
                text.push(b'\n');
                // Who does not read what it asked for does without.
                let _ = client.stream.write_all(&text);
                false
            }
        });
    }
}

impl Client {
    /// `None`: not all there yet; `Some(None)`: gone.
    fn read(&mut self) -> Option<Option<Vec<u8>>> {
        let mut bytes = [0; REQUEST_MAX];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Some(None),
                Ok(n) => self.said.extend(&bytes[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => return Some(None),
            }
            if let Some(end) = self.said.iter().position(|b| *b == b'\n') {
                return Some(Some(self.said[..end].to_vec()));
            }
            if self.said.len() > REQUEST_MAX {
                return Some(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The supervisor turned without a pause while nobody could be accepted.
    #[test]
    fn who_cannot_be_accepted_is_not_waited_for_in_that_turn() {
        let dir = std::env::temp_dir().join(format!("outlive-run-control-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let mut server = Server::open(&dir).unwrap();
        let act = |request| panic!("nobody asked for {request:?}");
        server.serve(act);
        assert_eq!(server.fds().count(), 1, "nobody is there");
        // One that does not listen accepts nobody, whoever comes.
        server.listener = std::os::fd::OwnedFd::from(UnixStream::pair().unwrap().0).into();
        server.serve(act);
        assert_eq!(server.fds().count(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }

    /// Who came when so many waited to be accepted waited for ever.
    #[test]
    fn a_supervisor_that_accepts_nobody_is_given_up() {
        let path = std::env::temp_dir().join(format!("outlive-run-silent-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let server = Server::open(&path).unwrap();
        rustix::net::listen(&server.listener, 1).unwrap();
        let connect = || connect(&path, Duration::from_millis(1));
        let waiting: Vec<_> = (0..2).map(|_| connect().unwrap()).collect();
        assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(waiting);
        fs::remove_dir_all(&path).unwrap();
    }
}
