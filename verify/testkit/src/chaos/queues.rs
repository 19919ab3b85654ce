//! Producers and consumers. A queue has one consumer at a time; its successor goes on.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use outlive::queue;
use outlive::{Consumer, Deadline, ErrorKind, Node, Payload, Producer, Result};

use super::Sabotage;
use super::board::{Call, Fault, RECEIVERS_END};
use super::message::{Head, WORDS_MIN};
use super::part::Part;

pub(super) type Fixed = [u64; 6];

pub(super) const FIXED: &str = "/chaos/fixed";
pub(super) const VARIED: &str = "/chaos/varied";
/// Of [`Fixed`] messages with time stamps, received in their order.
pub(super) const ORDERED: &str = "/chaos/ordered";

const BOUND_BYTES: u64 = 1 << 20;
const BATCH: u64 = 32;
const SEND_MS: u64 = 60;
/// A consumer that has slept so long for nothing looks whether it is the end.
const WAIT_MS: u64 = 300;
/// Of the ordered consumer.
const HOLDBACK: Duration = Duration::from_millis(2);

fn queue<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<queue::Builder<T>> {
    let queue = node.queue::<T>(name)?.bound_bytes(BOUND_BYTES);
    Ok(if name == ORDERED { queue.stamped() } else { queue })
}

/// How a producer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    One,
    Batch,
    Reserve,
}

/// Sends until the end; `step` sends from number `n` on and says how many.
fn send_all<T: Payload + ?Sized>(
    part: &mut Part,
    producer: &mut Producer<T>,
    most: u64,
    mut step: impl FnMut(&mut Part, &mut Producer<T>, u64) -> Result<u64>,
) -> Result<()> {
    let (mut n, mut burst) = (0, 0);
    while part.runs() && !part.has_enough(20_000) {
        part.account().tried.store(n + most, Release);
        if n > 20 && part.sabotages(Sabotage::Lost) {
            n += 1;
            part.account().sent.store(n, Release);
            part.sabotage_done();
            continue;
        }
        match step(part, producer, n) {
            Ok(_) if n > 20 && part.sabotages(Sabotage::Dup) => {
                part.account().sent.store(n + 1, Release);
                if step(part, producer, n).is_ok() {
                    part.sabotage_done();
                }
                n += 1;
            }
            Ok(sent) => {
                n += sent;
                part.account().sent.store(n, Release);
            }
            Err(e) if e.kind() == ErrorKind::OwnerDied => {
                let wait = Duration::from_millis(SEND_MS);
                part.call(Call::WaitForPeer, SEND_MS, || producer.wait_for_consumer(wait))?;
            }
            Err(e) if matches!(e.kind(), ErrorKind::Timeout | ErrorKind::WouldBlock) => {}
            Err(e) => return Err(e),
        }
        if burst == 0 {
            part.pause_us(2000);
            burst = part.rng.below(48);
        } else {
            burst -= 1;
        }
    }
    Ok(())
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(SEND_MS))
}

pub(super) fn send_fixed(part: &mut Part, name: &str, way: Way) -> Result<()> {
    let node = part.node("producer")?;
    let mut producer = part.join(|| queue::<Fixed>(&node, name)?.producer())?;
    let most = if way == Way::Batch { BATCH } else { 1 };
    send_all(part, &mut producer, most, |part, producer, n| {
        let mut words = [[0; 6]; BATCH as usize];
        part.fill(&mut words[0], n);
        match way {
            Way::One => {
                let wait = Duration::from_millis(SEND_MS);
                part.call(Call::Send, SEND_MS, || producer.send_timeout(&words[0], wait))?;
            }
            Way::Reserve => part.call(Call::Send, SEND_MS, || {
                let mut slot = producer.try_reserve()?;
                *slot = words[0];
                slot.commit();
                Result::Ok(())
            })?,
            Way::Batch => {
                let count = 1 + part.rng.below(BATCH);
                for i in 0..count {
                    part.fill(&mut words[i as usize], n + i);
                }
                let batch = &words[..count as usize];
                part.call(Call::Send, SEND_MS, || producer.send_batch_until(batch, soon()))?;
                return Ok(count);
            }
        }
        Ok(1)
    })?;
    part.leave(producer);
    part.leave(node);
    Ok(())
}

/// Messages of up to 32 KiB, so that lanes grow while there is no consumer.
pub(super) fn send_varied(part: &mut Part) -> Result<()> {
    let node = part.node("producer")?;
    let mut producer = part.join(|| queue::<[u64]>(&node, VARIED)?.producer())?;
    let mut words = vec![0; 4096 + WORDS_MIN];
    send_all(part, &mut producer, 1, |part, producer, n| {
        let most = 1 << part.rng.below(13);
        let len = WORDS_MIN + part.rng.below(most) as usize;
        if part.rng.one_in(2) {
            part.fill(&mut words[..len], n);
            let wait = Duration::from_millis(SEND_MS);
            part.call(Call::Send, SEND_MS, || producer.send_timeout(&words[..len], wait))?;
        } else {
            part.call(Call::Send, SEND_MS, || {
                let mut slot = producer.reserve_slice_until(len, soon())?;
                part.fill(&mut slot, n);
                slot.commit();
                Result::Ok(())
            })?;
        }
        Ok(1)
    })?;
    part.leave(producer);
    part.leave(node);
    Ok(())
}

