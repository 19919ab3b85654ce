//! A member's life whose system calls fail: an error that it is told, or success; nobody else loses
//! anything; and once nothing fails any more the same handles work, without a restart.

use std::path::Path;
use std::time::Duration;

use outlive::lock::RobustMutex;
use outlive::{Consumer, Node, Producer, Publisher, Subscriber};

use super::{audit, node, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};

const TOPIC: &str = "/life/topic";
/// Messages wait in it for a consumer that the victim may become.
const UNREAD: &str = "/life/unread";
/// A survivor consumes it.
const READ: &str = "/life/read";
const LOCK: &str = "/life/lock";
const DEPTH: u64 = 16;
/// Messages that each of two producers left in `UNREAD`, one of them dead.
const LEFT: u64 = 5;
/// What the victim sends, of whichever kind.
const SENT: u64 = 4;
const BYTES: usize = 6000;
/// The lane grows with the second message.
const LANE_BYTES: u64 = 4096;
type Record = [u64; 250];

/// What the victim does, from opening its node on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Publishes loans to a reliable subscriber.
    Publish,
    /// Joins late and reads what was published.
    Subscribe,
    /// Joins a queue with unread messages as a producer, and sends to another one.
    Produce,
    /// Becomes the consumer of a queue with unread messages.
    Consume,
    /// Changes two words under a lock.
    Lock,
}

impl Life {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Publish, Self::Subscribe, Self::Produce, Self::Consume, Self::Lock];
}

/// What the victim has so far; `live` goes on where it failed.
#[derive(Debug, Default)]
struct Member {
    node: Option<Node>,
    publisher: Option<Publisher<[u8]>>,
    subscriber: Option<Subscriber<[u8]>>,
    beside: Option<Producer<Record>>,
    producer: Option<Producer<Record>>,
    consumer: Option<Consumer<Record>>,
    mutex: Option<RobustMutex<[u64; 2]>>,
    done: u64,
    /// How long a receive may wait: what could not be opened is tried again after a while.
    patience: Duration,
}

/// What is there, or is made now.
fn have<T>(
    place: &mut Option<T>,
    make: impl FnOnce() -> outlive::Result<T>,
) -> outlive::Result<&mut T> {
    match place {
        Some(made) => Ok(made),
        None => Ok(place.insert(make()?)),
    }
}

fn publisher(node: &Node) -> outlive::Result<Publisher<[u8]>> {
    node.topic::<[u8]>(TOPIC)?.depth(DEPTH).publisher()
}

fn producer(node: &Node, queue: &str) -> outlive::Result<Producer<Record>> {
    node.queue::<Record>(queue)?.first_bytes(LANE_BYTES).producer()
}

fn consumer(node: &Node, queue: &str) -> outlive::Result<Consumer<Record>> {
    node.queue::<Record>(queue)?.consumer()
}

impl Member {
    /// Does what is left to do; what was done stays done. `mark` is told of each message.
    fn live(&mut self, life: Life, dir: &Path, gate: &Gate) -> Result<(), String> {
        let node = match &self.node {
            Some(node) => node.clone(),
            None => self.node.insert(node(dir, "victim")?).clone(),
        };
        match life {
            Life::Publish => {
                let publisher = have(&mut self.publisher, || publisher(&node)).map_err(text)?;
                while self.done < SENT {
                    let mut loan = publisher.loan_slice(BYTES).map_err(text)?;
                    loan.fill(100 + self.done as u8);
                    loan.publish().map_err(text)?;
                    self.done += 1;
                    gate.mark(self.done);
                }
            }
            Life::Subscribe => {
                let join = || node.topic::<[u8]>(TOPIC)?.depth(DEPTH).history(2).subscriber();
                let subscriber = have(&mut self.subscriber, join).map_err(text)?;
                while self.done < 2 {
                    let got = subscriber.receive_timeout(self.patience).map_err(text)?;
                    match got {
                        Some(sample) if sample.iter().all(|b| *b == self.done as u8) => {}
                        Some(sample) => return Err(format!("{AFTER}it reads {:?}", &sample[..1])),
                        None if subscriber.next_event().is_some() => continue,
                        None => return Err("nothing has come".into()),
                    }
                    self.done += 1;
                }
            }
            Life::Produce => {
                have(&mut self.beside, || producer(&node, UNREAD)).map_err(text)?;
                let producer = have(&mut self.producer, || producer(&node, READ)).map_err(text)?;
                while self.done < SENT {
                    producer.send(&[self.done; 250]).map_err(text)?;
                    self.done += 1;
                    gate.mark(self.done);
                }
            }
            Life::Consume => {
                let consumer = have(&mut self.consumer, || consumer(&node, UNREAD));
                let consumer = consumer.map_err(text)?;
                while self.done < 2 * LEFT {
                    let got = consumer.receive_timeout(self.patience).map_err(text)?;
                    match got.map(|message| message.iter().all(|word| *word == message[0])) {
                        Some(true) => {}
                        Some(false) => return Err(format!("{AFTER}a torn message")),
                        // An event ends a wait, too: what could not be opened has yet to come.
                        None if consumer.next_event().is_some() => continue,
                        None => return Err(format!("{} messages came", self.done)),
                    }
                    self.done += 1;
                    gate.mark(self.done);
                }
            }
            Life::Lock => {
                let mutex = have(&mut self.mutex, || node.mutex(LOCK)).map_err(text)?;
                let mut guard = mutex.lock().map_err(|e| e.to_string())?;
                *guard = [guard[0] + 1, guard[1] + 1];
                drop(guard);
                self.done = 1;
                gate.mark(1);
            }
        }
        Ok(())
    }
}

