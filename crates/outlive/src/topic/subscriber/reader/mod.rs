//! The subscribing half without types: the rings it has attached, its events, its sleep.
//!
//! # Invariants
//! - A hazard word of our port is non-zero only while a sample borrowed through it exists.
//! - The ring is read before the token is looked at: a dead publisher's last message counts.

mod attach;
mod glance;
mod known;
mod waiting;

use std::sync::Arc;

use super::parked::{self, Remains};
use super::raw::RawSample;
use super::records::Records;
use super::sources::Sources;
use super::sources::source::{Departure, Source, Standing, too_many_borrows};
use crate::node::OwnPort;
use crate::node::peer::{PortView, port};
use crate::os::fs::file;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;
use crate::topic::chunks::hazard;
use crate::topic::membership::entry::{PublisherId, subscriber_path};
use crate::topic::membership::pulse::Pulse;
use crate::topic::membership::{Ports, Topic, link_subscriber};
use crate::topic::ring::layout;
use crate::types::payload::Payload;
use crate::wait::alone::Alone;
use crate::wait::news::News;
use crate::{Error, ErrorKind, Result, crash_point};
use glance::Glance;
use known::Known;

/// What happened to the publishers of a topic, in the order in which the subscriber noticed.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::Event;
///
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// node.topic::<f64>("/pose")?.publisher()?.publish(&1.5)?; // joins, publishes and leaves
/// while poses.receive()?.is_some() {} // finds out
/// let mut gone = 0;
/// while let Some(event) = poses.next_event() {
///     match event {
///         Event::PublisherDied { publisher, .. } => println!("{publisher} died"),
///         Event::PublisherLeft(_) => gone += 1,
///         other => println!("{other:?}"),
///     }
/// }
/// assert_eq!(gone, 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A publisher was found.
    PublisherJoined(PublisherId),
    /// A publisher left cleanly; everything it sent has been received.
    PublisherLeft(PublisherId),
    /// A publisher's process died; everything it had committed has been received.
    PublisherDied {
        /// Who died.
        publisher: PublisherId,
        /// It died while it wrote a message; nobody ever sees that one.
        unfinished: bool,
        /// Messages lost after the last one received: the unfinished one had overwritten them.
        lost: u64,
    },
    /// A publisher's bytes are invalid; it is no longer read. Or the system does not let us read
    /// its ring: that is tried again, and `PublisherJoined` reports success.
    PublisherCorrupt {
        /// Whose bytes they are.
        publisher: PublisherId,
        /// What is wrong and what to do.
        why: String,
    },
}

/// Messages between two looks at membership and deaths while they keep coming.
const LOOK_EVERY: u64 = 64;

/// A subscriber's port, its sources and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Keeps the topic.
    pulse: Pulse,
    own: OwnPort,
    records: Records,
    sources: Sources,
    known: Known,
    news: News<Event>,
    /// What a wait looks at first.
    glance: Glance,
    alone: Alone,
    /// What it answers when it holds as many samples as it may.
    full: Error,
    /// What it answers when there is no memory for one more.
    no_memory: Error,
}

/// How a subscriber wants to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriberOptions {
    pub(crate) history: u64,
    pub(crate) borrows: usize,
    pub(crate) reliable: bool,
}

