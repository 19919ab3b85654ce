//! What goes wrong on one side, as the other sides see it.

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;
use crate::os::sleep::poll::{PollFd, READABLE, poll};
use crate::service::wire::frame;

/// Offset of the layout version in every file.
const LAYOUT_VERSION_AT: u64 = 8;

/// The first file below `dir` whose path has all of `parts` in it.
fn find(dir: &TempDir, parts: &[&str]) -> PathBuf {
    let mut dirs = vec![dir.join("root")];
    while let Some(at) = dirs.pop() {
        for entry in std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()) {
            let text = entry.display().to_string();
            if entry.is_dir() {
                dirs.push(entry);
            } else if parts.iter().all(|part| text.contains(part)) {
                return entry;
            }
        }
    }
    panic!("no file with {parts:?}")
}

fn scribble(file: &PathBuf, at: u64, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

#[test]
fn a_resuming_client_repeats_its_order_also_where_its_lane_is_full_of_the_old() {
    let dir = TempDir::new("service-again");
    let n = node(&dir);
    let builder = || n.service::<[u64; 32], u64>("/s").unwrap();
    let mut server = builder().server().unwrap();
    let mut client = builder().resume(true).bound_bytes(4096).client().unwrap();
    let mut tickets = Vec::new();
    let full = loop {
        match client.send(&[tickets.len() as u64; 32]) {
            Ok(ticket) => tickets.push(ticket),
            Err(e) => break e,
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    // The first is answered, so that the rest has moved up.
    let first = server.receive().unwrap().unwrap();
    server.respond(first, &0).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().ticket(), tickets[0]);
    drop(server);
    let mut server = builder().server().unwrap();
    let mut order = Vec::new();
    let deadline = Deadline::in_ns(20_000_000_000);
    while order.len() + 1 < tickets.len() && !deadline.has_passed() {
        while let Some(request) = server.receive().unwrap() {
            order.push(request[0]);
            let answer = request[0] * 10;
            server.respond(request, &answer).unwrap();
        }
        while let Some(reply) = client.receive_timeout(Duration::from_millis(5)).unwrap() {
            let at = tickets.iter().position(|t| *t == reply.ticket()).unwrap();
            assert_eq!(*reply.body().unwrap(), at as u64 * 10);
        }
    }
    assert_eq!(order, (1..tickets.len() as u64).collect::<Vec<_>>());
    assert_eq!(server.passed_over(), tickets.len() as u64 - 1, "what the first did not receive");
}

#[test]
fn a_client_hears_of_an_answer_that_cannot_be_sent() {
    let dir = TempDir::new("service-no-room");
    let n = node(&dir);
    let builder = || n.service::<u64, [u8]>("/s").unwrap().bound_bytes(4096);
    let mut server = builder().server().unwrap();
    let mut client = builder().client().unwrap();
    client.send(&0).unwrap();
    let request = server.receive().unwrap().unwrap();
    let e = server.respond(request, &[0; 5000]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let e = client.receive().unwrap().unwrap().into_response().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Refused);
    assert!(e.to_string().contains("invalid argument"), "{e}");

    for i in 0..10 {
        client.send(&i).unwrap();
    }
    let mut fitted = 0;
    while let Some(request) = server.receive().unwrap() {
        match server.respond(request, &[7; 1000]) {
            Ok(()) => fitted += 1,
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!((2..10).contains(&fitted));
    let (mut answers, mut refused) = (0, 0);
    while answers + refused < 10 {
        match client.receive().unwrap() {
            Some(reply) if reply.body().is_ok() => answers += 1,
            Some(reply) => {
                assert_eq!(reply.body().unwrap_err().kind(), ErrorKind::Refused);
                refused += 1;
            }
            // Any call of the server tells them.
            None => assert!(server.receive().unwrap().is_none()),
        }
    }
    assert_eq!((answers, client.waiting()), (fitted, 0));
}

#[test]
fn every_request_ends_at_its_deadline() {
    let dir = TempDir::new("service-deadline");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    // Not over before the server has it, however busy the machine is.
    let a = client.send_until(&1, Deadline::in_ns(1_000_000_000)).unwrap();
    let held = server.receive().unwrap().unwrap();
    assert!(!held.deadline().is_never() && !server.is_cancelled(&held).unwrap());
    let b = client.send(&2).unwrap();
    let reply = client.receive_timeout(LONG).unwrap().expect("the news that it is late");
    assert_eq!((reply.ticket(), reply.is_last()), (a, true));
    assert_eq!(reply.body().unwrap_err().kind(), ErrorKind::Timeout);
    assert!(server.is_cancelled(&held).unwrap());
    server.respond(held, &[1]).unwrap();
    let other = server.receive().unwrap().unwrap();
    server.respond(other, &[2]).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().ticket(), b, "the late answer is dropped");
    let c = client.send_until(&3, Deadline::in_ns(20_000_000)).unwrap();
    let mut set = crate::WaitSet::new();
    assert!(set.wait(&mut [&mut client], LONG).unwrap().contains(0));
    assert_eq!(client.receive().unwrap().unwrap().ticket(), c);
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 1);
}

#[test]
fn a_request_is_answered_by_the_server_that_received_it() {
    let dir = TempDir::new("service-other");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let mut other = n.service::<u64, [u32]>("/other").unwrap().server().unwrap();
    client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    let refused = other.respond_part(&request, &[1]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("the request is of another server"), "{refused}");
    server.respond_part(&request, &[1]).unwrap();
    assert_eq!(other.respond(request, &[2]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[1]);

    // Where its client is gone, its own server says so.
    client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    drop(client);
    assert_eq!(server.respond(request, &[1]).unwrap_err().kind(), ErrorKind::ClientDied);
}

#[test]
fn an_answer_that_is_there_is_received_though_it_came_late() {
    let dir = TempDir::new("service-late");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let until = Deadline::in_ns(1_000_000_000);
    let ticket = client.send_until(&1, until).unwrap();
    let held = server.receive().unwrap().unwrap();
    while !until.has_passed() {
        std::thread::sleep(until.remaining());
    }
    server.respond(held, &[1]).unwrap();
    let reply = client.receive().unwrap().unwrap();
    assert_eq!((reply.ticket(), reply.body().unwrap()), (ticket, [1].as_slice()));
    assert_eq!(client.waiting(), 0);
}

#[test]
fn a_client_whose_reply_queue_is_spoilt_harms_nobody_else() {
    let dir = TempDir::new("service-spoilt");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    let mut bad = n.service::<u64, [u32]>("/s").unwrap().client().unwrap();
    let port = format!("reply.{}.{}", n.id(), bad.reply_port);
    scribble(&find(&dir, &[&port, "meta"]), 0, &[0xff; 128]);
    for i in 0..3 {
        bad.send(&1).unwrap();
        client.send(&i).unwrap();
        let request = server.receive().unwrap().unwrap();
        assert_eq!(*request, i);
        server.respond(request, &[9]).unwrap();
        assert_eq!(client.receive().unwrap().unwrap().body().unwrap(), &[9]);
    }
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 3);
    // A reply queue that it has never made.
    bad.reply_port = 999;
    bad.send(&1).unwrap();
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 4);
}

#[test]
fn a_client_that_sends_garbage_is_told_and_can_come_again() {
    let dir = TempDir::new("service-garbage");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[1]).unwrap();
    for case in ["kind", "length"] {
        let mut bad = n.service::<u64, [u32]>("/s").unwrap().client().unwrap();
        bad.send(&2).unwrap();
        let request = server.receive().unwrap().unwrap();
        match case {
            "kind" => bad.put(77, 5, Deadline::NEVER, &[0; 8]).unwrap(),
            _ => bad.put(frame::REQUEST, 5, Deadline::NEVER, &[0; 7]).unwrap(),
        }
        bad.send(&3).unwrap();
        assert!(server.receive().unwrap().is_none(), "{case}");
        let e = bad.receive().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{case}");
        assert!(e.to_string().contains("open"), "{e}");
        let told = server.respond(request, &[2]).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::ClientDied, "it is not read any more");
    }
    assert_eq!(server.ways.len(), 1, "only that of the other client");
    client.send(&4).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[4]).unwrap();
}