/// Joins as the consumer, as soon as there is no other; also at the end, for what is left.
fn consumer<T: Payload + ?Sized>(part: &mut Part, node: &Node, name: &str) -> Result<Consumer<T>> {
    let open = || match name {
        ORDERED => queue::<T>(node, name)?.ordered(HOLDBACK).consumer(),
        _ => queue::<T>(node, name)?.consumer(),
    };
    loop {
        match part.join(open) {
            Ok(consumer) => return Ok(consumer),
            Err(e) if e.kind() == ErrorKind::ConsumerExists => part.pause_us(2000),
            Err(e) => return Err(e),
        }
    }
}

/// One at a time, or a batch at a time.
pub(super) fn consume_fixed(part: &mut Part, name: &str) -> Result<()> {
    let node = part.node("consumer")?;
    let mut consumer = consumer::<Fixed>(part, &node, name)?;
    let mut lanes = Lanes::default();
    loop {
        let (began, end) = (part.clear_ns(), part.board.phase() >= RECEIVERS_END);
        let until = Deadline::after(Duration::from_millis(WAIT_MS));
        // Which, is chosen before the call, so that both wait.
        let none = if part.rng.one_in(2) {
            let got = part.call(Call::Consume, WAIT_MS, || consumer.receive_until(until))?;
            got.map(|one| lanes.take(part, began, [&one[..]].into_iter(), name)).is_none()
        } else {
            let got = part.call(Call::Consume, WAIT_MS, || consumer.receive_slice_until(until))?;
            let words = |batch: &[Fixed]| batch.iter().map(|m| m.to_vec()).collect::<Vec<_>>();
            got.map(|some| {
                let copies = words(&some);
                lanes.take(part, began, copies.iter().map(Vec::as_slice), name);
            })
            .is_none()
        };
        lanes.let_go(part);
        if none && end {
            break;
        }
        heed(part, &mut consumer);
        if part.runs() && part.has_enough(40_000) {
            break;
        }
    }
    part.leave(consumer);
    part.leave(node);
    Ok(())
}

pub(super) fn consume_varied(part: &mut Part) -> Result<()> {
    let node = part.node("consumer")?;
    let mut consumer = consumer::<[u64]>(part, &node, VARIED)?;
    let mut lanes = Lanes::default();
    let wait = Duration::from_millis(WAIT_MS);
    loop {
        let (began, end) = (part.clear_ns(), part.board.phase() >= RECEIVERS_END);
        let got = part.call(Call::Consume, WAIT_MS, || consumer.receive_timeout(wait))?;
        let none = got.map(|one| lanes.take(part, began, [&one[..]].into_iter(), VARIED)).is_none();
        lanes.let_go(part);
        if none && end {
            break;
        }
        heed(part, &mut consumer);
        if part.runs() && part.has_enough(40_000) {
            break;
        }
    }
    part.leave(consumer);
    part.leave(node);
    Ok(())
}

fn heed<T: Payload + ?Sized>(part: &Part, consumer: &mut Consumer<T>) {
    while let Some(event) = consumer.next_event() {
        if let queue::Event::ProducerCorrupt { producer, why } = event {
            let queue = consumer.queue();
            part.fault(Fault::Torn, 1, format!("{queue}: {producer:?} is corrupt: {why}"));
        }
    }
}

/// The next number of each source that this life of a consumer expects.
#[derive(Default)]
struct Lanes {
    next: HashMap<(usize, usize), u64>,
    in_hand: Vec<Head>,
}

impl Lanes {
    /// Checks what is in hand and notes it in the ledger.
    fn take<'a>(
        &mut self,
        part: &Part,
        began: u64,
        messages: impl Iterator<Item = &'a [u64]>,
        name: &str,
    ) {
        for words in messages {
            let Some(head) = part.check(words, name) else { continue };
            let Some(account) = part.board.life(head.slot, head.life) else { continue };
            part.woken(began, head.stamp, name);
            let (got, done) = (account.got.load(Acquire), account.done.load(Acquire));
            // Only what a dead consumer had in hand may come to its successor again.
            let first = !self.next.contains_key(&(head.slot, head.life));
            let next = self.next.entry((head.slot, head.life)).or_insert(got);
            if first && (done..got).contains(&head.seq) {
                *next = head.seq;
            }
            let expected = *next;
            if head.seq < expected {
                part.fault(Fault::Duplicated, 1, format!("{name}: {head:?} after {expected}"));
            } else if head.seq > expected {
                let gap = head.seq - expected;
                part.fault(Fault::Lost, gap, format!("{name}: {head:?} instead of {expected}"));
            }
            *next = expected.max(head.seq + 1);
            account.got.store(got.max(head.seq + 1), Release);
            self.in_hand.push(head);
        }
    }

    /// Nothing is in hand any more.
    fn let_go(&mut self, part: &Part) {
        for head in self.in_hand.drain(..) {
            if let Some(account) = part.board.life(head.slot, head.life) {
                account.done.store(account.done.load(Relaxed).max(head.seq + 1), Release);
            }
        }
    }
}

/// A producer that only keeps the queue in being.
pub(super) fn keep<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<Producer<T>> {
    queue::<T>(node, name)?.producer()
}
