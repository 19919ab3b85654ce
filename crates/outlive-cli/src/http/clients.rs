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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Both ends of so many connections.
    fn connections(count: usize) -> Vec<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let one = |_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        (0..count).map(one).collect()
    }

    /// Whether the server has shut its end.
    fn is_shut(client: &TcpStream) -> bool {
        client.set_nonblocking(true).unwrap();
        let shut = matches!((&*client).read(&mut [0]), Ok(0));
        client.set_nonblocking(false).unwrap();
        shut
    }

    #[test]
    fn of_one_address_the_oldest_unfinished_one_goes_and_of_others_none() {
        let clients = Clients::default();
        let all = connections(ADDRESS_MAX + 4);
        let (trickles, neighbour) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let (early, own) = (&all[0], &all[1]);
        let admit = |of: &(TcpStream, TcpStream), from| clients.admit(&of.1, from).unwrap();
        let neighbour_number = admit(early, neighbour);
        let first = admit(own, trickles);
        // One whose request has come is not the oldest unfinished one.
        assert!(clients.came(first));
        let numbers: Vec<u64> = all[2..].iter().map(|one| admit(one, trickles)).collect();
        let gone = |n: usize| is_shut(&all[2 + n].0);
        assert!(gone(0) && gone(1) && !gone(2) && !gone(ADDRESS_MAX + 1));
        assert!(!is_shut(&early.0) && !is_shut(&own.0));
        assert!(!clients.came(numbers[0]) && clients.came(numbers[2]));
        assert!(clients.came(neighbour_number));
        clients.left(numbers[0], false);
        clients.left(numbers[2], true);
    }

    #[test]
    fn of_many_addresses_the_oldest_unfinished_one_goes_and_threads_are_bounded() {
        let clients = Clients::default();
        let all = connections(THREADS_MAX + 1);
        for (n, one) in all[..THREADS_MAX].iter().enumerate() {
            assert!(clients.admit(&one.1, [10, 0, 1, n as u8].into()).is_some());
        }
        let shut = all.iter().filter(|one| is_shut(&one.0)).count();
        assert_eq!(shut, THREADS_MAX - CLIENTS_MAX);
        assert!(is_shut(&all[0].0) && !is_shut(&all[THREADS_MAX - 1].0));
        // Those that were told to end have not ended yet.
        assert!(clients.admit(&all[THREADS_MAX].1, [10, 0, 0, 9].into()).is_none());
        clients.left(0, false);
        assert!(clients.admit(&all[THREADS_MAX].1, [10, 0, 0, 9].into()).is_some());
    }
}
