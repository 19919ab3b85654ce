//! Ends of real-time channels that come, are replaced and go, killed at every system call and every
//! change of shared bytes.

use std::path::Path;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use outlive::Node;
use outlive::rt::{LatestReader, NotPushed, Opening, SpscReader, SpscWriter};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const NAME: &str = "/sweep/ring";
const DEPTH: usize = 4;
const SOON: Duration = Duration::from_secs(10);

type Writer = SpscWriter<u64>;
type Reader = SpscReader<u64>;

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a reading end, beside one of the dead.
    Open,
    /// Connects a reader to a writer whose reader left.
    Accept,
    /// Connects a writer to a reader whose writer left.
    Offer,
    /// Reads on from a writer's successor.
    AcceptAgain,
    /// Offers what it pushed to a reader's successor.
    OfferAgain,
    /// Drops a reader that a writer has.
    Leave,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Accept, Self::Offer, Self::AcceptAgain, Self::OfferAgain, Self::Leave];

    fn victim_writes(self) -> bool {
        matches!(self, Self::Offer | Self::OfferAgain)
    }
}

/// Those who live on.
#[derive(Debug)]
pub struct World {
    node: Node,
    own: Own,
}

#[derive(Debug)]
enum Own {
    None,
    Writer(Writer),
    Reader(Reader),
    OpenWriter(Opening<Writer>),
    OpenReader(Opening<Reader>),
    /// The victim connects meanwhile.
    ComingWriter(JoinHandle<outlive::Result<Writer>>),
    ComingReader(JoinHandle<outlive::Result<Reader>>),
}

fn writer(node: &Node) -> Result<Opening<Writer>, String> {
    Writer::open(node, NAME, DEPTH).map_err(text)
}

fn reader(node: &Node) -> Result<Opening<Reader>, String> {
    Reader::open(node, NAME, DEPTH).map_err(text)
}

fn together(w: Opening<Writer>, r: Opening<Reader>) -> Result<(Writer, Reader), String> {
    let w = spawn(move || w.connect(SOON));
    let r = r.connect(SOON);
    Ok((joined(w)?, r.map_err(text)?))
}

fn joined<T>(thread: JoinHandle<outlive::Result<T>>) -> Result<T, String> {
    thread.join().map_err(|_| "a panic")?.map_err(text)
}

/// Leaves a dead node with a reading end behind.
fn leave_the_dead(dir: &Path) -> Result<(), String> {
    let child = crate::fork_child(|| {
        let die = || -> Result<(), String> {
            let node = node(dir, "dead")?;
            std::mem::forget((reader(&node)?, node));
            Ok(())
        };
        i32::from(die().is_err())
    });
    let exit = child.map_err(|e| e.to_string())?.wait();
    if exit.success() { Ok(()) } else { Err(format!("the dead one failed: {exit}")) }
}

/// The values go round in order, whatever was in the ring.
fn flows(writer: &mut Writer, reader: &mut Reader) -> Result<(), String> {
    let (mut sent, mut last) = (0, None);
    for _ in 0..10_000 {
        if sent < 20 {
            match writer.push(&(1000 + sent)) {
                Ok(()) => sent += 1,
                Err(NotPushed::Full) => {}
                Err(lost) => return Err(lost.to_string()),
            }
        }
        if let Some(got) = reader.pop().map_err(|lost| lost.to_string())? {
            let got = got.value;
            if last.is_some_and(|last| got != last + 1) && got != 1000 {
                return Err(format!("{got} after {last:?}"));
            }
            if got == 1019 {
                return Ok(());
            }
            last = Some(got);
        }
    }
    Err(format!("{sent} pushed, the last popped is {last:?}"))
}

impl Scenario for Step {
    type World = World;

    fn name(&self) -> String {
        format!("rt {self:?}").to_lowercase()
    }

    fn setup(&self, dir: &Path) -> Result<World, String> {
        let node = node(dir, "member")?;
        let own = match self {
            Self::Open => {
                leave_the_dead(dir)?;
                Own::None
            }
            Self::Accept | Self::Offer => {
                let (mut w, r) = together(writer(&node)?, reader(&node)?)?;
                if self.victim_writes() {
                    Own::Reader(r)
                } else {
                    w.push(&7).map_err(|lost| lost.to_string())?;
                    Own::Writer(w)
                }
            }
            Self::AcceptAgain | Self::Leave => {
                let opening = writer(&node)?;
                Own::ComingWriter(spawn(move || opening.connect(SOON)))
            }
            Self::OfferAgain => {
                let opening = reader(&node)?;
                Own::ComingReader(spawn(move || opening.connect(SOON)))
            }
        };
        Ok(World { node, own })
    }

