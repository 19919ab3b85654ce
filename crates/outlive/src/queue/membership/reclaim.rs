//! Removing what nobody needs any more.
//!
//! # Theory of operation
//! A lane goes once two questions are answered, each by itself: nobody adds to it ([`Over`]), and
//! nobody misses what is in it ([`Drained`]). Each answer is a proof, and what removes asks for
//! them by its signature. What cannot be found out, for lack of memory, descriptors or rights,
//! proves nothing: then the producer counts as alive and its lane as unread.
//!
//! | file                    | who may unlink it, and when                                       |
//! |-------------------------|-------------------------------------------------------------------|
//! | `lane` k < position's   | the consumer or its successor                                     |
//! | `lane`                  | the consumer, once it is closed or its node is gone and it is     |
//! |                         | drained; without a live consumer any member or cleaner then; a    |
//! |                         | producer then that finds no room for its own; its own producer,   |
//! |                         | as it leaves, once the consumer has refused it                    |
//! | `consumer` `bell` `meta`| whoever finds no live member and no message unread                |
//!
//! `Domain::clean` is told to: without live members it removes unread messages too. Lanes go before
//! `consumer`, whose positions say what was received of them, and `meta` goes last.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::Path;

use super::entry::{Entry, list};
use super::meta::Meta;
use super::table::Table;
use crate::domain::bell::{Bell, in_rounds};
use crate::domain::path::DomainPath;
use crate::domain::removing::Removing;
use crate::node::NodeId;
use crate::node::peer::{Dead, proof_by_name};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::filelock;
use crate::queue::lane::ProducerId;
use crate::queue::lane::head::{Head, Next};
use crate::queue::lane::layout::consumer::SLOTS_MAX;
use crate::queue::lane::position::{Place, Position};
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::{Segment, segment_path};
use crate::sync::{AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// What becomes of messages that were never received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// They wait for the next consumer.
    Keep,
    /// They go with the last live member.
    Remove,
    /// As `Remove`, and those of a producer that is gone are nobody's already: requests.
    OfTheLiving,
}

/// What a look at a queue removed and what it left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    pub(crate) files: usize,
    /// Nodes of live members: the consumer, or else the producers, one for each.
    pub(crate) living: Vec<NodeId>,
    /// Somebody was joining or cleaning, or just began to consume, so that nothing was looked at.
    pub(crate) busy: bool,
    pub(crate) removed_queue: bool,
}

/// Proof that nobody adds to a lane any more: it was closed, or its node is gone for certain. It
/// stays true.
#[derive(Debug)]
enum Over {
    Dead(#[allow(dead_code, reason = "the proof itself; nobody needs to ask whose it is")] Dead),
    Closed,
}

/// Proof that there is no message in a lane that is over which somebody would still receive. It
/// stays true.
#[derive(Debug)]
struct Drained(());

/// Why a queue has as many lanes as it may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowd {
    /// Lanes of producers that are alive, or may be.
    live: usize,
    /// Lanes of the gone that may hold a message.
    unread: usize,
}

impl Crowd {
    /// Whether there is room for one more.
    pub(crate) fn has_room(self) -> bool {
        self.live + self.unread < SLOTS_MAX
    }

    /// What a producer is told that finds no room.
    #[cold]
    pub(crate) fn error(self, queue: &str) -> Error {
        let Self { live, unread } = self;
        Error::new(
            ErrorKind::TooManyMembers,
            "opening a producer of",
            queue,
            format!(
                "a queue has at most {SLOTS_MAX} lanes: {live} are of live producers, and {unread} \
                 of gone ones hold messages that nobody received: let the consumer receive, or \
                 spread the producers over several queues"
            ),
        )
    }
}

/// Proof that nobody consumes, for as long as the directory's lock is held.
#[derive(Debug)]
struct Unserved<'l>(PhantomData<&'l Removing>);

