//! Bridges between network namespaces that the test makes itself. Where that is refused, each test
//! says so and passes: `apps/bridge/test` shows the notices.
#![allow(missing_docs)]

mod net;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use net::{Counters, Net, count, wait_for};
use outlive::topic::Event;
use outlive::{Consumer, Deadline, ErrorKind, Node, Producer, Publisher, Server, Subscriber};

const RELIABLE: &str = "[[topic]]\npattern = \"/**\"\nreliable = true\n";

/// Publishes 0 on one side until it comes out on the other, then takes what is still under way.
fn connect(from: &Publisher<u64>, to: &mut Subscriber<u64>) {
    wait_for("the first message", || {
        from.publish(&0).expect("published");
        to.receive_timeout(Duration::from_millis(50)).expect("a sample").map(drop)
    });
    from.publish(&1).expect("published");
    wait_for("the last of the first messages", || {
        to.receive().expect("a sample").filter(|s| **s == 1).map(drop)
    });
}

fn publisher(node: &Node, name: &str) -> Publisher<u64> {
    let topic = node.topic::<u64>(name).expect("a name").depth(4096);
    topic.attribute("unit", "1").publisher().expect("a publisher")
}

fn subscriber(node: &Node, name: &str) -> Subscriber<u64> {
    node.topic::<u64>(name).expect("a name").subscriber().expect("a subscriber")
}

#[test]
fn messages_are_counted_exactly_and_none_comes_back() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let info = wait_for("the topic elsewhere", || {
        net.hosts[1].domain().find_topic("/n").expect("a domain")
    });
    let original = net.hosts[0].domain().find_topic("/n").expect("a domain").expect("ours");
    assert_eq!(info.payload_type(), original.payload_type());
    assert_eq!((info.depth, &info.attributes), (4096, &original.attributes));

    let mut to = subscriber(&there, "/n");
    let mut own = subscriber(&here, "/n");
    connect(&from, &mut to);
    for n in 2..3000 {
        from.publish(&n).expect("published");
        if n % 64 == 0 {
            std::thread::yield_now();
        }
    }
    let mut next = 2;
    wait_for("all messages", || {
        while let Some(sample) = to.receive().expect("a sample") {
            assert_eq!(*sample, next, "in order, none twice, none missing");
            next += 1;
        }
        (next == 3000).then_some(())
    });
    assert_eq!(to.lost(), 0);

    let published = from.published();
    let mut out = Counters::of(&here);
    let sum = |c: &serde_json::Value| {
        ["sent", "unheard", "overrun", "dropped", "bad"].map(|k| count(c, "out", "/n", k))
    };
    let last = out.until("every message in one counter", |c| {
        // What was published before the bridge had found the topic is in none.
        let [sent, ..] = sum(c);
        sent >= 2998 && sum(c).iter().sum::<u64>() <= published
    });
    let [sent, _, overrun, dropped, bad] = sum(&last);
    assert_eq!([overrun, dropped, bad], [0; 3]);
    let into =
        Counters::of(&there).until("as many there", |c| count(c, "in", "/n", "received") == sent);
    assert_eq!(count(&into, "in", "/n", "lost") + count(&into, "in", "/n", "dropped"), 0);

    // Nothing went round: ours heard only us, and the other bridge sends nothing.
    while let Some(sample) = own.receive().expect("a sample") {
        assert_eq!(sample.publisher(), from.id());
    }
    assert_eq!(count(&into, "out", "/n", "sent"), 0);
}

#[test]
fn a_partition_heals_and_every_message_is_accounted_for() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let mut to = subscriber(&there, "/n");
    connect(&from, &mut to);
    while to.next_event().is_some() {}

    net.link(1, false);
    let cut = Instant::now();
    // Local life goes on: this returns, whatever the link does.
    wait_for("the loss of the other machine to be told", || {
        from.publish(&7).expect("published");
        while to.receive().expect("a sample").is_some() {}
        std::iter::from_fn(|| to.next_event()).find(|e| matches!(e, Event::PublisherLeft(_)))
    });
    println!("partition told after {:?}", cut.elapsed());

    net.link(1, true);
    let healed = Instant::now();
    wait_for("messages after healing", || {
        from.publish(&8).expect("published");
        to.receive().expect("a sample").filter(|s| **s == 8).map(drop)
    });
    println!("messages again {:?} after healing", healed.elapsed());

    let (mut out, mut into) = (Counters::of(&here), Counters::of(&there));
    let mut looks = 0;
    wait_for("sums that agree", || {
        // The link may have broken once more: a gap is seen with the next message.
        if looks % 5 == 4 {
            from.publish(&9).expect("published");
        }
        looks += 1;
        let sent = count(&out.newest(), "out", "/n", "sent");
        let c = into.newest();
        let there = ["received", "lost", "dropped", "bad"].map(|k| count(&c, "in", "/n", k));
        (there.iter().sum::<u64>() == sent).then_some(())
    });
}

