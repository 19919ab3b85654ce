//! Links as they are elsewhere: lossy, slow, encrypted, found by multicast. Where the machine
//! cannot, each test says so and passes: `apps/bridge/test` shows the notices.
#![allow(missing_docs)]

mod net;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use net::{Counters, Host, Net, count, ran, wait_for};
use outlive::topic::Event;
use outlive::{Node, Publisher, Subscriber};

const RELIABLE: &str = "[[topic]]\npattern = \"/**\"\nreliable = true\n";
const HUB: &str = "listen = [\"tcp/0.0.0.0:7447\"]";

fn publisher(node: &Node, name: &str) -> Publisher<u64> {
    node.topic::<u64>(name).expect("a name").depth(4096).publisher().expect("a publisher")
}

fn subscriber(node: &Node, name: &str) -> Subscriber<u64> {
    node.topic::<u64>(name).expect("a name").depth(4096).subscriber().expect("a subscriber")
}

/// Publishes `mark` until it comes out; how long that took.
fn until_through(from: &Publisher<u64>, to: &mut Subscriber<u64>, mark: u64) -> Duration {
    let begun = Instant::now();
    wait_for("a message through the link", || {
        from.publish(&mark).expect("published");
        std::iter::from_fn(|| to.receive().expect("a sample")).find(|s| **s == mark).map(drop)
    });
    begun.elapsed()
}

/// Publishes until what was sent here is in exactly one counter there.
fn until_sums_agree(from: &Publisher<u64>, here: &Node, there: &Node) -> [u64; 4] {
    let (mut out, mut into) = (Counters::of(here), Counters::of(there));
    let mut looks = 0;
    wait_for("sums that agree", || {
        // A gap is seen with the next message; then both need a moment to say so.
        if looks % 5 == 0 {
            from.publish(&0).expect("published");
        }
        looks += 1;
        let sent = count(&out.newest(), "out", "/n", "sent");
        let c = into.newest();
        let told = ["received", "lost", "dropped", "bad"].map(|k| count(&c, "in", "/n", k));
        (told.iter().sum::<u64>() == sent).then_some(told)
    })
}

#[test]
fn clocks_an_hour_apart_change_nothing() {
    let Some(mut net) = Net::new(3) else { return };
    if !net.hosts[1].set_clock(3600) || !net.hosts[2].set_clock(-3600) {
        return;
    }
    for i in 0..3 {
        // A busy machine is no broken link, which costs messages.
        net.bridge(i, &format!("lease_ms = 10000\n{RELIABLE}"));
    }
    let nodes: Vec<_> = (0..3).map(|i| net.hosts[i].node("talker")).collect();
    // Again after the bridge of who talks was killed.
    for (here, there) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        for round in 0..2u64 {
            let name = format!("/from/{here}/{there}/{round}");
            let from = publisher(&nodes[here], &name);
            let mut to = subscriber(&nodes[there], &name);
            until_through(&from, &mut to, 1);
            for n in 2..=1000 {
                from.publish(&n).expect("published");
            }
            let mut next = 2;
            wait_for("all messages", || {
                while let Some(sample) = to.receive().expect("a sample") {
                    assert!(*sample == 1 || *sample == next, "{sample:?} where {next} was next");
                    next = next.max(*sample + 1);
                }
                (next == 1001).then_some(())
            });
            net.hosts[here].kill();
            net.hosts[here].start();
        }
    }
}

