//! Queues: opening, taking over, leaving and cleaning, killed at every system call and every change
//! of shared bytes.

use std::path::Path;

use outlive::{Consumer, Domain, ErrorKind, Node, Producer};

use super::super::{audit, node, nothing_left, settings, text};
use super::{Large, consumer, drain, producer, send};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// Messages that wait for a consumer.
const UNREAD: u64 = 5;

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a queue by consuming it.
    Create,
    /// Joins as a producer.
    JoinProducer,
    /// Leaves with messages unread.
    CloseProducer,
    /// Becomes the consumer after another, with messages unread.
    TakeOver,
    /// Leaves a queue with messages unread.
    CloseConsumer,
    /// Is the last to leave a queue without messages.
    CloseLast,
    /// Cleans a domain with a queue that nobody needs, messages and all.
    Clean,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::JoinProducer,
        Self::CloseProducer,
        Self::TakeOver,
        Self::CloseConsumer,
        Self::CloseLast,
        Self::Clean,
    ];
}

/// Those who live on.
#[derive(Debug, Default)]
pub struct Members {
    node: Option<Node>,
    producer: Option<Producer<Large>>,
    consumer: Option<Consumer<Large>>,
}

impl Members {
    fn node(&mut self, dir: &Path) -> Result<Node, String> {
        let node = self.node.clone().map_or_else(|| node(dir, "survivor"), Ok)?;
        self.node = Some(node.clone());
        Ok(node)
    }

    /// Two processes' worth of messages goes round.
    fn works(&mut self, dir: &Path, unread: u64) -> Result<(), String> {
        let node = self.node(dir)?;
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            None => self.consumer.insert(consumer(&node)?),
        };
        let got = drain(consumer, 0)?;
        if got != unread {
            return Err(format!("{got} messages came, {unread} were unread"));
        }
        let mut producer = match self.producer.take() {
            Some(producer) => producer,
            None => producer(&node)?,
        };
        for n in 0..3 {
            send(&mut producer, n)?;
        }
        if drain(consumer, 0)? != 3 {
            return Err("messages are lost".into());
        }
        Ok(())
    }
}

impl Scenario for Step {
    type World = Members;

    fn name(&self) -> String {
        format!("queue: {self:?}")
    }

    fn setup(&self, dir: &Path) -> Result<Members, String> {
        let mut members = Members::default();
        match self {
            Self::JoinProducer | Self::CloseProducer => {
                members.consumer = Some(consumer(&members.node(dir)?)?);
            }
            Self::TakeOver | Self::CloseConsumer => {
                let node = members.node(dir)?;
                let first = consumer::<Large>(&node)?;
                let mut producer = producer::<Large>(&node)?;
                for n in 0..UNREAD {
                    send(&mut producer, n)?;
                }
                drop(first);
                members.producer = Some(producer);
            }
            Self::Create | Self::CloseLast | Self::Clean => {}
        }
        Ok(members)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        if *self == Self::Clean {
            let dead = node(dir, "dead")?;
            let first = consumer::<Large>(&dead)?;
            let mut producer = producer::<Large>(&dead)?;
            for n in 0..UNREAD {
                send(&mut producer, n)?;
            }
            drop((first, producer, dead));
            let domain = Domain::of(&settings(dir, "clean")).map_err(text)?;
            gate.enter();
            let cleaned = domain.clean();
            gate.leave();
            return cleaned.map(drop).map_err(text);
        }
        let node = node(dir, "victim")?;
        let done = match self {
            Self::Create | Self::TakeOver => {
                gate.enter();
                let consumer = consumer::<Large>(&node);
                gate.leave();
                consumer.map(std::mem::forget)
            }
            Self::JoinProducer => {
                gate.enter();
                let producer = producer::<Large>(&node);
                gate.leave();
                producer.map(std::mem::forget)
            }
            Self::CloseProducer => {
                let mut producer = producer::<Large>(&node)?;
                for n in 0..UNREAD {
                    send(&mut producer, n)?;
                }
                gate.enter();
                drop(producer);
                gate.leave();
                Ok(())
            }
            _ => {
                let consumer = consumer::<Large>(&node)?;
                gate.enter();
                drop(consumer);
                gate.leave();
                Ok(())
            }
        };
        std::mem::forget(node);
        done
    }

    fn survivor(&self, dir: &Path, world: &mut Members, _at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        if let Some(producer) = &mut world.producer {
            let told = producer.send(&[0; 16]).map_err(|e| e.kind());
            if told != Err(ErrorKind::OwnerDied) {
                return Err(format!("without a live consumer a send says {told:?}"));
            }
        }
        let unread = match self {
            Self::TakeOver | Self::CloseConsumer | Self::CloseProducer => UNREAD,
            // Removed or not, and if not, still whole.
            Self::Clean => {
                let node = world.node(dir)?;
                let mut found = consumer::<Large>(&node)?;
                let unread = drain(&mut found, 0)?;
                if unread != 0 && unread != UNREAD {
                    return Err(format!("{unread} messages are left of {UNREAD}"));
                }
                0
            }
            _ => 0,
        };
        world.works(dir, unread)?;
        audit(dir)?;
        Ok("goes on")
    }

    fn teardown(&self, dir: &Path, world: Members) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
