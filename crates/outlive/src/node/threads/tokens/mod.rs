//! Thread tokens: each thread that takes locks has a liveness token of its own.
//!
//! # Theory of operation
//! When a process is killed its threads die one after the other, so a lock names a *thread* as its
//! owner. A thread that takes its first lock gets an ordinal, unique in the domain and never
//! reused, and locks a robust libc mutex in a place of `nodes/<node>.threads`. The kernel marks
//! that word when the thread dies.
//!
//! | place                     | means for who asks about thread id `t`           |
//! |---------------------------|--------------------------------------------------|
//! | id = `t`, word held       | alive (until the node's file lock says no)       |
//! | id = `t`, word marked     | dead                                             |
//! | no place has id `t`       | dead: it ended, and whatever it holds is nobody's |
//!
//! A thread that ends says so beside its id in its place and then unlocks the token, whether it
//! holds locks or not: what it holds is found to be a dead thread's. No lock is counted or listed.
//!
//! # Invariants
//! - A lock word may hold id `t` only after `t` is in its place with the token held.
//! - The low half of an id alone tells any two threads of a domain apart; it is what a futex
//!   compares. It is never a kernel thread id (those are below 2^22), so a robust list that points
//!   at a lock word marks nothing.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use super::peers::{EXIT_NS, ThreadPeer, threads_path};
pub(crate) use super::peers::{Token, Verdict};
use crate::domain::header::id;
use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::node::layout::threads as at;
use crate::node::peer::NodeId;
use crate::node::token::forked_child;
use crate::os::death::robust;
use crate::os::fs::file;
use crate::os::fs::file::Draft;
use crate::os::fs::kept::KeptFd;
use crate::os::fs::map::Mapping;
use crate::os::process::fork;
use crate::os::time::clock;
use crate::sync::Ordering::{Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, Mutex, fault, fence};
use crate::{Error, ErrorKind, Result};

/// First thread ordinal: one more than the largest kernel thread id (PID_MAX_LIMIT).
pub(crate) const ORDINAL_FIRST: u64 = 1 << 22;
/// One more than the last ordinal; bits 30 and 31 of a lock word are flags.
pub(crate) const ORDINAL_END: u64 = (1 << 30) - 16;

/// The id of a thread in lock words: node in the high half, ordinal in the low one.
pub(crate) const fn thread_id(node: NodeId, ordinal: u64) -> u64 {
    node.0 << 32 | ordinal
}

/// The ordinal part of a thread id.
pub(crate) const fn ordinal_of(id: u64) -> u64 {
    id & 0x3fff_ffff
}

/// The node part of a thread id.
pub(crate) const fn node_of(id: u64) -> NodeId {
    NodeId(id >> 32)
}

/// The threads of one node, and what it knows of the threads of others.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Differs between any two of one process, so that a thread finds its own record.
    key: u64,
    generation: u32,
    node: NodeId,
    domain: DomainPath,
    domain_id: u64,
    id_map: Mapping,
    own: Arc<Places>,
    peers: Mutex<HashMap<u64, Arc<ThreadPeer>>>,
}

/// Our own `.threads` file. A thread's record keeps it mapped while its token is locked there.
#[derive(Debug)]
struct Places {
    map: Mapping,
    fd: KeptFd,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// Held by a thread whose end we have not seen.
    used: Vec<bool>,
    capacity: usize,
    closed: bool,
}

/// What a thread knows of itself: the node asked last, and all of them.
struct Own {
    key: Cell<u64>,
    id: Cell<u64>,
    records: Cell<*mut Vec<Record>>,
}

struct Record {
    key: u64,
    domain_id: u64,
    id: u64,
    place: usize,
    places: Arc<Places>,
    generation: u32,
}

thread_local! {
    // Without a destructor, so that it may be used while others run; `end_of_thread` frees it.
    static OWN: Own = const {
        Own { key: Cell::new(0), id: Cell::new(0), records: Cell::new(std::ptr::null_mut()) }
    };
}

/// The calling thread's id in the node of `key`, if it was asked for that node last.
///
/// # Real-time
/// Two loads. Whoever calls has checked that this is not a forked child.
#[inline(always)]
pub(crate) fn own_id(key: u64) -> Option<u64> {
    OWN.with(|own| (own.key.get() == key).then(|| own.id.get()))
}