impl Reader {
    /// Opens a port and announces it; the caller holds the joining lock.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the `sub` file. A port block without one is nobody's.
    pub(crate) fn open(topic: Arc<Topic>, options: SubscriberOptions) -> Result<Self> {
        parked::sweep();
        let SubscriberOptions { history, borrows, reliable } = options;
        if borrows == 0 || borrows > port::HAZARDS_MAX {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "opening a subscriber of",
                topic.name.as_str(),
                format!("borrows is {borrows}: use 1 to {}", port::HAZARDS_MAX),
            ));
        }
        let words = (topic.meta.entry_bytes - layout::ENTRY_HEAD_BYTES) / 8;
        let no_memory = no_memory(topic.name.as_str());
        let Some(records) = Records::new(words, borrows) else { return Err(no_memory) };
        let port = topic.node.allocate_port(borrows, reliable)?;
        crash_point!("reader.open.port_allocated");
        if let Err(e) = link_subscriber(&topic, port) {
            topic.node.release_port(port);
            return Err(e);
        }
        crash_point!("reader.open.linked");
        topic.ring_bell(Ports::Subscribers);
        let mut reader = Self {
            pulse: Pulse::new(&topic, Ports::Publishers),
            own: topic.node.own_port(port)?,
            records,
            sources: Sources::new(reliable),
            known: Known::new(),
            news: News::default(),
            glance: Glance::new(),
            alone: Alone::default(),
            full: too_many_borrows(topic.name.as_str(), borrows),
            no_memory,
        };
        let epoch = topic.epoch_seen(Ports::Publishers);
        reader.look(Some(history), epoch)?;
        Ok(reader)
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        self.pulse.topic()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.sources.lost()
    }

    /// Messages that `take_newest` skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.sources.skipped()
    }

    pub(crate) fn publishers(&self) -> impl Iterator<Item = PublisherId> {
        self.sources.all().iter().map(Source::id)
    }

    pub(crate) fn depth(&self) -> u64 {
        let deepest = self.sources.all().iter().map(Source::depth).max();
        deepest.unwrap_or(self.topic().meta.depth)
    }

    #[inline]
    fn view(&self) -> PortView<'_> {
        self.own.view()
    }

    /// Samples of this subscriber held right now.
    pub(crate) fn borrowed(&self) -> usize {
        hazard::held_count(self.view().hazards())
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.news.pop()
    }

    /// There is no memory for one more sample.
    #[cold]
    pub(super) fn no_memory(&self) -> Error {
        self.no_memory.clone()
    }

    /// Events noticed so far.
    pub(crate) fn events_seen(&self) -> u64 {
        self.news.seen()
    }

    /// The next message of any publisher. What the dead and the departed left comes first, in the
    /// order in which they had come; all others in turn.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<RawSample>> {
        self.sources.turn_to_the_past();
        self.take_in_turn()
    }

    /// Appends the next messages to `to`, at most `most`, as far as `Sources::take_values` goes:
    /// what is beyond is for `take`.
    #[inline]
    pub(crate) fn take_values<T: Payload>(&mut self, to: &mut Vec<T>, most: usize) -> Result<()> {
        self.pulse.check_process()?;
        let of = &self.topic().meta;
        if size_of::<T>() >= layout::inline_below(of.entry_bytes, of.of.align) {
            return Ok(());
        }
        let before = to.len();
        self.sources.take_values(&self.own, to, most);
        self.count_tries((to.len() - before) as u64);
        Ok(())
    }

    /// Messages that the rings of all publishers hold at once.
    pub(crate) fn room(&self) -> usize {
        self.sources.room()
    }

    /// `n` messages were taken, or tried. One busy publisher must not hide the coming and going of
    /// others.
    #[inline]
    fn count_tries(&mut self, n: u64) {
        if self.glance.count(n, LOOK_EVERY) {
            // What is wrong is told once there is no message to give.
            let _ = self.attend_if_needed();
        }
    }

    #[inline]
    fn take_in_turn(&mut self) -> Result<Option<RawSample>> {
        self.pulse.check_process()?;
        self.count_tries(1);
        loop {
            if let Some(raw) = self.take_known()? {
                return Ok(Some(raw));
            }
            if !self.attend_if_needed()? {
                return self.nothing();
            }
        }
    }

    /// There is nothing to take. What a look lacked is told then, once.
    #[inline]
    fn nothing(&mut self) -> Result<Option<RawSample>> {
        self.known.take_trouble().map_or(Ok(None), Err)
    }

    /// The next message of those sources that are known.
    #[inline]
    fn take_known(&mut self) -> Result<Option<RawSample>> {
        'look: loop {
            let n = self.sources.all().len();
            let mut at = self.sources.turn();
            for _ in 0..n {
                at = if at >= n { 0 } else { at };
                let Some(vacant) = self.records.vacant() else {
                    return Err(self.no_memory());
                };
                match self.sources.take(at, &self.own, vacant) {
                    Ok(Some(raw)) => return Ok(Some(raw)),
                    Ok(None) => {}
                    Err(e) => {
                        self.refused(at, e)?;
                        continue 'look;
                    }
                }
                at += 1;
            }
            return Ok(None);
        }
    }

    /// `true` when there may be news.
    #[inline]
    fn attend_if_needed(&mut self) -> Result<bool> {
        if self.is_steady() { Ok(false) } else { self.attend() }
    }

    /// As `attend_if_needed`, before the sources are asked: a look that fails keeps no message of
    /// those that are known. What is wrong is told once there is none to give.
    fn attend_first(&mut self) -> Result<()> {
        self.pulse.check_process()?;
        let looked = self.attend_if_needed();
        if fault("latest.look_first") {
            looked?;
            self.nothing()?;
        }
        Ok(())
    }

    /// Nothing to attend to.
    #[inline]
    fn is_steady(&self) -> bool {
        !self.known.has_retry()
            && !self.known.has_lack()
            && self.pulse.is_steady(self.known.seen_epoch())
            && self.sources.all().iter().all(Source::is_steady)
    }

    /// As `take`, the message that was published first of those that are there.
    pub(crate) fn take_oldest(&mut self) -> Result<Option<RawSample>> {
        self.attend_first()?;
        self.sources.turn_to_oldest();
        self.take_in_turn()
    }

    /// As `take`, the message that was published last; all others are skipped.
    pub(crate) fn take_newest(&mut self) -> Result<Option<RawSample>> {
        self.attend_first()?;
        self.count_tries(1);
        loop {
            self.sources.skip_to_newest(&self.own);
            if let Some(raw) = self.take_known()? {
                return Ok(Some(raw));
            }
            // Whoever is found now may have more than one.
            if !self.attend_if_needed()? {
                return self.nothing();
            }
        }
    }

    /// Source `at` cannot be read: for good, or right now.
    #[cold]
    fn refused(&mut self, at: usize, e: Error) -> Result<()> {
        if is_of_its_files(&e) {
            self.give_up(at, e.to_string());
            return Ok(());
        }
        // Who holds too many samples can make it readable, and wants what comes first.
        self.sources.pass(at, e.kind() != ErrorKind::TooManyBorrows);
        // Whoever has come meanwhile is hidden by it no more than the others.
        let _ = self.attend_if_needed();
        Err(e)
    }

    /// Membership changed, somebody died, or it is time to look: `true` when there may be news.
    #[cold]
    pub(crate) fn attend(&mut self) -> Result<bool> {
        self.glance.forget();
        self.topic().node.tend()?;
        // Before the sources: one that closes behind our look at it rings for a later epoch.
        let epoch = self.topic().epoch_seen(Ports::Publishers);
        let (mut news, mut newly_over, mut i) = (false, false, 0);
        while let Some(source) = self.sources.all_mut().get_mut(i) {
            match source.standing() {
                Standing::Lives => i += 1,
                Standing::Cut(e) => self.give_up(i, e.to_string()),
                Standing::Unread { newly } => {
                    news = true;
                    newly_over |= newly;
                    i += 1;
                }
                Standing::Over(departure) => self.tell_departure(i, departure),
            }
        }
        if newly_over {
            self.sources.sort();
        }
        // Whoever has gone has made place for whoever has come.
        let mut looked = Ok(());
        if epoch != self.known.seen_epoch() || self.known.is_due() {
            let before = self.sources.all().len();
            looked = self.look_on(epoch);
            news |= self.sources.all().len() > before;
        }
        if news { Ok(true) } else { looked.map(|()| false) }
    }

    /// Detaches publisher `i` and says why: of a death only with its proof.
    fn tell_departure(&mut self, i: usize, departure: Departure) {
        let unfinished = self.sources.all()[i].is_busy();
        let (publisher, lost) = self.detach(i);
        self.news.push(match departure {
            Departure::Left => Event::PublisherLeft(publisher),
            Departure::Died(dead) => {
                debug_assert_eq!(dead.node(), publisher.node);
                Event::PublisherDied { publisher, unfinished, lost }
            }
        });
    }

    fn give_up(&mut self, i: usize, why: String) {
        let (publisher, _) = self.detach(i);
        self.news.push(Event::PublisherCorrupt { publisher, why });
    }

    fn detach(&mut self, i: usize) -> (PublisherId, u64) {
        self.glance.forget();
        self.sources.detach(i, self.own.view())
    }

    /// A truncated ring reads as empty for ever: nothing else would tell.
    fn is_cut(&self) -> bool {
        self.sources.all().iter().any(|s| s.poisoned().is_some())
    }

    /// Whether `take` would do anything: a message, a death, a change of membership.
    fn is_quiet(&self) -> bool {
        let sources = self.sources.all();
        self.topic().epoch(Ports::Publishers).load(Relaxed) == self.known.seen_epoch()
            && !self.known.has_trouble()
            && sources.iter().all(|s| s.sleep_word().is_some() && s.death().is_none())
    }

    /// Sleeps until there is something to do, at most until `deadline`.
    ///
    /// # Crash safety
    /// **Strict.** As that of a wait set, of which we are the only member.
    pub(crate) fn sleep(&mut self, deadline: Deadline) -> Result<()> {
        if self.is_cut() {
            return self.attend().map(drop);
        }
        if self.known.tries_before_sleep() {
            self.look_on(self.known.seen_epoch())?;
            if !self.is_quiet() {
                return Ok(());
            }
        }
        let until = deadline.min(self.known.next_look());
        Alone::sleep(self, |reader| &mut reader.alone, until)
    }

    /// After a long sleep: looks at the directory whatever the bell says (somebody may have
    /// scribbled over it), and rings for publishers that have not noticed us.
    fn look_again(&mut self) -> Result<()> {
        self.look_on(self.known.seen_epoch())?;
        let view = self.own.view();
        let sources = self.sources.all_mut();
        if self.known.ring_again(|| sources.iter_mut().any(|s| !s.is_noticed(view))) {
            self.topic().ring_bell(Ports::Subscribers);
        }
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.records.park();
        let sources = self.sources.take_maps();
        let topic = Arc::clone(self.topic());
        if !topic.node.is_own_process() {
            // A forked child may still read samples that it inherited.
            if !fault("fork.child_unmaps") {
                std::mem::forget(sources);
            }
            return;
        }
        let path = subscriber_path(&topic.dir, topic.node.id(), self.own.id());
        if !topic.node.is_replaced() && !fault("subscriber.no_unlink") {
            let _ = file::unlink(&path);
        }
        let view = self.own.view();
        // Nobody waits for one that reads no more, whatever is still held of it.
        view.reliable().store(0, Relaxed);
        sources.iter().for_each(|source| source.leave(view));
        if self.borrowed() > 0 {
            // The port stays open for publishers until the samples are gone.
            let own = self.own.clone();
            parked::park(Parked { topic: Arc::clone(&topic), own, maps: sources });
        } else {
            topic.node.release_port(self.own.id());
            drop(sources);
        }
        topic.ring_bell(Ports::Subscribers);
        let _ = topic.reclaim();
        parked::sweep();
    }
}