#[test]
fn a_link_that_loses_packets_stalls_nobody_and_every_message_is_accounted_for() {
    let Some(mut net) = Net::new(2) else { return };
    net.bridge(0, RELIABLE);
    net.bridge(1, RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let (mut own, mut to) = (subscriber(&here, "/n"), subscriber(&there, "/n"));
    until_through(&from, &mut to, 1);
    if !net.lose(1, 10) {
        println!("skipped: no nft here that loses packets");
        return;
    }
    while own.receive().expect("a sample").is_some() {}
    let mut heard = 0;
    for n in 0..2000 {
        from.publish(&(1000 + n)).expect("nobody is waited for");
        // Who is on the same machine notices nothing.
        let sample = own.receive().expect("a sample").expect("the one just published");
        assert_eq!(*sample, 1000 + n);
        while to.receive().expect("a sample").is_some() {
            heard += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    wait_for("messages through the lossy link", || {
        from.publish(&0).expect("published");
        heard += std::iter::from_fn(|| to.receive().expect("a sample")).count();
        (heard > 100).then_some(())
    });
    let packets = net.lose_none();
    assert!(packets > 0, "packets were lost");
    let healed = until_through(&from, &mut to, 9_000);
    let [received, lost, dropped, bad] = until_sums_agree(&from, &here, &there);
    println!("10 % loss: {packets} packets lost, {received} messages received, {lost} lost");
    println!("messages again {healed:?} after the loss ended");
    assert_eq!((dropped, bad), (0, 0));
}

/// Not a test: a proxy that hands everything on later, both ways.
#[test]
fn a_proxy_until_killed() {
    let Some(delay_ms) = std::env::var_os("OUTLIVE_BRIDGE_DELAY_MS") else { return };
    let delay = Duration::from_millis(delay_ms.to_str().and_then(|d| d.parse().ok()).expect("ms"));
    let listener = TcpListener::bind("0.0.0.0:7448").expect("a port");
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let Ok(server) = TcpStream::connect("127.0.0.1:7447") else { continue };
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (from, to) = (from.try_clone().expect("twice"), to.try_clone().expect("twice"));
            hand_on(from, to, delay);
        }
    }
}

/// Two threads: one stamps what comes, one waits and writes.
fn hand_on(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (due, parts) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 65536];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if due.send((Instant::now() + delay, bytes[..n].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (at, part) in parts {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&part).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Killed at the end.
struct Proxy(Child);

impl Proxy {
    fn start(host: &Host, delay: Duration) -> Self {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", host.space()]);
        ip.arg(std::env::current_exe().expect("this program"));
        ip.args(["--exact", "a_proxy_until_killed"]).stdout(Stdio::null());
        ip.env("OUTLIVE_BRIDGE_DELAY_MS", delay.as_millis().to_string());
        Self(ip.spawn().expect("a proxy"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_slow_link_only_delays_and_the_end_of_the_link_is_told() {
    let Some(mut net) = Net::new(2) else { return };
    let delay = Duration::from_millis(100);
    let proxy = Proxy::start(&net.hosts[0], delay);
    let rules = &format!("{RELIABLE}[[service]]\npattern = \"/**\"\n");
    net.bridge(0, rules);
    net.bridge_by(1, "connect = [\"tcp/10.0.1.1:7448\"]", rules);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let mut to = subscriber(&there, "/n");
    until_through(&from, &mut to, 1);
    for n in 0..500 {
        from.publish(&(1000 + n)).expect("published");
    }
    let mut next = 1000;
    wait_for("all of them, in order", || {
        while let Some(sample) = to.receive().expect("a sample") {
            if *sample >= 1000 {
                assert_eq!(*sample, next, "in order, none twice, none missing");
                next += 1;
            }
        }
        (next == 1500).then_some(())
    });
    let [_, lost, dropped, bad] = until_sums_agree(&from, &here, &there);
    assert_eq!([lost, dropped, bad], [0; 3]);
    let latency = Counters::of(&there).newest()["in"]["/n"]["latency_min_us"].as_i64();
    assert!(latency.is_some_and(|us| us >= 100_000), "{latency:?} us through a proxy of 100 ms");
    println!("through a proxy of 100 ms: {} us at least", latency.unwrap_or(0));

    // A call goes there and back.
    let mut server = here.service::<u64, u64>("/twice").expect("a name").server().expect("one");
    wait_for("the service elsewhere", || {
        let services = net.hosts[1].domain().services().expect("a domain");
        services.into_iter().find(|s| s.name == "/twice" && s.server.is_some())
    });
    let asking = thread::spawn(move || {
        let mut client =
            there.service::<u64, u64>("/twice").expect("a name").client().expect("one");
        let begun = Instant::now();
        let answer = client.call_timeout(&21, Duration::from_secs(60)).map(|answer| *answer);
        (answer, begun.elapsed(), there)
    });
    let request = wait_for("a request", || {
        server.receive_timeout(Duration::from_millis(50)).expect("the queue")
    });
    let answer = *request * 2;
    server.respond(request, &answer).expect("answered");
    let (answer, took, there) = asking.join().expect("no panic");
    assert_eq!(answer.expect("an answer"), 42);
    assert!(took >= 2 * delay, "{took:?} there and back");

    // The proxy dies: told on the other side; it comes back, and so do the messages.
    while to.next_event().is_some() {}
    drop(proxy);
    let cut = Instant::now();
    wait_for("the end of the link to be told", || {
        from.publish(&7).expect("published");
        while to.receive().expect("a sample").is_some() {}
        std::iter::from_fn(|| to.next_event()).find(|e| matches!(e, Event::PublisherLeft(_)))
    });
    println!("partition told after {:?}", cut.elapsed());
    let _proxy = Proxy::start(&net.hosts[0], delay);
    println!("messages again {:?} after healing", until_through(&from, &mut to, 8));
    until_sums_agree(&from, &here, &there);
}

/// Makes an authority `NAME.pem` and a certificate of it for the first host, `NAME-host.pem`.
fn certify(dir: &Path, name: &str) -> bool {
    let of = |file: &str| dir.join(format!("{name}{file}")).display().to_string();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(of(".ext"), "subjectAltName=IP:10.0.1.1,IP:10.0.2.1,IP:10.0.3.1")
        .expect("a file");
    ran(&format!(
        "openssl req -x509 {key} -days 2 -subj /CN={name} -keyout {} -out {}",
        of(".key"),
        of(".pem")
    )) && ran(&format!(
        "openssl req {key} -subj /CN=host -keyout {} -out {}",
        of("-host.key"),
        of("-host.csr")
    )) && ran(&format!(
        "openssl x509 -req -days 2 -in {} -CA {} -CAkey {} -CAcreateserial -extfile {} -out {}",
        of("-host.csr"),
        of(".pem"),
        of(".key"),
        of(".ext"),
        of("-host.pem")
    ))
}

#[test]
fn over_tls_only_those_with_a_certificate_of_the_authority_are_heard() {
    let Some(mut net) = Net::new(4) else { return };
    let dir = net.hosts[0].root().to_owned();
    if !certify(&dir, "ours") || !certify(&dir, "other") {
        println!("skipped: no openssl here");
        return;
    }
    let dir = dir.display();
    let tls = |ca: &str, shown: &str| {
        let own =
            format!("certificate = \"{dir}/{shown}-host.pem\"\nkey = \"{dir}/{shown}-host.key\"\n");
        let own = if shown.is_empty() { String::new() } else { format!("{own}mutual = true\n") };
        format!("[tls]\nca = \"{dir}/{ca}.pem\"\n{own}{RELIABLE}")
    };
    net.bridge_by(0, "listen = [\"tls/0.0.0.0:7447\"]", &tls("ours", "ours"));
    let to_hub = |i: usize| format!("connect = [\"tls/10.0.{i}.1:7447\"]");
    // One of us; one who shows nothing; one whom another authority knows.
    net.bridge_by(1, &to_hub(1), &tls("ours", "ours"));
    net.bridge_by(2, &to_hub(2), &tls("ours", ""));
    net.bridge_by(3, &to_hub(3), &tls("ours", "other"));
    let hosts: Vec<_> = net.hosts.iter().map(|host| host.node("member")).collect();
    let from = publisher(&hosts[0], "/n");
    let mut to = subscriber(&hosts[1], "/n");
    until_through(&from, &mut to, 1);
    for n in 2..500 {
        from.publish(&n).expect("published");
    }
    let [_, lost, dropped, bad] = until_sums_agree(&from, &hosts[0], &hosts[1]);
    assert_eq!([lost, dropped, bad], [0; 3]);
    for stranger in &hosts[2..] {
        let mut counters = Counters::of(stranger);
        for _ in 0..20 {
            assert_eq!(counters.newest()["bridges"], 0, "a stranger was let in");
        }
    }
    let none = net.hosts[2..].iter().map(|host| host.domain().find_topic("/n"));
    assert!(none.into_iter().all(|topic| topic.expect("a domain").is_none()));
}

#[test]
fn bridges_find_each_other_by_multicast() {
    let Some(mut net) = Net::new(2) else { return };
    for (i, link) in [(0, "eth1"), (1, "eth0")] {
        let space = net.hosts[i].space();
        assert!(ran(&format!("ip -n {space} route add 224.0.0.0/4 dev {link}")));
    }
    net.bridge_by(0, &format!("multicast = true\n{HUB}"), RELIABLE);
    net.bridge_by(1, "multicast = true\nlisten = [\"tcp/0.0.0.0:0\"]", RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let from = publisher(&here, "/n");
    let mut to = subscriber(&there, "/n");
    until_through(&from, &mut to, 1);
    // No address was named: a partition, and they find each other again.
    net.link(1, false);
    wait_for("the other's end", || {
        from.publish(&2).expect("published");
        while to.receive().expect("a sample").is_some() {}
        std::iter::from_fn(|| to.next_event()).find(|e| matches!(e, Event::PublisherLeft(_)))
    });
    net.link(1, true);
    let space = net.hosts[0].space();
    // The route went with the link.
    assert!(ran(&format!("ip -n {space} route replace 224.0.0.0/4 dev eth1")));
    println!("found again {:?} after healing", until_through(&from, &mut to, 3));
}

/// Each answer came too late, and was asked for again.
#[test]
fn a_link_with_a_round_trip_of_seconds_carries_queues_and_topics() {
    const MESSAGES: u64 = 3;
    let Some(mut net) = Net::new(2) else { return };
    let rules = format!("lease_ms = 30000\n{RELIABLE}[[queue]]\npattern = \"/**\"\n");
    net.bridge(0, &rules);
    let _proxy = Proxy::start(&net.hosts[0], Duration::from_millis(1300));
    net.bridge_by(1, "connect = [\"tcp/10.0.1.1:7448\"]", &rules);
    let (desk, robot) = (net.hosts[0].node("desk"), net.hosts[1].node("robot"));
    let from = publisher(&robot, "/n");
    let mut to = subscriber(&desk, "/n");
    println!("a message after {:?}", until_through(&from, &mut to, 1));
    let queue = |node: &Node| node.queue::<u64>("/work").expect("a name");
    let mut to = queue(&desk).consumer().expect("the only one");
    let mut from = queue(&robot).producer().expect("a producer");
    wait_for("the consumer elsewhere", || from.has_consumer().then_some(()));
    for n in 0..MESSAGES {
        from.send(&n).expect("sent");
    }
    for n in 0..MESSAGES {
        let came =
            wait_for("a message of the queue", || to.receive().expect("the queue").map(|n| *n));
        assert_eq!(came, n);
    }
}

/// It was silent, and deaf to SIGTERM.
#[test]
fn a_client_without_its_router_says_so_and_ends() {
    let Some(mut net) = Net::new(1) else { return };
    net.hosts[0].listen_in();
    let reach = "mode = \"client\"\nconnect = [\"tcp/127.0.0.1:7447\"]";
    net.bridge_by(0, reach, RELIABLE);
    let line = wait_for("a word about the router", || {
        net.hosts[0].said().into_iter().find(|line| line.contains("no router"))
    });
    assert!(line.contains("tcp/127.0.0.1:7447"), "{line}");
    println!("a client without its router ended {:?} after SIGTERM", net.hosts[0].end());
}

/// Only the first address was ever tried.
#[test]
fn a_client_takes_the_next_router_while_the_first_is_down() {
    let Some(mut net) = Net::new(2) else { return };
    let router = format!("mode = \"router\"\n{HUB}");
    let both = "mode = \"client\"\nconnect = [\"tcp/10.0.1.1:7448\", \"tcp/10.0.1.1:7447\"]";
    // Begun first: it waits.
    net.bridge_by(1, both, RELIABLE);
    net.bridge_by(0, &router, RELIABLE);
    let (here, there) = (net.hosts[0].node("talker"), net.hosts[1].node("listener"));
    let (from, mut to) = (publisher(&here, "/n"), subscriber(&there, "/n"));
    println!("through the second router after {:?}", until_through(&from, &mut to, 1));
    // The router comes back, and so do the messages.
    net.hosts[0].kill();
    net.hosts[0].start();
    println!("through it again after {:?}", until_through(&from, &mut to, 2));
}

#[test]
fn a_full_queue_elsewhere_is_asked_for_room_and_not_sent_to() {
    let Some(mut net) = Net::new(2) else { return };
    let rules = "[[queue]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (desk, robot) = (net.hosts[0].node("desk"), net.hosts[1].node("robot"));
    let mut to = desk.queue::<[u8]>("/maps").expect("a name").consumer().expect("the only one");
    let mut from = robot.queue::<[u8]>("/maps").expect("a name").producer().expect("a producer");
    wait_for("the consumer elsewhere", || from.has_consumer().then_some(()));
    // More than the lane over there holds, 64 MiB.
    let maps: u64 = 80;
    for n in 0..maps {
        let mut map = vec![0; 1 << 20];
        map[..8].copy_from_slice(&n.to_le_bytes());
        from.send(&map).expect("sent");
    }
    let mut counters = Counters::of(&desk);
    let received = |c: &serde_json::Value| count(c, "in", "queue /maps", "received");
    let mut last = 0;
    counters.until("a full lane", |c| {
        let before = std::mem::replace(&mut last, received(c));
        last > 32 && before == last
    });
    let before = net.carried(1).0;
    thread::sleep(Duration::from_secs(5));
    let idle = net.carried(1).0 - before;
    println!("{last} maps are there; while there was no room {idle} bytes were sent for nothing");
    for n in 0..maps {
        let map = wait_for("a map", || {
            let map = to.receive_timeout(Duration::from_millis(50)).expect("the queue")?;
            Some(map[..8].to_vec())
        });
        assert_eq!(map, n.to_le_bytes(), "in order, none twice");
    }
    assert!(idle < 1 << 19, "{idle} bytes while there was no room");
}

#[test]
fn a_queue_over_many_breaks_brings_each_message_once() {
    const MESSAGES: u64 = 60;
    let Some(mut net) = Net::new(2) else { return };
    let delay = Duration::from_millis(40);
    let rules = "lease_ms = 200\n[[queue]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge_by(1, "connect = [\"tcp/10.0.1.1:7448\"]", rules);
    let (desk, robot) = (net.hosts[0].node("desk"), net.hosts[1].node("robot"));
    let queue = |node: &Node| node.queue::<u64>("/work").expect("a name");
    let mut to = queue(&desk).consumer().expect("the only one");
    let mut from = [queue(&robot).producer().expect("one"), queue(&robot).producer().expect("two")];
    let (mut sent, mut came) = ([0, 0], Vec::new());
    let (mut breaks, begun) = (0, Instant::now());
    while came.len() < 2 * MESSAGES as usize {
        assert!(begun.elapsed() < Duration::from_secs(120), "{} came", came.len());
        let proxy = Proxy::start(&net.hosts[0], delay);
        // At another instant of a round trip each time.
        let until = Instant::now() + Duration::from_millis(1500 + 13 * breaks % 80);
        while Instant::now() < until {
            for (i, from) in from.iter_mut().enumerate() {
                if sent[i] < MESSAGES && from.try_send(&(2 * sent[i] + i as u64)).is_ok() {
                    sent[i] += 1;
                }
            }
            while let Some(n) = to.receive().expect("a message") {
                came.push(*n);
            }
            thread::sleep(Duration::from_millis(1));
        }
        drop(proxy);
        breaks += 1;
        // Both sides see the end; or the consumer here is another one meanwhile.
        thread::sleep(Duration::from_millis(300));
        if breaks % 2 == 0 {
            drop(to);
            to = queue(&desk).consumer().expect("the next");
        }
        if breaks % 5 == 0 {
            net.hosts[1].kill();
            net.hosts[1].start();
        }
    }
    let order = |i: u64| came.iter().copied().filter(|n| n % 2 == i).collect::<Vec<_>>();
    let twice = came.len() - came.iter().collect::<std::collections::HashSet<_>>().len();
    println!("{} messages over {breaks} breaks, {twice} of them twice", came.len());
    for i in 0..2 {
        assert_eq!(order(i), (0..MESSAGES).map(|n| 2 * n + i).collect::<Vec<_>>());
    }
}

#[test]
fn what_waits_for_a_narrow_link_is_as_little_as_the_file_says_and_what_is_urgent_first() {
    let Some(mut net) = Net::new(2) else { return };
    if !net.limit(1, "2mbit") {
        println!("skipped: no tbf here");
        return;
    }
    let rules = "link_buffer_bytes = 16384\n\
        [zenoh.transport.link.tx]\nbatch_size = 16384\nqueue = { size = { data = 1 } }\n\
        [[topic]]\npattern = \"/alarm\"\npriority = \"real_time\"\n\
        [[topic]]\npattern = \"/**\"\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (here, there) = (net.hosts[0].node("camera"), net.hosts[1].node("viewer"));
    let topic = |node: &Node, name| node.topic::<[u8]>(name).expect("a name").depth(1024);
    let (from, alarm) = (topic(&here, "/n"), topic(&here, "/alarm"));
    let from = from.publisher().expect("a publisher");
    let alarm = alarm.publisher().expect("a publisher");
    let mut to = topic(&there, "/n").subscriber().expect("a subscriber");
    let mut alarmed = topic(&there, "/alarm").subscriber().expect("a subscriber");
    wait_for("the first messages", || {
        from.publish(&[0; 8]).expect("published");
        alarm.publish(&[0; 8]).expect("published");
        alarmed.receive_timeout(Duration::from_millis(50)).expect("a sample")?;
        to.receive().expect("a sample").map(drop)
    });
    thread::sleep(Duration::from_millis(500));
    while to.receive().expect("a sample").is_some() {}
    while alarmed.receive().expect("a sample").is_some() {}
    // 8 Mbit/s into 2, for as long as all buffers take to fill.
    let (mut took, message) = (0, vec![7; 20_000]);
    for n in 0..750 {
        from.publish(&message).expect("published");
        if n % 10 == 0 {
            alarm.publish(&[0; 8]).expect("published");
        }
        thread::sleep(Duration::from_millis(20));
        took += std::iter::from_fn(|| to.receive().expect("a sample")).count();
    }
    let mut waited = 0;
    let mut quiet = Instant::now();
    while quiet.elapsed() < Duration::from_secs(3) {
        let came = std::iter::from_fn(|| to.receive().expect("a sample")).count();
        if came > 0 {
            (waited, quiet) = (waited + came, Instant::now());
        }
        thread::sleep(Duration::from_millis(5));
    }
    let alarms = std::iter::from_fn(|| alarmed.receive().expect("a sample")).count();
    let c = Counters::of(&there).newest();
    let us = |name: &str| c["in"][name]["latency_max_us"].as_i64().unwrap_or(0);
    println!(
        "{took} of 750 messages came, then {waited} that had waited; at most {} ms, alarms {} ms",
        us("/n") / 1000,
        us("/alarm") / 1000
    );
    assert!(took > 100, "the link is used");
    assert!(waited < 10, "{waited} messages of 20 kB had waited");
    assert_eq!(alarms, 75, "what is more urgent comes whole");
}

/// How old messages are when they come, by the clock of the one machine that all hosts are.
#[derive(Debug, Default)]
struct Ages {
    came: u64,
    most: Duration,
}

impl Ages {
    fn take(&mut self, from: &mut Subscriber<[u8]>) -> u64 {
        let before = self.came;
        while let Some(sample) = from.receive().expect("a sample") {
            let at = sample.first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
            self.most = self.most.max(Duration::from_nanos(outlive::now_ns().saturating_sub(at)));
            self.came += 1;
        }
        self.came - before
    }
}

/// A message that waits behind what must arrive is replaced by a newer one.
#[test]
fn behind_a_topic_that_fills_the_link_the_newest_waits() {
    const MESSAGES: u64 = 800;
    let Some(mut net) = Net::new(2) else { return };
    if !net.limit(1, "2mbit") {
        println!("skipped: no tbf here");
        return;
    }
    let rules = "link_buffer_bytes = 16384\n\
        [zenoh.transport.link.tx]\nbatch_size = 16384\nqueue = { size = { data = 1 } }\n\
        [[topic]]\npattern = \"/newest\"\n\
        [[topic]]\npattern = \"/**\"\nreliable = true\n";
    net.bridge(0, rules);
    net.bridge(1, rules);
    let (here, there) = (net.hosts[0].node("camera"), net.hosts[1].node("viewer"));
    let topic = |node: &Node, name| node.topic::<[u8]>(name).expect("a name").depth(1024);
    let names = ["/newest", "/all", "/map"];
    let from = names.map(|name| topic(&here, name).publisher().expect("a publisher"));
    let mut to = names.map(|name| topic(&there, name).subscriber().expect("a subscriber"));
    for (from, to) in from.iter().zip(&mut to) {
        wait_for("the first messages", || {
            from.publish(&[0; 8]).expect("published");
            to.receive_timeout(Duration::from_millis(50)).expect("a sample").map(drop)
        });
    }
    thread::sleep(Duration::from_millis(500));
    to.iter_mut().for_each(|to| while to.receive().expect("a sample").is_some() {});
    let message = |bytes| {
        let mut message = vec![7; bytes];
        message[..8].copy_from_slice(&outlive::now_ns().to_le_bytes());
        message
    };
    // Maps alone are twice what the link takes.
    let mut ages = [(); 3].map(|()| Ages::default());
    let mut take = |to: &mut [Subscriber<[u8]>; 3]| {
        let came = ages.iter_mut().zip(to).map(|(ages, to)| ages.take(to)).collect::<Vec<_>>();
        (came[0], came.iter().sum::<u64>())
    };
    for n in 0..MESSAGES {
        from[0].publish(&message(500)).expect("published");
        from[1].publish(&message(500)).expect("published");
        if n % 4 == 0 {
            from[2].publish(&message(20_000)).expect("published");
        }
        take(&mut to);
        thread::sleep(Duration::from_millis(10));
    }
    let (mut waited, mut quiet) = (0, Instant::now());
    while quiet.elapsed() < Duration::from_secs(3) {
        let (newest, all) = take(&mut to);
        waited += newest;
        if all > 0 {
            quiet = Instant::now();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let c = Counters::of(&here).newest();
    let skipped = count(&c, "out", "/newest", "skipped");
    for (name, ages) in names.iter().zip(&ages) {
        println!("{name}: {} came, at most {:?} old", ages.came, ages.most);
    }
    println!("{waited} of {} came after the last was published; {skipped} skipped", names[0]);
    let sum = ["sent", "unheard", "overrun", "dropped", "skipped", "bad"];
    let sum = sum.map(|k| count(&c, "out", "/newest", k)).iter().sum::<u64>();
    assert!((MESSAGES..=from[0].published()).contains(&sum), "each in one counter: {c}");
    assert!(waited < 10 && skipped > 0, "{waited} messages had waited, {skipped} were skipped");
}
