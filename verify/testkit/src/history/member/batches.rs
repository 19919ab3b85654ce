//! Ends of topics and queues whose messages have a fixed size, and travel in batches.

use std::cell::RefCell;
use std::time::Duration;

use outlive::Subscriber;
use outlive::{Consumer, Deadline, Message, Node, Producer, Publisher, Received};

use super::fails::Fails;
use super::limits::AGAIN_CALLS;
use super::messages::{content, get, look, news_of, news_of_queue, receive, receive_at_last};
use super::names::{queue, topic};
use super::shared::Shared;
use super::things::Thing;
use super::things::batches::{Slice, Values};
use super::things::lasting::Lasting;
use crate::history::reply::{Reply, Seen, UNSAID};
use crate::history::step::{BATCH_MAX, FIXED, FIXED_WORDS, Step, Verb};

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let node = shared.node(step.arg("node"));
    Ok(Thing::Values(Box::new(match (step.verb, step.arg("type")) {
        (Verb::Subscriber, FIXED) => Values::SmallSubscriber(subscriber(&node, step)?),
        (Verb::Subscriber, _) => Values::LargeSubscriber(subscriber(&node, step)?),
        (_, FIXED) => Values::SmallConsumer(consumer(&node, step)?),
        _ => Values::LargeConsumer(consumer(&node, step)?),
    })))
}

fn consumer<T: Message>(node: &Node, step: &Step) -> Result<Lasting<Consumer<T>>, Fails> {
    Ok(Lasting::new(node.queue(&queue(step.arg("queue")))?.consumer()?))
}

fn subscriber<const N: usize>(node: &Node, step: &Step) -> Result<Subscriber<[u64; N]>, Fails> {
    Ok(node
        .topic(&topic(step.arg("topic")))?
        .history(step.arg("history"))
        .reliable(step.arg("reliable") == 1)
        .borrows(step.arg("borrows") as usize)
        .subscriber()?)
}

/// Receives, one by one or as a batch.
pub(super) fn act(
    values: &mut Values,
    was_limited: bool,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    match values {
        Values::SmallSubscriber(it) => read(it, was_limited, step, reply),
        Values::LargeSubscriber(it) => read(it, was_limited, step, reply),
        Values::SmallConsumer(it) => consume(it.get(), step, reply),
        Values::LargeConsumer(it) => consume(it.get(), step, reply),
    }
}

fn read<const N: usize>(
    subscriber: &mut Subscriber<[u64; N]>,
    was_limited: bool,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    match step.verb {
        Verb::ReceiveBatch => {
            // What could not be opened for a while is tried again after so many calls.
            let calls = if was_limited { AGAIN_CALLS } else { 1 };
            for _ in 0..calls {
                let mut batch = Vec::new();
                let most = step.arg("max") as usize - reply.seen.len();
                let done = subscriber.receive_batch(&mut batch, most);
                reply.value = u64::from(batch.is_empty());
                reply.seen.extend(batch.iter().map(|value| seen(value)));
                news_of(subscriber, reply);
                same_count(done, batch.len())?;
                if batch.len() == most {
                    break;
                }
            }
            Ok(())
        }
        _ if was_limited && !step.is_long() => receive_at_last(subscriber, step, reply),
        _ => receive(subscriber, step, reply),
    }
}

fn consume<const N: usize>(
    consumer: &mut Consumer<[u64; N]>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    if step.verb != Verb::GetBatch {
        return get(consumer, step, reply);
    }
    let mut batch = Vec::new();
    let done = consumer.receive_batch(&mut batch, step.arg("max") as usize);
    reply.value = u64::from((batch.len() as u64) < step.arg("max"));
    reply.seen = batch.iter().map(|value| seen(value)).collect();
    news_of_queue(consumer, reply);
    same_count(done, batch.len())
}

/// Receives those that lie next to each other.
pub(super) fn hold(
    values: &mut Values,
    step: &Step,
    reply: &mut Reply,
) -> Result<Option<Slice>, Fails> {
    Ok(match values {
        Values::SmallConsumer(it) => slice(it, step, reply)?.map(|_it| Slice::Small { _it }),
        Values::LargeConsumer(it) => slice(it, step, reply)?.map(|_it| Slice::Large { _it }),
        _ => panic!("a subscriber gets no slices"),
    })
}

fn slice<const N: usize>(
    consumer: &Lasting<Consumer<[u64; N]>>,
    step: &Step,
    reply: &mut Reply,
) -> Result<Option<Received<'static, [[u64; N]]>>, Fails> {
    let got = match step.arg("ms") {
        0 => consumer.get().receive_slice(),
        ms => consumer.get().receive_slice_until(Deadline::after(Duration::from_millis(ms))),
    };
    let got = match got {
        Ok(Some(got)) => got,
        other => {
            news_of_queue(consumer.get(), reply);
            return Ok(other?);
        }
    };
    let id = got.producer();
    let id = (id.node.get(), id.port);
    reply.seen = got.iter().map(|value| Seen { id, ..seen(value) }).collect();
    Ok(Some(got))
}

fn same_count(done: outlive::Result<usize>, came: usize) -> Result<(), Fails> {
    match done? {
        count if count == came => Ok(()),
        count => Err(format!("{came} messages came, {count} are said to have").into()),
    }
}

fn seen(value: &[u64]) -> Seen {
    let bytes: Vec<u8> = value.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let seen = look(&bytes);
    Seen { seq: seen.n, lost: UNSAID, ..seen }
}

thread_local! {
    /// Messages of a batch: where a limit has come there may be no more memory for them.
    static BATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Has the memory that the calling thread needs to send batches.
pub(super) fn prepare() {
    let words = BATCH_MAX * FIXED_WORDS[1];
    BATCH.with_borrow_mut(|batch| batch.reserve(8 * words as usize));
}

/// Does something with so many messages from number `next` on, one behind the other.
fn with_contents<R>(step: &Step, next: u64, send: impl FnOnce(&[u8]) -> R) -> R {
    BATCH.with_borrow_mut(|batch| {
        batch.clear();
        for n in next..next + step.arg("count") {
            batch.extend(content(step.arg("on"), n, step.arg("words")));
        }
        send(batch)
    })
}

/// Publishes a batch from number `next` on, and says how many of it went.
pub(super) fn publish(
    publisher: &Publisher<[u8]>,
    next: u64,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let before = publisher.published();
    let done = with_contents(step, next, |batch| publisher.publish_batch_bytes(batch));
    reply.value = publisher.published() - before;
    Ok(done?)
}

/// Sends a batch from number `next` on, or nothing.
pub(super) fn send(
    producer: &mut Producer<[u8]>,
    next: u64,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    with_contents(step, next, |batch| producer.send_batch_bytes(batch, Deadline::AT_ONCE))?;
    reply.value = step.arg("count");
    Ok(())
}

/// What an inherited one says in a forked child.
pub(super) fn refused(values: &mut Values) -> outlive::Result<()> {
    match values {
        Values::SmallSubscriber(it) => it.receive_batch(&mut Vec::new(), 1).map(drop),
        Values::LargeSubscriber(it) => it.receive_batch(&mut Vec::new(), 1).map(drop),
        Values::SmallConsumer(it) => it.get().receive_batch(&mut Vec::new(), 1).map(drop),
        Values::LargeConsumer(it) => it.get().receive_batch(&mut Vec::new(), 1).map(drop),
    }
}
