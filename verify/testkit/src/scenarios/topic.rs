//! Hot paths of a topic, killed at every instruction.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Node, Publisher, Subscriber};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
const LONG: Duration = Duration::from_secs(10);
const TOPIC: &str = "/sweep/topic";
const DEPTH: u64 = 4;
/// Messages that the victim sends before the operation that is killed.
/// The next loan then finds no free chunk and scans the hazards.
const BEFORE: u64 = 8;
const LARGE: usize = 6000;

/// A survivor that reads what the victim sends.
#[derive(Debug)]
pub struct Reading {
    node: Node,
    subscriber: Subscriber<[u64]>,
}

/// How the victim sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send {
    /// Inside the entry.
    Inline,
    /// In a loan; chunks are reused, so that loans scan for hazards.
    Loan,
}

fn words(how: Send) -> usize {
    if how == Send::Loan { LARGE / 8 } else { 3 }
}

fn publish(publisher: &Publisher<[u64]>, how: Send, value: u64) -> Result<(), String> {
    match how {
        Send::Inline => publisher.publish(&[value; 3]).map_err(text)?,
        Send::Loan => {
            let mut loan = publisher.loan_slice(LARGE / 8).map_err(text)?;
            loan.fill(value);
            loan.publish().map_err(text)?
        }
    };
    Ok(())
}

fn publisher(node: &Node) -> Result<Publisher<[u64]>, String> {
    let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
    // Room for the ring, two borrows and two loans, not for a leak.
    topic.depth(DEPTH).memory_bytes_max(96 << 10).publisher().map_err(text)
}

fn subscriber(node: &Node) -> Result<Subscriber<[u64]>, String> {
    node.topic::<[u64]>(TOPIC).map_err(text)?.depth(DEPTH).subscriber().map_err(text)
}

/// Reads what is there: values from `next` on, losses counted, nothing torn.
fn drain(subscriber: &mut Subscriber<[u64]>, mut next: u64, words: usize) -> Result<u64, String> {
    while let Some(sample) = subscriber.receive().map_err(text)? {
        next += sample.lost_before();
        if sample.len() != words || sample.iter().any(|word| *word != next) {
            return Err(format!("message {} is {:?}, not {next}", sample.seq(), &sample[..1]));
        }
        next += 1;
    }
    Ok(next)
}

/// Publishing, inline or by loan: the message is sent or it is not.
#[derive(Debug)]
pub struct Publish(pub Send);

impl Scenario for Publish {
    type World = Reading;

    fn name(&self) -> String {
        match self.0 {
            Send::Inline => "publish inline".into(),
            Send::Loan => "loan, fill, publish".into(),
        }
    }

    fn must_see(&self) -> &[Outcome] {
        &["before", "after"]
    }

    fn setup(&self, dir: &Path) -> Result<Reading, String> {
        let node = node(dir, "survivor")?;
        let subscriber = subscriber(&node)?;
        Ok(Reading { node, subscriber })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let publisher = publisher(&node)?;
        for value in 0..BEFORE {
            publish(&publisher, self.0, value)?;
        }
        gate.enter();
        let sent = publish(&publisher, self.0, BEFORE);
        gate.leave();
        std::mem::forget((publisher, node));
        sent
    }

    fn survivor(&self, dir: &Path, world: &mut Reading, at: &Point) -> Result<Outcome, String> {
        let sub = &mut world.subscriber;
        let next = drain(sub, 0, words(self.0))?;
        let outcome = match next {
            BEFORE if !at.finished => "before",
            n if n == BEFORE + 1 => "after",
            n => return Err(format!("{n} messages are accounted for, {BEFORE} were sent")),
        };
        let died = std::iter::from_fn(|| sub.next_event())
            .any(|event| matches!(event, Event::PublisherDied { .. }));
        if !died {
            return Err("nobody said that the publisher died".into());
        }
        audit(dir)?;
        // A successor works, in the same topic.
        let successor = publisher(&world.node)?;
        for value in 0..3 * DEPTH {
            publish(&successor, self.0, value)?;
            if drain(sub, value, words(self.0))? != value + 1 {
                return Err(format!("message {value} of the successor is missing"));
            }
        }
        Ok(outcome)
    }

    fn teardown(&self, dir: &Path, world: Reading) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// A survivor that sends to the victim and to a subscriber of its own.
#[derive(Debug)]
pub struct Sending {
    _node: Node,
    publisher: Publisher<[u64]>,
    subscriber: Subscriber<[u64]>,
}

/// Receiving, holding and releasing: the publisher goes on and its chunks come back.
#[derive(Debug)]
pub struct Receive(pub Send);

impl Scenario for Receive {
    type World = Sending;

    fn name(&self) -> String {
        match self.0 {
            Send::Inline => "receive a copy".into(),
            Send::Loan => "borrow, read, release".into(),
        }
    }

