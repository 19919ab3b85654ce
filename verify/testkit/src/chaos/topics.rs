//! Publishers with every kind of payload, and subscribers of every kind.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

use outlive::topic::{self, Event};
use outlive::{ErrorKind, Node, Payload, Publisher, Result, Sample, Subscriber};

use super::Sabotage;
use super::board::{Call, Fault, RECEIVERS_END};
use super::message::{Head, WORDS_MIN};
use super::part::Part;

/// 320 bytes, inside the ring, copied by `memcpy`.
pub(super) type Inline = [u64; 40];
/// 8 KiB, as a chunk.
pub(super) type Loaned = [u64; 1024];

pub(super) const INLINE: &str = "/chaos/inline";
pub(super) const LOANED: &str = "/chaos/loaned";
pub(super) const SLICES: &str = "/chaos/slices";

const DEPTH: u64 = 16;
/// Longest slice, words.
const GROWN: u64 = 1 << 15;
/// How long a publish waits for a reliable subscriber that is stopped.
const RELIABLE_MS: u64 = 250;
const HELD: usize = 4;

pub(super) fn topic<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<topic::Builder<T>> {
    Ok(node.topic::<T>(name)?.depth(DEPTH))
}

fn publisher<T: Payload + ?Sized>(
    part: &Part,
    node: &Node,
    name: &str,
) -> Result<(Publisher<T>, bool)> {
    let timeout = Duration::from_millis(RELIABLE_MS);
    // A volatile publisher keeps nothing for history; the anchor gets all the same.
    let volatile = part.life % 4 == 3;
    let publisher = part.join(|| {
        topic::<T>(node, name)?.reliable_timeout(timeout).volatile(volatile).publisher()
    })?;
    Ok((publisher, volatile))
}

/// Publishes until the end or until it has enough; `step` publishes number `n`.
fn publish_all(part: &mut Part, mut step: impl FnMut(&mut Part, u64) -> Result<u64>) -> Result<()> {
    let (mut n, mut burst) = (0, 0);
    while part.runs() && !part.has_enough(20_000) {
        part.account().tried.store(n + 1, Release);
        match step(part, n) {
            Ok(seq) => {
                if seq != n {
                    part.fault(Fault::Other, 1, format!("message {n} was published as {seq}"));
                }
                n += 1;
                part.account().sent.store(n, Release);
            }
            Err(e) if e.kind() == ErrorKind::Timeout => {}
            Err(e) => return Err(e),
        }
        if burst == 0 {
            part.pause_us(2000);
            burst = part.rng.below(24);
        } else {
            burst -= 1;
        }
    }
    Ok(())
}

pub(super) fn publish_inline(part: &mut Part) -> Result<()> {
    let node = part.node("inline")?;
    let (publisher, _) = publisher::<Inline>(part, &node, INLINE)?;
    let mut words: Inline = [0; 40];
    publish_all(part, |part, n| {
        part.fill(&mut words, n);
        if n > 20 && part.sabotages(Sabotage::Torn) {
            words[5] ^= 1;
            part.sabotage_done();
        }
        part.call(Call::Publish, RELIABLE_MS, || publisher.publish(&words))
    })?;
    part.leave(publisher);
    part.leave(node);
    Ok(())
}

pub(super) fn publish_loaned(part: &mut Part) -> Result<()> {
    let node = part.node("loaned")?;
    let (publisher, _) = publisher::<Loaned>(part, &node, LOANED)?;
    publish_all(part, |part, n| {
        let mut loan = part.call(Call::Publish, RELIABLE_MS, || publisher.loan())?;
        part.fill(&mut *loan, n);
        // Some are let go of.
        if part.rng.one_in(50) {
            drop(loan);
            loan = publisher.loan()?;
            part.fill(&mut *loan, n);
        }
        part.call(Call::Publish, RELIABLE_MS, || loan.publish())
    })?;
    part.leave(publisher);
    part.leave(node);
    Ok(())
}

/// Slices that become longer and longer.
pub(super) fn publish_growing(part: &mut Part) -> Result<()> {
    publish_slices(part, |_, n| (16 + n * 8).min(GROWN))
}

/// Slices of any length, also such as travel inline.
pub(super) fn publish_any_length(part: &mut Part) -> Result<()> {
    publish_slices(part, |part, _| {
        let most = 1 << part.rng.below(12);
        WORDS_MIN as u64 + part.rng.below(most)
    })
}

