//! Joining, leaving, growing and cleaning, killed at every system call and every change of shared
//! bytes.

use std::path::Path;

use outlive::{Domain, Node, Publisher, Subscriber};

use super::{audit, node, nothing_left, settings, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const TOPIC: &str = "/sweep/join";
const DEPTH: u64 = 4;
/// Publishers that a subscriber's port has places for, before it grows.
const PLACES: usize = 96;

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Opens a node in a domain with members.
    Register,
    /// Opens a node where there is no domain yet.
    FirstRegister,
    /// Leaves in order.
    Leave,
    /// Makes a topic by publishing on it.
    CreateTopic,
    /// Joins a topic as publisher, beside a publisher that died.
    JoinPublisher,
    /// Joins a topic as subscriber.
    JoinSubscriber,
    /// Takes in one publisher more than its port has places for.
    MeetOneMore,
    /// Closes a publisher that has published.
    ClosePublisher,
    /// Closes a subscriber.
    CloseSubscriber,
    /// Adds a segment, since subscribers and loans hold all chunks.
    Grow,
    /// Cleans a domain with dead and living members.
    Clean,
    /// Cleans a domain in which nobody is left.
    CleanAll,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Register,
        Self::FirstRegister,
        Self::Leave,
        Self::CreateTopic,
        Self::JoinPublisher,
        Self::JoinSubscriber,
        Self::MeetOneMore,
        Self::ClosePublisher,
        Self::CloseSubscriber,
        Self::Grow,
        Self::Clean,
        Self::CleanAll,
    ];

    /// Whether a survivor is there all along.
    fn has_members(self) -> bool {
        !matches!(self, Self::FirstRegister | Self::CleanAll)
    }
}

/// Those who live on: a publisher and a subscriber of the topic.
#[derive(Debug)]
pub struct Members {
    node: Node,
    publisher: Publisher<[u64]>,
    subscriber: Subscriber<[u64]>,
    /// More publishers, who never publish.
    silent: Vec<Publisher<[u64]>>,
}

impl Members {
    fn open(dir: &Path) -> Result<Self, String> {
        let node = node(dir, "member")?;
        let (publisher, subscriber) = (publisher(&node)?, subscriber(&node)?);
        Ok(Self { node, publisher, subscriber, silent: Vec::new() })
    }

    /// One message goes round, whatever else arrives.
    fn works(&mut self) -> Result<(), String> {
        let mark = 1_000_000 + self.publisher.published();
        self.publisher.publish(&[mark; 100]).map_err(text)?;
        for _ in 0..1000 {
            match self.subscriber.receive().map_err(text)? {
                Some(sample) if sample.iter().any(|word| *word != sample[0]) => {
                    return Err("a torn message".into());
                }
                Some(sample) if sample[0] == mark => return Ok(()),
                Some(_) => {}
                None => break,
            }
        }
        Err("a message between survivors is missing".into())
    }
}

fn publisher(node: &Node) -> Result<Publisher<[u64]>, String> {
    node.topic::<[u64]>(TOPIC).map_err(text)?.depth(DEPTH).publisher().map_err(text)
}

fn subscriber(node: &Node) -> Result<Subscriber<[u64]>, String> {
    let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
    topic.depth(DEPTH).history(DEPTH).subscriber().map_err(text)
}

/// Leaves a dead node with a ring and a subscription behind.
fn leave_the_dead(dir: &Path) -> Result<(), String> {
    let child = crate::fork_child(|| {
        let die = || -> Result<(), String> {
            let node = node(dir, "dead")?;
            let (publisher, subscriber) = (publisher(&node)?, subscriber(&node)?);
            publisher.publish(&[5; 100]).map_err(text)?;
            std::mem::forget((publisher, subscriber, node));
            Ok(())
        };
        i32::from(die().is_err())
    });
    let exit = child.map_err(|e| e.to_string())?.wait();
    if exit.success() { Ok(()) } else { Err(format!("the dead one failed: {exit}")) }
}

fn clean(dir: &Path) -> Result<(), String> {
    Domain::of(&settings(dir, "clean")).and_then(|d| d.clean()).map(drop).map_err(text)
}

impl Scenario for Step {
    type World = Option<Members>;

    fn name(&self) -> String {
        let name = format!("{self:?}");
        name.chars()
            .enumerate()
            .flat_map(|(i, c)| (c.is_uppercase() && i > 0).then_some(' ').into_iter().chain([c]))
            .collect::<String>()
            .to_lowercase()
    }

