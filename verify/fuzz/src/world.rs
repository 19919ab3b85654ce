//! A domain with one of everything, and what a survivor does with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlive::lock::{LockError, LocklessSet, RobustMutex, RobustRwLock, RobustSemaphore, Segment};
use outlive::{
    Client, Consumer, Domain, Error, Headed, Node, NodeBuilder, Producer, Publisher, Result,
    Sample, Server, Subscriber, WaitSet,
};

/// The topic's type: words, any number.
pub type Words = [u64];
/// A topic with a description.
pub type Scan = Headed<[f64; 2], f32>;

const TOPIC: &str = "/t";
const SCANS: &str = "/scan";
const QUEUE: &str = "/q";
const SERVICE: &str = "/s";
const DEPTH: u64 = 4;
/// Most messages that a survivor takes in one go: garbage may look like many.
const TAKE_MAX: usize = 64;

const PREFIX: &str = "outlive-fuzz-";
/// A case that takes a third of it is ended as one that hangs, so an older directory is nobody's.
const OLD: Duration = Duration::from_secs(60);

/// Of runs that were killed, or that ended on what they found.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let made = entry.metadata().and_then(|found| found.modified());
        if ours && made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory of its own, removed on drop.
#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    /// Makes it, on the RAM disk if there is one.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        if n == 0 {
            remove_leftovers(&parent);
        }
        let dir = parent.join(format!("{PREFIX}{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).expect("the RAM disk can be written");
        Self(dir)
    }

    /// The root of the domains in it.
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Dir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Settings of a node below `root`.
pub fn settings(root: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(root).name(name)
}

/// Every regular file below `dir`, in order.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => all.push(entry.path()),
            _ => {}
        }
    }
    all.sort();
    all
}

/// What one process has of everything.
#[derive(Debug)]
pub struct Ports {
    node: Node,
    publisher: Publisher<Words>,
    scans: Publisher<Scan>,
    subscriber: Subscriber<Words>,
    held: Vec<Sample<Words>>,
    producer: Option<Producer<Words>>,
    consumer: Option<Consumer<Words>>,
    server: Option<Server<u64, Words>>,
    client: Option<Client<u64, Words>>,
    locks: Locks,
}

#[derive(Debug)]
struct Locks {
    mutex: RobustMutex<[u64; 4]>,
    rwlock: RobustRwLock<u64>,
    semaphore: RobustSemaphore,
    set: LocklessSet,
    segment: Segment<[u64; 64]>,
}

impl Locks {
    fn open(node: &Node) -> Result<Self> {
        Ok(Self {
            mutex: node.mutex("/m")?,
            rwlock: node.rwlock("/rw")?,
            semaphore: node.semaphore("/sem", 2)?,
            set: node.lockless_set("/set", 16)?,
            segment: node.segment("/seg")?,
        })
    }

    /// Takes and lets go; a guard of a dead owner is repaired.
    fn use_all(&self) {
        match self.mutex.try_lock() {
            Ok(mut guard) => guard[0] ^= 1,
            Err(LockError::OwnerDied(left)) => drop(left.mark_consistent()),
            Err(e) => known(e.into()),
        }
        match self.rwlock.try_write() {
            Ok(mut guard) => *guard ^= 1,
            Err(LockError::OwnerDied(left)) => drop(left.mark_consistent()),
            Err(e) => known(e.into()),
        }
        if let Err(e) = self.rwlock.try_read() {
            known(e.into());
        }
        if let Err(e) = self.semaphore.try_acquire() {
            known(e.into());
        }
        let _ = self.semaphore.available();
        for id in [1, 2, u64::MAX] {
            done(self.set.insert(id));
        }
        let _ = (self.set.ids(), self.set.contains(3), self.set.remove(2));
        if let Some(mutex) = done(self.segment.mutex::<u64>(0))
            && let Err(e) = mutex.try_lock()
        {
            known(e.into());
        }
    }
}

impl Ports {
    /// Joins as everything that another live member is not already, and leaves something of each.
    ///
    /// # Errors
    /// What is wrong with the first object that cannot be joined.
    pub fn open(root: &Path, name: &str) -> Result<Self> {
        let node = settings(root, name).open()?;
        let topic = || node.topic::<Words>(TOPIC).map(|topic| topic.depth(DEPTH).history(DEPTH));
        let mut ports = Self {
            publisher: topic()?.memory_bytes_max(1 << 22).publisher()?,
            scans: node.topic::<Scan>(SCANS)?.publisher()?,
            subscriber: topic()?.borrows(2).subscriber()?,
            held: Vec::new(),
            consumer: node.queue::<Words>(QUEUE)?.consumer().ok(),
            producer: Some(node.queue::<Words>(QUEUE)?.bound_bytes(1 << 20).producer()?),
            server: node.service(SERVICE)?.server().ok(),
            client: Some(node.service(SERVICE)?.client()?),
            locks: Locks::open(&node)?,
            node,
        };
        ports.leave_something();
        Ok(ports)
    }

    /// The node's number.
    pub fn node_id(&self) -> u64 {
        self.node.id().get()
    }

    /// Lets go of nothing, as a process that hangs.
    pub fn forget(self) {
        std::mem::forget(self);
    }

