//! Where the consumer is: the bridge is a producer for those elsewhere, within the room for that.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use outlive::queue;
use outlive::{Deadline, ErrorKind, PayloadType, Producer};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{Query, Queryable};

use super::counters_of;
use crate::link::hand_over;
use crate::link::notes::Note;
use crate::link::place::{FULL, Head, REFUSED, ROOM, TAKEN};
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

/// A local queue whose consumer is here: others may send into it.
pub(crate) fn start(shared: &Arc<Shared>, info: &queue::Info) -> Worker {
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
