//! Queues across machines: where the consumer is, the bridge is a producer (`Sink`); where
//! producers are, it is the consumer (`Source`). A message leaves its lane when it is in the
//! other's: one round trip each, and none is lost, whoever dies.
//!
//! | what ends | who is told |
//! |---|---|
//! | the consumer, its machine, the link | producers elsewhere: `OwnerDied`; what is unread stays |
//! | a producer elsewhere | nobody; what it had sent is carried |
//! | a bridge | the message under way comes again: once more only if the bridge that has put it |
//! | | into the consumer's lane dies before that is known on the other side |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use outlive::queue;
use outlive::{Consumer, Deadline, ErrorKind, PayloadType, Producer, Received};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::qos::Priority;
use zenoh::query::{ConsolidationMode, Query, Queryable};
use zenoh::sample::Locality;

use crate::link::hand_over;
use crate::link::notes::{ANSWER_MAX, Note, ask};
use crate::link::place::{FULL, Head, Lane, REFUSED, ROOM, TAKEN};
use crate::link::wire::{QueueNote, TypeNote};
use crate::local::room::{LANE_BYTES, Share, Waits};
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Slot, Stop, Turn, Worker};

/// Other bridges whose message is on its way at once, at most.
const SENDERS_MAX: usize = 1024;
/// What goes with a message in a lane, at most.
const RECORD_BYTES: u64 = 128;
/// Who had no room and does not ask again in this time has gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);
/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For room in the consumer's lane.
const ROOM_TIMEOUT: Duration = Duration::from_millis(500);
/// For an answer, at least.
const ANSWER_MIN: Duration = Duration::from_secs(2);
/// Where the file `id` of a domain has its random identity (docs/internals/SHM_LAYOUT.md).
const IDENTITY_AT: u64 = 64;
/// Before a message is tried again: from, to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The name of a queue's counters, and in the log.
fn counters_of(name: &str) -> String {
    format!("queue {name}")
}

/// A local queue whose consumer is here: others may send into it.
pub(crate) fn start_sink(shared: &Arc<Shared>, info: &queue::Info) -> Worker {
    let (by, info, slot) = (shared.clone(), info.clone(), Arc::<Slot>::default());
    let what = format!("queue {} is not offered", info.name);
    let at = slot.clone();
    let begin = move |stop: &Stop| sink(&by, &info, at, stop);
    Worker::start(&shared.workers, "sink", what, begin).hearing(move |_| slot.wake())
}

fn sink(
    shared: &Arc<Shared>,
    info: &queue::Info,
    slot: Arc<Slot>,
    stop: &Stop,
) -> Result<Option<Box<dyn Job>>, Failed> {
    let name = &info.name;
    let of = info.payload_type();
    let bound_bytes = shared.room.lane_bytes();
    // Four messages, where they have one size.
    let four = 4 * (info.element_bytes as u64 + RECORD_BYTES);
    let first = four.next_power_of_two().clamp(LANE_BYTES.min(bound_bytes), bound_bytes);
    let share = Share::of_lane(&shared.room, &counters_of(name), first, stop);
    let Some(mut share) = share else { return Ok(None) };
    let queue = shared.node.queue::<[u8]>(name)?.of_type(&of).bound_bytes(bound_bytes);
    let producer = if info.stamped { queue.stamped() } else { queue }.producer()?;
    share.set(producer.memory_bytes());
    let note = QueueNote { of: TypeNote::of(&of), stamped: info.stamped };
    let note = Note::show(&shared.link, "queue", name, &note)?;
    let (to, queries) = sync_channel(SENDERS_MAX);
    let wakes = slot.clone();
    let queryable = shared
        .link
        .session
        .declare_queryable(shared.link.own_key("send", name))
        .callback(move |query| {
            hand_over(&to, query);
            wakes.wake();
        })
        .wait()?;
    let token_key = shared.link.own_key("live/queue", name);
    let token = shared.link.session.liveliness().declare_token(token_key).wait()?;
    let counted = shared.stats.of(false, &counters_of(name));
    Ok(Some(Box::new(Sunk {
        _token: token,
        _queryable: queryable,
        _note: note,
        shared: shared.clone(),
        name: name.clone(),
        of,
        bound_bytes,
        producer,
        share,
        waits: None,
        counted,
        queries,
        next: None,
        slot,
    })))
}

