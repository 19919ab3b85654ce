//! One end sleeps while the other works or dies: it wakes.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use outlive::queue;
use outlive::{Consumer, ErrorKind, Node};

use super::super::{audit, node, nothing_left, text};
use super::{
    Consuming, LANE_BYTES, LANE_MESSAGES, LONG, Large, Producing, QUEUE, consumer, drain, producer,
    resume, send, warm_up,
};
use crate::process::{sleeps, thread_id, wait_until};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// A survivor whose thread sleeps until the victim does something, or dies.
#[derive(Debug)]
pub struct Sleeping {
    node: Node,
    thread: Option<JoinHandle<Result<u64, String>>>,
}

/// Starts `body` in a thread and waits until it sleeps.
fn asleep(
    body: impl FnOnce() -> Result<u64, String> + std::marker::Send + 'static,
) -> Result<JoinHandle<Result<u64, String>>, String> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        ready.send(thread_id()).map_err(|e| e.to_string())?;
        body()
    });
    let id = is_ready.recv().map_err(|e| e.to_string())?;
    if wait_until(LONG, || sleeps(id)) {
        Ok(thread)
    } else {
        Err("the survivor does not fall asleep".into())
    }
}

fn join(world: &mut Sleeping) -> Result<u64, String> {
    // A lost wake hangs here, and the watchdog says so.
    world.thread.take().ok_or("nobody slept")?.join().map_err(|_| "the sleeper panicked")?
}

fn never_a_slice(dir: &Path) -> Result<Sleeping, String> {
    // A lost wake would otherwise end with the slice.
    outlive::internals::set_slice_ns_max(3600 * 1_000_000_000);
    Ok(Sleeping { node: node(dir, "survivor")?, thread: None })
}

/// Sending to a consumer that sleeps: it wakes, whether we die before the commit, after it, or
/// amid the wake.
#[derive(Debug)]
pub struct Wake;

/// Messages before the one that wakes.
const BEFORE: u64 = 2;

impl Scenario for Wake {
    type World = (Sleeping, Option<Consumer<u64>>);

    fn name(&self) -> String {
        "queue: send to a sleeper".into()
    }

    fn must_see(&self) -> &[Outcome] {
        &["before", "after"]
    }

    fn setup(&self, dir: &Path) -> Result<Self::World, String> {
        let world = never_a_slice(dir)?;
        let consumer = consumer::<u64>(&world.node)?;
        Ok((world, Some(consumer)))
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut producer = producer::<u64>(&node)?;
        for n in 0..BEFORE {
            send(&mut producer, n)?;
        }
        gate.enter();
        let sent = send(&mut producer, BEFORE);
        gate.leave();
        std::mem::forget((producer, node));
        sent
    }

    fn at_gate(&self, _dir: &Path, (world, consumer): &mut Self::World) -> Result<(), String> {
        let mut consumer = consumer.take().ok_or("no consumer")?;
        let mut next = drain(&mut consumer, 0)?;
        while consumer.next_event().is_some() {}
        world.thread = Some(asleep(move || {
            loop {
                next += u64::from(consumer.receive_timeout(LONG * 360).map_err(text)?.is_some());
                let died = |e| matches!(e, queue::Event::ProducerDied(_));
                if std::iter::from_fn(|| consumer.next_event()).any(died) {
                    return Ok(next);
                }
            }
        })?);
        Ok(())
    }

    fn survivor(
        &self,
        dir: &Path,
        (world, _): &mut Self::World,
        at: &Point,
    ) -> Result<Outcome, String> {
        let next = join(world)?;
        audit(dir)?;
        match next {
            BEFORE if !at.finished => Ok("before"),
            n if n == BEFORE + 1 => Ok("after"),
            n => Err(format!("{n} messages came")),
        }
    }

    fn teardown(&self, dir: &Path, world: Self::World) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// Receiving while the producer sleeps for room: it wakes, by the room or by our death.
#[derive(Debug)]
pub struct Unblock;

impl Scenario for Unblock {
    type World = Sleeping;

    fn name(&self) -> String {
        "queue: make room for a sleeper".into()
    }

    fn must_see(&self) -> &[Outcome] {
        &["owner died", "sent"]
    }

