//! The `consumer` file: who consumes, and how far each lane is consumed.
//!
//! | word      | means                                        | stored by                         |
//! |-----------|----------------------------------------------|-----------------------------------|
//! | `OWNER`   | node of the consumer << 32 \| count          | the holder of the file's OFD lock |
//! | `TABLE`   | how often the table of lanes changed         | the same                          |
//! | `WAITING` | how it wants to be woken, see `wait`         | the same                          |
//! | slots     | node, port, position, progress, received     | the same                          |
//!
//! | label     | store                | load            | carries                        |
//! |-----------|----------------------|-----------------|--------------------------------|
//! | CONSUMER  | `set_owner`, Release | `owner`, Acquire | the table as it was taken over |
//! | LANE_SLOT | `admit`, Release     | `lane`, Acquire  | node and position of the slot  |
#![allow(unsafe_code)]

use std::path::Path;

use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::{DomainPath, open_or_create};
use crate::node::NodeId;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::filelock;
use crate::os::fs::map::Mapping;
use crate::os::process::fork::NotInChild;
use crate::os::sleep::futex;
use crate::queue::lane::ProducerId;
use crate::queue::lane::layout::consumer;
use crate::queue::lane::position::Place;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault, fence};
use crate::wait::wake::handshake::Request;
use crate::{Error, ErrorKind, Result};

/// Who consumes: the node, and a number that is new with every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    pub(crate) fn new(node: Option<NodeId>, count: u32) -> Self {
        Self(node.map_or(0, |n| n.get()) << 32 | u64::from(count))
    }

    pub(crate) fn node(self) -> Option<NodeId> {
        Some(self.0 >> 32).filter(|n| *n != 0).map(NodeId::from_raw)
    }

    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// The half that changes each time: what one sleeps on.
    pub(crate) fn count(self) -> u32 {
        self.0 as u32
    }
}

/// The mapped file: the consumer's own, or read-only.
#[derive(Debug)]
pub(crate) struct Table {
    map: Mapping,
    /// The consumer's: holds its lock. Not the one that is mapped: a map keeps its file's locks,
    /// in a forked child too.
    lock: Option<NotInChild>,
}