struct Sunk {
    /// Gone first: who hears of the end sends nothing more.
    _token: LivelinessToken,
    _queryable: Queryable<()>,
    _note: Note,
    shared: Arc<Shared>,
    name: String,
    of: PayloadType,
    /// Of its lane, where there is room.
    bound_bytes: u64,
    producer: Producer<[u8]>,
    share: Share,
    /// There was no room for a message: since then.
    waits: Option<(Waits, Instant)>,
    counted: Counted,
    queries: Receiver<Query>,
    /// What was found when it was to rest.
    next: Option<Query>,
    slot: Arc<Slot>,
}

impl Drop for Sunk {
    /// Before the lane goes: what is unread stays in it.
    fn drop(&mut self) {
        self.share.leave_behind((self.name.clone(), self.producer.id()));
    }
}

impl Job for Sunk {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let mut busy = Instant::now();
        while stop.goes_on() {
            let query = self.next.take().map_or_else(|| self.queries.recv_timeout(LOOK_EVERY), Ok);
            match query {
                Ok(query) => {
                    // A source that has gone meanwhile tries again, or its successor does.
                    let _ = match self.put(&query) {
                        Ok(answer) => query.reply(query.key_expr().clone(), [answer]).wait(),
                        Err(why) => query.reply_err(why).wait(),
                    };
                    busy = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.waits.take_if(|(_, asked)| asked.elapsed() > FORGOTTEN_AFTER);
                    self.share.set(self.producer.memory_bytes());
                    if busy.elapsed() > QUIET && self.waits.is_none() {
                        return Ok(Turn::Quiet);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(Turn::Ended)
    }

    fn rests(&mut self) -> Rests<'_> {
        self.next = self.next.take().or_else(|| self.queries.try_recv().ok());
        match self.next {
            Some(_) => Rests::Not,
            None => Rests::UntilWoken(self.slot.clone()),
        }
    }
}

impl Sunk {
    fn put(&mut self, query: &Query) -> Result<u8, String> {
        let head = query.attachment().map(|a| a.to_bytes().into_owned()).unwrap_or_default();
        let Head { lane, place, asks } = Head::parse(&head).ok_or("not a message of a bridge")?;
        // One whose answer was lost comes again.
        if self.shared.taken.last(&self.name, &lane).is_some_and(|last| last == place) {
            return Ok(TAKEN);
        }
        if let Some(bytes) = asks {
            return self.has_room(bytes);
        }
        let bytes = query.payload().map(|p| p.to_bytes()).unwrap_or_default();
        match self.within_room(bytes.len(), |to, deadline| to.send_until(&bytes, deadline)) {
            Ok(true) => {
                self.shared.taken.set(&self.name, lane, place);
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
            Ok(false) => Ok(FULL),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Waits a while for room for so many bytes.
    fn has_room(&mut self, bytes: u64) -> Result<u8, String> {
        let bytes = usize::try_from(bytes).unwrap_or(0);
        // Given back at once: who comes first has it.
        let reserve =
            |from: &mut Producer<_>, deadline| from.reserve_slice_until(bytes, deadline).map(drop);
        match self.within_room(bytes, reserve) {
            Ok(true) => Ok(ROOM),
            Ok(false) => Ok(FULL),
            // Sent, it gets its own answer.
            Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(ROOM),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Lets the lane grow as far as there is room, calls `put` with the deadline until which it
    /// may wait, and says whether there was room for these bytes.
    fn within_room(
        &mut self,
        bytes: usize,
        put: impl Fn(&mut Producer<[u8]>, Deadline) -> outlive::Result<()>,
    ) -> outlive::Result<bool> {
        let possible = bytes as u64 <= self.bound_bytes && self.of.fits(bytes);
        // What is too large for less than the whole bound only has no room now.
        let is_full = |e: &outlive::Error, limited: bool| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::Timeout | ErrorKind::NoSpace => true,
            ErrorKind::InvalidArgument => limited && possible,
            _ => false,
        };
        let at_once = |to: &mut Producer<_>| put(to, Deadline::AT_ONCE);
        let (done, limited) = self.share.within(&mut self.producer, self.bound_bytes, at_once);
        let done = match done {
            Err(e) if is_full(&e, limited) => {
                // In what it has.
                let deadline = Deadline::after(ROOM_TIMEOUT);
                put(&mut self.producer, deadline).map_err(|e| (is_full(&e, true), e))
            }
            done => done.map_err(|e| (false, e)),
        };
        let refused = limited && matches!(done, Err((true, _)));
        self.waits = refused.then(|| {
            let waits = self.waits.take().map(|(waits, _)| waits);
            let of = || Waits::new(&self.shared.room, &counters_of(&self.name));
            (waits.unwrap_or_else(of), Instant::now())
        });
        match done {
            Ok(()) => Ok(true),
            Err((true, _)) => Ok(false),
            Err((false, e)) => Err(e),
        }
    }
}

/// Stands here for a consumer elsewhere. At its end it leaves the queue; what is unread stays.
pub(crate) fn start_source(shared: &Arc<Shared>, bridge: &str, name: &str) -> Worker {
    let by = shared.clone();
    let (bridge, name) = (bridge.to_owned(), name.to_owned());
    let what = format!("queue {name} of {bridge} is not stood for");
    let workers = shared.workers.clone();
    let begin = move |stop: &Stop| source(&by, &bridge, &name, stop);
    Worker::start(&shared.workers, "source", what, begin).hearing(move |_| workers.look())
}

fn source(
    shared: &Arc<Shared>,
    bridge: &str,
    name: &str,
    stop: &Stop,
) -> Result<Option<Box<dyn Job>>, Failed> {
    let note = ask(&shared.link, bridge, "note/queue", name, stop)?;
    let Some(note) = note else { return Ok(None) };
    let note: QueueNote = serde_json::from_str(&note)?;
    let queue = shared.node.queue::<[u8]>(name)?.of_type(&note.of.payload_type()?);
    let from = if note.stamped { queue.stamped() } else { queue }.consumer()?;
    let key = shared.link.keys.of(bridge, "send", name);
    let counted = shared.stats.of(true, &counters_of(name));
    let (shared, domain) = (shared.clone(), identity(shared.domain.dir())?);
    let to = Far { shared, key, domain, wait: ANSWER_MIN };
    Ok(Some(Box::new(Source { to, name: name.to_owned(), from, counted })))
}

/// A queue on its way out.
struct Source {
    to: Far,
    name: String,
    from: Consumer<[u8]>,
    counted: Counted,
}

/// Where it goes.
struct Far {
    shared: Arc<Shared>,
    key: String,
    /// This one's.
    domain: [u8; 16],
    /// How long an answer is waited for: a few times as long as the last one took.
    wait: Duration,
}

impl Job for Source {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let Self { to, name, from, counted } = self;
        let mut busy = Instant::now();
        while stop.goes_on() {
            while from.next_event().is_some() {}
            let message = match from.receive_timeout(LOOK_EVERY) {
                Ok(Some(message)) => message,
                Ok(None) if busy.elapsed() > QUIET => return Ok(Turn::Quiet),
                Ok(None) => continue,
                // Nothing is there of those who can be read.
                Err(e) if to.shared.is_short(&counters_of(name), &e) => {
                    thread::sleep(LOOK_EVERY);
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            let Some(answer) = to.send(&message, stop) else {
                // Not taken: the next consumer receives it.
                message.nack();
                break;
            };
            let bytes = message.len() as u64;
            counted.with(|c| match answer {
                TAKEN => {
                    c.sent += 1;
                    c.bytes += bytes;
                }
                _ => c.bad += 1,
            });
            busy = Instant::now();
        }
        Ok(Turn::Ended)
    }

    fn rests(&mut self) -> Rests<'_> {
        Rests::ForLocal(&mut self.from)
    }

    /// Producers that came or went are no reason; a message behind them is the next.
    fn wakes(&mut self) -> bool {
        std::iter::from_fn(|| self.from.next_event()).count() == 0
    }
}

impl Far {
    /// Sends a message until it is taken or refused, for good; none if it is to end before.
    fn send(&mut self, message: &Received<'_, [u8]>, stop: &Stop) -> Option<u8> {
        let queue::ProducerId { node, port } = message.producer();
        let lane = Lane { domain: self.domain, node: node.get(), port };
        let whole = Head { lane, place: message.place(), asks: None };
        let asks = Head { asks: Some(message.len() as u64), ..whole };
        let mut pause = PAUSE.0;
        let mut has_room = true;
        loop {
            let answer = match has_room {
                true => self.put(message, whole, stop),
                // A message of a megabyte is not sent for nothing again and again.
                false => self.put(&[], asks, stop),
            };
            match answer {
                Some(answer @ (TAKEN | REFUSED)) => return Some(answer),
                Some(ROOM) => {
                    has_room = true;
                    continue;
                }
                // It may have been taken, or not have come: the other side says which.
                _ => has_room = false,
            }
            if !stop.goes_on() {
                return None;
            }
            thread::sleep(pause);
            pause = PAUSE.1.min(2 * pause);
        }
    }

    /// None when it is to be tried again.
    fn put(&mut self, message: &[u8], head: Head, stop: &Stop) -> Option<u8> {
        let begun = Instant::now();
        let get = self.shared.link.session.get(&self.key).payload(message);
        // A question goes before what fills the link.
        let get = match head.asks {
            Some(_) => get.priority(Priority::InteractiveHigh),
            None => get,
        };
        let replies = get
            .attachment(head.to_bytes())
            .timeout(self.wait)
            .consolidation(ConsolidationMode::None)
            .allowed_destination(Locality::Remote)
            .wait()
            .ok()?;
        // Who is to end waits a little for an answer that may be on its way.
        while !stop.is_asked() || begun.elapsed() < ANSWER_MIN {
            match replies.recv_timeout(LOOK_EVERY) {
                Ok(None) => {}
                Ok(Some(reply)) => {
                    if let Ok(sample) = reply.result() {
                        self.wait = wait_after(Some(begun.elapsed()), self.wait);
                        return sample.payload().to_bytes().first().copied();
                    }
                }
                Err(_) => break,
            }
        }
        if begun.elapsed() >= self.wait {
            self.wait = wait_after(None, self.wait);
        }
        None
    }
}

/// How long the next answer is waited for after one that took so long, or none within `wait`.
fn wait_after(took: Option<Duration>, wait: Duration) -> Duration {
    took.map_or(2 * wait, |took| 4 * took).clamp(ANSWER_MIN, ANSWER_MAX)
}

/// What no other domain has, nor this one once it was removed and made again; so that a bridge
/// that follows a killed one goes on where that was. Times and inodes do not do: a RAM disk of
/// older kernels knows no time of birth, and each node that joins changes the others.
fn identity(domain: &Path) -> io::Result<[u8; 16]> {
    let mut identity = [0; 16];
    File::open(domain.join("id"))?.read_exact_at(&mut identity, IDENTITY_AT)?;
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;

    use super::*;

    #[test]
    fn a_domain_keeps_its_identity_whoever_joins_and_shares_it_with_no_other() {
        let root = format!("/dev/shm/outlive-test-olb-id-{}-0", std::process::id());
        let root = Path::new(&root);
        std::fs::DirBuilder::new().mode(0o700).create(root).expect("a folder");
        let join = |domain: &str| outlive::Node::builder().root(root).domain(domain).open();
        let of = |domain: &str| identity(&root.join(domain)).expect("a domain");
        let node = join("one").expect("a node");
        let one = of("one");
        for _ in 0..3 {
            let _later = join("one").expect("a node");
            // The first lock of a thread is counted there, too.
            let lock = || node.mutex::<u64>("/lock").map(|lock| lock.try_lock().is_ok());
            assert!(std::thread::scope(|s| s.spawn(lock).join().expect("sound")).expect("a lock"));
            assert_eq!(of("one"), one);
        }
        let _other = join("two").expect("a node");
        assert!(of("two") != one && one != [0; 16]);
        drop(node);
        outlive::Domain::of(&outlive::Node::builder().root(root).domain("one"))
            .and_then(|domain| domain.clean())
            .expect("nobody is there");
        let _again = join("one").expect("a node");
        assert_ne!(of("one"), one, "removed and made again");
        std::fs::remove_dir_all(root).expect("our own");
    }

    #[test]
    fn who_is_slow_to_answer_is_waited_for_longer() {
        let s = Duration::from_secs;
        let waits = Vec::from_iter(std::iter::successors(Some(ANSWER_MIN), |wait| {
            (*wait < ANSWER_MAX).then(|| wait_after(None, *wait))
        }));
        assert_eq!(waits, [2, 4, 8, 16, 30].map(s));
        assert_eq!(wait_after(Some(s(3)), s(4)), s(12));
        assert_eq!(wait_after(Some(Duration::ZERO), s(30)), ANSWER_MIN);
    }
}
