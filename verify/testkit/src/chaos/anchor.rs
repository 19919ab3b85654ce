//! The one member that is never killed: the reliable reader that lives.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Node, Payload, Result, Subscriber, WaitSet};

use super::board::{ALL_END, Call, FLOOR, Fault, OPENING, RECEIVERS_END, TOPICS_END};
use super::locks::Locks;
use super::part::Part;
use super::queues::{FIXED, Fixed, ORDERED, VARIED, keep};
use super::topics::{INLINE, Inline, LOANED, Loaned, SLICES, topic};

/// Messages of one topic before the others get their turn.
const TURN: usize = 64;
const WAIT_MS: u64 = 250;

pub(super) fn hold(part: &mut Part) -> Result<()> {
    let node =
        part.call(Call::OpenNode, 0, || Node::builder().root(&part.root).name("anchor").open())?;
    let fixed = (keep::<Fixed>(&node, FIXED)?, keep::<Fixed>(&node, ORDERED)?);
    let producers = (fixed, keep::<[u64]>(&node, VARIED)?);
    let locks = Locks::open(&node)?;
    locks.touch()?;
    let at = |n| part.board.anchor.store(n, Release);
    at(FLOOR + 1);
    wait_for(part, OPENING);
    let mut inline = reader::<Inline>(&node, INLINE)?;
    let mut loaned = reader::<Loaned>(&node, LOANED)?;
    let mut slices = reader::<[u64]>(&node, SLICES)?;
    at(OPENING + 1);
    let mut set = WaitSet::new();
    let wait = Duration::from_millis(WAIT_MS);
    loop {
        let began = part.clear_ns();
        let quiet = part.call(Call::WaitSet, WAIT_MS, || {
            let mut members: [&mut dyn outlive::Waitable; 3] =
                [&mut inline, &mut loaned, &mut slices];
            set.wait(&mut members, wait).map(|ready| ready.is_empty())
        })?;
        let mut got = drain(part, &mut inline, began)?;
        got += drain(part, &mut loaned, began)?;
        got += drain(part, &mut slices, began)?;
        if quiet && got == 0 && part.board.phase() >= RECEIVERS_END {
            break;
        }
    }
    at(RECEIVERS_END + 1);
    wait_for(part, TOPICS_END);
    part.leave((inline, loaned, slices));
    at(TOPICS_END + 1);
    wait_for(part, ALL_END);
    part.leave((producers, locks));
    part.leave(node);
    Ok(())
}

fn wait_for(part: &Part, phase: u64) {
    while part.board.phase() < phase {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn reader<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<Subscriber<T>> {
    topic::<T>(node, name)?.reliable(true).subscriber()
}

/// Receives what is there and accounts for it.
fn drain<T>(part: &Part, subscriber: &mut Subscriber<T>, began: u64) -> Result<usize>
where
    T: Payload + AsRef<[u64]> + ?Sized,
{
    let mut got = 0;
    while got < TURN {
        let sample = part.call(Call::Receive, 0, || subscriber.receive())?;
        news(part, subscriber);
        let Some(sample) = sample else { break };
        got += 1;
        let topic = subscriber.topic();
        let Some(head) = part.check((*sample).as_ref(), topic) else { continue };
        let Some(account) = part.board.life(head.slot, head.life) else { continue };
        part.woken(began, head.stamp, topic);
        let expected = account.got.load(Acquire);
        if head.seq < expected {
            part.fault(Fault::Duplicated, 1, format!("{topic}: {head:?} after {expected}"));
        } else if head.seq > expected {
            let (gap, told) = (head.seq - expected, sample.lost_before());
            let what = format!("{topic}: {head:?} instead of {expected}, told {told}");
            part.fault(Fault::Lost, gap, what);
        }
        account.got.store(expected.max(head.seq + 1), Release);
    }
    Ok(got)
}

fn news<T: Payload + ?Sized>(part: &Part, subscriber: &mut Subscriber<T>) {
    while let Some(event) = subscriber.next_event() {
        let topic = subscriber.topic();
        match event {
            Event::PublisherCorrupt { publisher, why } => {
                part.fault(Fault::Torn, 1, format!("{topic}: {publisher:?} is corrupt: {why}"));
            }
            Event::PublisherDied { publisher, lost, .. } if lost > 0 => {
                part.fault(Fault::Lost, lost, format!("{topic}: {publisher:?} died"));
            }
            _ => {}
        }
    }
}
