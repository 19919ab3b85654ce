//! What a service promises, within one process.

mod bounds;
mod descriptor;
mod failures;
mod leave;
mod put_off;
mod values;

use std::time::Duration;

use super::*;
use crate::node::Node;
use crate::os::fixture::TempDir;
use crate::os::time::deadline::Deadline;
use crate::{Domain, ErrorKind, NodeBuilder, Waitable};

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

fn node(dir: &TempDir) -> Node {
    settings(dir).open().unwrap()
}

const LONG: Duration = Duration::from_secs(20);

fn open(n: &Node) -> (Server<u64, [u32]>, Client<u64, [u32]>) {
    let service = n.service::<u64, [u32]>("/s").unwrap();
    (service.clone().server().unwrap(), service.client().unwrap())
}

#[test]
fn requests_are_answered_in_any_order_and_in_parts() {
    let dir = TempDir::new("service-order");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let tickets: Vec<_> = (0..10).map(|i| client.send(&i).unwrap()).collect();
    assert_eq!(client.waiting(), 10);
    let mut requests = Vec::new();
    while let Some(request) = server.receive().unwrap() {
        requests.push(request);
    }
    assert_eq!(requests.iter().map(|r| **r).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    for request in requests.into_iter().rev() {
        let (i, large) = (*request as u32, vec![*request as u32; 5000]);
        for part in 0..i % 3 {
            server.respond_part(&request, &[i, part]).unwrap();
        }
        server.respond(request, if i == 5 { &large } else { std::slice::from_ref(&i) }).unwrap();
    }
    for i in (0..10u32).rev() {
        for part in 0..i % 3 {
            let reply = client.receive().unwrap().unwrap();
            assert_eq!((reply.ticket(), reply.is_last()), (tickets[i as usize], false));
            assert_eq!(reply.body().unwrap(), &[i, part]);
        }
        let reply = client.receive().unwrap().unwrap();
        assert_eq!((reply.ticket(), reply.is_last()), (tickets[i as usize], true));
        let expected = if i == 5 { vec![5; 5000] } else { vec![i] };
        assert_eq!(&*reply.into_response().unwrap(), &expected[..]);
    }
    assert!(client.receive().unwrap().is_none());
    assert_eq!(client.waiting(), 0);
}

#[test]
fn a_call_waits_for_the_answer_of_a_server_in_another_thread() {
    let dir = TempDir::new("service-call");
    let n = node(&dir);
    for waitv in [true, false] {
        crate::os::sleep::futex::set_waitv_for_tests(waitv);
        let (mut server, mut client) = open(&n);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..500 {
                    let request = server.receive_timeout(LONG).unwrap().expect("a request");
                    let answer = [*request as u32 + 1];
                    server.respond(request, &answer).unwrap();
                }
            });
            for i in 0..500 {
                assert_eq!(&*client.call_timeout(&i, LONG).unwrap(), &[i as u32 + 1]);
                if i % 100 == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        crate::os::sleep::futex::set_waitv_for_tests(true);
    }
}

#[test]
fn a_request_to_nobody_says_so_and_a_second_server_is_refused() {
    let dir = TempDir::new("service-nobody");
    let n = node(&dir);
    let mut client = n.service::<u64, u64>("/s").unwrap().client().unwrap();
    assert_eq!(client.send(&1).unwrap_err().kind(), ErrorKind::ServerDied);
    assert_eq!(client.call(&1).unwrap_err().kind(), ErrorKind::ServerDied);
    assert!(!client.has_server());
    let server = n.service::<u64, u64>("/s").unwrap().server().unwrap();
    assert!(client.wait_for_server(LONG).unwrap());
    let e = n.service::<u64, u64>("/s").unwrap().server().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConsumerExists);
    drop(server);
    assert_eq!(client.call(&1).unwrap_err().kind(), ErrorKind::ServerDied);
}

#[test]
fn the_end_of_a_server_ends_every_wait_after_what_it_had_answered() {
    let dir = TempDir::new("service-died");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let (a, b) = (client.send(&1).unwrap(), client.send(&2).unwrap());
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[7]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(server);
        });
        let reply = client.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!((reply.ticket(), reply.body().unwrap()), (a, &[7][..]));
        let reply = client.receive_timeout(LONG).unwrap().unwrap();
        assert_eq!((reply.ticket(), reply.is_last()), (b, true));
        assert_eq!(reply.body().unwrap_err().kind(), ErrorKind::ServerDied);
    });
    // A new server does not do what failed.
    let mut server = n.service::<u64, [u32]>("/s").unwrap().server().unwrap();
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 1);
    let c = client.send(&3).unwrap();
    let request = server.receive().unwrap().unwrap();
    assert_eq!(*request, 3);
    server.respond(request, &[3]).unwrap();
    assert_eq!(client.receive_for(c, Deadline::AT_ONCE).unwrap().ticket(), c);
}