    fn setup(&self, dir: &Path) -> Result<Sleeping, String> {
        never_a_slice(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut consumer = consumer::<Large>(&node)?;
        warm_up::<Large>(&node)?;
        gate.enter();
        let mut received = 0;
        while received < LANE_MESSAGES {
            let Some(message) = consumer.receive().map_err(text)? else { break };
            drop(message);
            received += 1;
            gate.mark(received);
        }
        gate.leave();
        std::mem::forget((consumer, node));
        if received == LANE_MESSAGES { Ok(()) } else { Err(format!("{received} messages came")) }
    }

    fn at_gate(&self, _dir: &Path, world: &mut Sleeping) -> Result<(), String> {
        let queue = world.node.queue::<Large>(QUEUE).map_err(text)?;
        let mut producer =
            queue.first_bytes(LANE_BYTES).bound_bytes(LANE_BYTES).producer().map_err(text)?;
        for n in 0..LANE_MESSAGES {
            send(&mut producer, n)?;
        }
        world.thread = Some(asleep(move || match producer.send(&[LANE_MESSAGES; 16]) {
            Ok(()) => Ok(LANE_MESSAGES + 1),
            Err(e) if e.kind() == ErrorKind::OwnerDied => Ok(LANE_MESSAGES),
            Err(e) => Err(text(e)),
        })?);
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut Sleeping, at: &Point) -> Result<Outcome, String> {
        let sent = join(world)?;
        audit(dir)?;
        let mut successor = consumer::<Large>(&world.node)?;
        let next = resume(&mut successor, at.mark)?;
        if next != sent && !(next + 1 == sent && next == at.mark) {
            return Err(format!("{next} messages came of {sent}"));
        }
        Ok(if sent > LANE_MESSAGES { "sent" } else { "owner died" })
    }

    fn teardown(&self, dir: &Path, world: Sleeping) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// A consumer that dies on its way to sleep, asleep, or waking: its raised flag harms nobody.
#[derive(Debug)]
pub struct Sleep;

impl Scenario for Sleep {
    type World = Producing<Large>;

    fn name(&self) -> String {
        "queue: sleep until a deadline".into()
    }

    fn setup(&self, dir: &Path) -> Result<Producing<Large>, String> {
        Producing::open(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut consumer = consumer::<Large>(&node)?;
        while consumer.next_event().is_some() {}
        gate.enter();
        let got = consumer.receive_timeout(Duration::from_millis(200));
        gate.leave();
        let got = got.map(|message| message.is_some()).map_err(text)?;
        std::mem::forget((consumer, node));
        if got { Err("a message came".into()) } else { Ok(()) }
    }

    fn survivor(
        &self,
        dir: &Path,
        world: &mut Producing<Large>,
        _at: &Point,
    ) -> Result<Outcome, String> {
        let mut successor = consumer::<Large>(&world.node)?;
        for n in 0..5 {
            send(&mut world.producer, n)?;
        }
        audit(dir)?;
        if drain(&mut successor, 0)? == 5 { Ok("goes on") } else { Err("messages are lost".into()) }
    }

    fn teardown(&self, dir: &Path, world: Producing<Large>) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// A producer that dies on its way to sleep for room, asleep, or giving up.
#[derive(Debug)]
pub struct Blocked;

impl Scenario for Blocked {
    type World = Consuming<Large>;

    fn name(&self) -> String {
        "queue: wait for room until a deadline".into()
    }

    fn setup(&self, dir: &Path) -> Result<Consuming<Large>, String> {
        Consuming::open(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let queue = node.queue::<Large>(QUEUE).map_err(text)?;
        let mut producer =
            queue.first_bytes(LANE_BYTES).bound_bytes(LANE_BYTES).producer().map_err(text)?;
        for n in 0..LANE_MESSAGES {
            send(&mut producer, n)?;
        }
        gate.enter();
        let sent = producer.send_timeout(&[99; 16], Duration::from_millis(200));
        gate.leave();
        std::mem::forget((producer, node));
        match sent.map_err(|e| e.kind()) {
            Err(ErrorKind::Timeout) => Ok(()),
            other => Err(format!("at the bound a send says {other:?}")),
        }
    }

    fn survivor(
        &self,
        dir: &Path,
        world: &mut Consuming<Large>,
        _at: &Point,
    ) -> Result<Outcome, String> {
        let next = drain(&mut world.consumer, 0)?;
        audit(dir)?;
        if next == LANE_MESSAGES { Ok("all before it") } else { Err(format!("{next} came")) }
    }

    fn teardown(&self, dir: &Path, world: Consuming<Large>) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
