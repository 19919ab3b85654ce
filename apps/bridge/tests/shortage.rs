//! What the bridge does while something is short: descriptors, the patience of those who read here.
//! Where namespaces are refused, each test says so and passes.
#![allow(missing_docs)]

mod net;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use net::{Counters, Net, count, wait_for};
use outlive::{Node, Publisher, Subscriber};
use serde_json::Value;

/// A busy machine is no broken link.
const RELIABLE: &str = "lease_ms = 10000\n[[topic]]\npattern = \"/**\"\nreliable = true\n";

fn publisher(node: &Node, name: &str) -> Publisher<u64> {
    node.topic::<u64>(name).expect("a name").depth(1024).publisher().expect("a publisher")
}

fn subscriber(node: &Node, name: &str) -> Subscriber<u64> {
    node.topic::<u64>(name).expect("a name").depth(1024).subscriber().expect("a subscriber")
}

/// Two hosts with a bridge each.
fn pair() -> Option<Net> {
    pair_by(RELIABLE)
}

fn pair_by(rules: &str) -> Option<Net> {
    let mut net = Net::new(2)?;
    net.hosts[0].listen_in();
    net.bridge(0, rules);
    net.bridge(1, rules);
    Some(net)
}

/// Publishes until something comes out on the other side.
fn is_carried(from: &Publisher<u64>, to: &mut Subscriber<u64>) {
    wait_for("a message elsewhere", || {
        from.publish(&0).expect("published");
        to.receive_timeout(Duration::from_millis(50)).expect("a sample").map(drop)
    });
}

/// A topic from each host to the other is carried; the bridge of the first is the one it was.
fn carries_both_ways(net: &Net, name: &str) {
    let nodes = [0, 1].map(|i| net.hosts[i].node("member"));
    for (i, way) in [(0, "there"), (1, "here")] {
        let name = format!("{name}/{way}");
        is_carried(&publisher(&nodes[i], &name), &mut subscriber(&nodes[1 - i], &name));
    }
    assert!(net.hosts[0].runs(), "{:?}", net.hosts[0].said());
}

#[test]
fn who_reads_the_counters_reliably_and_stands_still_does_not_end_the_bridge() {
    let Some(net) = pair() else { return };
    let (reader, other) = (net.hosts[0].node("reader"), net.hosts[0].node("other"));
    Counters::of(&other).newest();
    let topic = reader.msgpack::<Value>("/outlive-bridge/fleet/stats").expect("a name");
    let topic = topic.type_name("outlive/BridgeStats").reliable(true);
    let mut stopped = topic.subscriber().expect("the counters");
    // More than its ring holds, and longer than a publisher waits unless told otherwise.
    thread::sleep(Duration::from_secs(3));
    assert!(net.hosts[0].runs(), "{:?}", net.hosts[0].said());
    carries_both_ways(&net, "/after");
    let said = net.hosts[0].said();
    assert!(said.iter().any(|line| line.contains("/outlive-bridge/fleet/stats")), "{said:?}");
    // Once it reads again the counters come again.
    let mut newer = Counters::of(&other);
    wait_for("newer counters", || {
        while stopped.receive().expect("counters").is_some() {}
        let now = newer.newest();
        (count(&now, "out", "/after/there", "sent") > 0).then_some(())
    });
}

/// Its thread that hears of all that comes and goes stood still at the first line.
#[test]
fn a_bridge_whose_log_nobody_reads_carries_and_ends() {
    let Some(mut net) = Net::new(2) else { return };
    net.hosts[0].listen_to_nothing();
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    carries_both_ways(&net, "/unread");
    net.hosts[0].end();
}

#[test]
fn without_descriptors_for_a_while_the_bridge_goes_on() {
    let Some(net) = pair() else { return };
    carries_both_ways(&net, "/before");
    let host = &net.hosts[0];
    let before = host.open_files(None);
    thread::sleep(Duration::from_secs(2));
    let said = host.said();
    assert!(host.runs(), "{said:?}");
    assert!(said.iter().any(|line| line.contains("looking at the domain failed")), "{said:?}");
    host.open_files(Some(before));
    carries_both_ways(&net, "/after");
}