#[test]
fn cancellations_that_come_too_late_do_not_pile_up() {
    let dir = TempDir::new("service-late-cancel");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    for i in 0..3000 {
        let ticket = client.send(&i).unwrap();
        let request = server.receive().unwrap().unwrap();
        server.respond(request, &[1]).unwrap();
        client.cancel(ticket).unwrap();
    }
    assert!(server.receive().unwrap().is_none());
    assert!(server.cancelled.len() <= 1024, "{}", server.cancelled.len());
    assert_eq!(client.waiting(), 0);
    assert!(client.receive().unwrap().is_none());
}

#[test]
fn bounds_and_versions_that_cannot_be_are_told() {
    let dir = TempDir::new("service-bounds");
    let n = node(&dir);
    for bound in [0, 1, 4095] {
        let builder = || n.service::<u64, u64>("/s").unwrap().bound_bytes(bound);
        assert_eq!(builder().server().unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(builder().client().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let mut server = n.service::<[u8], [u8]>("/t").unwrap().server().unwrap();
    let mut client = n.service::<[u8], [u8]>("/t").unwrap().bound_bytes(4096).client().unwrap();
    assert_eq!(client.send(&[0; 5000]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    client.send(&[1; 100]).unwrap();
    assert_eq!(server.receive().unwrap().unwrap().len(), 100, "nothing was lost");
    let consumer = find(&dir, &["requests", "consumer"]);
    scribble(&consumer, LAYOUT_VERSION_AT, &[0xee, 0xee]);
    let builder = || n.service::<[u8], [u8]>("/t").unwrap();
    assert_eq!(builder().client().unwrap_err().kind(), ErrorKind::VersionMismatch);
    drop(server);
    let e = builder().server().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::VersionMismatch);
    assert!(e.to_string().contains("consumer"), "{e}");
}

#[test]
fn a_head_says_who_is_asked() {
    // What an earlier server was asked is not done by the next one, whoever sends it.
    let dir = TempDir::new("service-term");
    let n = node(&dir);
    let (mut server, mut client) = open(&n);
    client.send(&1).unwrap();
    assert!(server.receive().unwrap().is_some());
    client.term ^= 1;
    client.put(frame::REQUEST, 2, Deadline::NEVER, &[0; 8]).unwrap();
    assert!(server.receive().unwrap().is_none());
    assert_eq!(server.passed_over(), 1);
}

/// Answers what comes, with ten times as much, until `client` has its reply.
fn serve_until_answered(
    server: &mut Server<u64, u64>,
    client: &mut Client<u64, u64>,
) -> crate::Result<u64> {
    loop {
        while let Some(request) = server.receive_until(Deadline::in_ns(2_000_000))? {
            let answer = *request * 10;
            server.respond(request, &answer)?;
        }
        if let Some(reply) = client.receive()? {
            return reply.body().copied();
        }
    }
}

#[test]
fn a_stopped_cleaner_at_one_client_holds_up_no_other() {
    let dir = TempDir::new("service-held");
    let n = node(&dir);
    let builder = || n.service::<u64, u64>("/s").unwrap();
    let mut server = builder().server().unwrap();
    let (mut a, mut b, mut c) =
        (builder().client().unwrap(), builder().client().unwrap(), builder().client().unwrap());
    let reply = find(&dir, &[&format!("reply.{}.{}/", n.id(), b.reply_port)]);
    let held = crate::os::fs::file::open_dir(reply.parent().unwrap()).unwrap();
    assert!(held.try_lock_exclusive().unwrap());
    // Half of the time that a joiner waits for a cleaner.
    let soon = Deadline::in_ns(5_000_000_000);
    b.send(&2).unwrap();
    a.send_until(&1, soon).unwrap();
    c.send_until(&3, soon).unwrap();
    assert_eq!(serve_until_answered(&mut server, &mut a).unwrap(), 10);
    assert_eq!(serve_until_answered(&mut server, &mut c).unwrap(), 30);
    assert!(b.receive().unwrap().is_none());
    drop(held);
    assert_eq!(serve_until_answered(&mut server, &mut b).unwrap(), 20);
}

#[test]
fn short_lived_clients_fill_no_service_that_does_not_receive() {
    let dir = TempDir::new("service-crowd");
    let n = node(&dir);
    let builder = || n.service::<u64, u64>("/s").unwrap();
    let mut server = builder().server().unwrap();
    for i in 0..600 {
        let mut client = builder().client().unwrap_or_else(|e| panic!("client {i}: {e}"));
        client.send(&i).unwrap();
    }
    let mut last = builder().client().unwrap();
    last.send(&7).unwrap();
    assert_eq!(serve_until_answered(&mut server, &mut last).unwrap(), 70);
}

/// Writes over the word of `n` for as long as `during` runs; its lock stays held.
fn with_a_dead_word(n: &Node, during: impl FnOnce()) {
    let held = n.token_word().load(crate::sync::Ordering::Relaxed);
    n.scribble_token(crate::os::death::robust::OWNER_DIED);
    during();
    n.scribble_token(held);
}

#[test]
fn a_client_whose_word_alone_says_dead_is_answered_in_the_end() {
    let dir = TempDir::new("service-word-client");
    let (serving, asking) = (node(&dir), node(&dir));
    let mut server = serving.service::<u64, u64>("/s").unwrap().server().unwrap();
    let mut client = asking.service::<u64, u64>("/s").unwrap().client().unwrap();
    let first = client.send(&1).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &10).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().ticket(), first);
    let (second, third) = (client.send(&2).unwrap(), client.send(&3).unwrap());
    let held = server.receive().unwrap().unwrap();
    with_a_dead_word(&asking, || {
        assert!(server.receive().unwrap().is_none(), "it is not known who will take the answer");
        assert!(!server.is_cancelled(&held).unwrap(), "its client lives");
        let e = server.respond(held, &20).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}");
    });
    assert_eq!(server.passed_over(), 0);
    let request = server.receive_timeout(LONG).unwrap().expect("it was put off, not passed over");
    server.respond(request, &30).unwrap();
    let told = client.receive().unwrap().expect("the news that there is no answer");
    assert_eq!((told.ticket(), told.body().unwrap_err().kind()), (second, ErrorKind::Refused));
    let answer = client.receive().unwrap().unwrap();
    assert_eq!((answer.ticket(), *answer.body().unwrap()), (third, 30));
}

#[test]
fn a_server_whose_word_alone_says_dead_fails_no_request() {
    let dir = TempDir::new("service-word-server");
    let (serving, asking) = (node(&dir), node(&dir));
    let mut server = serving.service::<u64, u64>("/s").unwrap().server().unwrap();
    let mut client = asking.service::<u64, u64>("/s").unwrap().client().unwrap();
    let ticket = client.send(&1).unwrap();
    with_a_dead_word(&serving, || {
        let told = client.receive_timeout(Duration::from_millis(10)).unwrap();
        assert!(told.is_none(), "it lives: {told:?}");
    });
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &10).unwrap();
    let reply = client.receive_timeout(LONG).unwrap().unwrap();
    assert_eq!((reply.ticket(), *reply.body().unwrap()), (ticket, 10));
}