#[test]
fn a_resuming_client_sends_again_to_the_next_server() {
    let dir = TempDir::new("service-resume");
    let n = node(&dir);
    let builder = || n.service::<u64, u64>("/s").unwrap();
    let mut server = builder().server().unwrap();
    let mut client = builder().resume(true).client().unwrap();
    let tickets: Vec<_> = (0..3).map(|i| client.send(&i).unwrap()).collect();
    // One is received and not answered, two are not received.
    let _lost = server.receive().unwrap().unwrap();
    drop(server);
    assert!(client.receive_timeout(Duration::from_millis(20)).unwrap().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            let mut server = builder().server().unwrap();
            for _ in 0..3 {
                let request = server.receive_timeout(LONG).unwrap().unwrap();
                let answer = *request * 10;
                server.respond(request, &answer).unwrap();
            }
        });
        for (i, ticket) in tickets.iter().enumerate() {
            let reply = client.receive_timeout(LONG).unwrap().unwrap();
            assert_eq!((reply.ticket(), *reply.body().unwrap()), (*ticket, i as u64 * 10));
        }
    });
}

#[test]
fn cancelled_and_late_requests_are_passed_over() {
    let dir = TempDir::new("service-cancel");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let a = client.send(&1).unwrap();
    let b = client.send(&2).unwrap();
    client.send_until(&3, Deadline::in_ns(1_000_000)).unwrap();
    let d = client.send(&4).unwrap();
    let first = server.receive().unwrap().unwrap();
    assert!(!server.is_cancelled(&first).unwrap());
    client.cancel(a).unwrap();
    client.cancel(b).unwrap();
    assert!(server.is_cancelled(&first).unwrap());
    server.respond(first, &[1]).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    let mut rest = Vec::new();
    while let Some(request) = server.receive().unwrap() {
        rest.push(*request);
        server.respond(request, &[9]).unwrap();
    }
    assert_eq!(rest, [4], "the third was taken in by the look above, and is late by now");
    let reply = client.receive_for(d, Deadline::in_ns(1_000_000_000)).unwrap();
    assert_eq!(reply.ticket(), d);
    assert_eq!(
        client.receive_for(a, Deadline::AT_ONCE).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let e = client.call_timeout(&5, Duration::from_millis(20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    assert!(server.receive().unwrap().is_none(), "cancelled by its timeout");
}

#[test]
fn what_was_taken_in_early_is_passed_over_once_nobody_waits_for_it() {
    let dir = TempDir::new("service-taken-in");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let mut leaves = n.service::<u64, [u32]>("/s").unwrap().client().unwrap();
    client.send(&1).unwrap();
    let first = server.receive().unwrap().unwrap();
    // Not over before the server has it, however busy the machine is.
    let late = Deadline::in_ns(1_000_000_000);
    client.send_until(&2, late).unwrap();
    leaves.send(&3).unwrap();
    assert!(!server.is_cancelled(&first).unwrap());
    assert!(!late.has_passed());
    drop(leaves);
    while !late.has_passed() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut set = crate::WaitSet::new();
    let none = set.wait(&mut [&mut server], Duration::from_millis(5)).unwrap();
    assert!(none.is_empty(), "nobody waits");
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 2);
    server.respond(first, &[1]).unwrap();
}

#[test]
fn a_refusal_carries_the_servers_words() {
    let dir = TempDir::new("service-refuse");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.refuse(request, "no such joint").unwrap();
    let e = client.receive().unwrap().unwrap().into_response().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Refused);
    assert!(e.to_string().contains("no such joint"), "{e}");
}

#[test]
fn requests_of_a_client_that_left_are_not_answered() {
    let dir = TempDir::new("service-left");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    client.send(&2).unwrap();
    drop(client);
    let e = server.respond(request, &[1]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ClientDied);
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 1);
    // Printed after others were refused: it names the service, and no other's client.
    assert!(e.to_string().starts_with("answering a client of service /s: "), "{e}");
}