impl Threads {
    /// Makes the node's `.threads` file.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link. It goes with its node.
    pub(crate) fn open(domain: &DomainPath, node: NodeId) -> Result<Self> {
        static KEYS: AtomicU64 = AtomicU64::new(1);
        fork::install();
        let id_map = domain.map_id()?;
        let domain_id = id_map.atomic_u64(id::RANDOM_LOW)?.load(Relaxed) | 1;
        let path = threads_path(&domain.nodes(), node);
        let bytes = at::file_bytes(at::PLACES_FIRST);
        let draft = Draft::new(&domain.nodes(), bytes as u64, domain.access.own_mode)?;
        let map = draft.map_reserve(at::file_bytes(at::PLACES_MAX), &path)?;
        let total_bytes = bytes as u64;
        FileHeader { kind: FileKind::Threads, total_bytes, node: node.0, port: 0 }.write(&map)?;
        map.atomic_u64(at::PLACES)?.store(at::PLACES_FIRST as u64, Relaxed);
        // Nothing can fail once it is linked: the file would be in the next one's way.
        let file = draft.identity()?;
        let fd = KeptFd::of(draft.link(&path)?, file);
        let table = Table { used: Vec::new(), capacity: at::PLACES_FIRST, closed: false };
        Ok(Self {
            key: KEYS.fetch_add(1, Relaxed),
            generation: fork::fork_generation(),
            node,
            domain: domain.clone(),
            domain_id,
            id_map,
            own: Arc::new(Places { map, fd, table: Mutex::new(table) }),
            peers: Mutex::default(),
        })
    }

    /// What `own_id` takes.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Tells this domain from others; never 0.
    pub(crate) fn domain_id(&self) -> u64 {
        self.domain_id
    }

    /// Whose threads they are.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// The calling thread's id; its first call registers it.
    ///
    /// # Errors
    /// `ForkedChild`; `TooManyMembers` past 16384 threads of a node; `NoSpace`.
    pub(crate) fn id(&self) -> Result<u64> {
        if self.generation != fork::fork_generation() {
            return Err(forked_child());
        }
        match own_id(self.key) {
            Some(id) => Ok(id),
            None => self.find_or_register(),
        }
    }

    /// Whether thread `id` of the domain is the calling one, by whichever node of this process.
    pub(crate) fn is_caller(&self, id: u64) -> bool {
        // SAFETY: this thread's own list, or null; borrowed by nobody else for that long.
        let records = OWN.with(|own| unsafe { own.records.get().as_ref() });
        // Those of another generation are the parent's, whose thread is another one.
        let here = |r: &Record| r.generation == self.generation || fault("lock.parents_thread");
        let is_it = |r: &Record| r.id == id && r.domain_id == self.domain_id && here(r);
        !fault("lock.two_nodes") && records.is_some_and(|all| all.iter().any(is_it))
    }

    #[cold]
    fn find_or_register(&self) -> Result<u64> {
        // SAFETY: the list is this thread's own, made by `records` and not borrowed anywhere else.
        let records = unsafe { &mut *records()? };
        let id = match records.iter().find(|r| r.key == self.key) {
            Some(record) => record.id,
            None => {
                // Nodes of this process that were closed in the meantime.
                records.retain(|r| !r.end_if_closed());
                let record = self.register()?;
                let id = record.id;
                records.push(record);
                id
            }
        };
        OWN.with(|own| {
            own.key.set(self.key);
            own.id.set(id);
        });
        Ok(id)
    }

    /// Takes an ordinal and a place, and locks the token there.
    ///
    /// # Crash safety
    /// **Strict.** Until the id is in its place nobody asks for it; an ordinal whose taker
    /// dies is skipped.
    fn register(&self) -> Result<Record> {
        let id = thread_id(self.node, self.next_ordinal()?);
        let own = &self.own;
        let mut table = own.table.lock().unwrap_or_else(|e| e.into_inner());
        let place = own.free_place(&mut table)?;
        let (id_word, token) = own.place(place)?;
        let offset = own.map.atomic_u32(at::FIRST + place * at::PLACE_BYTES + at::WORD)?;
        let first = offset.load(Relaxed) == 0;
        // Whoever asks for the thread that had this place finds no such id: dead, as it is.
        id_word.store(0, Relaxed);
        // ORDERING(PLACE_ID): pairs with `Token::is_alive`; who sees the new token held does not
        // see the old id.
        fence(SeqCst);
        if first {
            // SAFETY: 64 zeroed bytes of our own mapping, never used; the record keeps them mapped
            // until this thread has unlocked them or is gone.
            let word = unsafe { robust::init_and_lock(token)? };
            offset.store(word + 1, Relaxed);
        // SAFETY: initialised by the first user of the place; mapped as above.
        } else if !unsafe { robust::relock(token)? } {
            return Err(self.full("a thread that has ended still holds its place"));
        }
        // ORDERING(PLACE_ID): pairs with `ThreadPeer::find`; carries the token and its offset.
        id_word.store(id, Release);
        table.used[place] = true;
        let places = Arc::clone(own);
        let (key, domain_id, generation) = (self.key, self.domain_id, self.generation);
        Ok(Record { key, domain_id, id, place, places, generation })
    }