#[test]
fn a_corrupt_lane_of_replies_is_told_to_both_ends_by_name_and_remedy() {
    let dir = TempDir::new("service-replies");
    let n = node(&dir);
    let builder = || n.service::<u64, [u32]>("/s").unwrap().bound_bytes(16 << 10);
    let mut server = builder().server().unwrap();
    let mut client = builder().client().unwrap();
    let ticket = client.send(&1).unwrap();
    client.send(&2).unwrap();
    let (first, second) = (server.receive().unwrap().unwrap(), server.receive().unwrap().unwrap());
    server.respond(first, &[1]).unwrap();
    let page = crate::os::PAGE as u64;
    scribble(&find(&dir, &["reply.", "lane."]), page, &[0xff; 8]);
    let e = client.receive_for(ticket, Deadline::NEVER).unwrap().into_response().unwrap_err();
    let told = e.to_string();
    assert_eq!((e.kind(), e.object()), (ErrorKind::Corrupt, "/s"), "{told}");
    for part in ["lane", "out of range", "open the client again", "restart the server"] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    let e = client.receive().unwrap().expect("the other one").into_response().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert_eq!(client.send(&3).unwrap_err().kind(), ErrorKind::Corrupt, "no answer can come");
    let e = loop {
        if let Err(e) = server.respond_part(&second, &[7; 200]) {
            break e;
        }
    };
    assert_eq!((e.kind(), e.object()), (ErrorKind::Corrupt, "/s"), "{e}");
    assert!(e.to_string().contains("open that client again"), "{e}");
    let mut client = builder().client().unwrap();
    let ticket = client.send(&4).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &[4]).unwrap();
    assert_eq!(client.receive_for(ticket, Deadline::NEVER).unwrap().body().unwrap(), &[4]);
}

