//! Lanes that cannot be read on for a while: what is in them is not forgotten, nor overtaken by the
//! news that its sender is over.

use std::thread::ScopedJoinHandle;

use super::*;
use crate::WaitSet;
use crate::os::fixture;

/// Whether it ends by itself: a watchdog against hangs, not a bound on time.
fn ends<T>(handle: &ScopedJoinHandle<'_, T>) -> bool {
    let until = Deadline::after(LONG);
    while !handle.is_finished() && !until.has_passed() {
        std::thread::sleep(Duration::from_millis(1));
    }
    handle.is_finished()
}

/// Tries until the next try is not for a while: each makes the pause before the next one longer.
fn wear_out(mut attempt: impl FnMut()) {
    let until = Deadline::in_ns(600_000_000);
    while !until.has_passed() {
        attempt();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A client that cannot open the segment with its server's answer, of 20 000 bytes. `attached`: it
/// had received a small one before.
fn cannot_read_its_answer(
    server: &mut Server<u64, [u8]>,
    client: &mut Client<u64, [u8]>,
    attached: bool,
) -> Ticket {
    if attached {
        client.send(&0).unwrap();
        let request = server.receive().unwrap().unwrap();
        server.respond(request, &[1]).unwrap();
        assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[1]);
    }
    let ticket = client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[7; 20_000]).unwrap();
    fixture::refuse("open", "/lane.", libc::EMFILE, u32::MAX);
    let mut told = 0;
    wear_out(|| match client.receive() {
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Io, "{e}");
            told += 1;
        }
        Ok(reply) => assert!(reply.is_none(), "{reply:?}"),
    });
    fixture::refuse_none();
    assert!(told > 0);
    ticket
}

fn in_two_nodes(dir: &TempDir) -> (Server<u64, [u8]>, Client<u64, [u8]>) {
    let service = || node(dir).service::<u64, [u8]>("/s").unwrap();
    (service().server().unwrap(), service().client().unwrap())
}

#[test]
fn an_answer_that_cannot_be_read_yet_is_received_though_its_server_is_over() {
    for attached in [false, true] {
        let dir = TempDir::new("service-unread");
        let (mut server, mut client) = in_two_nodes(&dir);
        let ticket = cannot_read_its_answer(&mut server, &mut client, attached);
        let other = client.send(&2).unwrap();
        drop(server);
        let reply = client.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!((reply.ticket(), reply.body().unwrap()), (ticket, &[7; 20_000][..]));
        let told = client.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!(told.ticket(), other);
        assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
    }
}

#[test]
fn an_answer_that_cannot_be_read_yet_is_received_though_another_server_follows() {
    for resumes in [false, true] {
        let dir = TempDir::new("service-unread-next");
        let (mut server, _) = in_two_nodes(&dir);
        let n = node(&dir);
        let service = || n.service::<u64, [u8]>("/s").unwrap();
        let mut client = service().resume(resumes).client().unwrap();
        let ticket = cannot_read_its_answer(&mut server, &mut client, true);
        let other = client.send(&2).unwrap();
        drop(server);
        let mut next = service().server().unwrap();
        let third = client.send(&3).unwrap();
        let reply = client.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!((reply.ticket(), reply.body().unwrap()), (ticket, &[7; 20_000][..]));
        if !resumes {
            let told = client.receive_timeout(LONG).unwrap().unwrap();
            assert_eq!(told.ticket(), other);
            assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
        }
        let mut asked = Vec::new();
        let until = Deadline::after(LONG);
        while client.waiting() > 0 && !until.has_passed() {
            while let Some(request) = next.receive().unwrap() {
                asked.push(*request);
                next.respond(request, &[9]).unwrap();
            }
            while let Some(reply) = client.receive().unwrap() {
                assert!([other, third].contains(&reply.ticket()));
                assert_eq!(reply.body().unwrap(), &[9]);
            }
        }
        asked.sort();
        assert_eq!(asked, if resumes { vec![2, 3] } else { vec![3] });
    }
}