/// It ended the routes: nobody's messages and calls were carried until there were some again.
#[test]
fn a_newcomer_that_there_are_no_descriptors_for_ends_no_route() {
    let rules = "[[queue]]\npattern = \"/**\"\n[[service]]\npattern = \"/**\"\n";
    let Some(net) = pair_by(&format!("{RELIABLE}{rules}")) else { return };
    let [here, there, late] =
        [(0, "member"), (1, "member"), (0, "late")].map(|(i, name)| net.hosts[i].node(name));
    let service = |node: &Node| node.service::<u64, u64>("/twice").expect("a name");
    let queue = |node: &Node| node.queue::<u64>("/jobs").expect("a name");
    let (from, mut to) = (publisher(&here, "/n"), subscriber(&there, "/n"));
    let mut server = service(&there).server().expect("a server");
    let mut consumer = queue(&there).consumer().expect("a consumer");
    let mut client = service(&here).client().expect("a client");
    let mut producer = queue(&here).producer().expect("a producer");
    is_carried(&from, &mut to);
    wait_for("a server elsewhere", || client.has_server().then_some(()));
    wait_for("a consumer elsewhere", || producer.has_consumer().then_some(()));
    let wait = Duration::from_millis(50);
    let mut round = |n: u64| {
        from.publish(&n).expect("published");
        wait_for("a message", || to.receive_timeout(wait).expect("one").filter(|got| **got == n));
        producer.send(&n).expect("there is a consumer");
        wait_for("a job", || consumer.receive_timeout(wait).expect("one").map(|got| *got == n));
        let ticket = client.send(&n).expect("there is a server");
        let request = wait_for("a call", || server.receive_timeout(wait).expect("one"));
        server.respond(request, &(2 * n)).expect("answered");
        let reply = wait_for("an answer", || client.receive_timeout(wait).expect("one"));
        assert_eq!((reply.ticket(), *reply.body().expect("an answer")), (ticket, 2 * n));
    };
    round(1);
    let host = &net.hosts[0];
    let before = host.open_files(None);
    let newcomer = publisher(&late, "/n");
    let _others = (queue(&late).producer(), service(&late).client());
    for n in 2..12 {
        round(n);
        thread::sleep(Duration::from_millis(200));
    }
    let said = host.said();
    let ended = ["is not carried", "is not stood for"];
    assert!(!said.iter().any(|line| ended.iter().any(|what| line.contains(what))), "{said:?}");
    for name in ["topic /n", "queue /jobs"] {
        let told = |line: &String| line.contains(name) && line.contains("tried again");
        assert!(said.iter().any(told), "{name}: {said:?}");
    }
    host.open_files(Some(before));
    wait_for("the newcomer's message", || {
        newcomer.publish(&100).expect("published");
        to.receive_timeout(wait).expect("one").filter(|got| **got == 100)
    });
}

#[test]
fn a_remote_node_that_could_not_be_shown_is_shown_once_it_can() {
    let Some(net) = pair() else { return };
    carries_both_ways(&net, "/before");
    let host = &net.hosts[0];
    let before = host.open_files(None);
    let late = net.hosts[1].node("late");
    wait_for("a stand-in that cannot be opened", || {
        host.said().iter().any(|line| line.contains("late of h1 is not shown")).then_some(())
    });
    host.open_files(Some(before));
    let is_shown = || {
        let nodes = host.domain().nodes().expect("a domain");
        nodes.iter().any(|n| n.alive && n.name == "outlive-bridge.h1.late")
    };
    wait_for("its stand-in", || is_shown().then_some(()));
    drop(late);
    wait_for("the end of its stand-in", || (!is_shown()).then_some(()));
}

/// Holds the lock of the domain of the first host as long as it lives. None, with a notice, where
/// there is no Python.
fn hold_domain(net: &Net) -> Option<Held> {
    let code = "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); \
                fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); time.sleep(1000)";
    let mut python = Command::new("python3");
    python.args(["-c", code]).arg(net.hosts[0].domain().dir().join("lock"));
    let Ok(mut child) = python.stdout(Stdio::piped()).spawn() else {
        println!("skipped: no python3 here to hold a lock");
        return None;
    };
    let mut out = child.stdout.take().expect("its output");
    assert_eq!(out.read(&mut [0]).expect("a line"), 1, "the lock is held");
    Some(Held(child))
}

struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn while_somebody_keeps_the_domain_locked_all_but_new_stand_ins_goes_on() {
    let Some(mut net) = pair() else { return };
    carries_both_ways(&net, "/before");
    let here = net.hosts[0].node("member");
    let mut counters = Counters::of(&here);
    let Some(held) = hold_domain(&net) else { return };
    let late = ["a", "b", "c"].map(|name| net.hosts[1].node(name));
    let said = |net: &Net, what: &str| net.hosts[0].said().iter().any(|line| line.contains(what));
    wait_for("a stand-in that cannot be opened", || said(&net, "is not shown").then_some(()));
    let mut seen = 0;
    wait_for("counters", || {
        counters.newest();
        seen += 1;
        (seen == 12).then_some(())
    });
    drop(held);
    wait_for("the stand-ins", || {
        let nodes = net.hosts[0].domain().nodes().expect("a domain");
        let is_shown = |name: &&str| {
            let name = format!("outlive-bridge.h1.{name}");
            nodes.iter().any(|n| n.alive && n.name == name)
        };
        ["a", "b", "c"].iter().all(is_shown).then_some(())
    });
    let Some(_held) = hold_domain(&net) else { return };
    let _later = ["d", "e", "f"].map(|name| net.hosts[1].node(name));
    wait_for("others that cannot be opened", || {
        ["d", "e", "f"].iter().any(|name| said(&net, &format!("node {name} of"))).then_some(())
    });
    net.hosts[0].end();
    drop(late);
}

#[test]
fn a_node_that_goes_while_its_topic_takes_in_nothing_more_goes_here_as_well() {
    let Some(net) = pair() else { return };
    let [here, there, other] =
        [(0, "member"), (1, "member"), (1, "goes")].map(|(i, name)| net.hosts[i].node(name));
    let topic = |node: &Node| node.topic::<u64>("/n").expect("a name");
    let from = topic(&there).publisher().expect("a publisher");
    let goes = topic(&other).publisher().expect("a publisher");
    let mut stopped = topic(&here).reliable(true).subscriber().expect("a subscriber");
    is_carried(&from, &mut stopped);
    is_carried(&goes, &mut stopped);
    let is_shown = || {
        let nodes = net.hosts[0].domain().nodes().expect("a domain");
        nodes.iter().any(|n| n.alive && n.name == "outlive-bridge.h1.goes")
    };
    assert!(is_shown());
    // Until 1024 wait, and more are dropped.
    let mut counters = Counters::of(&here);
    counters.until("a full intake", |c| {
        for n in 0..200 {
            from.publish(&n).expect("nobody there is waited for");
        }
        count(c, "in", "/n", "dropped") > 100
    });
    drop((goes, other));
    for n in 0..1000 {
        from.publish(&n).expect("nobody there is waited for");
        thread::sleep(Duration::from_millis(1));
    }
    wait_for("the end of its stand-in", || {
        while stopped.receive().expect("a sample").is_some() {}
        (!is_shown()).then_some(())
    });
}

#[test]
fn messages_that_a_subscriber_here_keeps_out_are_not_said_to_lack_room() {
    let Some(net) = pair() else { return };
    let [here, there] = [0, 1].map(|i| net.hosts[i].node("member"));
    let topic = |node: &Node| node.topic::<u64>("/n").expect("a name").depth(4);
    let from = topic(&there).publisher().expect("a publisher");
    let mut stopped = topic(&here).reliable(true).subscriber().expect("a subscriber");
    is_carried(&from, &mut stopped);
    let line = wait_for("a message that is dropped", || {
        from.publish(&1).expect("nobody there is waited for");
        net.hosts[0].said().into_iter().find(|line| line.contains("dropped"))
    });
    println!("{line}");
    assert!(
        line.contains("/n") && line.contains("reliable") && !line.contains("RAM disk"),
        "{line}"
    );
    // The words are the publisher's own.
    assert!(line.contains(&format!("node {}", here.id().get())), "{line}");
}