/// What borrowed samples lie in after their subscriber is gone.
#[derive(Debug)]
struct Parked {
    topic: Arc<Topic>,
    own: OwnPort,
    /// Kept for what they map.
    maps: Vec<Source>,
}

impl Remains for Parked {
    fn is_held(&mut self) -> bool {
        hazard::held_count(self.own.view().hazards()) > 0
    }

    fn is_ours(&self) -> bool {
        self.topic.node.is_own_process()
    }

    fn close(self: Box<Self>) {
        let Self { topic, own, maps } = *self;
        topic.node.release_port(own.id());
        drop(maps);
        topic.ring_bell(Ports::Subscribers);
    }
}

/// Made beforehand: then there is no memory for a text.
fn no_memory(topic: &str) -> Error {
    Error::kept(ErrorKind::OutOfMemory, topic, |at, kind| {
        let remedy = "no process memory for one more sample: drop some";
        Error::new(kind, "receiving on", at.object(), remedy)
    })
}

/// Whether an error says that a publisher's files are not what they should be, as opposed to what
/// this process may or can do right now.
fn is_of_its_files(e: &Error) -> bool {
    use ErrorKind::{Corrupt, NotFound, NotOwned, VersionMismatch};
    matches!(e.kind(), Corrupt | NotFound | NotOwned | VersionMismatch)
}
