//! A fleet in small: robots around a desk, each a network namespace with a domain and a bridge of
//! its own. Prints what crosses the links against a model whose constants are all measured with the
//! first number of robots; docs/book/scale.md says what follows from them.
//!
//! ```sh
//! cargo test --test fleet                        1, 2 and 4 robots
//! cargo test --test fleet -- --seconds 10 1 8    as many as you say
//! ```
#![allow(missing_docs)]

mod net;

use std::thread::sleep;
use std::time::{Duration, Instant};

use net::{Counters, Net, count, wait_for};
use outlive::{Publisher, Subscriber};

/// What a robot says: name, payload bytes, messages each second, how many of them may cross.
const SAID: [(&str, usize, u32, u32); 3] =
    [("/state", 256, 100, 10), ("/scan", 4096, 10, 10), ("/raw", 100_000, 10, 0)];
/// What the desk says to all: payload bytes, messages each second.
const COMMAND: (usize, u32) = (256, 50);
/// Tokens of a robot: its bridge, its node, two topics; of the desk: one topic.
const TOKENS: (usize, usize) = (4, 3);

const ROBOT_RULES: &str = "mode = \"client\"\ndeny = [\"/raw/**\"]\n\
    [[topic]]\npattern = \"/state/**\"\ndirection = \"out\"\nrate_hz = 10.0\n\
    [[topic]]\npattern = \"/scan/**\"\ndirection = \"out\"\nreliable = true\n\
    [[topic]]\npattern = \"/raw/**\"\n\
    [[topic]]\npattern = \"/command\"\ndirection = \"in\"\n";
const DESK_RULES: &str = "mode = \"router\"\n\
    [[topic]]\npattern = \"/command\"\ndirection = \"out\"\nreliable = true\n\
    [[topic]]\npattern = \"/**\"\ndirection = \"in\"\n";

/// Bytes on the links, seen from the desk.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    from_robots: u64,
    to_robots: u64,
}

impl Bytes {
    fn of(net: &Net) -> Self {
        let mut all = Self::default();
        for robot in 1..net.hosts.len() {
            let (received, sent) = net.carried(robot);
            all.from_robots += received;
            all.to_robots += sent;
        }
        all
    }

    fn since(self, before: Self) -> Self {
        let from_robots = self.from_robots - before.from_robots;
        Self { from_robots, to_robots: self.to_robots - before.to_robots }
    }
}

struct Robot {
    said: Vec<Publisher<[u8]>>,
    command: Subscriber<[u8]>,
    counters: Counters,
}

/// What one fleet has shown.
#[derive(Debug)]
struct Shown {
    robots: usize,
    join: u64,
    /// Both ways, each second.
    idle: f64,
    up: Phase,
    down: Phase,
}

/// Messages of one direction, and what they took on the wire.
#[derive(Debug)]
struct Phase {
    messages: u64,
    payload: u64,
    bytes: u64,
    took: Duration,
    desk_cpu: Duration,
}

impl Phase {
    /// Bytes of a message beside its payload, where an idle link takes `idle` each second.
    fn head(&self, idle: f64) -> f64 {
        let rest = self.bytes as f64 - self.payload as f64 - idle * self.took.as_secs_f64();
        rest / self.messages as f64
    }

    fn model(&self, head: f64, idle: f64) -> f64 {
        self.payload as f64 + head * self.messages as f64 + idle * self.took.as_secs_f64()
    }
}

fn main() {
    let mut robots = Vec::new();
    let mut seconds = 3;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => seconds = args.next().and_then(|n| n.parse().ok()).expect("seconds"),
            // What the harness of other tests would take.
            option if option.starts_with('-') => {}
            number => robots.push(number.parse().expect("a number of robots")),
        }
    }
    if robots.is_empty() {
        robots = vec![1, 2, 4];
    }
    let mut first = None;
    for n in robots {
        let Some(shown) = run(n, seconds) else { return };
        let unit = first.get_or_insert_with(|| unit(&shown));
        print(&shown, unit);
    }
}

