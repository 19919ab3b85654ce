//! Out of descriptors, of address space, of threads: a typed error before the commit point,
//! nothing lost, and on it goes once there is room. (Out of disk: `full_disk.rs`. A clock that
//! jumps: `clock` tests of the core, behind its seam.)
//!
//! Each test runs itself again in a process of its own, whose limits it lowers. There each
//! operation is tried with 0, 1, 2, ... left, until it works; after each failure it must work with
//! room, and everything sent before or after must have come.

mod limits;

use std::any::Any;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use limits::{AddressSpace, Descriptors, LONG, Scarce, alone, descriptors, limit, node, open};
use outlive::Deadline;
use outlive::rt::LatestWriter;
use outlive::{
    Client, Consumer, Domain, ErrorKind, Node, Producer, Publisher, Result, Server, Subscriber,
    WaitSet,
};
use testkit::{TempDomain, fork_child};

/// Something to try more and more of.
trait Stepped: Scarce {
    /// The amount to try in attempt `i`.
    fn amount(i: u32) -> u64;
}

impl Stepped for Descriptors {
    fn amount(i: u32) -> u64 {
        u64::from(i)
    }
}

impl Stepped for AddressSpace {
    fn amount(i: u32) -> u64 {
        let pages = if i < 8 { f64::from(i) } else { 1.4f64.powi(i as i32 - 2) };
        pages as u64 * 4096
    }
}

/// Tries `step` with more and more left until it works; `check` says whether all is well then.
fn try_with<L: Stepped, S>(
    what: &str,
    setup: impl Fn(&Path) -> S,
    step: impl Fn(&mut S) -> Result<()>,
    check: impl Fn(&mut S),
) {
    let (mut failures, mut held) = (0, 0);
    for i in 0..64 {
        let temp = TempDomain::new("scarcity").unwrap().expect_empty();
        let root = temp.path().join("root");
        let mut state = setup(&root);
        let amount = L::amount(i);
        let scarce = L::leave(amount);
        let done = step(&mut state);
        drop(scarce);
        let works = done.is_ok();
        if let Err(e) = done {
            assert!(L::is_told(&e), "{what} with {amount} {}: {e}", L::NAME);
            failures += 1;
            step(&mut state).unwrap_or_else(|e| panic!("{what}, with room: {e}"));
        }
        check(&mut state);
        drop(state);
        let domain = Domain::of(&Node::builder().root(&root)).unwrap();
        domain.clean().unwrap();
        // What a process keeps for good it has after the first round.
        let now = descriptors().len();
        assert!(i == 0 || now == held, "{what} with {amount} {}: leaks descriptors", L::NAME);
        held = now;
        if works {
            println!("{what}: works with {amount} {}, failed {failures} times", L::NAME);
            return;
        }
    }
    panic!("{what} never works");
}

struct Topic {
    publisher: Option<Publisher<[u8]>>,
    subscriber: Option<Subscriber<[u8]>>,
    got: Vec<(u64, usize)>,
    sent: Cell<u64>,
    node: Node,
}

impl Topic {
    fn new(root: &Path) -> Self {
        let node = node(root);
        Self { publisher: None, subscriber: None, got: Vec::new(), sent: Cell::new(0), node }
    }

    fn with_publisher(mut self) -> Self {
        self.publish_on().unwrap();
        self
    }

    fn with_subscriber(mut self) -> Self {
        self.subscribe().unwrap();
        self
    }

    fn publish_on(&mut self) -> Result<()> {
        self.publisher = Some(self.node.topic::<[u8]>("/t")?.depth(8).publisher()?);
        Ok(())
    }

    fn subscribe(&mut self) -> Result<()> {
        let topic = self.node.topic::<[u8]>("/t")?.depth(8).history(8);
        self.subscriber = Some(topic.reliable(true).subscriber()?);
        Ok(())
    }

    fn send(&self, bytes: usize) -> Result<()> {
        let publisher = self.publisher.as_ref().unwrap();
        let n = self.sent.get();
        let seq = publisher.publish(&vec![n as u8; bytes])?;
        assert_eq!(seq, n, "a failed publish took a number");
        self.sent.set(n + 1);
        Ok(())
    }

