//! Services: round trips beside a topic's one way and beside Unix sockets of the same run.

use std::hint::black_box;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use measure::cores::{Cores, Pinned};
use measure::stats::{Samples, Target, interleave};
use outlive::{Client, Error, ErrorKind, Node, Result, Server};

use super::pair::{Peer, SharedMap};
use super::report::{Row, Unit};
use super::scratch::TempRoot;
use super::ticks;
use super::topic::{self, same};

/// Requests and responses.
type Words = [u64; 8];

/// All rows.
pub(super) fn rows(cores: Cores, rounds: usize, count: u64) -> Result<Vec<Row>> {
    let c = interleave(
        rounds,
        || topic::inline::<8>(cores, topic::USUAL, count),
        || round_trips(cores, Wait::Spin, count),
    )?;
    let (name, limit) = ("service 64 B, round trip, awake", "topic 64 B, one way");
    let mut rows = vec![Row::compared(name, Unit::Ns, limit, &c, Target::AtMost(3.0))];
    let few = count.min(5000);
    for (name, wait) in [("awake", Wait::Spin), ("asleep", Wait::Sleep)] {
        let (ours, limit) = (format!("service 64 B, {name}"), format!("Unix SEQPACKET, {name}"));
        let c = interleave(rounds, || sockets(cores, wait, few), || round_trips(cores, wait, few))?;
        rows.push(Row::compared(&ours, Unit::Ns, &limit, &c, Target::None));
        rows.push(Row::measured(&limit, Unit::Ns, &sockets(cores, wait, few)?));
    }
    Ok(rows)
}

/// How both sides wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Spin,
    Sleep,
}

/// From the request to the answer, ns.
fn timed(count: u64, mut trip: impl FnMut(u64) -> Result<()>) -> Result<Samples> {
    let mut all = Vec::with_capacity(count as usize);
    for i in 1..=count {
        let start = ticks::now();
        trip(i)?;
        all.push(ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick());
    }
    Ok(Samples::after_warm_up(all))
}

fn serve(server: &mut Server<Words, Words>, wait: Wait) -> Result<()> {
    loop {
        let request = match wait {
            Wait::Spin => server.receive()?,
            Wait::Sleep => server.receive_timeout(Duration::from_secs(1))?,
        };
        if let Some(request) = request {
            let answer = *request;
            server.respond(request, &answer)?;
        }
    }
}

fn ask(client: &mut Client<Words, Words>, wait: Wait, i: u64) -> Result<()> {
    if wait == Wait::Sleep {
        return same(client.call(&[i; 8])?[7] == i);
    }
    client.send(black_box(&[i; 8]))?;
    loop {
        if let Some(reply) = client.receive()? {
            return same(reply.body()?[7] == i);
        }
    }
}

fn round_trips(cores: Cores, wait: Wait, count: u64) -> Result<Samples> {
    ticks::ns_per_tick(); // measured before the fork
    let (root, map) = (TempRoot::new(), SharedMap::new(4096)?);
    let [ready] = map.words(0);
    let open = |name: &str| {
        Node::builder().root(&root.0).name(name).open()?.service::<Words, Words>("/echo")
    };
    let peer = Peer::spawn(cores.peers, || {
        let run = || {
            let mut server = open("server")?.server()?;
            ready.store(1, Release);
            serve(&mut server, wait)
        };
        if let Err(error) = run() {
            eprintln!("outlive-bench: {error}");
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    let mut client = open("client")?.client()?;
    timed(count, |i| ask(&mut client, wait, i))
}

/// The same over a pair of Unix sockets.
fn sockets(cores: Cores, wait: Wait, count: u64) -> Result<Samples> {
    ticks::ns_per_tick(); // measured before the fork
    let mut fds = [0; 2];
    let kind = match wait {
        Wait::Spin => libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK,
        Wait::Sleep => libc::SOCK_SEQPACKET,
    };
    // SAFETY: room for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(failed());
    }
    let [ours, theirs] = fds;
    let peer = Peer::spawn(cores.peers, || {
        let mut words = [0; 8];
        while receive(theirs, &mut words).is_ok() && send(theirs, &words).is_ok() {}
    })?;
    let pinned = Pinned::to(cores.ours)?;
    let samples = timed(count, |i| {
        let mut words = [0; 8];
        send(ours, &[i; 8])?;
        receive(ours, &mut words)?;
        same(words[7] == i)
    });
    drop((pinned, peer));
    // SAFETY: our own descriptors, closed once.
    unsafe {
        libc::close(ours);
        libc::close(theirs);
    }
    samples
}

fn failed() -> Error {
    let source = io::Error::last_os_error();
    Error::new(ErrorKind::Io, "measure", "Unix sockets", "").with_source(source)
}

fn send(fd: i32, words: &Words) -> Result<()> {
    // SAFETY: 64 readable bytes.
    let sent = unsafe { libc::send(fd, words.as_ptr().cast(), 64, libc::MSG_NOSIGNAL) };
    if sent == 64 { Ok(()) } else { Err(failed()) }
}

fn receive(fd: i32, words: &mut Words) -> Result<()> {
    loop {
        // SAFETY: 64 writable bytes.
        let got = unsafe { libc::recv(fd, words.as_mut_ptr().cast(), 64, 0) };
        if got == 64 {
            return Ok(());
        }
        if got == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
            return Err(failed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_can_be_measured() -> Result<()> {
        let Ok(cores) = Cores::first_two() else {
            return Ok(());
        };
        for wait in [Wait::Spin, Wait::Sleep] {
            assert!(round_trips(cores, wait, 50)?.median() > 0.0);
            assert!(sockets(cores, wait, 50)?.median() > 0.0);
        }
        Ok(())
    }
}
