//! Publishers that wait for reliable subscribers, and volatile ones that take a message back.

use std::path::Path;
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Node, Publisher, Subscriber};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const TOPIC: &str = "/sweep/modes";
const DEPTH: u64 = 4;
const WORDS: usize = 800;

/// Which publisher is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Waits in vain for a reliable subscriber that does not read.
    Reliable,
    /// The same for as long as a busy machine needs to see that it sleeps.
    Patient,
    /// Withdraws the message that all have read, to write into its chunk.
    Volatile,
}

/// The survivor, who has read messages below `next`.
#[derive(Debug)]
pub struct Reading {
    node: Node,
    subscriber: Subscriber<[u64]>,
    next: u64,
}

fn publisher(node: &Node, mode: Mode) -> Result<Publisher<[u64]>, String> {
    let topic = node.topic::<[u64]>(TOPIC).map_err(text)?.depth(DEPTH);
    let patience = if mode == Mode::Patient { 10_000 } else { 15 };
    let topic = topic.reliable_timeout(Duration::from_millis(patience));
    topic.volatile(mode == Mode::Volatile).publisher().map_err(text)
}

fn publish(publisher: &Publisher<[u64]>, value: u64) -> outlive::Result<()> {
    let mut loan = publisher.loan_slice(WORDS)?;
    loan.fill(value);
    loan.publish().map(drop)
}

impl Reading {
    fn drain(&mut self) -> Result<(), String> {
        while let Some(sample) = self.subscriber.receive().map_err(text)? {
            self.next += sample.lost_before();
            if sample.len() != WORDS || sample.iter().any(|word| *word != self.next) {
                return Err(format!("message {} is torn or out of order", sample.seq()));
            }
            self.next += 1;
        }
        Ok(())
    }
}

impl Scenario for Mode {
    type World = Reading;

    fn name(&self) -> String {
        match self {
            Self::Reliable => "wait until a timeout for a reliable subscriber".into(),
            Self::Patient => "wait long for a reliable subscriber".into(),
            Self::Volatile => "withdraw, fill again, publish".into(),
        }
    }

    fn must_see(&self) -> &[Outcome] {
        if *self == Self::Volatile { &["before", "after"] } else { &["before"] }
    }

    fn setup(&self, dir: &Path) -> Result<Reading, String> {
        let node = node(dir, "survivor")?;
        let topic = node.topic::<[u64]>(TOPIC).map_err(text)?.depth(DEPTH);
        let subscriber = topic.reliable(*self != Self::Volatile).subscriber().map_err(text)?;
        Ok(Reading { node, subscriber, next: 0 })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let publisher = publisher(&node, *self)?;
        for value in 0..DEPTH {
            publish(&publisher, value).map_err(text)?;
        }
        gate.enter();
        let sent = publish(&publisher, DEPTH);
        gate.leave();
        std::mem::forget((publisher, node));
        match (self, sent) {
            (Self::Reliable | Self::Patient, Ok(())) => Err("it did not wait".into()),
            (Self::Volatile, Err(e)) => Err(text(e)),
            _ => Ok(()),
        }
    }

    fn at_gate(&self, _dir: &Path, world: &mut Reading) -> Result<(), String> {
        if *self == Self::Volatile { world.drain() } else { Ok(()) }
    }

    fn survivor(&self, dir: &Path, world: &mut Reading, at: &Point) -> Result<Outcome, String> {
        world.drain()?;
        let sent_more = world.next == DEPTH + 1;
        let right = match self {
            Self::Reliable | Self::Patient => world.next == DEPTH,
            Self::Volatile => sent_more || (world.next == DEPTH && !at.finished),
        };
        if !right || world.subscriber.lost() > 0 {
            let lost = world.subscriber.lost();
            return Err(format!("{} messages arrived, {lost} were lost", world.next));
        }
        let died = |event| matches!(event, Event::PublisherDied { .. });
        if !std::iter::from_fn(|| world.subscriber.next_event()).any(died) {
            return Err("nobody said that the publisher died".into());
        }
        audit(dir)?;
        let successor = publisher(&world.node, *self)?;
        world.next = 0;
        for value in 0..3 * DEPTH {
            publish(&successor, value).map_err(text)?;
            world.drain()?;
        }
        if world.next != 3 * DEPTH {
            return Err("messages of the successor are missing".into());
        }
        Ok(if sent_more { "after" } else { "before" })
    }

    fn teardown(&self, dir: &Path, world: Reading) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
