//! Peers that speak as no bridge does. Where namespaces are refused, each test says so and passes.
#![allow(missing_docs)]

mod net;

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use net::{Counters, Host, Net, count, wait_for};
use outlive::{Client, ErrorKind, Node, PayloadType, Server};
use serde_json::json;
use zenoh::Wait;
use zenoh::qos::CongestionControl;

/// Topics of the peer in `a_peer_until_killed`.
const TOPICS: u64 = 48;
const CLAIMS: u64 = 1 << 30;

/// Not a test: a peer that announces topics of the greatest depth, each with a message of 20 bytes
/// that claims to be 1 GiB, and then many of a megabyte.
#[test]
fn a_peer_until_killed() {
    let Some(address) = std::env::var_os("OUTLIVE_BRIDGE_PEER") else { return };
    let mut config = zenoh::Config::default();
    let address = json!([address.to_str().expect("an address")]).to_string();
    config.insert_json5("connect/endpoints", &address).expect("an address");
    config.insert_json5("scouting/multicast/enabled", "false").expect("a flag");
    let session = zenoh::open(config).wait().expect("a session");
    let prefix = format!("outlive/1/fleet/{}", session.zid());
    let of = PayloadType::of::<[u8]>();
    let note = json!({
        "type": {
            "encoding": of.encoding().as_str(),
            "name": of.name(),
            "size": of.size(),
            "align": of.align(),
            "schema": of.schema(),
            "endian": "little",
        },
        "depth": 65_536,
        "attributes": {},
    });
    let _notes = session
        .declare_queryable(format!("{prefix}/note/topic/**"))
        .callback(move |query| {
            let _ = query.reply(query.key_expr().clone(), note.to_string()).wait();
        })
        .wait()
        .expect("notes");
    let token = |n| session.liveliness().declare_token(format!("{prefix}/live/topic/hostile/{n}"));
    let _tokens: Vec<_> = (0..TOPICS).map(|n| token(n).wait().expect("a token")).collect();
    let megabyte = vec![1; 1 << 20];
    for seq in 0.. {
        for n in 0..TOPICS {
            let packed = seq % 2 == 0;
            let bytes = if packed { CLAIMS } else { 1 << 20 };
            let mut header = vec![1, u8::from(packed), 0, 0, 0, 0, 0, 0];
            for word in [n, seq, 0, bytes] {
                header.extend(word.to_le_bytes());
            }
            let payload = if packed { &megabyte[..20] } else { &megabyte[..] };
            let key = format!("{prefix}/data/hostile/{n}");
            let put = session.put(key, payload).congestion_control(CongestionControl::Block);
            put.attachment(header).wait().expect("sent");
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Such a peer; killed at the end.
struct Peer(Child);

impl Peer {
    fn start(host: &Host, address: &str) -> Self {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", host.space()]);
        ip.arg(std::env::current_exe().expect("this program"));
        ip.args(["--exact", "a_peer_until_killed"]).stdout(Stdio::null());
        ip.env("OUTLIVE_BRIDGE_PEER", address);
        Self(ip.spawn().expect("a peer"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_peer_cannot_fill_the_ram_disk() {
    const TOTAL: u64 = 64 << 20;
    let Some(mut net) = Net::new(3) else { return };
    let limits = format!("[limits]\ntotal_bytes = {TOTAL}\n");
    let rules = "[[topic]]\npattern = \"/**\"\nreliable = true\n";
    net.bridge(0, &format!("{limits}{rules}"));
    net.bridge(2, rules);
    let (desk, robot) = (net.hosts[0].node("desk"), net.hosts[2].node("robot"));
    let from = robot.topic::<u64>("/state").expect("a name").publisher().expect("a publisher");
    let _peer = Peer::start(&net.hosts[1], "tcp/10.0.1.1:7447");
    let mut counters = Counters::of(&desk);
    let mut most = 0;
    let mut memory = || {
        let topics = net.hosts[0].domain().topics().expect("a domain");
        let hostile = topics.iter().filter(|topic| topic.name.starts_with("/hostile/"));
        let publishers = hostile.flat_map(|topic| &topic.publishers);
        most = most.max(publishers.map(|p| p.memory_bytes).sum::<u64>());
        most
    };
    let sum = |c: &serde_json::Value, counter| {
        (0..TOPICS).map(|n| count(c, "in", &format!("/hostile/{n}"), counter)).sum::<u64>()
    };
    let last = counters.until("all topics have sent", |c| {
        memory();
        (0..TOPICS).all(|n| count(c, "in", &format!("/hostile/{n}"), "bad") >= 3)
    });
    println!(
        "{} bytes of the RAM disk at most; bad {}, dropped {}, received {}",
        memory(),
        sum(&last, "bad"),
        sum(&last, "dropped"),
        sum(&last, "received")
    );
    // What one publisher takes at once comes on top: room for ten messages.
    assert!(memory() < TOTAL + (16 << 20), "{} bytes", memory());
    assert!(sum(&last, "dropped") > 0, "there is no room for all");
    // Others are heard all the same.
    let mut to = desk.topic::<u64>("/state").expect("a name").subscriber().expect("a subscriber");
    wait_for("a message of another bridge", || {
        from.publish(&7).expect("published");
        to.receive().expect("a sample").map(drop)
    });
}

/// Messages are not lost for want of room; they wait where they were sent.
#[test]
fn many_queues_share_what_the_file_allows_and_lose_nothing() {
    const TOTAL: u64 = 4 << 20;
    const QUEUES: usize = 24;
    const EACH: u64 = 16;
    let Some(mut net) = Net::new(2) else { return };
    let rules = "[[queue]]\npattern = \"/**\"\n";
    net.hosts[0].listen_in();
    net.bridge(0, &format!("[limits]\ntotal_bytes = {TOTAL}\n{rules}"));
    net.bridge(1, rules);
    let (desk, robot) = (net.hosts[0].node("desk"), net.hosts[1].node("robot"));
    let names: Vec<_> = (0..QUEUES).map(|n| format!("/maps/{n}")).collect();
    let queue = |node: &Node, name: &String| node.queue::<[u8]>(name).expect("a name");
    let mut to: Vec<_> =
        names.iter().map(|name| queue(&desk, name).consumer().expect("the only one")).collect();
    let mut from: Vec<_> =
        names.iter().map(|name| queue(&robot, name).producer().expect("a producer")).collect();
    // All begin before any takes room from them.
    for from in &mut from {
        wait_for("the consumer elsewhere", || from.has_consumer().then_some(()));
    }
    for from in &mut from {
        for n in 0..EACH {
            from.send(&[n as u8; 40_000]).expect("its own lane has room");
        }
    }
    let mut counters = Counters::of(&desk);
    let memory = |net: &Net| {
        let queues = net.hosts[0].domain().queues().expect("a domain");
        queues.iter().flat_map(|queue| &queue.lanes).map(|lane| lane.memory_bytes).sum::<u64>()
    };
    let received = |c: &serde_json::Value| {
        let of = |name| count(c, "in", &format!("queue {name}"), "received");
        names.iter().map(of).sum::<u64>()
    };
    let (mut most, mut waiting, mut before, mut still) = (0, 0, 0, 0);
    counters.until("no more to come", |c| {
        most = most.max(memory(&net));
        waiting = waiting.max(c["not_carried"].as_u64().expect("a counter"));
        still = if received(c) == before { still + 1 } else { 0 };
        before = received(c);
        before > 0 && still > 30
    });
    println!("{before} of {} messages in {most} bytes; {waiting} queues wait", 24 * EACH);
    // The first page of each file is not counted.
    let enough = TOTAL + 8 * 4096 * QUEUES as u64;
    assert!(most <= enough && most > TOTAL / 2, "{most} bytes");
    assert!(before < QUEUES as u64 * EACH && waiting > QUEUES as u64 / 2, "no room for all");
    // One that leaves its lane to the next consumer gives back no room with that.
    for (n, name) in names.iter().enumerate() {
        drop(to.remove(n));
        thread::sleep(Duration::from_millis(200));
        to.insert(n, queue(&desk, name).consumer().expect("the next"));
    }
    thread::sleep(Duration::from_secs(3));
    println!("{} bytes after other consumers have come", memory(&net));
    assert!(memory(&net) <= enough, "{} bytes", memory(&net));
    let said = net.hosts[0].said();
    // What the bridge before it left unread counts, too.
    net.hosts[0].end();
    net.bridge(0, &format!("[limits]\ntotal_bytes = {TOTAL}\n{rules}"));
    thread::sleep(Duration::from_secs(5));
    println!("{} bytes after another bridge has come", memory(&net));
    assert!(memory(&net) <= enough, "{} bytes", memory(&net));
    let lines: Vec<_> = said.iter().filter(|line| line.contains("until there is room")).collect();
    for name in &names {
        let of = lines.iter().filter(|line| line.contains(&format!("queue {name} "))).count();
        assert!(of <= 1, "{name} is said {of} times: {lines:#?}");
    }
    let remedy = format!("takes all of total_bytes = {TOTAL} in [limits]; raise it, or receive");
    assert!(lines.len() as u64 >= waiting && lines[0].contains(&remedy), "{lines:#?}");

    // Once it is received there is room for the rest.
    let mut next = vec![0; QUEUES];
    let mut come = 0;
    while come < QUEUES as u64 * EACH {
        wait_for(&format!("more than {come} messages"), || {
            let before = come;
            for (to, next) in to.iter_mut().zip(&mut next) {
                while let Some(message) = to.receive().expect("a message") {
                    assert_eq!(&message[..], &[*next as u8; 40_000][..], "in order, none twice");
                    *next += 1;
                    come += 1;
                }
            }
            (come > before).then_some(())
        });
    }
    counters.until("none that waits", |c| c["not_carried"] == 0);
}

const CALLED: usize = 8;
const CALLS: usize = 16;
static BODY: [u8; 100_000] = [7; 100_000];
/// The first page of each file is not counted.
const HEADS_BYTES: u64 = 8 * 4096 * CALLED as u64;

/// A desk that lets others take `total` bytes, and a robot; services on one, each with a client on
/// the other.
fn services(total: u64, on_desk: bool) -> Option<(Net, Vec<Pair>)> {
    let mut net = Net::new(2)?;
    let rules = "[[service]]\npattern = \"/**\"\n";
    net.hosts[0].listen_in();
    net.bridge(0, &format!("lease_ms = 10000\n[limits]\ntotal_bytes = {total}\n{rules}"));
    net.bridge(1, &format!("lease_ms = 10000\n{rules}"));
    let (there, here) = (net.hosts[usize::from(!on_desk)].node("server"), &net.hosts);
    let here = here[usize::from(on_desk)].node("client");
    let service =
        |node: &Node, n| node.service::<[u8], [u8]>(&format!("/maps/{n}")).expect("a name");
    let pairs = (0..CALLED).map(|n| {
        let server = service(&there, n).server().expect("the only one");
        let mut client = service(&here, n).client().expect("a client");
        wait_for("the server elsewhere", || client.has_server().then_some(()));
        (server, client)
    });
    let pairs = pairs.collect();
    Some((net, pairs))
}

type Pair = (Server<[u8], [u8]>, Client<[u8], [u8]>);

/// What the services take of the RAM disk of the desk.
fn memory_of_services(net: &Net) -> u64 {
    let services = net.hosts[0].domain().services().expect("a domain");
    services.iter().map(|service| service.memory_bytes).sum()
}

/// How much more than `before` they take at most until no more is refused, and how much was.
fn most_until_refused(net: &Net, before: u64, pairs: &mut [Pair]) -> (u64, usize) {
    let (mut most, mut refused, mut still) = (before, 0, 0);
    wait_for("no more to come", || {
        thread::sleep(Duration::from_millis(20));
        most = most.max(memory_of_services(net));
        let now = refused;
        for (_, client) in &mut *pairs {
            while let Some(reply) = client.receive().expect("the replies") {
                assert_eq!(reply.into_response().expect_err("none").kind(), ErrorKind::Refused);
                refused += 1;
            }
        }
        still = if refused == now { still + 1 } else { 0 };
        (still > 50).then_some(())
    });
    (most - before, refused)
}

/// They filled 64 MiB for each service.
#[test]
fn calls_to_slow_servers_cannot_fill_the_ram_disk() {
    const TOTAL: u64 = 4 << 20;
    let Some((net, mut pairs)) = services(TOTAL, true) else { return };
    let before = memory_of_services(&net);
    for (_, client) in &mut pairs {
        for _ in 0..CALLS {
            client.send(&BODY).expect("its own lane has room");
        }
    }
    let (most, refused) = most_until_refused(&net, before, &mut pairs);
    println!("{most} bytes more; {refused} of {} calls are refused", CALLED * CALLS);
    assert!(most > TOTAL / 2 && most <= TOTAL + HEADS_BYTES, "{most} bytes");
    let mut counters = Counters::of(&net.hosts[0].node("desk"));
    counters.until("what was refused", |c| {
        let of = |n| count(c, "in", &format!("service /maps/{n}"), "dropped");
        (0..CALLED).map(of).sum::<u64>() == refused as u64
    });
    let said = net.hosts[0].said();
    assert!(
        said.iter().any(|line| line.contains("/maps/") && line.contains("[limits]")),
        "{said:?}"
    );
    // Those that were passed on are answered, and then there is room again.
    let mut answered = 0;
    let mut serve = |pairs: &mut [Pair]| {
        for (server, client) in pairs {
            while let Some(request) = server.receive().expect("the requests") {
                server.respond(request, &[1]).expect("answered");
            }
            while let Some(reply) = client.receive().expect("the replies") {
                assert_eq!(*reply.body().expect("an answer"), [1]);
                answered += 1;
            }
        }
        answered
    };
    wait_for("the others", || (serve(&mut pairs) == CALLED * CALLS - refused).then_some(()));
    for (_, client) in &mut pairs {
        client.send(&BODY[..10_000]).expect("sent");
    }
    let all = CALLED * (CALLS + 1) - refused;
    wait_for("further answers", || (serve(&mut pairs) == all).then_some(()));
}

/// They filled 64 MiB for each client.
#[test]
fn large_answers_cannot_fill_the_ram_disk() {
    const TOTAL: u64 = 4 << 20;
    let Some((net, mut pairs)) = services(TOTAL, false) else { return };
    let before = memory_of_services(&net);
    for (_, client) in &mut pairs {
        client.send(&[]).expect("sent");
    }
    for (server, _) in &mut pairs {
        let request = wait_for("a request", || {
            server.receive_timeout(Duration::from_millis(50)).expect("the queue")
        });
        for _ in 0..CALLS {
            server.respond_part(&request, &BODY).expect("its own lane has room");
        }
        server.respond(request, &BODY).expect("its own lane has room");
    }
    // Nobody takes them meanwhile.
    let (most, _) = most_until_refused(&net, before, &mut []);
    println!("{most} bytes more");
    assert!(most > TOTAL / 2 && most <= TOTAL + HEADS_BYTES, "{most} bytes");
    let mut refused = 0;
    for (_, client) in &mut pairs {
        let end = wait_for("the end of an answer", || {
            let mut replies = std::iter::from_fn(|| client.receive().expect("the replies"));
            replies.find(outlive::service::Reply::is_last)
        });
        match end.into_response() {
            Ok(body) => assert_eq!(body[..], BODY),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Refused);
                refused += 1;
            }
        }
    }
    println!("{refused} of {CALLED} answers are refused");
    let mut counters = Counters::of(&net.hosts[0].node("desk"));
    counters.until("what was refused", |c| {
        let of = |n| count(c, "in", &format!("service /maps/{n}"), "dropped");
        refused > 0 && (0..CALLED).map(of).sum::<u64>() == refused
    });
}