    fn next_ordinal(&self) -> Result<u64> {
        let next = self.id_map.atomic_u64(id::NEXT_THREAD)?;
        let taken = next
            .fetch_update(Relaxed, Relaxed, |n| (n < ORDINAL_END - ORDINAL_FIRST).then_some(n + 1));
        match taken {
            Ok(n) => Ok(ORDINAL_FIRST + n),
            Err(_) => Err(self.full(
                "the domain has handed out all its thread ordinals: stop all \
                                     members once",
            )),
        }
    }

    #[cold]
    fn full(&self, why: &str) -> Error {
        let object = format!("node {}", self.node);
        Error::new(ErrorKind::TooManyMembers, "registering a thread of", object, why)
    }

    /// Whether the thread `id` of any node lives.
    ///
    /// # Errors
    /// When its node's files cannot be read for another reason than that they are gone, and when
    /// our own are gone as well: then nobody may take its locks.
    pub(crate) fn judge(&self, id: u64) -> Result<Verdict> {
        let node = node_of(id);
        let mut peers = self.peers.lock().unwrap_or_else(|e| e.into_inner());
        let peer = match peers.get(&node.0) {
            Some(peer) => Arc::clone(peer),
            None => {
                let opened = ThreadPeer::open(&self.domain, node)?;
                // Else who is not found is not dead, and who is found is another one's namesake.
                if opened.is_none() || !fault("judge.namesake") {
                    self.must_be_listed()?;
                }
                let Some(peer) = opened else { return Ok(Verdict::Dead) };
                peers.retain(|_, p| Arc::strong_count(p) > 1 || !p.is_gone());
                let peer = Arc::new(peer);
                peers.insert(node.0, Arc::clone(&peer));
                peer
            }
        };
        drop(peers);
        Ok(peer.judge(id))
    }

    /// Whether our own file lies where we look for those of others. If not, this process has
    /// changed its root or a mount, or somebody removed the domain.
    fn must_be_listed(&self) -> Result<()> {
        let path = threads_path(&self.domain.nodes(), self.node);
        let found = path.symlink_metadata().map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == self.own.fd.file()) || fault("judge.not_found_is_dead")
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            "looking for the threads of others beside",
            path.display().to_string(),
            "it is not there: the domain was removed, or this process sees another file system \
             since 'chroot' or a mount; open the node again",
        ))
    }

    /// The node leaves: its threads' records go as each thread notices. The file stays where it is
    /// another node's, which has replaced ours.
    pub(crate) fn close(&self, replaced: bool) {
        self.own.table.lock().unwrap_or_else(|e| e.into_inner()).closed = true;
        if !replaced {
            let _ = file::unlink(&threads_path(&self.domain.nodes(), self.node));
        }
        OWN.with(|own| {
            if own.key.get() == self.key {
                own.key.set(0);
            }
            // SAFETY: this thread's own list, or null; not borrowed: `close` is called by no code
            // that holds a record.
            if let Some(records) = unsafe { own.records.get().as_mut() } {
                records.retain(|r| !r.end_if_closed());
            }
        });
    }
}

impl Places {
    /// The id word and the token's bytes of a place.
    fn place(&self, place: usize) -> Result<(&AtomicU64, *mut u8)> {
        let offset = at::FIRST + place * at::PLACE_BYTES;
        let token = self.map.bytes(offset + at::TOKEN, robust::TOKEN_BYTES)?;
        Ok((self.map.atomic_u64(offset + at::ID)?, token.cast_mut()))
    }

    /// How long ago the thread of an unused place ended.
    fn age_of_end(&self, place: usize, now: u64) -> u64 {
        let offset = at::FIRST + place * at::PLACE_BYTES + at::ENDED_AT;
        self.map.atomic_u64(offset).map_or(u64::MAX, |at| now.saturating_sub(at.load(Relaxed)))
    }