    /// Receives what is there.
    fn receive(&mut self) -> Result<()> {
        while let Some(sample) = self.subscriber.as_mut().unwrap().receive()? {
            assert!(sample.iter().all(|b| *b == sample.seq() as u8), "another message");
            self.got.push((sample.seq(), sample.len()));
        }
        Ok(())
    }

    /// All that was sent has come, in the end.
    fn check(&mut self) {
        self.send(50).unwrap();
        self.send(5000).unwrap();
        let end = std::time::Instant::now() + LONG;
        while self.got.len() < self.sent.get() as usize && std::time::Instant::now() < end {
            self.receive().unwrap();
        }
        let seqs: Vec<u64> = self.got.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (0..self.sent.get()).collect::<Vec<_>>());
        assert_eq!(self.subscriber.as_ref().unwrap().lost(), 0);
    }
}

fn topics<L: Stepped>() {
    try_with::<L, _>(
        "a node",
        |root| (root.to_path_buf(), None),
        |(root, node)| open(root).map(|n| *node = Some(n)),
        |_| {},
    );
    try_with::<L, _>(
        "another node",
        |root| (root.to_path_buf(), node(root), None),
        |(root, _, other)| open(root).map(|n| *other = Some(n)),
        |(_, node, other)| assert!(node.watch(other.as_ref().unwrap().id()).unwrap().is_alive()),
    );
    try_with::<L, _>("a publisher", Topic::new, Topic::publish_on, |topic| {
        topic.subscribe().unwrap();
        topic.check();
    });
    let one = |root: &Path| Topic::new(root).with_subscriber();
    try_with::<L, _>("a publisher for a subscriber", one, Topic::publish_on, Topic::check);
    let with_history = |root: &Path| {
        let topic = Topic::new(root).with_publisher();
        for bytes in [10, 3000, 90_000] {
            topic.send(bytes).unwrap();
        }
        topic
    };
    try_with::<L, _>("a subscriber", with_history, Topic::subscribe, Topic::check);
    let new_publisher = |root: &Path| {
        let topic = Topic::new(root).with_subscriber().with_publisher();
        for bytes in [10, 3000, 90_000] {
            topic.send(bytes).unwrap();
        }
        topic
    };
    try_with::<L, _>("receiving from a new publisher", new_publisher, Topic::receive, Topic::check);
    let grown = |root: &Path| {
        let mut topic = Topic::new(root).with_publisher().with_subscriber();
        topic.send(10).unwrap();
        topic.receive().unwrap();
        for bytes in [3000, 90_000] {
            topic.send(bytes).unwrap();
        }
        topic
    };
    try_with::<L, _>("receiving from new segments", grown, Topic::receive, Topic::check);
    let both = |root: &Path| Topic::new(root).with_publisher().with_subscriber();
    try_with::<L, _>("publishing to a new subscriber", both, |t| t.send(20), Topic::check);
    try_with::<L, _>("publishing a chunk", both, |t| t.send(200_000), Topic::check);
}

struct Queue {
    producer: Option<Producer<[u8]>>,
    consumer: Option<Consumer<[u8]>>,
    got: u64,
    sent: u64,
    node: Node,
}

impl Queue {
    fn new(root: &Path) -> Self {
        Self { producer: None, consumer: None, got: 0, sent: 0, node: node(root) }
    }

    fn with_consumer(mut self) -> Self {
        self.consume_on().unwrap();
        self
    }

    fn with_producer(mut self) -> Self {
        self.produce_on().unwrap();
        self
    }

    fn produce_on(&mut self) -> Result<()> {
        self.producer = Some(self.node.queue::<[u8]>("/q")?.first_bytes(4096).producer()?);
        Ok(())
    }

    fn consume_on(&mut self) -> Result<()> {
        self.consumer = Some(self.node.queue::<[u8]>("/q")?.consumer()?);
        Ok(())
    }