fn run(robots: usize, seconds: u32) -> Option<Shown> {
    let mut net = Net::new(robots + 1)?;
    let desk_node = net.hosts[0].node("desk");
    let command = desk_node.topic::<[u8]>("/command").expect("a name").depth(256);
    let command = command.publisher().expect("a publisher");
    let mut fleet: Vec<Robot> = (1..=robots)
        .map(|i| {
            let node = net.hosts[i].node("robot");
            let said = SAID.map(|(name, ..)| {
                let topic = node.topic::<[u8]>(&format!("{name}/r{i}")).expect("a name");
                topic.depth(64).publisher().expect("a publisher")
            });
            let command = node.topic::<[u8]>("/command").expect("a name").depth(256);
            let command = command.subscriber().expect("a subscriber");
            Robot { said: said.into(), command, counters: Counters::of(&node) }
        })
        .collect();
    let mut desk = Counters::of(&desk_node);

    let none = Bytes::of(&net);
    net.bridge(0, DESK_RULES);
    for i in 1..=robots {
        net.bridge(i, ROBOT_RULES);
    }
    desk.until("all robots at the desk", |c| {
        c["bridges"] == robots && c["in"].as_object().is_some_and(|t| t.len() == 2 * robots)
    });
    for robot in &mut fleet {
        robot.counters.until("each robot at the others", |c| {
            c["bridges"] == robots && c["in"].as_object().is_some_and(|t| t.len() == 1)
        });
    }
    // Both ends have told each other what they want.
    sleep(Duration::from_millis(500));
    let joined = Bytes::of(&net).since(none);

    let begun = Instant::now();
    let before = Bytes::of(&net);
    sleep(Duration::from_secs(u64::from(seconds)));
    let idle = Bytes::of(&net).since(before);
    let idle = (idle.from_robots + idle.to_robots) as f64 / begun.elapsed().as_secs_f64();

    let up = up(&net, &mut fleet, &mut desk, seconds);
    let down = down(&net, &mut fleet, &mut desk, &command, seconds);
    let raw = net.hosts[0].domain().topics().expect("a domain");
    assert!(!raw.iter().any(|t| t.name.starts_with("/raw")), "what is denied has not crossed");
    Some(Shown { robots, join: joined.from_robots + joined.to_robots, idle, up, down })
}

/// The sum of a counter over the topics that go `side` and are called `name`.
fn sum(of: &serde_json::Value, side: &str, name: &str, counter: &str) -> u64 {
    let topics = of[side].as_object().into_iter().flatten();
    let ours = topics.filter(|(topic, _)| topic.starts_with(name));
    ours.map(|(topic, _)| count(of, side, topic, counter)).sum()
}

/// Robots speak, the desk hears.
fn up(net: &Net, fleet: &mut [Robot], desk: &mut Counters, seconds: u32) -> Phase {
    let (bytes, cpu) = (Bytes::of(net), net.hosts[0].cpu());
    let heard_before = desk.newest();
    let sent = |fleet: &mut [Robot]| {
        let all = fleet.iter_mut().map(|robot| robot.counters.newest());
        all.fold((0, 0, 0), |(state, scan, rest), c| {
            let spoken = ["dropped", "skipped", "overrun", "unheard", "bad"];
            let rest = rest + spoken.map(|k| sum(&c, "out", "/", k)).iter().sum::<u64>();
            (state + sum(&c, "out", "/state", "sent"), scan + sum(&c, "out", "/scan", "sent"), rest)
        })
    };
    let before = sent(fleet);
    let begun = Instant::now();
    let mut said = 0;
    let payloads = SAID.map(|(_, bytes, ..)| vec![7; bytes]);
    for tick in 0..seconds * 100 {
        for robot in &*fleet {
            for (publisher, ((_, _, hz, carried), bytes)) in
                robot.said.iter().zip(SAID.iter().zip(&payloads))
            {
                if tick % (100 / hz) == 0 {
                    publisher.publish(bytes).expect("published");
                    said += u64::from(*carried > 0);
                }
            }
        }
        sleep((begun + Duration::from_millis(10) * (tick + 1)).duration_since(Instant::now()));
    }
    let after = wait_for("all that was said in one counter", || {
        let now = sent(fleet);
        let news = now.0 - before.0 + now.1 - before.1 + now.2 - before.2;
        (news == said).then_some(now)
    });
    let (state, scan) = (after.0 - before.0, after.1 - before.1);
    let messages = state + scan;
    let heard = |c: &serde_json::Value| {
        ["received", "lost", "dropped", "bad"].map(|k| sum(c, "in", "/", k))
    };
    let was = heard(&heard_before);
    desk.until("as many at the desk", |c| heard(c)[0] - was[0] == messages);
    let carried_most = u64::from(seconds * SAID[0].3 + 1) * fleet.len() as u64;
    assert!(state <= carried_most, "{state} states, at most {carried_most} by rate_hz");
    let took = begun.elapsed();
    let bytes = Bytes::of(net).since(bytes);
    Phase {
        messages,
        payload: state * SAID[0].1 as u64 + scan * SAID[1].1 as u64,
        bytes: bytes.from_robots + bytes.to_robots,
        took,
        desk_cpu: net.hosts[0].cpu() - cpu,
    }
}