#[test]
fn a_killed_bridge_comes_back_and_nobody_stalls() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let mut to = subscriber(&there, "/n");
    connect(&from, &mut to);
    for host in [1, 0] {
        net.hosts[host].kill();
        for n in 0..20_000 {
            from.publish(&n).expect("nobody is waited for");
        }
        net.hosts[host].start();
        // A number of its own: none of the round before counts.
        let mark = 10_000_000 + host as u64;
        let begun = Instant::now();
        wait_for("messages through the new bridge", || {
            from.publish(&mark).expect("published");
            let mut new = false;
            while let Some(sample) = to.receive().expect("a sample") {
                new |= *sample == mark;
            }
            new.then_some(())
        });
        println!("host {host}: messages again {:?} after the start", begun.elapsed());
    }
}

/// Not a test: the process that the next one kills.
#[test]
fn a_node_that_waits_to_be_killed() {
    let Some(root) = std::env::var_os("OUTLIVE_BRIDGE_VICTIM") else { return };
    let _node = Node::builder().root(root).name("victim").open().expect("a node");
    std::thread::sleep(Duration::from_secs(300));
}

#[test]
fn the_death_of_a_remote_node_reaches_local_watchers() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    let watcher = net.hosts[1].node("watcher");
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_node_that_waits_to_be_killed"])
        .env("OUTLIVE_BRIDGE_VICTIM", net.hosts[0].root())
        .stdout(Stdio::null())
        .spawn()
        .expect("a victim");
    let shown = wait_for("the remote node here", || {
        let nodes = net.hosts[1].domain().nodes().expect("a domain");
        nodes.into_iter().find(|n| n.alive && n.name == "outlive-bridge.h0.victim")
    });
    let watch = watcher.watch(shown.id).expect("a watch");
    assert!(watch.is_alive());
    victim.kill().expect("killed");
    let killed = Instant::now();
    assert!(watch.wait(Duration::from_secs(60)), "told of a death on another machine");
    println!("death told after {:?}", killed.elapsed());
    victim.wait().expect("reaped");
}

