//! Queues: sending, receiving, waking and waiting, killed at every instruction or at every system
//! call and change of shared bytes.
//!
//! | file | what |
//! |---|---|
//! | here | messages with numbers, and how survivors count them |
//! | `send`, `receive` | a message is sent or it is not; it comes once, but for the one in hand |
//! | `sleep` | one end sleeps while the other works or dies |
//! | `steps` | opening, closing, taking over, cleaning |

mod receive;
mod send;
mod sleep;
mod steps;

use std::path::Path;
use std::time::Duration;

use outlive::{Consumer, Message, Node, Producer};

use super::{node, text};
pub use receive::{FOLLOW, RECEIVE_BATCH, RECEIVE_LARGE, RECEIVE_REST, RECEIVE_RUN, Receive, What};
pub use send::{GROW, How, SEND_BATCH, SEND_FIRST, SEND_IN_PLACE, SEND_LARGE, SEND_SMALL, Send};
pub use sleep::{Blocked, Sleep, Sleeping, Unblock, Wake};
pub use steps::{Members, Step};

/// Longest that a survivor waits for what must come at once; a hang is the watchdog's business.
pub(super) const LONG: Duration = Duration::from_secs(10);
const QUEUE: &str = "/sweep/queue";
/// A queue of the victim alone, for the warm-up.
const WARM: &str = "/sweep/warm";
/// The smallest lane.
const LANE_BYTES: u64 = 4096;
/// Large messages that fit into it: records of 136 bytes, and one header more.
const LANE_MESSAGES: u64 = 30;
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

fn producer<M: Numbered>(node: &Node) -> Result<Producer<M>, String> {
    let queue = node.queue::<M>(QUEUE).map_err(text)?;
    queue.first_bytes(LANE_BYTES).bound_bytes(4 * LANE_BYTES).producer().map_err(text)
}

fn consumer<M: Numbered>(node: &Node) -> Result<Consumer<M>, String> {
    node.queue::<M>(QUEUE).map_err(text)?.consumer().map_err(text)
}

fn send<M: Numbered>(producer: &mut Producer<M>, n: u64) -> Result<(), String> {
    producer.send(&M::numbered(n)).map_err(text)
}

/// A consumer that lives on.
#[derive(Debug)]
pub struct Consuming<M: Message> {
    node: Node,
    consumer: Consumer<M>,
}

impl<M: Numbered> Consuming<M> {
    fn open(dir: &Path) -> Result<Self, String> {
        let node = node(dir, "survivor")?;
        let consumer = consumer(&node)?;
        Ok(Self { node, consumer })
    }
}

/// A producer that lives on.
#[derive(Debug)]
pub struct Producing<M: Message> {
    node: Node,
    producer: Producer<M>,
}

impl<M: Numbered> Producing<M> {
    fn open(dir: &Path) -> Result<Self, String> {
        let node = node(dir, "survivor")?;
        let producer = producer(&node)?;
        Ok(Self { node, producer })
    }
}

/// Receives what is there: numbers from `next` on, none torn.
fn drain<M: Numbered>(consumer: &mut Consumer<M>, mut next: u64) -> Result<u64, String> {
    while let Some(message) = consumer.receive().map_err(text)? {
        if message.number() != Some(next) {
            return Err(format!("{:?} came instead of {next}", message.number()));
        }
        next += 1;
    }
    Ok(next)
}

/// Like `drain`, for a successor: the message that its predecessor had in hand may come again.
fn resume<M: Numbered>(consumer: &mut Consumer<M>, done: u64) -> Result<u64, String> {
    let first = match consumer.receive().map_err(text)? {
        None => return Ok(done),
        Some(message) => message.number().ok_or("a torn message")?,
    };
    if first != done && first != done + 1 {
        return Err(format!("the successor goes on at {first}, {done} were received for certain"));
    }
    drain(consumer, first + 1)
}

/// Runs the code of a receive once, on a queue of the victim's own.
fn warm_up<M: Numbered>(node: &Node) -> Result<(), String> {
    let queue = || node.queue::<M>(WARM).map_err(text);
    let mut consumer = queue()?.consumer().map_err(text)?;
    let mut producer = queue()?.producer().map_err(text)?;
    send(&mut producer, 0)?;
    if drain(&mut consumer, 0)? == 1 { Ok(()) } else { Err("the warm-up went wrong".into()) }
}
