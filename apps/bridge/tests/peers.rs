//! Peers that speak as no bridge does. Where namespaces are refused, each test says so and passes.
#![allow(missing_docs)]

mod net;

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use net::{Counters, Host, Net, count, wait_for};
use outlive::{Node, PayloadType};
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