/// The desk speaks, all robots hear.
fn down(
    net: &Net,
    fleet: &mut [Robot],
    desk: &mut Counters,
    command: &Publisher<[u8]>,
    seconds: u32,
) -> Phase {
    let (bytes, cpu) = (Bytes::of(net), net.hosts[0].cpu());
    let sent_before = count(&desk.newest(), "out", "/command", "sent");
    let received = |c: &serde_json::Value| count(c, "in", "/command", "received");
    let before: Vec<_> = fleet.iter_mut().map(|r| received(&r.counters.newest())).collect();
    let (size, hz) = COMMAND;
    let payload = vec![9; size];
    let begun = Instant::now();
    let said = seconds * hz;
    for tick in 0..said {
        command.publish(&payload).expect("published");
        let next = begun + Duration::from_secs(1) / hz * (tick + 1);
        sleep(next.duration_since(Instant::now()));
    }
    desk.until("all commands sent", |c| {
        count(c, "out", "/command", "sent") - sent_before == u64::from(said)
    });
    for (robot, before) in fleet.iter_mut().zip(before) {
        // Exactly: each robot has each command once.
        robot.counters.until("all commands", |c| received(c) - before == u64::from(said));
        let heard = std::iter::from_fn(|| robot.command.receive().expect("a sample")).count();
        assert_eq!((heard as u64, robot.command.lost()), (u64::from(said), 0));
    }
    let took = begun.elapsed();
    let bytes = Bytes::of(net).since(bytes);
    let messages = u64::from(said) * fleet.len() as u64;
    Phase {
        messages,
        payload: messages * size as u64,
        bytes: bytes.from_robots + bytes.to_robots,
        took,
        desk_cpu: net.hosts[0].cpu() - cpu,
    }
}

/// The constants of the model: of one link, of one message each way.
struct Unit {
    idle: f64,
    up_head: f64,
    down_head: f64,
}

/// Tokens that come to a bridge from elsewhere, over all bridges.
fn tokens(robots: usize) -> usize {
    let (robot, desk) = TOKENS;
    robots * robot + robots * desk + robots * (robots - 1) * robot
}

fn unit(shown: &Shown) -> Unit {
    Unit {
        idle: shown.idle / shown.robots as f64,
        up_head: shown.up.head(shown.idle),
        down_head: shown.down.head(shown.idle),
    }
}

fn print(shown: &Shown, unit: &Unit) {
    let n = shown.robots as f64;
    let idle = unit.idle * n;
    let (up, down) = (shown.up.model(unit.up_head, idle), shown.down.model(unit.down_head, idle));
    let rate = |phase: &Phase| phase.bytes as f64 / phase.took.as_secs_f64() / 1000.0;
    let cpu = |phase: &Phase| phase.desk_cpu.as_micros() as f64 / phase.messages as f64;
    println!(
        "fleet: {} robots: up {:.1} kB/s ({:.2} of the model), down {:.1} kB/s ({:.2}), idle {:.2} \
         kB/s ({:.2}), joining {:.1} kB for {} tokens; desk {:.0} and {:.0} us a message",
        shown.robots,
        rate(&shown.up),
        shown.up.bytes as f64 / up,
        rate(&shown.down),
        shown.down.bytes as f64 / down,
        shown.idle / 1000.0,
        shown.idle / idle,
        shown.join as f64 / 1000.0,
        tokens(shown.robots),
        cpu(&shown.up),
        cpu(&shown.down),
    );
    println!(
        "fleet: {} robots: {} messages up, {} down, each counted; a message has {:.0} and {:.0} \
         bytes beside its payload, a link {:.0} bytes a second",
        shown.robots,
        shown.up.messages,
        shown.down.messages,
        unit.up_head,
        unit.down_head,
        unit.idle,
    );
    for (what, bytes, model) in
        [("up", shown.up.bytes as f64, up), ("down", shown.down.bytes as f64, down)]
    {
        let ratio = bytes / model;
        assert!((0.7..1.4).contains(&ratio), "{what}: {ratio:.2} of what the model says");
    }
}
