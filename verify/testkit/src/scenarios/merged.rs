//! Receiving from several publishers in the order of time: the reader dies, or one of those whose
//! messages are merged.

use std::hint::black_box;
use std::path::Path;

use outlive::topic::Event;
use outlive::{Node, Publisher, Sample, Subscriber};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const TOPIC: &str = "/sweep/merged";
const DEPTH: u64 = 4;
const LARGE: usize = 6000 / 8;
/// More than the stamps of two processes differ by, ns.
const APART_NS: u64 = 20_000;

/// Who is killed, and whether messages travel in chunks or inside the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Receives in order from two publishers of the survivor.
    Reader {
        /// In chunks, which it borrows.
        large: bool,
    },
    /// Publishes; the survivor merges that with messages of its own.
    Writer {
        /// In chunks.
        large: bool,
    },
}

/// The survivor: two publishers, of which one may go unused, and a subscriber of both.
#[derive(Debug)]
pub struct World {
    node: Node,
    publishers: [Publisher<[u64]>; 2],
    subscriber: Subscriber<[u64]>,
    /// The next value, counted over both publishers.
    next: u64,
}

fn publisher(node: &Node) -> Result<Publisher<[u64]>, String> {
    let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
    // Room for the ring, two borrows and two loans, not for a leak.
    topic.depth(DEPTH).memory_bytes_max(96 << 10).publisher().map_err(text)
}

fn subscriber(node: &Node, history: u64) -> Result<Subscriber<[u64]>, String> {
    let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
    topic.depth(DEPTH).history(history).subscriber().map_err(text)
}

impl Merged {
    /// Every form.
    pub const ALL: [Self; 4] = [
        Self::Reader { large: false },
        Self::Reader { large: true },
        Self::Writer { large: false },
        Self::Writer { large: true },
    ];

    fn large(self) -> bool {
        match self {
            Self::Reader { large } | Self::Writer { large } => large,
        }
    }

    fn publish(self, publisher: &Publisher<[u64]>, value: u64) -> Result<(), String> {
        if self.large() {
            let mut loan = publisher.loan_slice(LARGE).map_err(text)?;
            loan.fill(value);
            return loan.publish().map(drop).map_err(text);
        }
        publisher.publish(&[value; 3]).map(drop).map_err(text)
    }