impl Table {
    /// Opens the file of the queue in `dir`, making it if nobody has yet. `own`: for the consumer.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(crate) fn open(dir: &Path, domain: &DomainPath, own: bool) -> Result<Self> {
        let path = dir.join("consumer");
        let total_bytes = consumer::BYTES as u64;
        let owner = domain.access.owner_required();
        let expect = Expect { writable: own, min_len: total_bytes, owner };
        // A successor may be another user of the group: the mode of files that all may write.
        let fd = open_or_create(&path, domain.access.shared_mode, expect, |map| {
            FileHeader { kind: FileKind::Consumer, total_bytes, node: 0, port: 0 }.write(map)
        })?;
        let map = match own {
            true => Mapping::map_own(&fd, consumer::BYTES, &path)?,
            false => Mapping::map_peer(&fd, consumer::BYTES, &path)?,
        };
        FileHeader::read(&map, FileKind::Consumer, total_bytes)?;
        if !own {
            return Ok(Self { map, lock: None });
        }
        let lock = NotInChild::open_for_life(|| Ok(file::open_checked(&path, expect)?.0))?;
        if !file::same_file(&fd, &path)? {
            return Err(Error::new(
                ErrorKind::NotFound,
                "opening",
                path.display().to_string(),
                "it was removed meanwhile: open the queue again",
            ));
        }
        Ok(Self { map, lock: Some(lock) })
    }

    /// As `open`, for tools: makes nothing.
    pub(crate) fn open_existing(dir: &Path, domain: &DomainPath) -> Result<Self> {
        let path = dir.join("consumer");
        let (min_len, owner) = (consumer::BYTES as u64, domain.access.owner_required());
        let (fd, _) = file::open_checked(&path, Expect { writable: false, min_len, owner })?;
        let map = Mapping::map_peer(&fd, consumer::BYTES, &path)?;
        FileHeader::read(&map, FileKind::Consumer, min_len)?;
        Ok(Self { map, lock: None })
    }

    /// Takes the consumer's lock, unless another one holds it.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        if fault("consumer.lock_unasked") {
            return Ok(true);
        }
        self.lock.as_ref().map_or(Ok(false), filelock::try_lock_write)
    }

    /// Lets the lock go: a successor may take the table over from here on.
    pub(crate) fn unlock(&self) {
        if let Some(lock) = &self.lock {
            lock.unlock();
        }
    }

    pub(crate) fn check_poisoned(&self) -> Result<()> {
        self.map.check_poisoned()
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset + 8 <= consumer::BYTES);
        // SAFETY: `open` mapped BYTES; offsets below that are 8-aligned (asserted above).
        unsafe { &*self.map.base().add(offset).cast::<AtomicU64>() }
    }

    /// The word that names the consumer.
    #[inline]
    pub(crate) fn owner_word(&self) -> &AtomicU64 {
        self.word(consumer::OWNER)
    }

    pub(crate) fn owner(&self) -> Owner {
        // ORDERING(CONSUMER): pairs with `set_owner`.
        Owner(self.owner_word().load(Acquire))
    }

    /// Consumer: says who consumes from now on, and wakes who waits for that.
    ///
    /// # Crash safety
    /// **Strict.** One store; dying before the wake, the sleepers look again at their bound.
    pub(crate) fn set_owner(&self, node: Option<NodeId>) {
        let count = self.owner().count().wrapping_add(1);
        // ORDERING(CONSUMER): pairs with `owner`; carries the table as it was taken over.
        self.owner_word().store(Owner::new(node, count).0, Release);
        futex::wake(futex::low_half(self.owner_word()), i32::MAX);
    }

    /// The consumer's waiting flag.
    #[inline]
    pub(crate) fn waiting(&self) -> &AtomicU32 {
        futex::low_half(self.word(consumer::WAITING))
    }

    /// How the consumer wants to be woken.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            flag: self.waiting(),
            socket: self.word(consumer::SOCKET),
            generation: self.word(consumer::GENERATION),
        }
    }

    /// Counts changes of the table.
    pub(crate) fn changes(&self) -> &AtomicU64 {
        self.word(consumer::TABLE)
    }

    fn slot(&self, slot: usize, field: usize) -> &AtomicU64 {
        debug_assert!(slot < consumer::SLOTS_MAX);
        self.word(consumer::SLOTS + slot * consumer::SLOT_BYTES + field)
    }

    /// Position and progress of slot `slot`.
    #[inline]
    pub(crate) fn place(&self, slot: usize) -> Place<'_> {
        let position = self.slot(slot, consumer::SLOT_POSITION);
        Place::new(position, self.slot(slot, consumer::SLOT_PROGRESS))
    }

    /// Messages received from the lane of slot `slot`; stored now and then.
    pub(crate) fn received(&self, slot: usize) -> &AtomicU64 {
        self.slot(slot, consumer::SLOT_RECEIVED)
    }

    pub(crate) fn received_so_far(&self, slot: usize) -> u64 {
        self.received(slot).load(Relaxed)
    }

    /// Whose lane slot `slot` is.
    pub(crate) fn lane(&self, slot: usize) -> Option<ProducerId> {
        let word = self.slot(slot, consumer::SLOT_PORT);
        // ORDERING(LANE_SLOT): pairs with `admit`.
        let port = word.load(Acquire);
        let node = NodeId::from_raw(self.slot(slot, consumer::SLOT_NODE).load(Relaxed));
        // ORDERING(LANE_REUSED): pairs with `admit`: not the port of one with the node of another.
        fence(Acquire);
        (port != 0 && word.load(Relaxed) == port).then_some(ProducerId { node, port })
    }

    /// All lanes of the table.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (usize, ProducerId)> {
        (0..consumer::SLOTS_MAX).filter_map(|slot| Some((slot, self.lane(slot)?)))
    }

    /// The slot of a lane.
    pub(crate) fn find(&self, id: ProducerId) -> Option<usize> {
        self.lanes().find(|(_, lane)| *lane == id).map(|(slot, _)| slot)
    }

    /// Consumer: gives a new lane a slot, consumed up to nothing.
    ///
    /// # Errors
    /// `TooManyMembers`: all slots are taken.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the port.
    pub(crate) fn admit(&self, id: ProducerId) -> Result<usize> {
        let Some(slot) = (0..consumer::SLOTS_MAX).find(|&slot| self.lane(slot).is_none()) else {
            return Err(Error::new(
                ErrorKind::TooManyMembers,
                "admitting a producer to",
                self.map.name(),
                format!("more than {} producers: spread them over queues", consumer::SLOTS_MAX),
            ));
        };
        self.place(slot).reset();
        self.received(slot).store(0, Relaxed);
        // ORDERING(LANE_REUSED): pairs with `lane`; who sees the node sees the port before it gone.
        fence(Release);
        self.slot(slot, consumer::SLOT_NODE).store(id.node.get(), Relaxed);
        // ORDERING(LANE_SLOT): pairs with `lane`; carries node and position.
        self.slot(slot, consumer::SLOT_PORT).store(id.port, Release);
        self.changed();
        Ok(slot)
    }

    /// Consumer: the lane's files are gone, its slot is free.
    ///
    /// # Crash safety
    /// **Strict.** One store. Only once the files are unlinked: a lane without a slot is new.
    pub(crate) fn forget(&self, slot: usize) {
        self.slot(slot, consumer::SLOT_PORT).store(0, Release);
        self.changed();
    }

    fn changed(&self) {
        self.changes().fetch_add(1, Release);
        futex::wake(futex::low_half(self.changes()), i32::MAX);
    }
}
