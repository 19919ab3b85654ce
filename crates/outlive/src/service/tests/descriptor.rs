//! Clients and servers behind a descriptor.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::*;
use crate::os::sleep::poll::{Epoll, PollFd, READABLE, poll};

fn waits(fd: BorrowedFd<'_>, deadline: Deadline) -> bool {
    poll(&mut [PollFd::new(fd.as_raw_fd(), READABLE)], deadline) == 1
}

/// With nothing to receive. Twice: in between, a tick or the death of anybody whom this process
/// watches may have made it readable.
fn client_goes_quiet(client: &mut Client<u64, [u32]>) -> bool {
    (0..2).any(|_| {
        client.receive().unwrap().is_none() && !waits(client.fd().unwrap(), Deadline::AT_ONCE)
    })
}

fn server_goes_quiet(server: &mut Server<u64, [u32]>) -> bool {
    (0..2).any(|_| {
        server.receive().unwrap().is_none() && !waits(server.fd().unwrap(), Deadline::AT_ONCE)
    })
}

fn in_20_s() -> Deadline {
    Deadline::after(LONG)
}

#[test]
fn a_descriptor_is_readable_unless_the_last_receive_found_nothing() {
    let dir = TempDir::new("service-fd");
    let (n, other) = (node(&dir), node(&dir));
    let mut server = n.service::<u64, [u32]>("/s").unwrap().server().unwrap();
    let mut client = other.service::<u64, [u32]>("/s").unwrap().client().unwrap();
    assert!(
        waits(server.fd().unwrap(), Deadline::AT_ONCE)
            && waits(client.fd().unwrap(), Deadline::AT_ONCE),
        "nobody has looked"
    );
    for i in 0..3 {
        assert!(server_goes_quiet(&mut server) && client_goes_quiet(&mut client));
        let ticket = client.send(&i).unwrap();
        assert!(waits(server.fd().unwrap(), Deadline::AT_ONCE), "a request");
        let request = server.receive().unwrap().unwrap();
        assert!(client_goes_quiet(&mut client));
        server.respond_part(&request, &[1]).unwrap();
        assert!(waits(client.fd().unwrap(), Deadline::AT_ONCE), "a part");
        assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[1]);
        // Not found for this request: as good as nothing.
        let nothing = |client: &mut Client<u64, [u32]>| {
            let error = client.receive_for(ticket, Deadline::AT_ONCE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            !waits(client.fd().unwrap(), Deadline::AT_ONCE)
        };
        assert!(nothing(&mut client) || nothing(&mut client), "quiet");
        server.respond(request, &[2]).unwrap();
        assert!(waits(client.fd().unwrap(), Deadline::AT_ONCE), "an answer");
        assert_eq!(client.receive_for(ticket, Deadline::AT_ONCE).unwrap().body().unwrap(), &[2]);
    }
    // Other ways of waiting in between do not lose a call.
    assert!(server_goes_quiet(&mut server) && client_goes_quiet(&mut client));
    assert!(server.receive_timeout(Duration::from_millis(1)).unwrap().is_none());
    assert!(client.receive_timeout(Duration::from_millis(1)).unwrap().is_none());
    let members: &mut [&mut dyn Waitable] = &mut [&mut client, &mut server];
    let _ = crate::WaitSet::new().wait(members, Duration::from_millis(1)).unwrap();
    client.send(&9).unwrap();
    assert!(waits(server.fd().unwrap(), Deadline::AT_ONCE));
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[9]).unwrap();
    assert!(waits(client.fd().unwrap(), Deadline::AT_ONCE));
    assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[9]);
}

#[test]
fn the_end_of_a_server_and_a_deadline_make_the_descriptor_readable() {
    let dir = TempDir::new("service-fd-end");
    let (n, other) = (node(&dir), node(&dir));
    let server = n.service::<u64, [u32]>("/s").unwrap().server().unwrap();
    let mut client = other.service::<u64, [u32]>("/s").unwrap().client().unwrap();
    assert!(client.fd().is_ok());
    let next = |client: &mut Client<u64, [u32]>| {
        let until = in_20_s();
        loop {
            if let Some(reply) = client.receive().unwrap() {
                return reply.body().unwrap_err().kind();
            }
            assert!(waits(client.fd().unwrap(), until), "nothing came");
        }
    };
    client.send_until(&1, Deadline::in_ns(5_000_000)).unwrap();
    assert_eq!(next(&mut client), ErrorKind::Timeout);
    client.send(&2).unwrap();
    assert!(client.receive().unwrap().is_none());
    drop((server, n));
    assert_eq!(next(&mut client), ErrorKind::ServerDied);
}

