//! Values of a size known to the compiler, as most programs send them: killed at every instruction,
//! of which there may only be so many. With `instructions_max` a call that is no longer inlined, or
//! a copy of unknown length, shows on any machine.

use std::hint::black_box;
use std::path::Path;

use outlive::{Node, Publisher, Subscriber};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const TOPIC: &str = "/sweep/value";
/// Messages before those of the operation.
const BEFORE: u64 = 8;
/// Messages of a batch.
const BATCH: u64 = 4;

type Value = [u64; 8];

/// What the victim does with a value of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copies it into the ring.
    Publish,
    /// Takes it out as a sample, and lets go.
    Receive,
    /// Copies it into place.
    CopyTo,
    /// Copies several into the ring.
    PublishBatch,
    /// Copies several to their places.
    ReceiveBatch,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Publish, Self::Receive, Self::CopyTo, Self::PublishBatch, Self::ReceiveBatch];

    /// How many messages it sends.
    fn sends(self) -> u64 {
        match self {
            Self::Publish => 1,
            Self::PublishBatch => BATCH,
            _ => 0,
        }
    }

    /// How many messages it receives.
    fn receives(self) -> u64 {
        match self {
            Self::Receive | Self::CopyTo => 1,
            Self::ReceiveBatch => BATCH,
            _ => 0,
        }
    }
}

/// A survivor with both ends.
#[derive(Debug)]
pub struct Ends {
    _node: Node,
    publisher: Publisher<Value>,
    subscriber: Subscriber<Value>,
}

fn publisher(node: &Node) -> Result<Publisher<Value>, String> {
    let topic = node.topic::<Value>(TOPIC).map_err(text)?;
    // How many instructions a look at the clock takes is the machine's.
    topic.depth(16).timestamps(false).publisher().map_err(text)
}

fn subscriber(node: &Node) -> Result<Subscriber<Value>, String> {
    node.topic::<Value>(TOPIC).map_err(text)?.depth(16).subscriber().map_err(text)
}

fn publish(publisher: &Publisher<Value>, value: u64) -> Result<(), String> {
    publisher.publish(black_box(&[value; 8])).map(drop).map_err(text)
}

impl Scenario for Step {
    type World = Ends;

    fn name(&self) -> String {
        match self {
            Self::Publish => "publish a value".into(),
            Self::Receive => "receive a value".into(),
            Self::CopyTo => "copy a value to its place".into(),
            Self::PublishBatch => "publish a batch of values".into(),
            Self::ReceiveBatch => "receive a batch of values".into(),
        }
    }

    fn instructions_max(&self) -> u64 {
        // 127, 261, 303, 423 and 915 when this was written, on x86-64 with its assertions.
        match self {
            Self::Publish => 145,
            Self::Receive => 290,
            Self::CopyTo => 335,
            Self::PublishBatch => 475,
            Self::ReceiveBatch => 1000,
        }
    }

    fn setup(&self, dir: &Path) -> Result<Ends, String> {
        let node = node(dir, "survivor")?;
        let (publisher, subscriber) = (publisher(&node)?, subscriber(&node)?);
        Ok(Ends { _node: node, publisher, subscriber })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let (publisher, mut subscriber) = (publisher(&node)?, subscriber(&node)?);
        let (mut place, mut places) = ([0; 8], Vec::with_capacity(8));
        for value in 0..BEFORE {
            publish(&publisher, value)?;
            // In this order a warm-up of each kind has come before its turn.
            match value % 3 {
                0 => drop(subscriber.receive().map_err(text)?.ok_or("no message")?),
                1 => drop(subscriber.copy_to(&mut place).map_err(text)?.ok_or("none")?),
                _ => drop(subscriber.receive_batch(&mut places, 1).map_err(text)?),
            }
        }
        for value in BEFORE..BEFORE + self.receives() {
            publish(&publisher, value)?;
        }
        places.clear();
        let value = black_box([BEFORE; 8]);
        let batch: [Value; BATCH as usize] = std::array::from_fn(|i| [BEFORE + i as u64; 8]);
        let batch = black_box(batch);
        gate.enter();
        match self {
            Self::Publish => drop(publisher.publish(&value)),
            Self::Receive => drop(black_box(subscriber.receive())),
            Self::CopyTo => drop(black_box(subscriber.copy_to(&mut place))),
            Self::PublishBatch => drop(publisher.publish_batch(&batch)),
            Self::ReceiveBatch => drop(black_box(subscriber.receive_batch(&mut places, 4))),
        }
        gate.leave();
        std::mem::forget((publisher, subscriber, node));
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut Ends, at: &Point) -> Result<Outcome, String> {
        let mut next = 0;
        while let Some(sample) = world.subscriber.receive().map_err(text)? {
            if *sample != [next; 8] {
                return Err(format!("message {next} is {:?}", *sample));
            }
            next += 1;
        }
        let before = BEFORE + self.receives();
        let sent = if at.finished { self.sends() } else { 0 };
        if next < before + sent || next > before + self.sends() {
            return Err(format!("{next} messages are there, {before} were sent before"));
        }
        audit(dir)?;
        publish(&world.publisher, next)?;
        match world.subscriber.receive().map_err(text)? {
            Some(sample) if *sample == [next; 8] => Ok("goes on"),
            _ => Err("a successor is not heard".into()),
        }
    }

    fn teardown(&self, dir: &Path, world: Ends) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
