//! Queues across machines: where the consumer is, the bridge is a producer (`Sink`); where
//! producers are, it is the consumer (`Source`). A message leaves its lane when it is in the
//! other's: one round trip each, and none is lost, whoever dies.
//!
//! | what ends | who is told |
//! |---|---|
//! | the consumer, its machine, the link | producers elsewhere: `OwnerDied`; what is unread stays |
//! | a producer elsewhere | nobody; what it had sent is carried |
//! | a bridge | the message under way comes again: once more, if it had arrived |

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use outlive::{Consumer, ErrorKind, Producer, QueueInfo};
use zenoh::Wait;
use zenoh::query::{ConsolidationMode, Query};
use zenoh::sample::Locality;

use crate::incoming::ask;
use crate::services::take;
use crate::shared::Shared;
use crate::stats::Counted;
use crate::wire::{QueueNote, TypeNote};
use crate::worker::{Failed, Stop, Worker};

/// Other bridges whose message is on its way at once, at most.
const SENDERS_MAX: usize = 1024;
/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For room in the consumer's lane, and then for the answer.
const ROOM_TIMEOUT: Duration = Duration::from_millis(500);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Before a message is tried again: from, to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What an answer begins with.
const TAKEN: u8 = 0;
/// It can never be taken: longer than a lane, or no payload of the type.
const REFUSED: u8 = 1;
/// No room: ask for it before the message is sent again.
const FULL: u8 = 2;
/// To who asked: there is room, for who comes first.
const ROOM: u8 = 3;

/// The name of a queue's counters.
fn counters_of(name: &str) -> String {
    format!("queue {name}")
}

/// A local queue whose consumer is here: others may send into it.
pub(crate) fn start_sink(shared: &Arc<Shared>, info: &QueueInfo) -> Worker {
    let (by, info) = (shared.clone(), info.clone());
    let what = format!("queue {} is not offered", info.name);
    Worker::start(shared, "sink", what, move |stop| sink(&by, &info, stop))
}

fn sink(shared: &Shared, info: &QueueInfo, stop: &Stop) -> Result<(), Failed> {
    let name = &info.name;
    let of = info.payload_type();
    let queue = shared.node.queue::<[u8]>(name)?.of_type(&of);
    let producer = if info.stamped { queue.stamped() } else { queue }.producer()?;
    let note = QueueNote { of: TypeNote::of(&of), stamped: info.stamped };
    let note_key = shared.keys.of(&shared.own, "note/queue", name);
    shared.set_note(note_key.clone(), Some(serde_json::to_string(&note)?));
    let (to, queries) = sync_channel(SENDERS_MAX);
    let queryable = shared
        .session
        .declare_queryable(shared.keys.of(&shared.own, "send", name))
        .callback(move |query| take(&to, query))
        .wait()?;
    let token_key = shared.keys.of(&shared.own, "live/queue", name);
    let token = shared.session.liveliness().declare_token(token_key).wait()?;
    let counted = shared.stats.of(false, &counters_of(name));
    Sunk { producer, counted, last: HashMap::new() }.run(&queries, stop);
    token.undeclare().wait()?;
    queryable.undeclare().wait()?;
    shared.set_note(note_key, None);
    Ok(())
}

struct Sunk {
    producer: Producer<[u8]>,
    counted: Counted,
    /// The number of the last message of each source: one whose answer was lost comes again.
    last: HashMap<[u8; 16], u64>,
}

