//! How routes begin and end: what a publisher that leaves has sent, routes that cannot end soon,
//! publishers that come back. Where namespaces are refused, each test says so and passes.
#![allow(missing_docs)]

mod net;

use std::time::Duration;

use net::{Counters, Net, wait_for};
use outlive::{Node, Publisher, Subscriber};

const RELIABLE: &str = "[[topic]]\npattern = \"/**\"\nreliable = true\n";

fn publisher(node: &Node, name: &str) -> Publisher<[u8]> {
    node.topic::<[u8]>(name).expect("a name").depth(1024).publisher().expect("a publisher")
}

fn subscriber(node: &Node, name: &str) -> Subscriber<[u8]> {
    node.topic::<[u8]>(name).expect("a name").depth(1024).subscriber().expect("a subscriber")
}

/// The number that a message begins with.
fn number(message: &[u8]) -> u64 {
    message.first_chunk().map_or(0, |n| u64::from_le_bytes(*n))
}

/// `bytes` bytes that begin with `n`.
fn message(n: u64, bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes.max(8)];
    message[..8].copy_from_slice(&n.to_le_bytes());
    message
}

/// Publishes 0 on one side until it comes out on the other, and takes all of these.
fn connect(from: &Publisher<[u8]>, to: &mut Subscriber<[u8]>) {
    wait_for("the first message", || {
        from.publish(&message(0, 8)).expect("published");
        to.receive_timeout(Duration::from_millis(50)).expect("a sample").map(drop)
    });
    from.publish(&message(1, 8)).expect("published");
    wait_for("the last of the first messages", || {
        to.receive().expect("a sample").filter(|s| number(s) == 1).map(drop)
    });
}

/// Two hosts; what the first sends to the second is limited to `rate`.
fn narrow(rate: &str, rules: &str) -> Option<Net> {
    let mut net = Net::new(2)?;
    if !net.limit(1, rate) {
        println!("skipped: no tbf here");
        return None;
    }
    net.bridge(0, rules);
    net.bridge(1, rules);
    Some(net)
}

#[test]
fn what_is_still_in_the_ring_when_a_publisher_leaves_arrives() {
    let Some(net) = narrow("16mbit", RELIABLE) else { return };
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let mut to = subscriber(&there, "/n");
    connect(&from, &mut to);
    // More than the link takes at once.
    for n in 2..202 {
        from.publish(&message(n, 20_000)).expect("published");
    }
    drop((from, here));
    let (mut next, mut arrived) = (2, 0);
    let mut counters = Counters::of(&net.hosts[1].node("counters"));
    let mut last = counters.newest();
    wait_for("all messages, or their end", || {
        while let Some(sample) = to.receive().expect("a sample") {
            assert!(number(&sample) >= next, "in order");
            (next, arrived) = (number(&sample) + 1, arrived + 1);
        }
        last = counters.newest();
        let ended = to.publishers().is_empty();
        (next == 202 || ended).then_some(())
    });
    println!("{arrived} of 200 messages arrived; counted: {}", last["in"]["/n"]);
    assert_eq!(arrived, 200);
}