/// Longest that a member waits for what must come; a hang is the watchdog's business.
const LONG: Duration = Duration::from_secs(10);
const AFTER: &str = "afterwards: ";

/// Those who live on.
#[derive(Debug)]
pub struct Members {
    node: Node,
    _publisher: Publisher<[u8]>,
    subscriber: Subscriber<[u8]>,
    _producer: Producer<Record>,
    consumer: Consumer<Record>,
    mutex: RobustMutex<[u64; 2]>,
}

fn leave_unread(node: &Node, base: u64) -> Result<Producer<Record>, String> {
    let mut left = producer(node, UNREAD).map_err(text)?;
    for n in 0..LEFT {
        left.send(&[base + n; 250]).map_err(text)?;
    }
    Ok(left)
}

/// One that dies with its messages unread.
fn leave_the_dead(dir: &Path) -> Result<(), String> {
    let child = crate::fork_child(|| {
        let left = node(dir, "dead").and_then(|node| Ok((leave_unread(&node, 1000)?, node)));
        let failed = left.is_err();
        std::mem::forget(left);
        i32::from(failed)
    });
    let exit = child.map_err(|e| e.to_string())?.wait();
    if exit.success() { Ok(()) } else { Err(format!("the dead one failed: {exit}")) }
}

impl Scenario for Life {
    type World = Members;

    fn name(&self) -> String {
        format!("life: {self:?}")
    }

    fn setup(&self, dir: &Path) -> Result<Members, String> {
        let node = node(dir, "survivor")?;
        let topic = node.topic::<[u8]>(TOPIC).map_err(text)?;
        let subscriber = topic.depth(DEPTH).reliable(true).subscriber().map_err(text)?;
        let publisher = publisher(&node).map_err(text)?;
        for n in 0..2 {
            publisher.publish(&[n; BYTES]).map_err(text)?;
        }
        let first = consumer(&node, UNREAD).map_err(text)?;
        let producer = leave_unread(&node, 0)?;
        leave_the_dead(dir)?;
        drop(first);
        let consumer = consumer(&node, READ).map_err(text)?;
        let mutex = node.mutex(LOCK).map_err(text)?;
        Ok(Members {
            node,
            _publisher: publisher,
            subscriber,
            _producer: producer,
            consumer,
            mutex,
        })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let mut member = Member::default();
        gate.enter();
        let first = member.live(*self, dir, gate);
        gate.leave();
        member.patience = LONG;
        // Twice: an error may be told once more to whom it concerns.
        let second = first.clone().or_else(|_| member.live(*self, dir, gate));
        second
            .or_else(|_| member.live(*self, dir, gate))
            .map_err(|e| format!("{AFTER}{e}; at first {first:?}"))?;
        std::mem::forget(member);
        Ok(())
    }

    fn survivor(&self, dir: &Path, world: &mut Members, at: &Point) -> Result<Outcome, String> {
        audit(dir)?;
        let mark = |life| if *self == life { at.mark } else { 0 };
        // A message of the victim may be committed though it could not say so any more.
        let certain = |life, got: u64, what: &str| {
            let sent = mark(life);
            let fits = got == sent || (!at.finished && got == sent + 1);
            if fits { Ok(()) } else { Err(format!("{got} of {sent} {what}")) }
        };
        // Of the survivor's own publisher, and of the victim's: in order each, between them not.
        let (mut own, mut read) = (0, 0);
        while let Some(sample) = world.subscriber.receive().map_err(text)? {
            let of_victim = sample.first().is_some_and(|b| *b >= 100);
            let (next, base) = if of_victim { (&mut read, 100) } else { (&mut own, 0) };
            if sample.len() != BYTES || sample.iter().any(|b| *b != base + *next as u8) {
                return Err(format!("message {next} from {base} on is torn or lost"));
            }
            *next += 1;
        }
        if own != 2 {
            return Err(format!("the reliable reader got {own} of 2 messages"));
        }
        certain(Self::Publish, read, "messages were read")?;
        let mut sent = 0;
        while let Some(message) = world.consumer.receive().map_err(text)? {
            if message.iter().any(|word| *word != sent) {
                return Err(format!("message {sent} of the victim's lane is torn or lost"));
            }
            sent += 1;
        }
        certain(Self::Produce, sent, "messages were received")?;
        let mut next = [0, 0];
        let mut successor = consumer(&world.node, UNREAD).map_err(text)?;
        let mut unread = 0;
        while let Some(message) = successor.receive().map_err(text)? {
            let lane = (message[0] / 1000) as usize;
            let n = message[0] % 1000;
            if message.iter().any(|word| *word != message[0]) || lane > 1 || n < next[lane] {
                return Err(format!("the successor got {}", message[0]));
            }
            next[lane] = n + 1;
            unread += 1;
        }
        let consumed = mark(Self::Consume);
        // The message in hand comes again when its consumer died.
        if unread + consumed != 2 * LEFT && (at.finished || unread + consumed != 2 * LEFT + 1) {
            return Err(format!("{unread} of {} unread messages are left", 2 * LEFT - consumed));
        }
        let guard = world.mutex.lock().map_err(|e| e.to_string())?;
        if guard[0] != guard[1] || (guard[0] != mark(Self::Lock) && at.finished) {
            return Err(format!("the lock's words are {:?}", *guard));
        }
        drop(guard);
        drop(successor);
        audit(dir)?;
        Ok(if at.finished { "done" } else { "ended early" })
    }

    fn teardown(&self, dir: &Path, world: Members) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