    fn at_gate(&self, _dir: &Path, world: &mut World) -> Result<(), String> {
        world.own = match std::mem::replace(&mut world.own, Own::None) {
            Own::Writer(mut writer) if *self == Self::Accept => {
                // Offers; the victim accepts.
                let _ = writer.reconnect(Duration::ZERO);
                Own::Writer(writer)
            }
            Own::ComingWriter(coming) if *self == Self::Leave => Own::Writer(joined(coming)?),
            Own::ComingWriter(coming) => {
                drop(joined(coming)?);
                let opening = writer(&world.node)?;
                // Whoever waits for one end does what another can do: it offers.
                let other = LatestReader::<u64>::open(&world.node, "/sweep/other");
                let _ = other.map_err(text)?.connect(Duration::ZERO);
                Own::OpenWriter(opening)
            }
            Own::ComingReader(coming) => {
                drop(joined(coming)?);
                Own::OpenReader(reader(&world.node)?)
            }
            own => own,
        };
        Ok(())
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        match self {
            Self::Open => {
                gate.enter();
                let opened = reader(&node);
                gate.leave();
                std::mem::forget(opened?);
            }
            Self::Accept => {
                let opening = reader(&node)?;
                gate.enter();
                let reader = opening.connect(SOON);
                gate.leave();
                std::mem::forget(reader.map_err(text)?);
            }
            Self::Offer => {
                let opening = writer(&node)?;
                gate.enter();
                let refused = opening.connect(Duration::ZERO);
                gate.leave();
                if refused.is_ok() {
                    return Err("connected to a reader that did not connect".into());
                }
            }
            Self::AcceptAgain => {
                let mut reader = reader(&node)?.connect(SOON).map_err(text)?;
                gate.enter();
                let again = reader.reconnect(SOON);
                gate.leave();
                again.map_err(text)?;
                std::mem::forget(reader);
            }
            Self::OfferAgain => {
                let mut writer = writer(&node)?.connect(SOON).map_err(text)?;
                for n in 0..3 {
                    writer.push(&n).map_err(|lost| lost.to_string())?;
                }
                gate.enter();
                let refused = writer.reconnect(Duration::ZERO);
                gate.leave();
                if refused.is_ok() {
                    return Err("connected to a reader that did not connect".into());
                }
                std::mem::forget(writer);
            }
            Self::Leave => {
                let reader = reader(&node)?.connect(SOON).map_err(text)?;
                gate.enter();
                drop(reader);
                gate.leave();
            }
        }
        std::mem::forget(node);
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut World, _at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        let restarted = node(dir, "restarted")?;
        let (mut w, mut r) = match std::mem::replace(&mut world.own, Own::None) {
            Own::None => together(writer(&world.node)?, reader(&restarted)?)?,
            Own::Writer(mut old) => {
                let next = reader(&restarted)?;
                let next = spawn(move || next.connect(SOON));
                old.reconnect(SOON).map_err(text)?;
                (old, joined(next)?)
            }
            Own::Reader(mut old) => {
                let next = writer(&restarted)?;
                let next = spawn(move || next.connect(SOON));
                old.reconnect(SOON).map_err(text)?;
                (joined(next)?, old)
            }
            Own::OpenWriter(opening) => together(opening, reader(&restarted)?)?,
            Own::OpenReader(opening) => together(writer(&restarted)?, opening)?,
            Own::ComingWriter(_) | Own::ComingReader(_) => return Err("at the gate it came".into()),
        };
        if *self == Self::Accept {
            // Accepted before, and popped by nobody that lives.
            match r.pop().map_err(|lost| lost.to_string())?.map(|first| first.value) {
                Some(7) => {}
                other => return Err(format!("{other:?} instead of what was pushed before")),
            }
        }
        flows(&mut w, &mut r)?;
        audit(dir)?;
        Ok("goes on")
    }

    fn teardown(&self, dir: &Path, world: World) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
