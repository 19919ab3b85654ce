//! Members that come and go, wait for several things at once, look, and clean.

use std::time::Duration;

use outlive::{Node, Result, Timer, WaitSet};

use super::board::{Call, RECEIVERS_END};
use super::locks::Locks;
use super::part::{Part, patiently};
use super::queues::{self, FIXED, Fixed, VARIED};
use super::services::{SERVICE, Words};
use super::topics::{INLINE, Inline, LOANED, Loaned, SLICES, Streams, heed, topic};

/// Two subscribers and a timer in one wait, which the timer bounds.
pub(super) fn wait_for_many(part: &mut Part) -> Result<()> {
    let node = part.node("wait-set")?;
    let mut inline = part.join(|| topic::<Inline>(&node, INLINE)?.subscriber())?;
    let mut slices = part.join(|| topic::<[u64]>(&node, SLICES)?.reliable(true).subscriber())?;
    let mut timer = Timer::every(Duration::from_millis(50));
    let mut set = WaitSet::new();
    let mut streams = (Streams::new(false, false), Streams::new(true, false));
    while part.board.phase() < RECEIVERS_END && !part.has_enough(20_000) {
        let hour = Duration::from_secs(3600);
        let began = part.clear_ns();
        let ready = part.call(Call::WaitSet, 0, || {
            set.wait(&mut [&mut inline, &mut slices, &mut timer], hour).map(|_| ())
        });
        ready?;
        timer.fired();
        while let Some(sample) = part.call(Call::Receive, 0, || inline.receive())? {
            if let Some(head) = streams.0.take(part, &sample, INLINE) {
                part.woken(began, head.stamp, "wait set");
            }
        }
        // Not all at once: what is left is ready again.
        for _ in 0..8 {
            let Some(sample) = part.call(Call::Receive, 0, || slices.receive())? else { break };
            streams.1.take(part, &sample, SLICES);
        }
        heed(part, &mut inline);
        heed(part, &mut slices);
    }
    part.leave((inline, slices));
    part.leave(node);
    Ok(())
}

/// Joins this and that for a moment, and leaves in order.
pub(super) fn come_and_go(part: &mut Part) -> Result<()> {
    while part.runs() && !part.has_enough(200) {
        let node = part.node("bystander")?;
        for _ in 0..1 + part.rng.below(3) {
            visit(part, &node)?;
        }
        part.leave(node);
        part.pause_us(5000);
    }
    Ok(())
}

fn visit(part: &mut Part, node: &Node) -> Result<()> {
    match part.rng.below(12) {
        0 => {
            let publisher = part.join(|| topic::<Inline>(node, INLINE)?.publisher())?;
            part.pause_us(300);
            part.leave(publisher);
        }
        1 => {
            let publisher = part.join(|| topic::<[u64]>(node, SLICES)?.publisher())?;
            drop(part.call(Call::Publish, 0, || publisher.loan_slice(5000))?);
            part.leave(publisher);
        }
        2 => {
            let reliable = part.rng.one_in(2);
            let open = || topic::<Loaned>(node, LOANED)?.reliable(reliable).subscriber();
            let mut subscriber = part.join(open)?;
            let mut streams = Streams::new(reliable, false);
            for _ in 0..part.rng.below(20) {
                let wait = Duration::from_millis(20);
                let got = part.call(Call::Receive, 20, || subscriber.receive_timeout(wait))?;
                if let Some(sample) = got {
                    streams.take(part, &sample, LOANED);
                }
            }
            part.leave(subscriber);
        }
        3 => {
            let mut subscriber = part.join(|| topic::<Inline>(node, INLINE)?.subscriber())?;
            part.call(Call::Receive, 0, || subscriber.fd().map(|_| ()))?;
            part.pause_us(2000);
            part.leave(subscriber);
        }
        4 => part.leave(part.join(|| queues::keep::<Fixed>(node, FIXED))?),
        5 => part.leave(part.join(|| queues::keep::<[u64]>(node, VARIED))?),
        6 => part.leave(part.join(|| node.service::<Words, Words>(SERVICE)?.client())?),
        7 => part.leave(part.join(|| Locks::open(node))?),
        8 => watch(part, node)?,
        9 => {
            // A topic, a queue and a lock of its own, which nobody keeps in being.
            let mine = format!("/mine/{}", part.rng.below(4));
            let publisher = part.join(|| topic::<Inline>(node, &mine)?.publisher())?;
            part.call(Call::Publish, 0, || publisher.publish(&[7; 40]))?;
            part.leave(publisher);
            part.leave(part.join(|| node.queue::<u64>(&mine)?.producer())?);
            part.leave(part.join(|| node.mutex::<u64>(&mine))?);
        }
        10 => {
            let second = part.node("second")?;
            part.leave(second);
        }
        _ => {
            let domain = part.domain()?;
            part.call(Call::List, 0, || {
                drop((domain.nodes()?, domain.topics()?, domain.queues()?));
                drop((domain.services()?, domain.locks()?, domain.subscribers(INLINE)?));
                Result::Ok(())
            })?;
        }
    }
    Ok(())
}

/// Waits for the death of somebody.
fn watch(part: &mut Part, node: &Node) -> Result<()> {
    let nodes = part.call(Call::List, 0, || part.domain()?.nodes())?;
    let Some(other) = nodes.get(part.rng.below(nodes.len() as u64) as usize) else { return Ok(()) };
    match node.watch(other.id) {
        Ok(watch) => drop(part.call(Call::Watch, 30, || watch.wait(Duration::from_millis(30)))),
        // It went in between.
        Err(e) if e.kind() == outlive::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Removes what the dead have left, now and then.
pub(super) fn clean(part: &mut Part) -> Result<()> {
    let domain = part.domain()?;
    while part.runs() && !part.has_enough(200) {
        part.call(Call::Clean, 0, || patiently(|| domain.clean()))?;
        part.pause_us(100_000);
    }
    Ok(())
}