fn publish_slices(part: &mut Part, length: impl Fn(&mut Part, u64) -> u64) -> Result<()> {
    let node = part.node("slices")?;
    let (publisher, _) = publisher::<[u64]>(part, &node, SLICES)?;
    let mut words = vec![0; GROWN as usize];
    publish_all(part, |part, n| {
        let len = length(part, n) as usize;
        if part.rng.one_in(2) {
            part.fill(&mut words[..len], n);
            return part.call(Call::Publish, RELIABLE_MS, || publisher.publish(&words[..len]));
        }
        let mut loan = part.call(Call::Publish, RELIABLE_MS, || publisher.loan_slice(len))?;
        part.fill(&mut loan, n);
        part.call(Call::Publish, RELIABLE_MS, || loan.publish())
    })?;
    part.leave(publisher);
    part.leave(node);
    Ok(())
}

/// How a subscriber reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    BestEffort,
    Reliable,
    InOrder,
    Latest,
}

pub(super) fn subscribe<T>(part: &mut Part, name: &str, mode: Mode) -> Result<()>
where
    T: Payload + AsRef<[u64]> + ?Sized,
{
    let node = part.node("subscriber")?;
    let history = part.rng.below(3) * 4;
    let mut subscriber = part.join(|| {
        let topic = topic::<T>(&node, name)?.history(history);
        topic.reliable(mode == Mode::Reliable).subscriber()
    })?;
    let mut streams = Streams::new(mode == Mode::Reliable, mode == Mode::Latest);
    let mut held: VecDeque<(Sample<T>, Head)> = VecDeque::new();
    while part.board.phase() < RECEIVERS_END && !part.has_enough(20_000) {
        let began = part.clear_ns();
        let sample = match mode {
            Mode::InOrder => part.call(Call::Receive, 0, || subscriber.receive_in_order())?,
            Mode::Latest => part.call(Call::Receive, 0, || subscriber.latest())?,
            Mode::BestEffort | Mode::Reliable => part.call(Call::Receive, 1500, || {
                subscriber.receive_timeout(Duration::from_millis(1500))
            })?,
        };
        heed(part, &mut subscriber);
        let Some(sample) = sample else {
            part.pause_us(500);
            continue;
        };
        let Some(head) = streams.take(part, &sample, name) else { continue };
        if matches!(mode, Mode::BestEffort | Mode::Reliable) {
            part.woken(began, head.stamp, name);
        }
        // What is held stays as it was, whatever became of its publisher.
        if part.rng.one_in(4) {
            held.push_back((sample, head));
        }
        if held.len() > HELD || part.rng.one_in(8) {
            recheck(part, held.pop_front(), name);
        }
        if part.rng.one_in(400) {
            part.pause_us(5000);
        }
    }
    while !held.is_empty() {
        recheck(part, held.pop_front(), name);
    }
    part.leave(subscriber);
    part.leave(node);
    Ok(())
}

fn recheck<T>(part: &Part, held: Option<(Sample<T>, Head)>, name: &str)
where
    T: Payload + AsRef<[u64]> + ?Sized,
{
    let Some((sample, head)) = held else { return };
    let now = super::message::check((*sample).as_ref());
    if now != Ok(head) {
        part.fault(Fault::Torn, 1, format!("{name}: was {head:?} when it came, is {now:?}"));
    }
}

/// Looks at the news about publishers.
pub(super) fn heed<T: Payload + ?Sized>(part: &Part, subscriber: &mut Subscriber<T>) {
    while let Some(event) = subscriber.next_event() {
        if let Event::PublisherCorrupt { publisher, why } = event {
            let topic = subscriber.topic();
            part.fault(Fault::Torn, 1, format!("{topic}: {publisher:?} is corrupt: {why}"));
        }
    }
}

/// The next number of each source that one subscriber reads.
pub(super) struct Streams {
    next: HashMap<(usize, usize), u64>,
    reliable: bool,
    skips: bool,
}

impl Streams {
    pub(super) fn new(reliable: bool, skips: bool) -> Self {
        Self { next: HashMap::new(), reliable, skips }
    }

    /// Checks one message; `None` for one that is none.
    pub(super) fn take<T>(&mut self, part: &Part, sample: &Sample<T>, name: &str) -> Option<Head>
    where
        T: Payload + AsRef<[u64]> + ?Sized,
    {
        let head = part.check((**sample).as_ref(), name)?;
        let Head { slot, life, seq, .. } = head;
        if sample.seq() != seq {
            let number = sample.seq();
            part.fault(Fault::Torn, 1, format!("{name}: {head:?} came as number {number}"));
        }
        let next = self.next.insert((slot, life), seq + 1);
        let Some(next) = next else { return Some(head) };
        if seq < next {
            part.fault(Fault::Duplicated, 1, format!("{name}: {head:?} after {next}"));
            return Some(head);
        }
        let (gap, told) = (seq - next, sample.lost_before());
        if self.reliable && gap > 0 {
            part.fault(Fault::Lost, gap, format!("{name}: {head:?} after {next}, told {told}"));
        } else if told != gap && !self.skips {
            part.fault(Fault::Other, 1, format!("{name}: {gap} are missing, told {told}"));
        }
        Some(head)
    }
}