    fn setup(&self, dir: &Path) -> Result<Sending, String> {
        let node = node(dir, "survivor")?;
        let publisher = publisher(&node)?;
        let subscriber = subscriber(&node)?;
        publish(&publisher, self.0, 0)?;
        Ok(Sending { _node: node, publisher, subscriber })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
        let mut subscriber = topic.depth(DEPTH).history(1).subscriber().map_err(text)?;
        drop(subscriber.receive().map_err(text)?.ok_or("no history")?);
        gate.enter();
        let sample = subscriber.receive().map_err(text)?;
        let borrowed = sample.as_ref().is_some_and(|sample| {
            black_box(sample[0]);
            sample.is_borrowed()
        });
        drop(sample);
        gate.leave();
        if borrowed != (self.0 == Send::Loan) {
            return Err("the victim did not receive as it should".into());
        }
        std::mem::forget((subscriber, node));
        Ok(())
    }

    fn at_gate(&self, _dir: &Path, world: &mut Sending) -> Result<(), String> {
        // This acknowledges the victim, so that it borrows.
        publish(&world.publisher, self.0, 1)
    }

    fn survivor(&self, dir: &Path, world: &mut Sending, _at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        let mut next = drain(&mut world.subscriber, 0, words(self.0))?;
        for _ in 0..40 {
            publish(&world.publisher, self.0, next)?;
            next = drain(&mut world.subscriber, next, words(self.0))?;
        }
        let sent = world.publisher.published();
        if next != sent { Err(format!("{next} of {sent} messages arrived")) } else { Ok("goes on") }
    }

    fn teardown(&self, dir: &Path, world: Sending) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}

/// A subscriber that dies on its way to sleep, asleep, or waking: its raised flag harms nobody.
#[derive(Debug)]
pub struct Sleep;

impl Scenario for Sleep {
    type World = Sending;

    fn name(&self) -> String {
        "sleep until a deadline".into()
    }

    fn setup(&self, dir: &Path) -> Result<Sending, String> {
        Receive(Send::Inline).setup(dir)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let mut subscriber = subscriber(&node)?;
        while subscriber.next_event().is_some() {}
        gate.enter();
        let got = subscriber.receive_timeout(Duration::from_millis(20));
        gate.leave();
        std::mem::forget((subscriber, node));
        got.map(drop).map_err(text)
    }

    fn survivor(&self, dir: &Path, world: &mut Sending, at: &Point) -> Result<Outcome, String> {
        Receive(Send::Inline).survivor(dir, world, at)
    }

    fn teardown(&self, dir: &Path, world: Sending) -> Result<(), String> {
        Receive(Send::Inline).teardown(dir, world)
    }
}

/// A survivor that is asleep in a thread of its own until the victim sends or dies.
#[derive(Debug)]
pub struct Asleep {
    thread: Option<std::thread::JoinHandle<Result<u64, String>>>,
}

/// Publishing to one who sleeps: it wakes, whether we die before the commit, after it, or amid the
/// wake.
#[derive(Debug)]
pub struct Wake;

impl Scenario for Wake {
    type World = Asleep;

    fn name(&self) -> String {
        "publish to a sleeper".into()
    }

    fn must_see(&self) -> &[Outcome] {
        &["before", "after"]
    }

    fn setup(&self, _dir: &Path) -> Result<Asleep, String> {
        // A lost wake would otherwise end with the slice.
        outlive::internals::set_slice_ns_max(3600 * 1_000_000_000);
        Ok(Asleep { thread: None })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = node(dir, "victim")?;
        let publisher = publisher(&node)?;
        for value in 0..BEFORE {
            publish(&publisher, Send::Inline, value)?;
        }
        gate.enter();
        let sent = publish(&publisher, Send::Inline, BEFORE);
        gate.leave();
        std::mem::forget((publisher, node));
        sent
    }

    fn at_gate(&self, dir: &Path, world: &mut Asleep) -> Result<(), String> {
        let node = node(dir, "survivor")?;
        let topic = node.topic::<[u64]>(TOPIC).map_err(text)?;
        let mut sub = topic.depth(DEPTH).history(1).subscriber().map_err(text)?;
        let mut next = drain(&mut sub, BEFORE - 1, words(Send::Inline))?;
        while sub.next_event().is_some() {}
        let (ready, is_ready) = std::sync::mpsc::channel();
        world.thread = Some(std::thread::spawn(move || {
            let _keep = node;
            ready.send(crate::process::thread_id()).map_err(|e| e.to_string())?;
            loop {
                let sample = sub.receive_timeout(LONG * 360).map_err(text)?;
                next += u64::from(sample.is_some());
                let died = |e| matches!(e, Event::PublisherDied { .. });
                if std::iter::from_fn(|| sub.next_event()).any(died) {
                    return Ok(next);
                }
            }
        }));
        let thread = is_ready.recv().map_err(|e| e.to_string())?;
        if crate::process::wait_until(LONG, || crate::process::sleeps(thread)) {
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
            BEFORE if !at.finished => Ok("before"),
            n if n == BEFORE + 1 => Ok("after"),
            n => Err(format!("{n} messages are accounted for, {BEFORE} were sent")),
        }
    }

    fn teardown(&self, dir: &Path, world: Asleep) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