#[test]
fn a_client_that_sleeps_comes_back_to_a_lane_that_it_put_off() {
    for by_set in [false, true] {
        let dir = TempDir::new("service-client-back");
        let (mut server, mut client) = in_two_nodes(&dir);
        let ticket = cannot_read_its_answer(&mut server, &mut client, true);
        let (woken, reply) = std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                if by_set {
                    let mut set = WaitSet::new();
                    let _ = set.wait(&mut [&mut client], 1000 * LONG).unwrap();
                }
                client.receive_timeout(1000 * LONG).unwrap()
            });
            let woken = ends(&waits);
            // That wakes it in any case.
            drop(server);
            (woken, waits.join().unwrap().unwrap())
        });
        assert_eq!((reply.ticket(), reply.body().unwrap()), (ticket, &[7; 20_000][..]));
        assert!(woken, "nothing but the end of its server woke it, by a set: {by_set}");
    }
}

#[test]
fn a_server_in_a_wait_set_comes_back_to_the_requests_that_it_put_off() {
    let dir = TempDir::new("service-server-back");
    let n = node(&dir);
    let builder = || n.service::<u64, [u8]>("/s").unwrap().bound_bytes(1 << 20);
    let mut server = builder().server().unwrap();
    let mut client = builder().client().unwrap();
    let mut other = builder().client().unwrap();
    for i in 0..3000 {
        client.send(&i).unwrap();
    }
    // Until the client has to be told of so many that its other requests wait.
    wear_out(|| {
        while let Some(request) = server.receive().unwrap() {
            let _ = server.respond(request, &[7; 1000]);
        }
    });
    let mut told = 0;
    while client.receive().unwrap().is_some() {
        told += 1;
    }
    assert!((1..1900).contains(&told), "{told}");
    let woken = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let ready = WaitSet::new().wait(&mut [&mut server], 1000 * LONG).unwrap().len();
            assert_eq!(ready, 1);
        });
        let woken = ends(&waits);
        // That wakes it in any case.
        other.send(&1).unwrap();
        waits.join().unwrap();
        woken
    });
    assert!(woken, "nothing but another client woke it");
    assert!(*server.receive().unwrap().unwrap() > 1900, "what it had put off");
}

#[test]
fn a_client_whose_replies_may_not_be_opened_for_a_while_is_answered_later() {
    let dir = TempDir::new("service-denied");
    let (mut server, mut client) = in_two_nodes(&dir);
    let ticket = client.send(&1).unwrap();
    fixture::refuse("open", "/reply.", libc::EACCES, u32::MAX);
    assert!(server.receive().unwrap().is_none());
    assert!(fixture::refuse_none() < u32::MAX, "nothing of it was opened");
    assert_eq!(server.passed_over(), 0, "somebody waits for it");
    let request = server.receive_timeout(LONG).unwrap().expect("it comes back to it");
    server.respond(request, &[7]).unwrap();
    let reply = client.receive_timeout(LONG).unwrap().unwrap();
    assert_eq!((reply.ticket(), reply.body().unwrap()), (ticket, &[7][..]));
}

#[test]
fn a_server_that_cannot_be_looked_at_counts_as_there() {
    let dir = TempDir::new("service-unseen");
    let (n, other) = (node(&dir), node(&dir));
    let server = n.service::<u64, [u32]>("/s").unwrap().server().unwrap();
    let mut client = other.service::<u64, [u32]>("/s").unwrap().client().unwrap();
    fixture::refuse("map", &format!("/nodes/{}", n.id()), libc::ENOMEM, u32::MAX);
    let (has, sent) = (client.has_server(), client.send(&1).map_err(|e| e.kind()));
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!((has, sent.unwrap_err()), (true, ErrorKind::OutOfMemory));
    drop(server);
    assert!(!client.has_server());
}