    /// A place that no thread has, or whose thread died without running its hook.
    fn free_place(&self, table: &mut Table) -> Result<usize> {
        let is_free = |place: &usize| !table.used[*place] || self.thread_died(*place);
        let now = clock::now_ns();
        // For a while others ask when a thread ended, whose process may be ending.
        let age = |place: usize| match table.used[place] {
            true => EXIT_NS,
            false => self.age_of_end(place, now).min(EXIT_NS),
        };
        let place = table.used.len();
        let longest = (0..place).filter(is_free).min_by_key(|place| Reverse(age(*place)));
        let rested = longest.filter(|longest| {
            place >= at::PLACES_MAX || age(*longest) == EXIT_NS || fault("place.reused_at_once")
        });
        if let Some(place) = rested {
            return Ok(place);
        }
        if place >= at::PLACES_MAX {
            let remedy = format!("at most {} threads of a node take locks", at::PLACES_MAX);
            let object = self.map.name();
            return Err(Error::new(ErrorKind::TooManyMembers, "registering in", object, remedy));
        }
        if place >= table.capacity
            && let Err(e) = self.grow(table)
        {
            // Better that an end is told too early than that nobody takes a lock.
            return longest.ok_or(e);
        }
        table.used.push(false);
        Ok(place)
    }

    /// Twice as many places.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the number; before it nobody looks beyond.
    fn grow(&self, table: &mut Table) -> Result<()> {
        let capacity = (table.capacity * 2).min(at::PLACES_MAX);
        let file = self.fd.now(self.map.path(), true)?;
        file::grow(&file, at::file_bytes(capacity) as u64)?;
        // ORDERING(PLACES): pairs with `ThreadPeer::find`; the file is that long by now.
        self.map.atomic_u64(at::PLACES)?.store(capacity as u64, Release);
        table.capacity = capacity;
        Ok(())
    }

    /// The futex word of a place's token.
    fn word(&self, place: usize) -> Option<&AtomicU32> {
        let offset = at::FIRST + place * at::PLACE_BYTES;
        let word = self.map.atomic_u32(offset + at::WORD).ok()?.load(Relaxed);
        self.map.atomic_u32(offset + (word as usize).checked_sub(1)?).ok()
    }

    fn thread_died(&self, place: usize) -> bool {
        self.word(place).is_some_and(|word| robust::has_died(word.load(Relaxed)))
    }
}

impl Record {
    /// The thread ends, or its node was closed: nobody by this id any more.
    ///
    /// # Crash safety
    /// **Strict.** Dying after the id is gone: the thread counts as dead, as it does anyway.
    fn end(&self) {
        if self.generation != fork::fork_generation() {
            return; // a forked child: the places are the parent's
        }
        let mut table = self.places.table.lock().unwrap_or_else(|e| e.into_inner());
        if let Ok((id, token)) = self.places.place(self.place) {
            let offset = at::FIRST + self.place * at::PLACE_BYTES + at::ENDED_AT;
            if let Ok(ended_at) = self.places.map.atomic_u64(offset) {
                ended_at.store(clock::now_ns(), Relaxed);
            }
            // ORDERING(THREAD_DEATH): pairs with `Token::is_alive` and `ThreadPeer::ended_at`; what
            // this thread wrote under a lock that it never let go comes before.
            id.store(self.id | at::ENDED, Release);
            let ours = self.places.word(self.place).is_some_and(robust::is_ours);
            // SAFETY: locked by this thread in `register`; wakes who sleeps on it.
            unsafe { robust::unlock(token) };
            if !ours || self.places.map.is_poisoned() {
                // Mapped for ever: this thread's other robust mutexes may lead there.
                std::mem::forget(Arc::clone(&self.places));
            }
        }
        table.used[self.place] = false;
    }

    fn end_if_closed(&self) -> bool {
        if self.generation != fork::fork_generation() {
            // The table is the parent's, and a thread of it may have held it at the fork.
            return false;
        }
        let closed = self.places.table.lock().unwrap_or_else(|e| e.into_inner()).closed;
        if closed {
            self.end();
        }
        closed
    }
}

/// The calling thread's records, made at its first call.
fn records() -> Result<*mut Vec<Record>> {
    OWN.with(|own| {
        if own.records.get().is_null() {
            let new = Box::into_raw(Box::new(Vec::new()));
            // SAFETY: `new` is valid until `end_of_thread`, which frees it; the hook uses only
            // thread-locals without destructors.
            let hooked = unsafe { fork::thread_exit_hook(end_of_thread, new.cast()) };
            if let Err(e) = hooked {
                // SAFETY: made above, known to nobody.
                drop(unsafe { Box::from_raw(new) });
                return Err(e);
            }
            own.records.set(new);
        }
        Ok(own.records.get())
    })
}

fn end_of_thread(records: *mut std::ffi::c_void) {
    // SAFETY: the box that `records` hooked; the thread forgets it here.
    let records = unsafe { Box::from_raw(records.cast::<Vec<Record>>()) };
    OWN.with(|own| {
        own.key.set(0);
        own.records.set(std::ptr::null_mut());
    });
    for record in *records {
        record.end();
        if record.generation != fork::fork_generation() {
            std::mem::forget(record);
        }
    }
}

#[cfg(test)]
mod tests;