    fn send(&mut self, bytes: usize) -> Result<()> {
        self.producer.as_mut().unwrap().try_send(&vec![self.sent as u8; bytes])?;
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        while let Some(message) = self.consumer.as_mut().unwrap().receive()? {
            assert!(message.iter().all(|b| *b == self.got as u8), "not message {}", self.got);
            self.got += 1;
        }
        Ok(())
    }

    fn check(&mut self) {
        self.send(100).unwrap();
        self.send(30_000).unwrap();
        let end = std::time::Instant::now() + LONG;
        while self.got < self.sent && std::time::Instant::now() < end {
            self.receive().unwrap();
        }
        assert_eq!(self.got, self.sent);
    }
}

fn queues<L: Stepped>() {
    try_with::<L, _>("a consumer", Queue::new, Queue::consume_on, |queue| {
        queue.produce_on().unwrap();
        queue.check();
    });
    try_with::<L, _>(
        "a producer",
        |r| Queue::new(r).with_consumer(),
        Queue::produce_on,
        Queue::check,
    );
    let both = |root: &Path| Queue::new(root).with_consumer().with_producer();
    try_with::<L, _>("sending the first message", both, |q| q.send(10), Queue::check);
    try_with::<L, _>("sending to a longer lane", both, |q| q.send(20_000), Queue::check);
    let sent = |root: &Path| {
        let mut queue = both(root);
        queue.send(10).unwrap();
        queue
    };
    try_with::<L, _>("receiving from a new producer", sent, Queue::receive, Queue::check);
    let grown = |root: &Path| {
        let mut queue = sent(root);
        queue.receive().unwrap();
        for bytes in [3000, 9000, 40_000, 10] {
            queue.send(bytes).unwrap();
        }
        queue
    };
    try_with::<L, _>("receiving from a longer lane", grown, Queue::receive, Queue::check);
    let dead = |root: &Path| {
        let mut first = fork_child(|| {
            let mut queue = both(root);
            queue.send(10).unwrap();
            queue.send(6000).unwrap();
            std::process::abort()
        });
        first.as_mut().unwrap().wait();
        Queue { sent: 2, ..Queue::new(root).with_producer() }
    };
    // Of another lane: its messages are told by their number only.
    try_with::<L, _>("succeeding a dead consumer", dead, Queue::consume_on, |queue| {
        queue.receive().unwrap();
        assert_eq!(queue.got, 2);
        queue.check();
    });
}

struct Service {
    client: Option<Client<u64, u64>>,
    server: Option<Server<u64, u64>>,
    node: Node,
}

impl Service {
    fn new(root: &Path) -> Self {
        Self { client: None, server: None, node: node(root) }
    }

    fn serve(&mut self) -> Result<()> {
        self.server = Some(self.node.service::<u64, u64>("/s")?.server()?);
        Ok(())
    }

    fn ask(&mut self) -> Result<()> {
        self.client = Some(self.node.service::<u64, u64>("/s")?.client()?);
        Ok(())
    }

    /// Answers what is there.
    fn answer(&mut self) -> Result<()> {
        let server = self.server.as_mut().unwrap();
        while let Some(request) = server.receive()? {
            let answer = *request * 2;
            server.respond(request, &answer)?;
        }
        Ok(())
    }

    /// A request is answered.
    fn check(&mut self) {
        let ticket = self.client.as_mut().unwrap().send(&21).unwrap();
        self.answer().unwrap();
        let deadline = Deadline::after(LONG);
        let reply = self.client.as_mut().unwrap().receive_for(ticket, deadline).unwrap();
        assert_eq!(*reply.body().unwrap(), 42);
    }
}