#[test]
fn every_client_hears_of_its_answers_however_many_cannot_be_sent() {
    let dir = TempDir::new("service-many-untold");
    let n = node(&dir);
    let builder = || n.service::<u64, [u8]>("/s").unwrap();
    let mut server = builder().bound_bytes(4096).server().unwrap();
    let mut clients = [builder().client().unwrap(), builder().client().unwrap()];
    const EACH: u64 = 3000;
    for client in &mut clients {
        (0..EACH).for_each(|i| assert!(client.send(&i).is_ok()));
    }
    let answer_all = |server: &mut Server<u64, [u8]>| {
        let mut fitted = 0;
        while let Some(request) = server.receive().unwrap() {
            match server.respond(request, &[7; 1000]) {
                Ok(()) => fitted += 1,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
        }
        fitted
    };
    let mut fitted = answer_all(&mut server);
    let (mut answers, mut refused) = (0, 0);
    let until = Deadline::after(LONG);
    while answers + refused < 2 * EACH && !until.has_passed() {
        for client in &mut clients {
            while let Some(reply) = client.receive().unwrap() {
                match reply.body().map_err(|e| e.kind()) {
                    Ok(_) => answers += 1,
                    Err(ErrorKind::Refused) => refused += 1,
                    Err(kind) => panic!("{kind}"),
                }
            }
        }
        fitted += answer_all(&mut server);
    }
    assert_eq!((answers, refused), (fitted, 2 * EACH - fitted), "of {}", 2 * EACH);
    assert!(clients.iter().all(|client| client.waiting() == 0));
}

/// The next server may end so quickly that nobody ever saw it alive.
#[test]
fn a_server_that_another_one_follows_is_over_though_that_one_seems_dead() {
    let dir = TempDir::new("service-word-next");
    let (first, second, asking) = (node(&dir), node(&dir), node(&dir));
    let service = |n: &Node| n.service::<u64, u64>("/s").unwrap();
    let server = service(&first).server().unwrap();
    let mut client = service(&asking).client().unwrap();
    let mut resumes = service(&asking).resume(true).client().unwrap();
    let ticket = client.send(&1).unwrap();
    let again = resumes.send(&2).unwrap();
    drop(server);
    let mut next = service(&second).server().unwrap();
    with_a_dead_word(&second, || {
        let told = client.receive().unwrap().expect("the first server is over");
        assert_eq!((told.ticket(), told.is_last()), (ticket, true));
        assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
        resumes.looks = 0;
        assert!(resumes.receive_timeout(Duration::from_millis(200)).unwrap().is_none());
        assert!(resumes.looks < 400, "{} looks in 200 ms, where it could sleep", resumes.looks);
    });
    while resumes.waiting() > 0 {
        if let Some(request) = next.receive().unwrap() {
            assert_eq!(*request, 2);
            next.respond(request, &20).unwrap();
        }
        if let Some(reply) = resumes.receive_timeout(Duration::from_millis(10)).unwrap() {
            assert_eq!((reply.ticket(), *reply.body().unwrap()), (again, 20));
        }
    }
}

const IN_CHILD: &str = "OUTLIVE_TEST_UNMARKED_SERVER";

/// A child that ends with its test.
struct Victim(std::process::Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers requests below 10 until somebody kills this process.
fn serve_until_killed(root: &std::path::Path) {
    let n = Node::builder().root(root).name("victim").open().unwrap();
    let mut server = n.service::<u64, u64>("/s").unwrap().server().unwrap();
    loop {
        if let Some(request) = server.receive_timeout(LONG).unwrap() {
            let answer = *request * 10;
            server.respond(request, &answer).unwrap();
        }
    }
}

/// The kernel may be unable to mark the word of who dies, for instance where somebody cut the file.
#[test]
fn a_server_whose_death_was_not_marked_is_found_dead() {
    if let Some(root) = std::env::var_os(IN_CHILD) {
        return serve_until_killed(root.as_ref());
    }
    let name = "service::tests::failures::\
                a_server_whose_death_was_not_marked_is_found_dead";
    for answered in [false, true] {
        let dir = TempDir::new("service-unmarked");
        let mut victim = std::process::Command::new(std::env::current_exe().unwrap());
        victim.args(["--exact", name]).env(IN_CHILD, dir.join("root"));
        let victim = Victim(victim.stdout(std::process::Stdio::null()).spawn().unwrap());
        // Nodes of their own: what one learns, another does not know.
        let mut clients = [0, 1, 2, 3].map(|_| {
            let n = node(&dir);
            let mut client = n.service::<u64, u64>("/s").unwrap().client().unwrap();
            assert!(client.wait_for_server(3 * LONG).unwrap());
            if answered {
                assert_eq!(*client.call_timeout(&1, 3 * LONG).unwrap(), 10);
            }
            (n, client)
        });
        let domain = Domain::of(&settings(&dir)).unwrap();
        let id = domain.services().unwrap()[0].server.unwrap();
        let path = dir.join("root/default/nodes").join(id.to_string());
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let at = crate::node::layout::TOKEN_WORD as u64;
        let mut word = [0; 4];
        file.read_exact_at(&mut word, at).unwrap();
        drop(victim);
        file.write_all_at(&word, at).unwrap();

        let [(_, calls), (_, selects), (_, slices), (_, polls)] = &mut clients;
        let e = calls.call_timeout(&1, LONG).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::ServerDied, "{e}, answered before: {answered}");
        let ticket = selects.send(&1).unwrap();
        let mut set = crate::WaitSet::new();
        let until = Deadline::after(LONG);
        let told = loop {
            if let Some(reply) = selects.receive().unwrap() {
                break reply;
            }
            assert!(!until.has_passed(), "nobody says that it died, answered before: {answered}");
            let _ = set.wait(&mut [&mut *selects], Duration::from_secs(5)).unwrap();
        };
        assert_eq!(told.ticket(), ticket);
        assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
        // Also where each wait is short, and where somebody else waits.
        slices.send(&1).unwrap();
        let until = Deadline::after(LONG);
        let told = loop {
            if let Some(reply) = slices.receive_timeout(Duration::from_millis(100)).unwrap() {
                break reply;
            }
            assert!(!until.has_passed(), "not in slices, answered before: {answered}");
        };
        assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
        polls.send(&1).unwrap();
        let until = Deadline::after(LONG);
        let told = loop {
            let fd = polls.fd().unwrap().as_raw_fd();
            poll(&mut [PollFd::new(fd, READABLE)], until);
            if let Some(reply) = polls.receive().unwrap() {
                break reply;
            }
            assert!(!until.has_passed(), "not by descriptor, answered before: {answered}");
        };
        assert_eq!(told.body().unwrap_err().kind(), ErrorKind::ServerDied);
    }
}

/// Neither end waits for room, and both have read all but the padding before the next message.
#[test]
fn large_requests_and_answers_are_taken_each_time_by_idle_ends() {
    for bytes in [300_000, 600_000] {
        let dir = TempDir::new("service-large");
        let n = node(&dir);
        let service = || n.service::<[u8], [u8]>("/s").unwrap().bound_bytes(1 << 20);
        let (mut server, mut client) = (service().server().unwrap(), service().client().unwrap());
        for i in 0..50 {
            let ticket = client.send(&vec![i; bytes]).unwrap();
            let request = server.receive().unwrap().unwrap();
            assert!(request.len() == bytes && request[bytes - 1] == i);
            server.respond(request, &vec![i; bytes]).unwrap();
            let reply = client.receive_for(ticket, Deadline::AT_ONCE).unwrap();
            assert_eq!(reply.body().unwrap(), &vec![i; bytes]);
        }
    }
}

#[test]
fn a_server_that_always_has_a_request_forgets_clients_that_are_gone() {
    let dir = TempDir::new("service-busy");
    let n = node(&dir);
    let service = || n.service::<u64, u64>("/s").unwrap();
    let (mut server, mut busy) = (service().server().unwrap(), service().client().unwrap());
    // It sends one more than is received: there is always a next one.
    busy.send(&0).unwrap();
    let mut serve = |until: u64| {
        for i in 0..2000 {
            busy.send(&i).unwrap();
            let request = server.receive().unwrap().expect("there is always one");
            let is_last = *request == until;
            let _ = server.respond(request, &i);
            while busy.receive().unwrap().is_some() {}
            if is_last {
                break;
            }
        }
        server.ways.len()
    };
    let ways = [0; 50].map(|_| {
        let mut one = service().client().unwrap();
        one.send(&10_000).unwrap();
        serve(10_000)
    });
    assert!(serve(u64::MAX) == 1, "ways back to the gone: {ways:?}");
    let replies = std::fs::read_dir(dir.join("root/default/services/s")).unwrap();
    let replies = replies.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(replies.filter(|name| name.starts_with("reply.")).count(), 1);
}
