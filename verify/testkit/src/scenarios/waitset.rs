//! Waiting for many things at once, killed on either side: who waits, and who wakes.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Descriptor, Node, Publisher, Subscriber, WaitSet, Waitable, internals};

use super::{audit, node, nothing_left, root, text};
use crate::process::{sleeps, thread_id, wait_until};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
const LONG: Duration = Duration::from_secs(10);
const TOPICS: [&str; 3] = ["/set/a", "/set/b", "/set/c"];
const DEPTH: u64 = 4;
/// Messages that the victim sends before the operation that is killed.
const BEFORE: u64 = 3;

/// How the waiting one sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the words that commits change.
    Words,
    /// On its doorbell: the kernel has no `futex_waitv`.
    Doorbell,
    /// With a foreign descriptor in the list.
    Foreign,
    /// On the descriptors of its subscribers, as an event loop does.
    Loop,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Words, Self::Doorbell, Self::Foreign, Self::Loop];

    fn text(self) -> &'static str {
        match self {
            Self::Words => "on words",
            Self::Doorbell => "on a doorbell",
            Self::Foreign => "with a descriptor",
            Self::Loop => "in an event loop",
        }
    }
}

fn publisher(node: &Node, topic: &str) -> Result<Publisher<u64>, String> {
    node.topic::<u64>(topic).map_err(text)?.depth(DEPTH).publisher().map_err(text)
}

/// One who waits for three topics.
struct Waiter {
    subscribers: Vec<Subscriber<u64>>,
    descriptors: Vec<OwnedFd>,
    foreign: (UnixStream, UnixStream),
    set: WaitSet,
    way: Way,
    _node: Node,
}

impl Waiter {
    fn open(dir: &Path, name: &str, way: Way, history: u64) -> Result<Self, String> {
        internals::set_waitv(way != Way::Doorbell);
        let node = node(dir, name)?;
        let open = |topic: &&str| {
            let topic = node.topic::<u64>(topic).map_err(text)?;
            topic.depth(DEPTH).history(history).subscriber().map_err(text)
        };
        let mut subscribers = TOPICS.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut descriptors = Vec::new();
        if way == Way::Loop {
            for subscriber in &mut subscribers {
                let fd = subscriber.fd().map_err(text)?;
                descriptors.push(fd.try_clone_to_owned().map_err(|e| e.to_string())?);
            }
        }
        let foreign = UnixStream::pair().map_err(|e| e.to_string())?;
        Ok(Self { subscribers, descriptors, foreign, set: WaitSet::new(), way, _node: node })
    }

    /// Waits until something is ready.
    fn wait(&mut self, timeout: Duration) -> Result<(), String> {
        let mut foreign: Vec<_> = match self.way {
            Way::Foreign => vec![Descriptor::readable(&self.foreign.0)],
            Way::Loop => self.descriptors.iter().map(Descriptor::readable).collect(),
            _ => Vec::new(),
        };
        let mut list: Vec<&mut dyn Waitable> = Vec::new();
        if self.way != Way::Loop {
            list.extend(self.subscribers.iter_mut().map(|s| s as &mut dyn Waitable));
        }
        list.extend(foreign.iter_mut().map(|d| d as &mut dyn Waitable));
        self.set.wait(&mut list, timeout).map(drop).map_err(text)
    }

    /// Takes what is there: messages by topic, and whether a publisher was seen to die.
    fn take(&mut self, next: &mut [u64; 3]) -> Result<bool, String> {
        let mut died = false;
        for (subscriber, next) in self.subscribers.iter_mut().zip(next) {
            while let Some(sample) = subscriber.receive().map_err(text)? {
                *next += sample.lost_before();
                if *sample != *next {
                    return Err(format!("{} came instead of {next}", *sample));
                }
                *next += 1;
            }
            let dead = |e| matches!(e, Event::PublisherDied { .. });
            died |= std::iter::from_fn(|| subscriber.next_event()).any(dead);
        }
        Ok(died)
    }
}

/// Files of nodes that are not alive.
fn no_files_of_the_dead(dir: &Path, alive: &Node) -> Result<(), String> {
    // Opening a node sweeps.
    drop(node(dir, "sweeper")?);
    let names = crate::temp::listing(&root(dir).join("default/nodes"));
    let own = format!("{}.", alive.id());
    let dead: Vec<_> = names.iter().filter(|n| !format!("{n}.").starts_with(&own)).collect();
    if dead.is_empty() { Ok(()) } else { Err(format!("left of dead nodes: {dead:?}")) }
}

