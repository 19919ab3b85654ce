//! Who comes in. A handshake has one deadline, whatever comes in which pieces, and only few are
//! unfinished: the oldest of them goes when another begins. So who asks for nothing keeps nobody
//! out, and costs a thread and a descriptor for ten seconds at most.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::client::Client;

/// Clients at a time.
pub(super) const CLIENTS_MAX: usize = 64;
/// Of those who have not said yet what they want.
const UNFINISHED_MAX: usize = 32;
/// Threads, with those that were told to end just now.
const THREADS_MAX: usize = CLIENTS_MAX + 2 * UNFINISHED_MAX;
/// For the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Places for connections.
#[derive(Debug, Default)]
pub(super) struct Entrance(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    threads: usize,
    clients: usize,
    /// The oldest in front.
    unfinished: VecDeque<(u64, Arc<TcpStream>)>,
}

/// That of one connection, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    entrance: Arc<Entrance>,
    number: u64,
    is_client: bool,
}

impl Entrance {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for who has only connected; `None` if there are too many.
    pub(super) fn begin(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Place> {
        let mut inner = self.inner();
        if inner.threads >= THREADS_MAX {
            return None;
        }
        if inner.unfinished.len() >= UNFINISHED_MAX
            && let Some((_, oldest)) = inner.unfinished.pop_front()
        {
            // Its thread reads the end.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        inner.threads += 1;
        inner.next += 1;
        let number = inner.next;
        inner.unfinished.push_back((number, stream.clone()));
        Some(Place { entrance: self.clone(), number, is_client: false })
    }
}

impl Place {
    /// The handshake is done; false if there are too many clients.
    pub(super) fn finish(&mut self) -> bool {
        let mut inner = self.entrance.inner();
        if inner.clients >= CLIENTS_MAX {
            return false;
        }
        inner.unfinished.retain(|(number, _)| *number != self.number);
        inner.clients += usize::from(!self.is_client);
        self.is_client = true;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.entrance.inner();
        inner.threads -= 1;
        inner.clients -= usize::from(self.is_client);
        inner.unfinished.retain(|(number, _)| *number != self.number);
    }
}

/// What the library reads from and writes to. After the handshake it writes whole frames, which
/// wait with all others.
#[derive(Debug)]
pub(super) struct Line {
    stream: Arc<TcpStream>,
    /// Of the handshake.
    until: Option<Instant>,
    to: Option<Arc<Client>>,
}

impl Line {
    pub(super) fn new(stream: Arc<TcpStream>) -> Self {
        Self { stream, until: Some(Instant::now() + HANDSHAKE), to: None }
    }

    /// From here on as long as it takes.
    pub(super) fn lead_to(&mut self, client: Arc<Client>) -> io::Result<()> {
        (self.until, self.to) = (None, Some(client));
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Line {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.stream.set_read_timeout(Some(left))?;
        }
        (&*self.stream).read(to)
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(client) = &self.to {
            client.control(bytes.to_vec());
            return Ok(bytes.len());
        }
        self.stream.set_write_timeout(self.left()?)?;
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