    /// The survivor's next message, by one of its publishers, and time passes: equal stamps have
    /// no order.
    fn publish_next(self, world: &mut World, publisher: usize) -> Result<(), String> {
        self.publish(&world.publishers[publisher], world.next)?;
        world.next += 1;
        let then = outlive::now_ns();
        while outlive::now_ns() < then + APART_NS {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// The value of a message that is whole.
    fn value(self, sample: &Sample<[u64]>) -> Result<u64, String> {
        let words = if self.large() { LARGE } else { 3 };
        if sample.len() != words || sample.iter().any(|word| *word != sample[0]) {
            return Err(format!("message {} is torn", sample.seq()));
        }
        Ok(sample[0])
    }

    /// All that is there, in order.
    fn drain(self, subscriber: &mut Subscriber<[u64]>) -> Result<Vec<u64>, String> {
        let (mut values, mut time) = (Vec::new(), 0);
        while let Some(sample) = subscriber.receive_in_order().map_err(text)? {
            if sample.timestamp_ns() < time {
                return Err(format!("message {} comes too late", sample.seq()));
            }
            time = sample.timestamp_ns();
            values.push(self.value(&sample)?);
        }
        if subscriber.lost() > 0 {
            return Err(format!("{} messages were lost", subscriber.lost()));
        }
        Ok(values)
    }

    /// Both publishers send once, and both messages arrive in order.
    fn round(self, world: &mut World) -> Result<(), String> {
        let first = world.next;
        for publisher in 0..world.publishers.len() {
            self.publish_next(world, publisher)?;
        }
        let got = self.drain(&mut world.subscriber)?;
        if got == [first, first + 1] { Ok(()) } else { Err(format!("{got:?} after {first}")) }
    }

    /// Receives two messages in order; `None` while there are fewer.
    fn two(self, subscriber: &mut Subscriber<[u64]>) -> Result<Option<[u64; 2]>, String> {
        let Some(first) = subscriber.receive_in_order().map_err(text)? else { return Ok(None) };
        // Held while the next one is looked for.
        let Some(second) = subscriber.receive_in_order().map_err(text)? else { return Ok(None) };
        Ok(Some([black_box(first[0]), black_box(second[0])]))
    }
}

/// What the publisher that is killed had sent before.
const BEFORE: [u64; 3] = [100, 101, 102];
/// What it is sending.
const AT_DEATH: u64 = 103;

impl Scenario for Merged {
    type World = World;

    fn name(&self) -> String {
        let what = match self {
            Self::Reader { .. } => "receive two in order",
            Self::Writer { .. } => "publish into a merged stream",
        };
        format!("{what}, {}", if self.large() { "in chunks" } else { "inline" })
    }

    fn must_see(&self) -> &[Outcome] {
        match self {
            Self::Reader { .. } => &["goes on"],
            Self::Writer { .. } => &["before", "after"],
        }
    }

    fn setup(&self, dir: &Path) -> Result<World, String> {
        let node = node(dir, "survivor")?;
        let publishers = [publisher(&node)?, publisher(&node)?];
        let subscriber = subscriber(&node, 0)?;
        let mut world = World { node, publishers, subscriber, next: 0 };
        if let Self::Reader { .. } = self {
            self.round(&mut world)?;
        }
        Ok(world)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        match self {
            Self::Reader { .. } => {
                let mut subscriber = subscriber(&node, 1)?;
                let history = self.drain(&mut subscriber)?;
                gate.enter();
                let got = self.two(&mut subscriber);
                gate.leave();
                std::mem::forget((subscriber, node));
                match (&history[..], got?) {
                    ([0, 1], Some([2, 3])) => Ok(()),
                    (history, got) => Err(format!("the victim got {history:?}, then {got:?}")),
                }
            }
            Self::Writer { .. } => {
                let publisher = publisher(&node)?;
                for value in BEFORE {
                    self.publish(&publisher, value)?;
                }
                gate.enter();
                let sent = self.publish(&publisher, AT_DEATH);
                gate.leave();
                std::mem::forget((publisher, node));
                sent
            }
        }
    }

    fn at_gate(&self, _dir: &Path, world: &mut World) -> Result<(), String> {
        // To a reader this also acknowledges it, so that it borrows.
        for publisher in 0..world.publishers.len() {
            self.publish_next(world, publisher)?;
        }
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut World, at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        let outcome = match self {
            Self::Reader { .. } => {
                let got = self.drain(&mut world.subscriber)?;
                if got != [2, 3] {
                    return Err(format!("the survivor got {got:?}"));
                }
                "goes on"
            }
            Self::Writer { .. } => {
                // Younger than whatever the dead one sent.
                self.publish_next(world, 0)?;
                let got = self.drain(&mut world.subscriber)?;
                let died = |event| matches!(event, Event::PublisherDied { .. });
                if !std::iter::from_fn(|| world.subscriber.next_event()).any(died) {
                    return Err("nobody said that the publisher died".into());
                }
                match got[..] {
                    [100, 101, 102, 0, 1, 2] if !at.finished => "before",
                    [100, 101, 102, 0, 1, AT_DEATH, 2] => "after",
                    _ => return Err(format!("merged into {got:?}")),
                }
            }
        };
        for _ in 0..20 {
            self.round(world)?;
        }
        // A successor of either kind works in the same topic.
        let (successor, mut reader) = (publisher(&world.node)?, subscriber(&world.node, 0)?);
        self.publish(&successor, 7)?;
        let got = (self.drain(&mut world.subscriber)?, self.drain(&mut reader)?);
        if got != (vec![7], vec![7]) {
            return Err(format!("of a successor came {got:?}"));
        }
        audit(dir)?;
        Ok(outcome)
    }

    fn teardown(&self, dir: &Path, world: World) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
