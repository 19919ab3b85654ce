//! Who is connected. Clients that send their request byte by byte, or do not read their answer,
//! keep nobody else out: of one address only so many may be connected, and its oldest one goes.

use std::collections::VecDeque;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections at once; more are turned away unless one of them is unfinished.
const CLIENTS_MAX: usize = 64;
/// Of these, of one address.
const ADDRESS_MAX: usize = 24;
/// Threads, with those that were told to end just now.
const THREADS_MAX: usize = 2 * CLIENTS_MAX;

struct Client {
    number: u64,
    from: IpAddr,
    stream: TcpStream,
    /// Whether all of its request has come.
    came: bool,
}

#[derive(Default)]
struct Inner {
    next: u64,
    threads: usize,
    /// The oldest in front.
    clients: VecDeque<Client>,
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
        let of_address = inner.clients.iter().filter(|c| c.from == from).count();
        if of_address >= ADDRESS_MAX {
            inner.end(|c| c.from == from)?;
        } else if inner.clients.len() >= CLIENTS_MAX {
            inner.end(|c| !c.came)?;
        }
        let number = inner.next;
        inner.next += 1;
        inner.threads += 1;
        inner.clients.push_back(Client { number, from, stream, came: false });
        Some(number)
    }

    /// Its request has come; false if it had to go.
    pub(super) fn came(&self, number: u64) -> bool {
        let mut inner = self.inner();
        let client = inner.clients.iter_mut().find(|c| c.number == number);
        client.map(|c| c.came = true).is_some()
    }

    /// Its thread ends.
    pub(super) fn left(&self, number: u64) {
        let mut inner = self.inner();
        inner.threads -= 1;
        inner.clients.retain(|c| c.number != number);
    }
}

impl Inner {
    /// Ends the oldest client that is one of these, if there is one: its thread reads the end, or
    /// cannot write.
    fn end(&mut self, is_one: impl Fn(&Client) -> bool) -> Option<()> {
        let at = self.clients.iter().position(is_one)?;
        let _ = self.clients.remove(at)?.stream.shutdown(Shutdown::Both);
        Some(())
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
    fn of_one_address_the_oldest_one_goes_and_of_others_none() {
        let clients = Clients::default();
        let all = connections(ADDRESS_MAX + 3);
        let (trickles, neighbour) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let early = &all[0];
        let admit = |of: &(TcpStream, TcpStream), from| clients.admit(&of.1, from).unwrap();
        let neighbour_number = admit(early, neighbour);
        let numbers: Vec<u64> = all[1..].iter().map(|one| admit(one, trickles)).collect();
        let gone = |n: usize| is_shut(&all[1 + n].0);
        assert!(gone(0) && gone(1) && !gone(2) && !gone(ADDRESS_MAX + 1));
        assert!(!is_shut(&early.0));
        assert!(!clients.came(numbers[0]) && clients.came(numbers[2]));
        assert!(clients.came(neighbour_number));
        clients.left(numbers[0]);
        clients.left(numbers[2]);
    }

    /// They held all places for as long as an answer may take.
    #[test]
    fn those_of_one_address_that_do_not_read_their_answers_keep_no_other_out() {
        let clients = Clients::default();
        let all = connections(CLIENTS_MAX + 1);
        for one in &all[..CLIENTS_MAX] {
            let number = clients.admit(&one.1, [10, 0, 0, 1].into());
            assert!(number.is_none_or(|number| clients.came(number)));
        }
        assert!(clients.admit(&all[CLIENTS_MAX].1, [10, 0, 0, 2].into()).is_some());
        let shut = all.iter().filter(|one| is_shut(&one.0)).count();
        assert_eq!(shut, CLIENTS_MAX - ADDRESS_MAX);
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
        clients.left(0);
        assert!(clients.admit(&all[THREADS_MAX].1, [10, 0, 0, 9].into()).is_some());
    }
}