/// Whether a consumer holds the queue's `consumer` file.
pub(crate) fn has_consumer(dir: &Path) -> Result<bool> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match file::open_checked(&dir.join("consumer"), expect) {
        Ok((fd, _)) => filelock::is_locked(&fd),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// The lanes among `names`, each with the numbers of its segments.
pub(crate) fn lanes(names: impl IntoIterator<Item = Entry>) -> Vec<(ProducerId, Vec<u32>)> {
    let mut lanes: Vec<(ProducerId, Vec<u32>)> = Vec::new();
    let mut at = HashMap::new();
    for entry in names {
        if let Entry::Lane { owner, segment } = entry {
            let i = *at.entry(owner).or_insert(lanes.len());
            if i == lanes.len() {
                lanes.push((owner, Vec::new()));
            }
            lanes[i].1.push(segment);
        }
    }
    lanes
}

/// Removes what the dead left in the queue at `dir`; the whole queue if nobody needs it.
///
/// # Errors
/// The first thing that could not be found out, after all else was done.
///
/// # Crash safety
/// **Strict.** Lanes go before `consumer`, `meta` last: what remains is found by the next look.
pub(crate) fn reclaim(domain: &DomainPath, dir: &Path, unread: Unread) -> Result<Reclaimed> {
    // Without the bell nobody can ask.
    let bell = Bell::existing(dir, domain).unwrap_or(None);
    reclaim_by(domain, dir, bell.as_ref(), unread)
}

/// The same by who knows the bell already.
pub(super) fn reclaim_by(
    domain: &DomainPath,
    dir: &Path,
    bell: Option<&Bell>,
    unread: Unread,
) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    in_rounds(bell, || {
        let Some(removing) = Removing::begin(dir)? else {
            out.busy = true;
            return Ok(true);
        };
        let round = reclaim_held(domain, dir, &removing, unread)?;
        out = Reclaimed { files: out.files + round.files, ..round };
        Ok(out.removed_queue)
    })?;
    Ok(out)
}

fn reclaim_held(
    domain: &DomainPath,
    dir: &Path,
    removing: &Removing,
    unread: Unread,
) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    out.files += removing.remove_unfinished()?;
    // A live consumer ends its lanes itself.
    let Some(unserved) = unserved(removing, dir)? else {
        let consumer = match Table::open_existing(dir, domain) {
            Ok(table) => table.owner().node(),
            Err(e) if e.is_absent() || fault("reclaim.unknown_is_busy") => None,
            // Who it is is not known, which is no reason to wait for it.
            Err(e) => return Err(e),
        };
        return Ok(Reclaimed { busy: consumer.is_none(), living: Vec::from_iter(consumer), ..out });
    };
    let (mut kept, mut unknown) = (0, None);
    for (id, segments) in lanes(removing.names().iter().map(|name| Entry::parse(name))) {
        match over(domain, dir, id, &segments) {
            Ok(None) => out.living.push(id.node),
            Ok(Some(over)) => match drained(domain, dir, id) {
                Ok(Some(drained)) => {
                    out.files += remove_lane(dir, id, &segments, &over, &drained)?;
                }
                Ok(None) => kept += 1,
                Err(e) => {
                    kept += 1;
                    unknown = unknown.or(Some(e));
                }
            },
            Err(e) => {
                out.living.push(id.node);
                unknown = unknown.or(Some(e));
            }
        }
    }
    if out.living.is_empty() && (kept == 0 || unread != Unread::Keep) {
        let (files, removed_queue) = remove_queue(removing, &unserved)?;
        (out.files, out.removed_queue) = (out.files + files, removed_queue);
    }
    unknown.map_or(Ok(out), Err)
}

/// The nodes of producers that live and have not left, as far as can be found out.
pub(super) fn producers(domain: &DomainPath, dir: &Path) -> Vec<NodeId> {
    let lanes = lanes(list(dir).unwrap_or_default()).into_iter();
    let live =
        lanes.filter(|(id, segments)| !matches!(over(domain, dir, *id, segments), Ok(Some(_))));
    live.map(|(id, _)| id.node).collect()
}

/// How many lanes the queue at `dir` has, however long they are.
pub(crate) fn count_lanes(dir: &Path) -> Result<usize> {
    if fault("crowd.grown_uncounted") {
        let first = |e: &Entry| matches!(e, Entry::Lane { segment: 0, .. });
        return Ok(list(dir)?.iter().filter(|e| first(e)).count());
    }
    Ok(lanes(list(dir)?).len())
}

/// Makes room for a producer in a crowded queue: removes the lanes of the gone that nobody will
/// miss, also before the eyes of a consumer that is stopped or does not receive.
///
/// That takes no lock: what is over and drained stays so, and its name is never used again. The
/// consumer finds its lane without files and ends it.
///
/// # Crash safety
/// **Strict.** The segment that the consumer reads goes last: a lane is there or it is not.
pub(crate) fn thin_out(domain: &DomainPath, dir: &Path, unread: Unread) -> Result<Crowd> {
    let mut crowd = Crowd::default();
    for (id, segments) in lanes(list(dir)?) {
        match over(domain, dir, id, &segments) {
            Ok(Some(_)) if fault("crowd.of_the_gone") => crowd.unread += 1,
            Ok(Some(over)) => {
                let drained = match unread {
                    Unread::OfTheLiving => Some(Drained(())),
                    // What cannot be looked into is kept.
                    _ => drained(domain, dir, id).unwrap_or(None),
                };
                match drained {
                    Some(drained) => remove_lane(dir, id, &segments, &over, &drained).map(drop)?,
                    None => crowd.unread += 1,
                }
            }
            Ok(None) | Err(_) => crowd.live += 1,
        }
    }
    Ok(crowd)
}