fn services<L: Stepped>() {
    try_with::<L, _>("a server", Service::new, Service::serve, |service| {
        service.ask().unwrap();
        service.check();
    });
    let served = |root: &Path| {
        let mut service = Service::new(root);
        service.serve().unwrap();
        service
    };
    try_with::<L, _>("a client", served, Service::ask, Service::check);
    let asked = |root: &Path| {
        let mut service = served(root);
        service.ask().unwrap();
        let ticket = service.client.as_mut().unwrap().send(&4).unwrap();
        (service, ticket)
    };
    // Whoever asked is told, one way or the other.
    try_with::<L, _>(
        "answering a new client",
        asked,
        |(s, _)| s.answer(),
        |(service, ticket)| {
            let deadline = Deadline::after(LONG);
            let reply = loop {
                assert!(!deadline.has_passed(), "no answer");
                // What it could not answer then it answers now.
                service.answer().unwrap();
                let client = service.client.as_mut().unwrap();
                if let Some(reply) = client.receive_timeout(Duration::from_millis(2)).unwrap() {
                    break reply;
                }
            };
            assert_eq!(reply.ticket(), *ticket);
            match reply.body() {
                Ok(answer) => assert_eq!(*answer, 8),
                Err(e) => assert_eq!(e.kind(), ErrorKind::Refused, "{e}"),
            }
            service.check();
        },
    );
}

type Made = Option<Box<dyn Any>>;

/// One kind of lock: opened, then used.
fn lock_kind<L: Stepped, T: Any>(
    what: &str,
    make: impl Fn(&Node) -> Result<T>,
    using: impl Fn(&T) -> Result<()>,
) {
    try_with::<L, (Node, Made)>(
        what,
        |root| (node(root), None),
        |(node, made)| make(node).map(|lock| *made = Some(Box::new(lock))),
        |(_, made)| using(made.as_ref().unwrap().downcast_ref::<T>().unwrap()).unwrap(),
    );
    try_with::<L, (T, Node)>(
        &format!("using {what}"),
        |root| {
            let node = node(root);
            (make(&node).unwrap(), node)
        },
        |(lock, _)| using(lock),
        |(lock, _)| using(lock).unwrap(),
    );
}

fn locks<L: Stepped>() {
    lock_kind::<L, _>(
        "a mutex",
        |n| n.mutex::<u64>("/m"),
        |m| {
            *m.lock()? += 1;
            Ok(())
        },
    );
    lock_kind::<L, _>(
        "a reader/writer lock",
        |n| n.rwlock::<u64>("/rw"),
        |rw| {
            assert_eq!(*rw.read()?, 0);
            drop(rw.write()?);
            Ok(())
        },
    );
    lock_kind::<L, _>("a semaphore", |n| n.semaphore("/s", 3), |s| Ok(s.acquire().map(drop)?));
    lock_kind::<L, _>(
        "a set",
        |n| n.lockless_set("/ids", 16),
        |set| {
            assert!(set.insert(7)? && set.remove(7));
            Ok(())
        },
    );
    lock_kind::<L, _>("a segment", |n| n.segment::<[u64; 512]>("/seg"), |_| Ok(()));
    lock_kind::<L, _>(
        "a condition variable",
        |n| n.condvar("/c"),
        |c| {
            c.notify_all();
            Ok(())
        },
    );
}

fn others<L: Stepped>() {
    try_with::<L, _>(
        "watching",
        |root| (node(root), node(root), None),
        |(a, b, watch)| a.watch(b.id()).map(|w| *watch = Some(w)),
        |(_, _, watch)| assert!(watch.as_ref().unwrap().is_alive()),
    );
    let both = |root: &Path| Topic::new(root).with_publisher().with_subscriber();
    let fd = |topic: &mut Topic| topic.subscriber.as_mut().unwrap().fd().map(drop);
    try_with::<L, _>("a descriptor", both, fd, Topic::check);
    let wait = |topic: &mut Topic| {
        let subscriber = topic.subscriber.as_mut().unwrap();
        WaitSet::new().wait(&mut [subscriber], Duration::from_millis(5)).map(drop)
    };
    try_with::<L, _>("a wait set", both, wait, Topic::check);
    let leftovers = |root: &Path| {
        let mut dead = fork_child(|| {
            let topic = both(root);
            topic.send(5000).unwrap();
            let _mutex = topic.node.mutex::<u64>("/m").unwrap();
            std::process::abort()
        });
        dead.as_mut().unwrap().wait();
        Domain::of(&Node::builder().root(root)).unwrap()
    };
    try_with::<L, _>("cleaning", leftovers, |d| d.clean().map(drop), |_| {});
    let looks = |domain: &mut Domain| {
        drop((domain.nodes()?, domain.topics()?, domain.queues()?, domain.locks()?));
        Ok(())
    };
    try_with::<L, _>("looking", leftovers, looks, |domain| {
        assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    });
    // Whoever has no descriptor for a file has not found that it is damaged.
    let audit = |(domain, _): &mut (Domain, Members)| {
        assert_eq!(domain.audit()?.faults, Vec::<String>::new());
        Ok(())
    };
    let setup = |root: &Path| {
        let members = Members::new(root);
        (Domain::of(&Node::builder().root(root)).unwrap(), members)
    };
    try_with::<L, _>("auditing", setup, audit, |_| {});
}

