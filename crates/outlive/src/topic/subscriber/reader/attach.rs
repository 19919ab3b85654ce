//! Finding publishers and beginning to read them; letting go of those that were read.

use std::collections::HashSet;

use super::{Event, Reader, is_of_its_files};
use crate::node::peer::port;
use crate::sync::Ordering::Release;
use crate::sync::fault;
use crate::topic::membership::Ports;
use crate::topic::membership::entry::{Entry as DirEntry, subscriber_path};
use crate::topic::ring::listing::Listing;
use crate::topic::subscriber::sources::history;
use crate::topic::subscriber::sources::source::Source;
use crate::{Error, ErrorKind, Result, crash_point};

impl Reader {
    /// As `look`, of one that is open: a ring or a directory that cannot be opened for lack of
    /// memory, descriptors or room says nothing of the publishers that are known, so it goes on
    /// with those, and sleeps.
    ///
    /// # Errors
    /// As `look`, but no lack: that is told by a call that receives, and tried again after a pause.
    pub(super) fn look_on(&mut self, epoch: u64) -> Result<()> {
        match self.look(None, epoch) {
            Err(e) if e.is_lack() && !fault("look.lack_keeps_awake") => {
                self.known.lacks(epoch, e);
                Ok(())
            }
            looked => looked,
        }
    }

    /// Looks at the topic's directory and attaches publishers that are new. What the bell rang for
    /// up to `epoch` is done then: whoever read that there has looked since which of the sources
    /// are over.
    ///
    /// # Errors
    /// The first failure to attach, after all others were attached; the next look tries again. A
    /// ring that may not be looked at is one only at the first look, with a `history`: one who is
    /// open goes on with the others meanwhile.
    #[cold]
    pub(super) fn look(&mut self, history: Option<u64>, mut epoch: u64) -> Result<()> {
        self.glance.forget();
        if fault("look.rung_meanwhile") {
            epoch = self.topic().epoch_seen(Ports::Publishers);
        }
        self.sources.let_go(self.own.view());
        let mut present = HashSet::new();
        let (mut found, mut failed) = (Vec::new(), None);
        let (me, mut listed) = (self.topic().node.id(), false);
        let mut refused = false;
        for entry in self.topic().entries()? {
            listed |= entry == DirEntry::Subscriber { node: me, port: self.own.id() };
            let DirEntry::Publisher(id) = entry else { continue };
            present.insert(id);
            if self.known.contains(id) {
                continue;
            }
            match Source::open(self.topic(), id, self.full.clone()) {
                Ok(source) => found.push(source),
                Err(e) if is_of_its_files(&e) || is_given_up(&e) => {
                    self.known.settle(id);
                    // Else gone between the look and the open.
                    if e.kind() != ErrorKind::NotFound {
                        let why = e.to_string();
                        self.news.push(Event::PublisherCorrupt { publisher: id, why });
                    }
                }
                Err(e) if e.kind() == ErrorKind::Permission && history.is_none() => {
                    refused = true;
                    if self.known.refuse(id) {
                        let why = e.to_string();
                        self.news.push(Event::PublisherCorrupt { publisher: id, why });
                    }
                }
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        self.known.keep(&present, refused);
        if !found.is_empty() {
            self.topic().node.must_be_listed()?;
            failed = self.attach(found, history).err().or(failed);
        }
        if let Some(e) = failed {
            return Err(e);
        }
        self.topic().node.must_be_listed()?;
        if !listed {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "receiving by",
                subscriber_path(&self.topic().dir, me, self.own.id()).display().to_string(),
                "somebody removed it: open the subscriber again",
            ));
        }
        // Attached or left out on purpose: from here on a cleaner need not keep them for us.
        if !refused {
            // ORDERING(SEEN): pairs with `Audience::opened` and `use_of`.
            self.view().seen().store(epoch, Release);
        }
        self.known.looked(epoch);
        Ok(())
    }

    /// Begins to read `found`; of what they sent before, only the `history` asked for, if any.
    ///
    /// # Errors
    /// `TooManyMembers`; those that have no place are found again by the next look.
    fn attach(&mut self, mut found: Vec<Source>, history: Option<u64>) -> Result<()> {
        found.sort_by_key(Source::age);
        if let Some(wanted) = history {
            history::begin(&mut found, wanted);
        }
        // Whoever is gone already and has nothing for us need not be mentioned.
        let known = &mut self.known;
        found.retain_mut(|source| {
            let over = source.departure().is_some() && source.sleep_word().is_some();
            over.then(|| known.settle(source.id()));
            !over
        });
        let before = self.sources.all().len();
        let mut done = Ok(());
        for source in found {
            let slot = match self.free_place() {
                Ok(slot) => slot,
                Err(e) => {
                    done = Err(e);
                    break;
                }
            };
            self.known.settle(source.id());
            self.news.push(Event::PublisherJoined(source.id()));
            self.sources.add(source, slot, self.own.view());
        }
        crash_point!("reader.attached");
        // Now that they see how far we are: what they overwrote meanwhile is from before we joined.
        let new = &mut self.sources.all_mut()[before..];
        if let Some(wanted) = history {
            history::begin(new, wanted);
        }
        new.iter_mut().for_each(|source| source.begin(self.own.view()));
        self.sources.sort();
        done
    }

    fn free_place(&self) -> Result<usize> {
        let view = self.own.view();
        let free = || (0..view.sources()).find(|&s| Listing::of(view.source(s)).is_free());
        if let Some(slot) = free().or(fault("attach.full_unchecked").then_some(0)) {
            return Ok(slot);
        }
        let more =
            !fault("attach.no_more_places") && self.topic().node.extend_port(self.own.id())?;
        if more { free() } else { None }.ok_or_else(|| self.too_many_publishers())
    }

    #[cold]
    fn too_many_publishers(&self) -> Error {
        Error::new(
            ErrorKind::TooManyMembers,
            "attaching to",
            self.topic().name.as_str(),
            format!("more than {} publishers: spread them over topics", port::SOURCES_MAX),
        )
    }
}

/// As the fault has it: a look that was refused once is never taken again.
fn is_given_up(e: &Error) -> bool {
    e.kind() == ErrorKind::Permission && fault("attach.refused_is_corrupt")
}
