//! Receiving: what was received does not come again, but for the message in hand; nothing is lost.

use std::path::Path;

use outlive::ErrorKind;

use super::super::{audit, node, nothing_left, text};
use super::{
    BATCH, LANE_MESSAGES, Large, Numbered, Producing, consumer, drain, producer, resume, send,
    warm_up,
};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// What the victim receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Small messages that fill a line and begin another.
    Run,
    /// A batch, one by one.
    Batch,
    /// Large messages.
    Large,
    /// What a full segment holds, and one in the next.
    Follow,
    /// The last messages of a producer that left.
    Rest,
}

impl What {
    fn count(self) -> u64 {
        match self {
            Self::Run => 8,
            Self::Batch => BATCH,
            Self::Large | Self::Rest => 3,
            Self::Follow => LANE_MESSAGES + 1,
        }
    }
}

/// Receiving: what was received does not come again, but for the message in hand; nothing is lost.
#[derive(Clone, Copy, Debug)]
pub struct Receive<M> {
    what: What,
    _message: std::marker::PhantomData<fn(M)>,
}

/// See [`What::Run`].
pub const RECEIVE_RUN: Receive<u64> = Receive::new(What::Run);
/// See [`What::Batch`].
pub const RECEIVE_BATCH: Receive<u64> = Receive::new(What::Batch);
/// See [`What::Large`].
pub const RECEIVE_LARGE: Receive<Large> = Receive::new(What::Large);
/// See [`What::Follow`].
pub const FOLLOW: Receive<Large> = Receive::new(What::Follow);
/// See [`What::Rest`].
pub const RECEIVE_REST: Receive<Large> = Receive::new(What::Rest);

impl<M> Receive<M> {
    const fn new(what: What) -> Self {
        Self { what, _message: std::marker::PhantomData }
    }
}

impl<M: Numbered> Scenario for Receive<M> {
    type World = Producing<M>;

    fn name(&self) -> String {
        format!("queue: receive, {:?}", self.what)
    }

    fn setup(&self, dir: &Path) -> Result<Producing<M>, String> {
        Producing::open(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut consumer = consumer::<M>(&node)?;
        warm_up::<M>(&node)?;
        gate.enter();
        let mut received = 0;
        let result = loop {
            match consumer.receive() {
                Ok(Some(message)) => {
                    drop(message);
                    received += 1;
                    gate.mark(received);
                }
                Ok(None) => break Ok(()),
                Err(e) => break Err(text(e)),
            }
        };
        gate.leave();
        std::mem::forget((consumer, node));
        result
    }

    fn at_gate(&self, _dir: &Path, world: &mut Producing<M>) -> Result<(), String> {
        match self.what {
            What::Batch => {
                let batch: Vec<M> = (0..BATCH).map(M::numbered).collect();
                world.producer.send_batch(&batch).map_err(text)
            }
            What::Rest => {
                let mut leaver = producer::<M>(&world.node)?;
                (0..self.what.count()).try_for_each(|n| send(&mut leaver, n))
            }
            _ => (0..self.what.count()).try_for_each(|n| send(&mut world.producer, n)),
        }
    }

    fn survivor(
        &self,
        dir: &Path,
        world: &mut Producing<M>,
        at: &Point,
    ) -> Result<Outcome, String> {
        let Producing { node, producer } = world;
        let told = producer.send(&M::numbered(0)).map_err(|e| e.kind());
        if told != Err(ErrorKind::OwnerDied) {
            return Err(format!("with its consumer dead, a send says {told:?}"));
        }
        audit(dir)?;
        let mut successor = consumer::<M>(node)?;
        let next = resume(&mut successor, at.mark)?;
        if next != self.what.count() && !(next + 1 == self.what.count() && next == at.mark) {
            return Err(format!("{next} messages came in all, of {}", self.what.count()));
        }
        let left = crate::temp::listing(&super::super::root(dir));
        if left.iter().filter(|name| name.contains("lane")).count() != 1 {
            return Err(format!("more than the living producer's lane is left: {left:?}"));
        }
        for n in 0..3 {
            send(producer, n)?;
        }
        audit(dir)?;
        if drain(&mut successor, 0)? == 3 { Ok("goes on") } else { Err("messages are lost".into()) }
    }

    fn teardown(&self, dir: &Path, world: Producing<M>) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