#[test]
fn a_server_that_comes_or_leaves_makes_the_descriptors_of_all_clients_readable() {
    let dir = TempDir::new("service-fd-next");
    let (n, other) = (node(&dir), node(&dir));
    let service = || n.service::<u64, [u32]>("/s").unwrap();
    let of_client = || other.service::<u64, [u32]>("/s").unwrap();
    let server = service().server().unwrap();
    let mut resumes = of_client().resume(true).client().unwrap();
    let mut client = of_client().client().unwrap();
    assert!(resumes.fd().is_ok() && client.fd().is_ok());
    let ticket = resumes.send(&1).unwrap();
    client.send(&2).unwrap();
    assert!(client_goes_quiet(&mut resumes) && client_goes_quiet(&mut client));
    // It has looked at neither, so it has no way back to them.
    drop(server);
    assert!(waits(client.fd().unwrap(), Deadline::AT_ONCE), "it left");
    let told = client.receive().unwrap().unwrap();
    assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
    assert!(client_goes_quiet(&mut resumes), "a waiter for the next one is not woken");
    let mut next = service().server().unwrap();
    assert!(waits(resumes.fd().unwrap(), Deadline::AT_ONCE), "the next one");
    assert!(resumes.receive().unwrap().is_none());
    let request = next.receive().unwrap().unwrap();
    next.respond(request, &[7]).unwrap();
    assert_eq!(resumes.receive_for(ticket, in_20_s()).unwrap().body().unwrap(), &[7]);
}

#[test]
fn a_server_that_could_not_call_its_clients_calls_them_when_it_next_looks() {
    let dir = TempDir::new("service-fd-again");
    let (n, other) = (node(&dir), node(&dir));
    let service = || n.service::<u64, [u32]>("/s").unwrap();
    let server = service().server().unwrap();
    let mut client = other.service::<u64, [u32]>("/s").unwrap().resume(true).client().unwrap();
    assert!(client.fd().is_ok());
    client.send(&1).unwrap();
    drop(server);
    assert!(client_goes_quiet(&mut client));
    crate::os::fixture::refuse("open", "/reply.", libc::EMFILE, u32::MAX);
    let mut next = service().server().unwrap();
    assert!(crate::os::fixture::refuse_none() < u32::MAX, "it was to be called");
    assert!(next.receive().unwrap().is_none());
    assert!(waits(client.fd().unwrap(), Deadline::AT_ONCE), "called late");
}

#[test]
fn who_waits_for_edges_of_a_client_gets_one_after_an_error_of_waiting_for_one_reply() {
    let dir = TempDir::new("service-fd-edges");
    let (first, second, other) = (node(&dir), node(&dir), node(&dir));
    let service = |n: &Node| n.service::<u64, [u32]>("/s").unwrap();
    let server = service(&first).server().unwrap();
    let mut client = service(&other).resume(true).client().unwrap();
    let edges = Epoll::new().unwrap();
    edges.add(client.fd().unwrap(), 1).unwrap();
    let has_edge = || {
        let mut any = false;
        edges.take(|_| any = true);
        any
    };
    let ticket = client.send(&1).unwrap();
    drop(server);
    assert!(client_goes_quiet(&mut client));
    has_edge();
    let _next = service(&second).server().unwrap();
    assert!(has_edge(), "the next one");
    crate::os::fixture::refuse("map", "/nodes/", libc::ENOMEM, u32::MAX);
    let e = client.receive_for(ticket, Deadline::AT_ONCE).unwrap_err();
    assert!(crate::os::fixture::refuse_none() < u32::MAX);
    assert_eq!(e.kind(), ErrorKind::OutOfMemory);
    assert!(has_edge(), "nothing brings it back");
}