impl Sunk {
    fn run(&mut self, queries: &Receiver<Query>, stop: &Stop) {
        while stop.goes_on() {
            match queries.recv_timeout(LOOK_EVERY) {
                Ok(query) => {
                    // A source that has gone meanwhile tries again, or its successor does.
                    let _ = match self.put(&query) {
                        Ok(answer) => query.reply(query.key_expr().clone(), [answer]).wait(),
                        Err(why) => query.reply_err(why).wait(),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn put(&mut self, query: &Query) -> Result<u8, String> {
        let head = query.attachment().map(|a| a.to_bytes().into_owned()).unwrap_or_default();
        let (source, seq, asks) = parse_head(&head).ok_or("no message of a bridge")?;
        if self.last.get(&source).is_some_and(|last| *last >= seq) {
            return Ok(TAKEN);
        }
        if let Some(bytes) = asks {
            return self.has_room(bytes);
        }
        let bytes = query.payload().map(|p| p.to_bytes()).unwrap_or_default();
        match self.producer.send_timeout(&bytes, ROOM_TIMEOUT) {
            Ok(()) => {
                if self.last.len() > SENDERS_MAX {
                    self.last.clear();
                }
                self.last.insert(source, seq);
                self.counted.with(|c| {
                    c.received += 1;
                    c.bytes += bytes.len() as u64;
                });
                Ok(TAKEN)
            }
            Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::TypeMismatch) => {
                self.counted.with(|c| c.bad += 1);
                Ok(REFUSED)
            }
            Err(e) if is_full(&e) => Ok(FULL),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Waits a while for room for so many bytes.
    fn has_room(&mut self, bytes: u64) -> Result<u8, String> {
        let until = outlive::now_ns() + ROOM_TIMEOUT.as_nanos() as u64;
        match self.producer.reserve_slice_until(usize::try_from(bytes).unwrap_or(0), until) {
            // Given back at once: who comes first has it.
            Ok(_) => Ok(ROOM),
            Err(e) if is_full(&e) => Ok(FULL),
            // Sent, it gets its own answer.
            Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(ROOM),
            Err(e) => Err(e.to_string()),
        }
    }
}

fn is_full(e: &outlive::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Timeout | ErrorKind::NoSpace)
}

/// A number of the source, new with each start of it; the message's number from 1; and, of who only
/// asks for room, how many bytes it has.
fn head(source: [u8; 16], seq: u64, asks: Option<u64>) -> Vec<u8> {
    let mut out = source.to_vec();
    out.extend(seq.to_le_bytes());
    out.extend(asks.map(u64::to_le_bytes).into_iter().flatten());
    out
}

fn parse_head(bytes: &[u8]) -> Option<([u8; 16], u64, Option<u64>)> {
    let (source, rest) = bytes.split_first_chunk()?;
    let (seq, rest) = rest.split_first_chunk()?;
    let asks = match rest {
        [] => None,
        _ => Some(u64::from_le_bytes(rest.try_into().ok()?)),
    };
    Some((*source, u64::from_le_bytes(*seq), asks))
}

/// Stands here for a consumer elsewhere. At its end it leaves the queue; what is unread stays.
/// `number` tells this source from all others of this bridge.
pub(crate) fn start_source(shared: &Arc<Shared>, bridge: &str, name: &str, number: u64) -> Worker {
    let by = shared.clone();
    let (bridge, name) = (bridge.to_owned(), name.to_owned());
    let what = format!("queue {name} of {bridge} is not stood for");
    Worker::start(shared, "source", what, move |stop| source(&by, (&bridge, &name), number, stop))
}

fn source(
    shared: &Shared,
    (bridge, name): (&str, &str),
    number: u64,
    stop: &Stop,
) -> Result<(), Failed> {
    let note: QueueNote = serde_json::from_str(&ask(shared, bridge, "note/queue", name)?)?;
    let queue = shared.node.queue::<[u8]>(name)?.of_type(&note.of.payload_type()?);
    let consumer = if note.stamped { queue.stamped() } else { queue }.consumer()?;
    let mut id = shared.session.zid().to_le_bytes();
    for (byte, with) in id.iter_mut().zip(number.to_le_bytes()) {
        *byte ^= with;
    }
    let key = shared.keys.of(bridge, "send", name);
    let counted = shared.stats.of(true, &counters_of(name));
    carry(shared, &key, consumer, id, &counted, stop)
}

fn carry(
    shared: &Shared,
    key: &str,
    mut from: Consumer<[u8]>,
    id: [u8; 16],
    counted: &Counted,
    stop: &Stop,
) -> Result<(), Failed> {
    let mut seq = 0;
    while stop.goes_on() {
        while from.next_event().is_some() {}
        let Some(message) = from.receive_timeout(LOOK_EVERY)? else { continue };
        seq += 1;
        let (whole, mut pause) = (head(id, seq, None), PAUSE.0);
        let asks = head(id, seq, Some(message.len() as u64));
        let mut has_room = true;
        let answer = loop {
            let answer = match has_room {
                true => put(shared, key, &message, &whole),
                // A message of a megabyte is not sent for nothing again and again.
                false => put(shared, key, &[], &asks),
            };
            match answer {
                Some(answer @ (TAKEN | REFUSED)) => break answer,
                Some(ROOM) => {
                    has_room = true;
                    continue;
                }
                // It may have been taken, or not have come: the other side says which.
                _ => has_room = false,
            }
            if !stop.goes_on() {
                // Not taken: the next consumer receives it.
                message.nack();
                return Ok(());
            }
            thread::sleep(pause);
            pause = PAUSE.1.min(2 * pause);
        };
        let bytes = message.len() as u64;
        counted.with(|c| match answer {
            TAKEN => {
                c.sent += 1;
                c.bytes += bytes;
            }
            _ => c.bad += 1,
        });
    }
    Ok(())
}

/// None when it is to be tried again.
fn put(shared: &Shared, key: &str, message: &[u8], head: &[u8]) -> Option<u8> {
    let replies = shared
        .session
        .get(key)
        .payload(message)
        .attachment(head)
        .timeout(ANSWER_TIMEOUT)
        .consolidation(ConsolidationMode::None)
        .allowed_destination(Locality::Remote)
        .wait()
        .ok()?;
    while let Ok(reply) = replies.recv() {
        if let Ok(sample) = reply.result() {
            return sample.payload().to_bytes().first().copied();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_the_wire_and_garbage_is_none() {
        for asks in [None, Some(1 << 20)] {
            let bytes = head([7; 16], 1 << 40, asks);
            assert_eq!(parse_head(&bytes), Some(([7; 16], 1 << 40, asks)));
            assert_eq!(parse_head(&bytes[..bytes.len() - 1]), None);
            assert_eq!(parse_head(&[&bytes[..], &[0]].concat()), None);
        }
    }
}