    fn setup(&self, dir: &Path) -> Result<Self::World, String> {
        let mut world = if self.has_members() { Some(Members::open(dir)?) } else { None };
        if let (Self::MeetOneMore, Some(members)) = (self, &mut world) {
            for _ in 1..PLACES {
                members.silent.push(publisher(&members.node)?);
            }
        }
        if matches!(self, Self::JoinPublisher | Self::Clean | Self::CleanAll) {
            leave_the_dead(dir)?;
        }
        Ok(world)
    }

    fn at_gate(&self, _dir: &Path, world: &mut Self::World) -> Result<(), String> {
        if let (Self::MeetOneMore, Some(members)) = (self, world) {
            members.silent.push(publisher(&members.node)?);
        }
        Ok(())
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        match self {
            Self::Register | Self::FirstRegister => {
                gate.enter();
                let node = node(dir, "victim");
                gate.leave();
                std::mem::forget(node?);
            }
            Self::Clean | Self::CleanAll => {
                gate.enter();
                let done = clean(dir);
                gate.leave();
                done?;
            }
            Self::Leave => {
                let node = node(dir, "victim")?;
                gate.enter();
                drop(node);
                gate.leave();
            }
            Self::CreateTopic => {
                let node = node(dir, "victim")?;
                gate.enter();
                let made = node.topic::<u64>("/sweep/new").and_then(|t| t.publisher());
                gate.leave();
                std::mem::forget((made.map_err(text)?, node));
            }
            Self::JoinPublisher => {
                let node = node(dir, "victim")?;
                gate.enter();
                let joined = publisher(&node);
                gate.leave();
                std::mem::forget((joined?, node));
            }
            Self::JoinSubscriber => {
                let node = node(dir, "victim")?;
                gate.enter();
                let joined = subscriber(&node);
                gate.leave();
                std::mem::forget((joined?, node));
            }
            Self::MeetOneMore => {
                let node = node(dir, "victim")?;
                let mut subscriber = subscriber(&node)?;
                while subscriber.receive().map_err(text)?.is_some() {}
                gate.enter();
                let met = subscriber.receive().map(drop);
                gate.leave();
                std::mem::forget((met.map_err(text)?, subscriber, node));
            }
            Self::ClosePublisher => {
                let node = node(dir, "victim")?;
                let publisher = publisher(&node)?;
                publisher.publish(&[9; 100]).map_err(text)?;
                gate.enter();
                drop(publisher);
                gate.leave();
                std::mem::forget(node);
            }
            Self::CloseSubscriber => {
                let node = node(dir, "victim")?;
                let subscriber = subscriber(&node)?;
                gate.enter();
                drop(subscriber);
                gate.leave();
                std::mem::forget(node);
            }
            Self::Grow => {
                let node = node(dir, "victim")?;
                let publisher = publisher(&node)?;
                let loans: Vec<_> = (0..6).map(|_| publisher.loan_slice(100)).collect();
                gate.enter();
                let loan = publisher.loan_slice(100);
                let sent = loan.and_then(|mut loan| {
                    loan.fill(8);
                    loan.publish()
                });
                gate.leave();
                std::mem::forget((sent.map_err(text)?, loans));
                std::mem::forget((publisher, node));
            }
        }
        Ok(())
    }

    fn survivor(
        &self,
        dir: &Path,
        world: &mut Self::World,
        _at: &Point,
    ) -> Result<Outcome, String> {
        audit(dir)?;
        if let Some(members) = world {
            members.works()?;
        }
        // A restarted process works, beside whatever the victim left.
        let mut restarted = Members::open(dir)?;
        restarted.works()?;
        if let Some(members) = world {
            members.works()?;
            let new = members.node.topic::<u64>("/sweep/new").and_then(|t| t.subscriber());
            new.map_err(text)?;
        }
        audit(dir)?;
        drop(restarted);
        clean(dir)?;
        let domain = Domain::of(&settings(dir, "look")).map_err(text)?;
        let nodes = domain.nodes().map_err(text)?;
        let expected = usize::from(world.is_some());
        if nodes.len() != expected || nodes.iter().any(|n| !n.alive) {
            return Err(format!("after clean these nodes are left: {nodes:?}"));
        }
        Ok("goes on")
    }

    fn teardown(&self, dir: &Path, world: Self::World) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