/// Of each kind of file one at least.
struct Members(#[expect(dead_code, reason = "they live")] Vec<Box<dyn Any>>);

impl Members {
    fn new(root: &Path) -> Self {
        let topic = Topic::new(root).with_publisher().with_subscriber();
        topic.send(5000).unwrap();
        let mut queue = Queue::new(root).with_consumer().with_producer();
        queue.send(100).unwrap();
        let mut service = Service::new(root);
        service.serve().unwrap();
        service.ask().unwrap();
        let lock = topic.node.rwlock::<u64>("/m").unwrap();
        let channel = LatestWriter::<u64>::open(&topic.node, "/r").unwrap();
        Self(vec![Box::new((lock, channel)), Box::new(topic), Box::new(queue), Box::new(service)])
    }
}

fn everything<L: Stepped>() {
    topics::<L>();
    queues::<L>();
    services::<L>();
    locks::<L>();
    others::<L>();
}

#[test]
fn out_of_descriptors_every_call_says_so_and_goes_on_with_room() {
    alone("out_of_descriptors_every_call_says_so_and_goes_on_with_room", || {
        everything::<Descriptors>();
    });
}

#[test]
fn out_of_address_space_every_call_says_so_and_goes_on_with_room() {
    alone("out_of_address_space_every_call_says_so_and_goes_on_with_room", || {
        AddressSpace::prepare();
        everything::<AddressSpace>();
    });
}

/// Somebody who is nobody else on this machine.
const STRANGER: u32 = 61_787;

#[test]
fn out_of_threads_a_node_says_so_and_those_that_are_open_go_on() {
    alone("out_of_threads_a_node_says_so_and_those_that_are_open_go_on", || {
        let temp = TempDomain::new("threads").unwrap().expect_empty();
        let root = temp.path().join("root");
        // Root may have as many as it likes.
        // SAFETY: plain calls.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(temp.path(), Some(STRANGER), Some(STRANGER)).unwrap();
            // SAFETY: plain calls.
            let done = unsafe {
                libc::setresgid(STRANGER, STRANGER, STRANGER) == 0
                    && libc::setresuid(STRANGER, STRANGER, STRANGER) == 0
            };
            if !done {
                println!("out of threads: skipped, no other user can be taken here");
                return;
            }
        }
        let mut topic = Topic::new(&root).with_publisher().with_subscriber();
        let before = limit(libc::RLIMIT_NPROC, 1);
        if std::thread::Builder::new().spawn(|| {}).is_ok() {
            println!("out of threads: skipped, RLIMIT_NPROC does not hold here");
            return;
        }
        let open = || Node::builder().root(&root).name("late").open();
        let e = open().expect_err("it needs a thread");
        assert!(e.remedy().contains("ulimit -u"), "{e}");
        let nodes = Domain::of(&Node::builder().root(&root)).unwrap().nodes().unwrap();
        assert!(nodes.iter().all(|node| node.name != "late"), "{nodes:?}");
        topic.check();
        limit(libc::RLIMIT_NPROC, before);
        let node = open().unwrap();
        assert!(topic.node.watch(node.id()).unwrap().is_alive());
        drop((topic, node));
        Domain::of(&Node::builder().root(&root)).unwrap().clean().unwrap();
    });
}
