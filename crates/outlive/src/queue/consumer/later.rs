//! What a consumer cannot do now for one of its producers: it goes on with the others and tries
//! again later.
//!
//! A lane that cannot be opened, or not be followed into its next segment, for lack of memory,
//! descriptors or rights, says nothing of the other lanes. Neither does a client that its server
//! cannot answer yet.

use std::path::PathBuf;

use crate::Error;
use crate::os::time::clock;
use crate::os::time::pause::Pause;
use crate::queue::membership::Queue;
use crate::sync::fault;

/// Which lanes were looked for, and what is to be looked for again.
#[derive(Debug)]
pub(super) struct Later {
    /// The bell at the last look at the queue's directory; `u64::MAX`: look again.
    seen_epoch: u64,
    /// Lanes wait for a free slot.
    left_out: bool,
    /// Lanes are there that could not be attached.
    look: bool,
    pause: Pause,
    /// Why, until it is told or over.
    unseen: Option<Error>,
    /// Why a lane could not be read on, until it is told or tried again.
    unread: Option<Error>,
    /// Segments that were left and could not be removed. Nobody waits for that.
    kept: Vec<PathBuf>,
    kept_pause: Pause,
}

impl Later {
    pub(super) fn new() -> Self {
        let (seen_epoch, pause, kept_pause) = (u64::MAX, Pause::default(), Pause::default());
        let (unseen, unread, kept) = (None, None, Vec::new());
        Self { seen_epoch, left_out: false, look: false, pause, unseen, unread, kept, kept_pause }
    }

    pub(super) fn seen_epoch(&self) -> u64 {
        self.seen_epoch
    }

    /// The directory was looked at when the bell said `epoch`. `all`: no lane was kept from us, so
    /// that what kept one before is over.
    pub(super) fn looked(&mut self, epoch: u64, all: bool) {
        self.seen_epoch = epoch;
        if all {
            self.look = false;
            if !fault("later.keeps_trouble") {
                self.unseen = None;
            }
        }
    }

    /// A lane waits for a free slot.
    pub(super) fn leave_out(&mut self) {
        self.left_out = true;
    }

    /// A slot is free: lanes that were left out for lack of one can be admitted.
    pub(super) fn slot_is_free(&mut self) {
        if std::mem::take(&mut self.left_out) {
            self.seen_epoch = u64::MAX;
        }
    }

    /// A new lane cannot be attached now.
    pub(super) fn fail_look(&mut self, why: Error) {
        if !self.look {
            self.pause = self.pause.next(clock::now_ns());
        }
        (self.look, self.unseen) = (true, Some(why));
    }

    /// A lane cannot be read on now.
    pub(super) fn fail_lane(&mut self, why: Error) {
        self.unread = Some(why);
    }

    /// Lanes that could not be read on are tried again; what fails still says so.
    pub(super) fn lanes_are_tried(&mut self) {
        self.unread = None;
    }

    /// When the next look is; the end of time without any.
    #[inline]
    pub(super) fn next_look_ns(&self) -> u64 {
        if self.look { self.pause.until_ns() } else { u64::MAX }
    }

    /// Looks again if that is due.
    pub(super) fn try_again(&mut self, now_ns: u64) {
        if self.next_look_ns() <= now_ns {
            self.look = false;
            self.seen_epoch = u64::MAX;
        }
    }

    /// A segment that was left could not be removed.
    #[cold]
    pub(super) fn keep(&mut self, segment: PathBuf) {
        self.kept_pause = self.kept_pause.next(clock::now_ns());
        self.kept.push(segment);
    }

    /// Removes the segments that were kept, if that is due.
    #[inline]
    pub(super) fn unlink_kept(&mut self, queue: &Queue) {
        if !self.kept.is_empty() {
            self.try_to_unlink(queue);
        }
    }

    #[cold]
    fn try_to_unlink(&mut self, queue: &Queue) {
        let now = clock::now_ns();
        if now < self.kept_pause.until_ns() {
            return;
        }
        self.kept.retain(|segment| queue.unlink(segment).is_err());
        self.kept_pause = self.kept_pause.next(now);
    }

    /// What failed since the last call, of one producer alone.
    pub(super) fn take_trouble(&mut self) -> Option<Error> {
        self.unseen.take().or_else(|| self.unread.take())
    }

    pub(super) fn has_trouble(&self) -> bool {
        self.unseen.is_some() || self.unread.is_some()
    }

    /// What a new consumer lacks for the lanes that are there already.
    pub(super) fn take_lack(&mut self) -> Option<Error> {
        self.unseen.take_if(|e| e.is_lack())
    }
}