    /// Messages small and large, requests and replies, held locks of nobody.
    fn leave_something(&mut self) {
        for words in [1, 13, 40, 500, 2] {
            let value = vec![words as u64; words];
            done(self.publisher.publish(&value));
            if let Some(producer) = &mut self.producer {
                done(producer.try_send(&value).map_err(outlive::Error::from));
            }
        }
        if let Some(mut scan) = done(self.scans.loan_headed([1.0, 2.0], 50)) {
            scan.tail_mut().fill(1.5);
            done(scan.publish());
        }
        if let Some(client) = &mut self.client {
            done(client.send(&7));
            done(client.send(&8));
        }
        if let Some(server) = &mut self.server
            && let Some(Some(request)) = done(server.receive())
        {
            done(server.respond(request, &[1, 2, 3]));
        }
        self.locks.use_all();
    }

    /// Reads all that comes from others, and sends to them.
    pub fn carry_on(&mut self) {
        self.held.truncate(1);
        self.receive();
        for _ in 0..TAKE_MAX {
            let Some(consumer) = &mut self.consumer else { break };
            match done(consumer.receive()) {
                Some(Some(message)) => touch(&message),
                _ => break,
            }
        }
        while let Some(event) = self.consumer.as_mut().and_then(Consumer::next_event) {
            if let outlive::queue::Event::ProducerCorrupt { why, .. } = event {
                assert!(!why.is_empty());
                TOLD.fetch_add(1, Ordering::Relaxed);
            }
        }
        for _ in 0..TAKE_MAX {
            let Some(server) = &mut self.server else { break };
            match done(server.receive()) {
                Some(Some(request)) => {
                    done(server.is_cancelled(&request));
                    done(server.respond(request, &[4; 30]));
                }
                _ => break,
            }
        }
        for _ in 0..TAKE_MAX {
            let Some(client) = &mut self.client else { break };
            match done(client.receive()) {
                Some(Some(reply)) => drop(reply.body().map(touch)),
                _ => break,
            }
        }
        self.wait();
        self.leave_something();
    }

    fn receive(&mut self) {
        for i in 0..TAKE_MAX {
            let got = match i % 3 {
                0 => self.subscriber.receive(),
                1 => self.subscriber.receive_in_order(),
                _ => self.subscriber.latest(),
            };
            match done(got) {
                Some(Some(sample)) => {
                    touch(&sample);
                    if self.held.len() < 2 {
                        self.held.push(sample);
                    }
                }
                _ => break,
            }
        }
        while let Some(event) = self.subscriber.next_event() {
            if let outlive::topic::Event::PublisherCorrupt { why, .. } = event {
                assert!(!why.is_empty());
                TOLD.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// One look, which sleeps at most for a moment.
    fn wait(&mut self) {
        let mut set = WaitSet::new();
        let mut members: Vec<&mut dyn outlive::Waitable> = vec![&mut self.subscriber];
        members.extend(self.consumer.as_mut().map(|c| c as &mut dyn outlive::Waitable));
        members.extend(self.server.as_mut().map(|s| s as &mut dyn outlive::Waitable));
        members.extend(self.client.as_mut().map(|c| c as &mut dyn outlive::Waitable));
        done(set.wait(&mut members, Duration::from_micros(50)).map(Iterator::count));
        done(self.node.watch(self.node.id()).map(|watch| watch.is_alive()));
    }
}

/// Looks at everything from outside, changes nothing.
pub fn look(root: &Path) {
    let Some(domain) = done(Domain::of(&settings(root, "look"))) else { return };
    done(domain.nodes());
    for topic in done(domain.topics()).into_iter().flatten() {
        let _ = topic.description().map(|d| d.to_text());
        done(domain.find_topic(&topic.name));
        done(domain.subscribers(&topic.name));
    }
    done(domain.queues());
    done(domain.services());
    done(domain.locks());
    done(domain.audit());
}

/// As [`look`], then removes what the dead left.
pub fn clean(root: &Path) {
    if let Some(domain) = done(Domain::of(&settings(root, "clean"))) {
        done(domain.clean());
    }
}

/// Reads the topic as a tool does, by its description alone.
pub fn read_any(root: &Path) {
    let Some(node) = done(settings(root, "tool").open()) else { return };
    for name in [TOPIC, SCANS] {
        let Some(topic) = done(node.topic::<[u8]>(name)) else { continue };
        let Some(mut any) = done(topic.history(DEPTH).subscriber_of_any_type()) else { continue };
        let description = any.description();
        for _ in 0..TAKE_MAX {
            let Some(Some(sample)) = done(any.receive()) else { break };
            if let Some(value) = description.as_ref().and_then(|d| d.decode(sample.as_bytes())) {
                crate::types::walk(&value, 4);
            }
        }
    }
}

/// Reads every word.
fn touch(words: &Words) {
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
    std::hint::black_box(sum);
}

/// The value; an error must name its object and what to do.
pub fn done<T>(result: Result<T>) -> Option<T> {
    result.map_err(known).ok()
}

/// Errors and strange peers that survivors were told of: a run without any has tried nothing.
pub static TOLD: AtomicU64 = AtomicU64::new(0);

fn known(error: Error) {
    TOLD.fetch_add(1, Ordering::Relaxed);
    assert!(!error.object().is_empty(), "no object: {error}");
    assert!(!error.remedy().is_empty(), "no remedy: {error}");
}
