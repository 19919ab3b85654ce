//! Queues: sending, receiving, waking and waiting, killed at every instruction or at every system
//! call and change of shared bytes.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use outlive::{Consumer, ErrorKind, Message, Node, Producer, QueueEvent};

use super::{audit, node, nothing_left, text};
use crate::process::{sleeps_on_futex, thread_id, wait_until};
use crate::sweep::{Gate, Outcome, Point, Scenario};

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
pub(super) const LONG: Duration = Duration::from_secs(10);
pub(super) const QUEUE: &str = "/sweep/queue";
/// A queue of the victim alone, for the warm-up.
const WARM: &str = "/sweep/warm";
/// The smallest lane.
pub(super) const LANE_BYTES: u64 = 4096;
/// Large messages that fit into it: records of 136 bytes, and one header more.
pub(super) const LANE_MESSAGES: u64 = 30;
const BATCH: u64 = 5;

/// A message with a number in it.
pub trait Numbered: Message + Copy {
    /// The message with that number.
    fn numbered(n: u64) -> Self;
    /// Its number, if it is whole.
    fn number(&self) -> Option<u64>;
}

impl Numbered for u64 {
    fn numbered(n: u64) -> Self {
        n
    }
    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}

/// Too large to share a cache line with others.
pub type Large = [u64; 16];

impl Numbered for Large {
    fn numbered(n: u64) -> Self {
        [n; 16]
    }
    fn number(&self) -> Option<u64> {
        self.iter().all(|word| *word == self[0]).then_some(self[0])
    }
}

pub(super) fn producer<M: Numbered>(node: &Node) -> Result<Producer<M>, String> {
    let queue = node.queue::<M>(QUEUE).map_err(text)?;
    queue.first_bytes(LANE_BYTES).bound_bytes(4 * LANE_BYTES).producer().map_err(text)
}

pub(super) fn consumer<M: Numbered>(node: &Node) -> Result<Consumer<M>, String> {
    node.queue::<M>(QUEUE).map_err(text)?.consumer().map_err(text)
}

pub(super) fn send<M: Numbered>(producer: &mut Producer<M>, n: u64) -> Result<(), String> {
    producer.send(&M::numbered(n)).map_err(text)
}

/// Receives what is there: numbers from `next` on, none torn.
pub(super) fn drain<M: Numbered>(consumer: &mut Consumer<M>, mut next: u64) -> Result<u64, String> {
    while let Some(message) = consumer.receive().map_err(text)? {
        if message.number() != Some(next) {
            return Err(format!("{:?} came instead of {next}", message.number()));
        }
        next += 1;
    }
    Ok(next)
}

/// Like `drain`, for a successor: the message that its predecessor had in hand may come again.
pub(super) fn resume<M: Numbered>(consumer: &mut Consumer<M>, done: u64) -> Result<u64, String> {
    let first = match consumer.receive().map_err(text)? {
        None => return Ok(done),
        Some(message) => message.number().ok_or("a torn message")?,
    };
    if first != done && first != done + 1 {
        return Err(format!("the successor goes on at {first}, {done} were received for certain"));
    }
    drain(consumer, first + 1)
}

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

/// A consumer that lives on.
#[derive(Debug)]
pub struct Consuming<M: Message> {
    node: Node,
    consumer: Consumer<M>,
}

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
        let node = node(dir, "survivor")?;
        let consumer = consumer(&node)?;
        Ok(Consuming { node, consumer })
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
        let died = |event| matches!(event, QueueEvent::ProducerDied(_));
        if !std::iter::from_fn(|| consumer.next_event()).any(died) {
            return Err("nobody said that the producer died".into());
        }
        let left = crate::temp::listing(&super::root(dir));
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

/// A producer that lives on.
#[derive(Debug)]
pub struct Producing<M: Message> {
    node: Node,
    producer: Producer<M>,
}

impl<M: Numbered> Scenario for Receive<M> {
    type World = Producing<M>;

    fn name(&self) -> String {
        format!("queue: receive, {:?}", self.what)
    }

    fn setup(&self, dir: &Path) -> Result<Producing<M>, String> {
        let node = node(dir, "survivor")?;
        let producer = producer(&node)?;
        Ok(Producing { node, producer })
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
        let left = crate::temp::listing(&super::root(dir));
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

/// Runs the code of a receive once, on a queue of the victim's own.
fn warm_up<M: Numbered>(node: &Node) -> Result<(), String> {
    let queue = || node.queue::<M>(WARM).map_err(text);
    let mut consumer = queue()?.consumer().map_err(text)?;
    let mut producer = queue()?.producer().map_err(text)?;
    send(&mut producer, 0)?;
    if drain(&mut consumer, 0)? == 1 { Ok(()) } else { Err("the warm-up went wrong".into()) }
}

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
    if wait_until(LONG, || sleeps_on_futex(id)) {
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
                let died = |e| matches!(e, QueueEvent::ProducerDied(_));
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
        RECEIVE_LARGE.setup(dir)
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
        SEND_LARGE.setup(dir)
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