#[test]
fn a_narrow_link_drops_and_counts() {
    let Some(mut net) = Net::new(2) else { return };
    if !net.limit(1, "4mbit") {
        println!("skipped: no tbf here");
        return;
    }
    let rules = "[[topic]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (here, there) = (net.hosts[0].node("camera"), net.hosts[1].node("viewer"));
    let from = here.topic::<[u8]>("/image").expect("a name").publisher().expect("a publisher");
    let topic = there.topic::<[u8]>("/image").expect("a name");
    let mut to = topic.subscriber().expect("a subscriber");
    wait_for("the first image", || {
        from.publish(&[1; 10]).expect("published");
        to.receive_timeout(Duration::from_millis(50)).expect("a sample").map(drop)
    });
    // 40 Mbit/s into 4: most of it must go, and no publisher waits for it.
    let image = vec![7; 100_000];
    for _ in 0..100 {
        from.publish(&image).expect("published");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (mut out, mut into) = (Counters::of(&here), Counters::of(&there));
    let lost = wait_for("sums that agree", || {
        from.publish(&[2; 10]).expect("published");
        while to.receive().expect("a sample").is_some() {}
        let sent = count(&out.newest(), "out", "/image", "sent");
        let c = into.newest();
        let there = ["received", "lost", "dropped", "bad"].map(|k| count(&c, "in", "/image", k));
        (there.iter().sum::<u64>() == sent).then_some(there[1])
    });
    println!("100 images over a link for 10: {lost} lost on the wire");
    assert!(lost > 0, "a link of 4 Mbit/s takes no 40");
}

#[test]
fn a_service_is_called_across_three_hosts() {
    let Some(mut net) = Net::new(3) else { return };
    let rules = "[[service]]\npattern = \"/**\"\n";
    net.bridge(0, &format!("mode = \"router\"\n{rules}"));
    net.bridge(1, &format!("mode = \"client\"\n{rules}"));
    net.bridge(2, &format!("mode = \"client\"\n{rules}"));
    let (here, there) = (net.hosts[1].node("server"), net.hosts[2].node("client"));
    let mut server = here.service::<[f64; 2], f64>("/add").expect("a name").server().expect("one");
    wait_for("the service elsewhere", || {
        let services = net.hosts[2].domain().services().expect("a domain");
        services.into_iter().find(|s| s.name == "/add" && s.server.is_some())
    });
    let asking = std::thread::spawn(move || {
        let mut client =
            there.service::<[f64; 2], f64>("/add").expect("a name").client().expect("one");
        let mut sums = Vec::new();
        for n in 0..20 {
            let asked = [f64::from(n), 0.5];
            sums.push(client.call_timeout(&asked, Duration::from_secs(60)).map(|sum| *sum));
        }
        (client, sums)
    });
    for _ in 0..20 {
        let request = wait_for("a request", || {
            server.receive_timeout(Duration::from_millis(50)).expect("the queue")
        });
        let sum = request[0] + request[1];
        server.respond(request, &sum).expect("answered");
    }
    let (mut client, sums) = asking.join().expect("no panic");
    for (n, sum) in sums.into_iter().enumerate() {
        assert_eq!(sum.expect("an answer"), n as f64 + 0.5);
    }
    drop(server);
    wait_for("the server's end elsewhere", || (!client.has_server()).then_some(()));
}

/// How a call ends that was under way when `end` happened to its server. It was refused.
fn call_under_way(end: impl FnOnce(&Net, Server<u64, u64>)) {
    let Some(mut net) = Net::new(2) else { return };
    let rules = "[[service]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (here, there) = (net.hosts[0].node("server"), net.hosts[1].node("client"));
    let mut server = here.service::<u64, u64>("/ask").expect("a name").server().expect("one");
    wait_for("the service elsewhere", || {
        let services = net.hosts[1].domain().services().expect("a domain");
        services.into_iter().find(|s| s.name == "/ask" && s.server.is_some())
    });
    let asking = std::thread::spawn(move || {
        let mut client = there.service::<u64, u64>("/ask").expect("a name").client().expect("one");
        client.call_timeout(&1, Duration::from_secs(60)).map(|answer| *answer)
    });
    let _request = wait_for("a request", || {
        server.receive_timeout(Duration::from_millis(50)).expect("the queue")
    });
    end(&net, server);
    let why = asking.join().expect("no panic").expect_err("no answer");
    assert_eq!(why.kind(), ErrorKind::ServerDied, "{why}");
}

#[test]
fn calls_under_way_are_told_of_the_end_of_their_server() {
    call_under_way(|_, server| drop(server));
}

#[test]
fn calls_under_way_are_told_of_the_end_of_the_link() {
    let mut kept = None;
    call_under_way(|net, server| {
        kept = Some(server);
        net.link(1, false);
    });
}

/// Parts that found no room were left out, and later ones followed.
#[test]
fn an_answer_in_parts_comes_whole_or_is_refused() {
    const PARTS: u64 = 100;
    let Some(mut net) = Net::new(2) else { return };
    let rules = "lease_ms = 10000\n[[service]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (here, there) = (net.hosts[0].node("server"), net.hosts[1].node("client"));
    let mut server = here.service::<u64, [u8]>("/map").expect("a name").server().expect("one");
    wait_for("the service elsewhere", || {
        let services = net.hosts[1].domain().services().expect("a domain");
        services.into_iter().find(|s| s.name == "/map" && s.server.is_some())
    });
    let mut client = there.service::<u64, [u8]>("/map").expect("a name").client().expect("one");
    client.send_until(&1, Deadline::after(Duration::from_secs(120))).expect("sent");
    let request = wait_for("a request", || {
        server.receive_timeout(Duration::from_millis(50)).expect("the queue")
    });
    // More than the lane to the client holds, 64 MiB, which reads none of it.
    let part = |n: u64| {
        let mut part = vec![0; 1 << 20];
        part[..8].copy_from_slice(&n.to_le_bytes());
        part
    };
    let begun = net.carried(1).1;
    for n in 0..PARTS {
        wait_for("room", || server.respond_part(&request, &part(n)).ok());
    }
    wait_for("all of them there", || (net.carried(1).1 - begun > PARTS << 20).then_some(()));
    std::thread::sleep(Duration::from_secs(1));
    let mut next = 0;
    let mut take = || {
        while let Some(reply) = client.receive().expect("the replies") {
            match reply.body() {
                Ok(part) => {
                    let n = part.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
                    assert_eq!(n, next, "a part is missing");
                    next += 1;
                }
                Err(e) => return Some(e.kind()),
            }
            assert!(!reply.is_last(), "the answer ended as if it were whole");
        }
        None
    };
    // There is room again.
    let early = take();
    server.respond(request, &part(PARTS)).expect("answered");
    let end = early.or_else(|| Some(wait_for("the end of the answer", &mut take)));
    assert_eq!(end, Some(ErrorKind::Refused));
    println!("{next} of {PARTS} parts came, and then the refusal");
}

const QUEUES: &str = "[[queue]]\npattern = \"/**\"\n";

fn producer(node: &Node) -> Producer<u64> {
    node.queue::<u64>("/work").expect("a name").producer().expect("a producer")
}

/// Waits for a consumer, which is a bridge's, and sends.
fn send(to: &mut Producer<u64>, value: u64) {
    wait_for("a consumer", || {
        let sent = to.send_timeout(&value, Duration::from_millis(100));
        match sent {
            Ok(()) => Some(()),
            Err(e) if e.kind() == ErrorKind::OwnerDied => None,
            Err(e) => panic!("{e}"),
        }
    });
}

#[test]
fn a_queue_of_three_hosts_loses_nothing_when_its_consumer_and_a_bridge_die() {
    let Some(mut net) = Net::new(3) else { return };
    net.bridge(0, &format!("mode = \"router\"\n{QUEUES}"));
    net.bridge(1, &format!("mode = \"client\"\n{QUEUES}"));
    net.bridge(2, &format!("mode = \"client\"\n{QUEUES}"));
    let consumer = |net: &Net| {
        let node = net.hosts[0].node("consumer");
        node.queue::<u64>("/work").expect("a name").consumer().expect("the only consumer")
    };
    let mut first = consumer(&net);
    let mut producers: Vec<_> =
        net.hosts[1..].iter().map(|host| producer(&host.node("producer"))).collect();
    // Numbers of their own: those of host 1 are even.
    for n in 0..100 {
        for (i, producer) in producers.iter_mut().enumerate() {
            send(producer, 2 * n + i as u64);
        }
    }
    let mut next = [0, 1];
    let mut take = |from: &mut Consumer<u64>, until: u64| {
        wait_for("all that was sent", || {
            while let Some(n) = from.receive().expect("a message") {
                let of = &mut next[(*n % 2) as usize];
                // None twice, though the bridge that had sent it was killed.
                assert_eq!(*n, *of, "in order, none twice, none missing");
                *of = *n + 2;
            }
            (next == [until, until + 1]).then_some(())
        });
    };
    take(&mut first, 200);

    // No consumer: producers elsewhere are told, and what they sent before waits.
    drop(first);
    let sent = producers[0].try_send(&200);
    let early = match sent {
        Err(e) if e.kind() == ErrorKind::OwnerDied => false,
        // That end is still on its way there.
        Ok(()) => true,
        Err(e) => panic!("{e}"),
    };
    net.hosts[2].kill();
    let mut second = consumer(&net);
    net.hosts[2].start();
    for n in 100..200 {
        for (i, producer) in producers.iter_mut().enumerate() {
            if (n, i, early) != (100, 0, true) {
                send(producer, 2 * n + i as u64);
            }
        }
    }
    take(&mut second, 400);
    let mut desk = Counters::of(&net.hosts[0].node("counters"));
    desk.until("their sum", |c| count(c, "in", "queue /work", "received") >= 400);
}

#[test]
fn a_queue_over_a_broken_link_arrives_whole_and_in_order() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, QUEUES);
    net.bridge(1, QUEUES);
    let node = net.hosts[0].node("consumer");
    let mut consumer = node.queue::<u64>("/work").expect("a name").consumer().expect("one");
    let mut to = producer(&net.hosts[1].node("producer"));
    for n in 0..300 {
        match n {
            100 => net.link(1, false),
            // What is sent before waits in the lane there; by now both sides know of the break.
            150 => {
                std::thread::sleep(Duration::from_millis(1500));
                net.link(1, true);
            }
            _ => {}
        }
        send(&mut to, n);
    }
    let mut next = 0;
    wait_for("all that was sent", || {
        while let Some(n) = consumer.receive().expect("a message") {
            assert_eq!(*n, next, "in order, none twice, none missing");
            next = *n + 1;
        }
        (next == 300).then_some(())
    });
}
