//! The ends of real-time channels, as a member uses them.

use std::time::Duration;

use outlive::rt::{LatestReader, LatestWriter, Lost, NotPushed, SpscReader, SpscWriter, Stamped};

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use super::things::rt::{End, Value};
use crate::history::reply::{Reply, Seen};
use crate::history::step::{Handle, Step, Verb};

fn value(from: Handle, n: u64) -> Value {
    std::array::from_fn(|i| if i % 2 == 0 { from } else { n })
}

fn look(sent: Stamped<Value>) -> Seen {
    let [from, n] = [sent.value[0], sent.value[1]];
    Seen { from, n, seq: sent.seq, whole: sent.value == value(from, n), ..Seen::default() }
}

pub(super) fn open(shared: &Shared, step: &Step) -> Result<End, Fails> {
    let node = shared.node(step.arg("node"));
    let (depth, writer) = (step.arg("depth") as usize, step.arg("writer") == 1);
    let name = match depth {
        0 => format!("/h/latest{}", step.arg("channel")),
        _ => format!("/h/spsc{}", step.arg("channel")),
    };
    Ok(match (depth, writer) {
        (0, true) => End::NewWriter(LatestWriter::open(&node, &name)?),
        (0, false) => End::NewReader(LatestReader::open(&node, &name)?),
        (_, true) => End::NewPusher(SpscWriter::open(&node, &name, depth)?),
        (_, false) => End::NewPopper(SpscReader::open(&node, &name, depth)?),
    })
}

/// Connects one that is new; it is gone where that fails.
pub(super) fn connect(shared: &Shared, step: &Step) -> Result<(), Fails> {
    let (on, wait) = (step.arg("on"), Duration::from_millis(step.arg("ms")));
    let Thing::End(end) = shared.take(on) else { panic!("handle {on} is not an end") };
    let end = match *end {
        End::NewWriter(new) => End::Writer(new.connect(wait)?),
        End::NewReader(new) => End::Reader(new.connect(wait)?),
        End::NewPusher(new) => End::Pusher(new.connect(wait)?),
        End::NewPopper(new) => End::Popper(new.connect(wait)?),
        _ => panic!("handle {on} is connected"),
    };
    shared.put(on, Thing::End(Box::new(end)));
    Ok(())
}

/// What is done with one that is connected.
pub(super) fn act(
    end: &mut End,
    sent: &mut u64,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let (on, wait) = (step.arg("on"), Duration::from_millis(step.arg("ms")));
    match (step.verb, end) {
        (Verb::Reconnect, End::Writer(end)) => end.reconnect(wait)?,
        (Verb::Reconnect, End::Reader(end)) => end.reconnect(wait)?,
        (Verb::Reconnect, End::Pusher(end)) => end.reconnect(wait)?,
        (Verb::Reconnect, End::Popper(end)) => end.reconnect(wait)?,
        (Verb::Peer, End::Writer(end)) => reply.value = u64::from(end.seems_alive()),
        (Verb::Peer, End::Reader(end)) => reply.value = u64::from(end.seems_alive()),
        (Verb::Peer, End::Pusher(end)) => reply.value = u64::from(end.seems_alive()),
        (Verb::Peer, End::Popper(end)) => reply.value = u64::from(end.seems_alive()),
        (Verb::Push, end) => {
            for _ in 0..step.arg("count") {
                let done = match end {
                    End::Writer(end) => end.write(&value(on, *sent)).map_err(NotPushed::Lost),
                    End::Pusher(end) => end.push(&value(on, *sent)),
                    _ => panic!("handle {on} writes nothing"),
                };
                if let Err(why) = done {
                    reply.outcome = match why {
                        NotPushed::Full => "Full".into(),
                        NotPushed::Lost(lost) => told(lost),
                    };
                    break;
                }
                *sent += 1;
                reply.value += 1;
            }
        }
        (_, end) => {
            for _ in 0..step.arg("max") {
                let got = match end {
                    End::Reader(end) => end.read(),
                    End::Popper(end) => end.pop(),
                    _ => panic!("handle {on} reads nothing"),
                };
                match got {
                    Ok(Some(sent)) => reply.seen.push(look(sent)),
                    Ok(None) => {
                        reply.value = 1;
                        break;
                    }
                    Err(lost) => {
                        reply.outcome = told(lost);
                        break;
                    }
                }
                // The newest stays the newest.
                if matches!(end, End::Reader(_)) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// How an end that was inherited by a forked child answers.
pub(super) fn refuses(end: &mut End) -> Option<String> {
    let said = match end {
        End::Writer(end) => end.write(&value(0, 0)).map_err(NotPushed::Lost),
        End::Reader(end) => end.read().map(drop).map_err(NotPushed::Lost),
        End::Pusher(end) => end.push(&value(0, 0)),
        End::Popper(end) => end.pop().map(drop).map_err(NotPushed::Lost),
        _ => return None,
    };
    Some(match said {
        Err(NotPushed::Lost(Lost::Forked)) => "ForkedChild".into(),
        other => format!("{other:?}"),
    })
}

fn told(lost: Lost) -> String {
    format!("{lost:?}")
}
