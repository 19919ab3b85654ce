//! Sending: the message is sent or it is not.

use std::path::Path;

use outlive::Producer;
use outlive::queue;

use super::super::{audit, node, nothing_left, text};
use super::{BATCH, Consuming, LANE_MESSAGES, Large, Numbered, drain, producer, send};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// How the victim sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A copy.
    Copy,
    /// In place.
    InPlace,
    /// Five at once.
    Batch,
}

/// Sending: the message is sent or it is not.
#[derive(Clone, Copy, Debug)]
pub struct Send<M> {
    how: How,
    before: u64,
    _message: std::marker::PhantomData<fn(M)>,
}

impl<M: Numbered> Send<M> {
    /// Sends after `before` messages.
    pub const fn new(how: How, before: u64) -> Self {
        Self { how, before, _message: std::marker::PhantomData }
    }

    fn count(&self) -> u64 {
        if self.how == How::Batch { BATCH } else { 1 }
    }

    #[inline]
    fn send(&self, producer: &mut Producer<M>) -> Result<(), String> {
        let message = M::numbered(self.before);
        match self.how {
            How::Copy => producer.send(&message).map_err(text)?,
            How::InPlace => {
                let mut slot = producer.reserve().map_err(text)?;
                *slot = message;
                slot.commit();
            }
            How::Batch => {
                let batch: [M; BATCH as usize] =
                    std::array::from_fn(|i| M::numbered(self.before + i as u64));
                producer.send_batch(&batch).map_err(text)?;
            }
        }
        Ok(())
    }
}

/// A small message: into a line that others share.
pub const SEND_SMALL: Send<u64> = Send::new(How::Copy, 9);
/// A small message that begins a line.
pub const SEND_FIRST: Send<u64> = Send::new(How::Copy, 7);
/// A message with a record of its own.
pub const SEND_LARGE: Send<Large> = Send::new(How::Copy, 3);
/// A large message in place.
pub const SEND_IN_PLACE: Send<Large> = Send::new(How::InPlace, 3);
/// A batch behind a line that is not full.
pub const SEND_BATCH: Send<u64> = Send::new(How::Batch, 9);
/// A message that no longer fits: the lane grows.
pub const GROW: Send<Large> = Send::new(How::Copy, LANE_MESSAGES);

impl<M: Numbered> Scenario for Send<M> {
    type World = Consuming<M>;

    fn name(&self) -> String {
        let bytes = size_of::<M>();
        format!("queue: send {bytes} B, {:?}, after {}", self.how, self.before)
    }

    fn must_see(&self) -> &[Outcome] {
        &["before", "after"]
    }

    fn setup(&self, dir: &Path) -> Result<Consuming<M>, String> {
        Consuming::open(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut producer = producer(&node)?;
        for n in 0..self.before {
            send(&mut producer, n)?;
        }
        gate.enter();
        let sent = self.send(&mut producer);
        gate.leave();
        std::mem::forget((producer, node));
        sent
    }

    fn survivor(
        &self,
        dir: &Path,
        world: &mut Consuming<M>,
        at: &Point,
    ) -> Result<Outcome, String> {
        let Consuming { node, consumer } = world;
        let next = drain(consumer, 0)?;
        let outcome = match next {
            n if n == self.before && !at.finished => "before",
            n if n == self.before + self.count() => "after",
            n => return Err(format!("{n} messages came, {} were sent before", self.before)),
        };
        let died = |event| matches!(event, queue::Event::ProducerDied(_));
        if !std::iter::from_fn(|| consumer.next_event()).any(died) {
            return Err("nobody said that the producer died".into());
        }
        let left = crate::temp::listing(&super::super::root(dir));
        if left.iter().any(|name| name.contains("lane")) {
            return Err(format!("the dead producer's lane is left: {left:?}"));
        }
        audit(dir)?;
        // A successor works, in the same queue.
        let mut successor = producer::<M>(node)?;
        for n in 0..2 * LANE_MESSAGES {
            send(&mut successor, n)?;
        }
        match drain(consumer, 0)? {
            n if n == 2 * LANE_MESSAGES => Ok(outcome),
            n => Err(format!("{n} messages of the successor came")),
        }
    }

    fn teardown(&self, dir: &Path, world: Consuming<M>) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