#[test]
fn a_wait_set_waits_for_servers_and_clients() {
    let dir = TempDir::new("service-set");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let mut set = crate::WaitSet::new();
    let none = set.wait(&mut [&mut client, &mut server], Duration::from_millis(5)).unwrap();
    assert!(none.is_empty());
    client.send(&1).unwrap();
    let mut answered = false;
    for _ in 0..10 {
        let mut list: [&mut dyn Waitable; 2] = [&mut client, &mut server];
        let ready: Vec<_> = set.wait(&mut list, LONG).unwrap().collect();
        if ready.contains(&1) {
            let request = server.receive().unwrap().unwrap();
            server.respond(request, &[2]).unwrap();
        }
        if ready.contains(&0) {
            assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[2]);
            answered = true;
            break;
        }
    }
    assert!(answered);
    client.send(&1).unwrap();
    drop(server);
    assert!(set.wait(&mut [&mut client], LONG).unwrap().contains(0));
    let e = client.receive().unwrap().unwrap().into_response().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ServerDied);
}

#[test]
fn other_types_are_a_mismatch_and_tools_see_who_is_there() {
    let dir = TempDir::new("service-types");
    let n = node(&dir);
    let (server, client) = open(&n);
    let e = n.service::<u64, [u64]>("/s").unwrap().client().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert!(e.to_string().contains("-> u64[slice, 8 B]"), "{e}");
    assert!(e.to_string().starts_with("opening service /s: "), "{e}");
    let end = "use the same types, or another service; it has live members: test (node 1)";
    assert!(e.to_string().ends_with(end), "{e}");
    assert_eq!(n.service::<u64, u64>("/s/").unwrap_err().kind(), ErrorKind::InvalidName);
    let domain = Domain::of(&settings(&dir)).unwrap();
    let info = &domain.services().unwrap()[0];
    assert_eq!((info.name.as_str(), info.server), ("/s", Some(n.id())));
    assert_eq!(info.clients, [n.id()]);
    let (asked, answered) = (&info.request, &info.response);
    assert_eq!((asked.name(), asked.size()), ("u64", 8));
    assert_eq!((answered.name(), answered.encoding()), ("u32", crate::Encoding::Slice));
    assert!(answered.description().unwrap().root().is_any_length());
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    drop((server, client));
    assert!(domain.services().unwrap().is_empty());
    drop(n);
    assert!(domain.clean().unwrap().domain_removed);
    assert!(!dir.join("root").exists());
}

#[test]
fn many_clients_share_a_server() {
    let dir = TempDir::new("service-many");
    let n = node(&dir);
    let mut server = n.service::<[u8], [u8]>("/s").unwrap().server().unwrap();
    let open = |_| n.service::<[u8], [u8]>("/s").unwrap().client().unwrap();
    let mut clients: Vec<_> = (0..50).map(open).collect();
    for round in 0..5u8 {
        for (k, client) in clients.iter_mut().enumerate() {
            client.send(&vec![round; k * 10]).unwrap();
        }
        while let Some(request) = server.receive().unwrap() {
            let echo = request.to_vec();
            server.respond(request, &echo).unwrap();
        }
        for (k, client) in clients.iter_mut().enumerate() {
            let reply = client.receive().unwrap().unwrap();
            assert_eq!(reply.body().unwrap(), &vec![round; k * 10][..]);
        }
    }
}

#[test]
fn a_tool_calls_a_service_by_what_it_tells_of_its_types() {
    let dir = TempDir::new("service-any");
    let n = node(&dir);
    // Alignments beyond that of the heads: both pad.
    let mut server = n.service::<u128, [u128]>("/s").unwrap().server().unwrap();
    let info = Domain::of(&settings(&dir)).unwrap().services().unwrap().remove(0);
    let any = n.service::<[u8], [u8]>("/s").unwrap().of_types(&info.request, &info.response);
    let mut client = any.client().unwrap();
    let ticket = client.send(&7u128.to_ne_bytes()).unwrap();
    let request = server.receive().unwrap().unwrap();
    assert_eq!(*request, 7);
    server.respond(request, &[8, 9]).unwrap();
    let reply = client.receive_for(ticket, Deadline::AT_ONCE).unwrap();
    let wanted: Vec<u8> = [8u128, 9].iter().flat_map(|v| v.to_ne_bytes()).collect();
    assert_eq!(reply.body().unwrap(), &wanted[..]);
    assert_eq!(client.send(&[1, 2, 3]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
