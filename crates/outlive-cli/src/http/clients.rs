//! Who is connected. Clients that send their request byte by byte keep nobody else out: of one
//! address, and of all, only so many may be unfinished, and the oldest of them goes.

use std::collections::VecDeque;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections at once; more are turned away unless one of them is unfinished.
const CLIENTS_MAX: usize = 64;
/// Of these, unfinished ones of one address.
const ADDRESS_MAX: usize = 24;
/// Threads, with those that were told to end just now.
const THREADS_MAX: usize = 2 * CLIENTS_MAX;

/// One whose request has not all come.
struct Unfinished {
    number: u64,
    from: IpAddr,
    stream: TcpStream,
}

#[derive(Default)]
struct Inner {
    next: u64,
    threads: usize,
    /// Those whose requests have come.
    answered: usize,
    /// The oldest in front.
    unfinished: VecDeque<Unfinished>,
}

/// The clients of a server.
#[derive(Default)]
pub(super) struct Clients(Mutex<Inner>);

impl Clients {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a client, and its number; `None` if there are too many.
    pub(super) fn admit(&self, client: &TcpStream, from: IpAddr) -> Option<u64> {
        let stream = client.try_clone().ok()?;
        let mut inner = self.inner();
        if inner.threads >= THREADS_MAX {
            return None;
        }
        let of_address = inner.unfinished.iter().filter(|c| c.from == from).count();
        let oldest = match of_address >= ADDRESS_MAX {
            true => inner.unfinished.iter().position(|c| c.from == from),
            false if inner.unfinished.len() + inner.answered >= CLIENTS_MAX => Some(0),
            false => None,
        };
        if let Some(at) = oldest {
            // Its thread reads the end.
            let _ = inner.unfinished.remove(at)?.stream.shutdown(Shutdown::Both);
        }
        let number = inner.next;
        inner.next += 1;
        inner.threads += 1;
        inner.unfinished.push_back(Unfinished { number, from, stream });
        Some(number)
    }

    /// Its request has come; false if it had to go.
    pub(super) fn came(&self, number: u64) -> bool {
        let mut inner = self.inner();
        let at = inner.unfinished.iter().position(|c| c.number == number);
        let there = at.and_then(|at| inner.unfinished.remove(at)).is_some();
        inner.answered += usize::from(there);
        there
    }

    /// Its thread ends; `came` as that said.
    pub(super) fn left(&self, number: u64, came: bool) {
        let mut inner = self.inner();
        inner.threads -= 1;
        if came {
            inner.answered -= 1;
        } else {
            inner.unfinished.retain(|c| c.number != number);
        }
    }
}