fn unserved<'l>(_: &'l Removing, dir: &Path) -> Result<Option<Unserved<'l>>> {
    Ok((!has_consumer(dir)?).then_some(Unserved(PhantomData)))
}

/// Who lives? The proof that the lane's producer is gone or has left, if so.
///
/// # Errors
/// Those of asking: then nobody knows.
fn over(domain: &DomainPath, dir: &Path, id: ProducerId, segments: &[u32]) -> Result<Option<Over>> {
    if let Some(dead) = proof_by_name(&domain.nodes(), id.node)? {
        return Ok(Some(Over::Dead(dead)));
    }
    let newest = segments.iter().max().copied().unwrap_or(0);
    match Segment::open(dir, id, newest, domain) {
        Ok(segment) => Ok(segment.is_closed().then_some(Over::Closed)),
        // What its producer maps is there, whatever its bytes say now; and a segment that went
        // since it was listed went with its consumer.
        Err(e) if e.is_absent() => Ok(None),
        Err(_) if fault("reclaim.unknown_is_over") => Ok(Some(Over::Closed)),
        Err(e) => Err(e),
    }
}

/// What is unread? The proof that no message is left in the lane, if so. Of a lane that is over.
///
/// # Errors
/// Those of looking: then nobody knows.
fn drained(domain: &DomainPath, dir: &Path, id: ProducerId) -> Result<Option<Drained>> {
    let unread = match is_unread(domain, dir, id) {
        Err(_) if fault("reclaim.unknown_is_drained") => false,
        looked => looked?,
    };
    Ok((!unread).then_some(Drained(())))
}

/// Whether a lane holds a message that no consumer received, where nobody stores. What its
/// producer never wrote is nobody's to receive.
fn is_unread(domain: &DomainPath, dir: &Path, id: ProducerId) -> Result<bool> {
    let meta = match Meta::read(dir, &domain.access) {
        Ok(meta) => meta,
        // It goes last, and without it nobody can tell what is in a lane.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let start = Some((Position::START, 0));
    let from = match Table::open_existing(dir, domain) {
        Ok(table) => table.find(id).map_or(start, |slot| table.place(slot).peek()),
        // Nobody ever consumed.
        Err(e) if e.kind() == ErrorKind::NotFound => start,
        Err(e) => return Err(e),
    };
    match from {
        Some((at, done)) => first_unread(domain, dir, id, at, done, &meta.shape()),
        // Refused.
        None => Ok(false),
    }
}

/// Walks a lane from `at` without storing anything.
fn first_unread(
    domain: &DomainPath,
    dir: &Path,
    id: ProducerId,
    at: Position,
    done: u32,
    shape: &Shape,
) -> Result<bool> {
    // The walk keeps its own position.
    let (position, progress) = (AtomicU64::new(0), AtomicU64::new(0));
    let place = Place::new(&position, &progress);
    let mut head = Head::new(at, done);
    if at.offset % shape.unit != 0 {
        return Ok(false);
    }
    loop {
        let segment = match Segment::open(dir, id, head.segment, domain) {
            Ok(segment) => segment,
            Err(e) if e.is_absent() => return Ok(false),
            Err(e) => return Err(e),
        };
        match head.next(segment.ring(), shape, place) {
            Next::Item => return Ok(true),
            Next::Jump => head.jump(place),
            Next::Empty(_) | Next::Corrupt(_) => return Ok(false),
        }
    }
}

/// Unlinks a lane's segments, newest first: a consumer that takes the queue over finds the one at
/// its position, or none.
fn remove_lane(
    dir: &Path,
    id: ProducerId,
    segments: &[u32],
    _: &Over,
    _: &Drained,
) -> Result<usize> {
    let (mut segments, mut removed) = (segments.to_vec(), 0);
    segments.sort();
    for segment in segments.into_iter().rev() {
        removed += usize::from(file::unlink(&segment_path(dir, id, segment))?);
    }
    Ok(removed)
}

/// Unlinks all files of a queue that has no member; the caller has seen each lane to be over.
fn remove_queue(removing: &Removing, _: &Unserved<'_>) -> Result<(usize, bool)> {
    removing.remove_all(|name| match Entry::parse(name) {
        Entry::Lane { .. } => Some(0),
        Entry::Meta => Some(2),
        Entry::Unknown => None,
        _ => Some(1),
    })
}