/// Those to whom the victim listens.
#[derive(Debug)]
pub struct Senders {
    node: Node,
    publishers: Vec<Publisher<u64>>,
}

/// Falling asleep on three topics, asleep, waking: flags and sockets of the dead harm nobody.
#[derive(Debug)]
pub struct Wait(pub Way);

impl Scenario for Wait {
    type World = Senders;

    fn name(&self) -> String {
        format!("wait for three topics {}", self.0.text())
    }

    fn setup(&self, dir: &Path) -> Result<Senders, String> {
        let node = node(dir, "survivor")?;
        let open = |topic: &&str| publisher(&node, topic);
        let publishers = TOPICS.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Senders { node, publishers })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let mut waiter = Waiter::open(dir, "victim", self.0, 0)?;
        let mut next = [0; 3];
        waiter.take(&mut next)?;
        gate.enter();
        let taken = waiter.take(&mut next).and_then(|_| waiter.wait(Duration::from_millis(20)));
        gate.leave();
        std::mem::forget(waiter);
        taken
    }

    fn survivor(&self, dir: &Path, world: &mut Senders, _at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        for publisher in &world.publishers {
            for _ in 0..3 * DEPTH {
                publisher.publish(&publisher.published()).map_err(text)?;
            }
        }
        no_files_of_the_dead(dir, &world.node)?;
        // A successor waits and is woken.
        let mut next = [0; 3];
        let mut successor = Waiter::open(dir, "successor", self.0, 0)?;
        for (publisher, next) in world.publishers.iter().zip(&mut next) {
            *next = publisher.published();
        }
        successor.take(&mut next)?;
        for publisher in &world.publishers {
            publisher.publish(&publisher.published()).map_err(text)?;
            let before = next;
            while next == before {
                successor.wait(LONG)?;
                successor.take(&mut next)?;
            }
        }
        Ok("goes on")
    }

    fn teardown(&self, dir: &Path, world: Senders) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// A survivor that is asleep in a thread of its own until the victim sends or dies.
#[derive(Debug)]
pub struct Asleep {
    thread: Option<std::thread::JoinHandle<Result<[u64; 3], String>>>,
}

/// Publishing on one of three topics to one who sleeps: it wakes, whether we die before the commit,
/// after it, or amid the wake.
#[derive(Debug)]
pub struct Wake(pub Way);

impl Scenario for Wake {
    type World = Asleep;

    fn name(&self) -> String {
        format!("publish to one who waits {}", self.0.text())
    }

    fn must_see(&self) -> &[Outcome] {
        &["before", "after"]
    }

    fn setup(&self, _dir: &Path) -> Result<Asleep, String> {
        // A lost wake would otherwise end with the slice.
        internals::set_slice_ns_max(3600 * 1_000_000_000);
        Ok(Asleep { thread: None })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let publisher = publisher(&node, TOPICS[1])?;
        for value in 0..BEFORE {
            publisher.publish(&value).map_err(text)?;
        }
        gate.enter();
        let sent = publisher.publish(&BEFORE);
        gate.leave();
        std::mem::forget((publisher, node));
        sent.map(drop).map_err(text)
    }

    fn at_gate(&self, dir: &Path, world: &mut Asleep) -> Result<(), String> {
        let mut waiter = Waiter::open(dir, "survivor", self.0, 1)?;
        let mut next = [0, BEFORE - 1, 0];
        waiter.take(&mut next)?;
        let (ready, is_ready) = std::sync::mpsc::channel();
        world.thread = Some(std::thread::spawn(move || {
            ready.send(thread_id()).map_err(|e| e.to_string())?;
            loop {
                waiter.wait(LONG * 360)?;
                if waiter.take(&mut next)? {
                    return Ok(next);
                }
            }
        }));
        let thread = is_ready.recv().map_err(|e| e.to_string())?;
        if wait_until(LONG, || sleeps(thread)) {
            Ok(())
        } else {
            Err("the survivor does not fall asleep".into())
        }
    }

    fn survivor(&self, dir: &Path, world: &mut Asleep, at: &Point) -> Result<Outcome, String> {
        let thread = world.thread.take().ok_or("nobody slept")?;
        // A lost wake hangs here, and the watchdog says so.
        let next = thread.join().map_err(|_| "the sleeper panicked")??;
        audit(dir)?;
        match next {
            [0, BEFORE, 0] if !at.finished => Ok("before"),
            [0, n, 0] if n == BEFORE + 1 => Ok("after"),
            n => Err(format!("{n:?} messages are accounted for, {BEFORE} were sent")),
        }
    }

    fn teardown(&self, dir: &Path, world: Asleep) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
