//! The threads of other nodes, seen through read-only maps.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::node::layout::threads as at;
use crate::node::peer::{NodeId, Peer};
use crate::os::death::robust;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::os::time::clock;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{ErrorKind, Result};

/// `nodes/<node>.threads`.
pub(crate) fn threads_path(nodes: &Path, node: NodeId) -> PathBuf {
    nodes.join(format!("{node}.threads"))
}

/// The longest from the end of a thread that left its guard to the end of its process, which runs
/// hooks and unmaps memory: after that, the process lives on.
pub(super) const EXIT_NS: u64 = 1_000_000_000;

/// Between two looks at the file lock of a node whose threads look alive.
const ASK_NS: u64 = 100_000_000;

/// A node and its threads.
#[derive(Debug)]
pub(crate) struct ThreadPeer {
    peer: Peer,
    map: Mapping,
    /// When `Token::is_gone_lately` asked last.
    asked_ns: AtomicU64,
}

/// Whether a thread lives.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// As far as its token tells.
    Alive(Token),
    /// For certain, and for ever: the kernel says so, or its node's files are gone.
    Dead,
    /// It ended in good order, as far as its node tells; that may live on.
    Ended(Arc<ThreadPeer>),
}

/// The token of a thread that was alive, to look at and to sleep on.
#[derive(Debug)]
pub(crate) struct Token {
    peer: Arc<ThreadPeer>,
    id: u64,
    place: usize,
    word_offset: usize,
}

impl ThreadPeer {
    /// `None` when the node's files are gone: then so is the node.
    pub(crate) fn open(domain: &DomainPath, node: NodeId) -> Result<Option<Self>> {
        match Self::map(domain, node) {
            Ok(peer) => Ok(Some(peer)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn map(domain: &DomainPath, node: NodeId) -> Result<Self> {
        let nodes = domain.nodes();
        let peer = Peer::open(&nodes, node, &domain.access)?;
        let path = threads_path(&nodes, node);
        let owner = domain.access.owner_required();
        let min_len = at::file_bytes(at::PLACES_FIRST) as u64;
        let (fd, len) = file::open_checked(&path, Expect { writable: false, min_len, owner })?;
        let map = Mapping::map_peer_beyond(&fd, at::file_bytes(at::PLACES_MAX), &path)?;
        FileHeader::read(&map, FileKind::Threads, len)?;
        Ok(Self { peer, map, asked_ns: AtomicU64::new(0) })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.peer.proof_of_death().is_some()
    }

    pub(crate) fn judge(self: Arc<Self>, id: u64) -> Verdict {
        let Some((place, word_offset)) = self.find(id) else { return Verdict::Ended(self) };
        let token = Token { peer: self, id, place, word_offset };
        if token.is_alive() {
            Verdict::Alive(token)
        } else if robust::has_died(token.word().load(Acquire)) {
            // The place is still its own: nobody takes over a dead thread's but by a new id.
            if token.id_word().load(Acquire) == id {
                Verdict::Dead
            } else {
                Verdict::Ended(token.peer)
            }
        } else {
            Verdict::Ended(token.peer)
        }
    }

    /// Whether its process may be ending, which ends its threads first: its node's word says so, or
    /// thread `id` ended less than a second ago.
    pub(crate) fn may_be_ending(&self, id: u64) -> bool {
        let age = self.ended_at(id).and_then(|at| clock::now_ns().checked_sub(at));
        !self.peer.hint().is_alive() || age.is_some_and(|age| age < EXIT_NS)
    }

    /// When thread `id` ended in order; `None` where another has its place since.
    fn ended_at(&self, id: u64) -> Option<u64> {
        let (_, offset) = self.place_with(id | at::ENDED)?;
        Some(self.map.atomic_u64(offset + at::ENDED_AT).ok()?.load(Relaxed))
    }

    /// The place of thread `id` and where its word lies. Whoever asks has read the id in a lock
    /// word, so it was in its place before that.
    fn find(&self, id: u64) -> Option<(usize, usize)> {
        let (place, offset) = self.place_with(id)?;
        let word = self.map.atomic_u32(offset + at::WORD).ok()?.load(Relaxed) as usize;
        // A claim of its owner: it must point into the token.
        let inside = (1..=robust::TOKEN_BYTES - 3).contains(&word) && (word - 1) % 4 == 0;
        inside.then_some((place, offset + at::TOKEN + word - 1))
    }

    /// The place that says `id`, and where it begins.
    fn place_with(&self, id: u64) -> Option<(usize, usize)> {
        // ORDERING(PLACES): pairs with `Places::free_place`; no touch beyond the file's end.
        let places = self.map.atomic_u64(at::PLACES).ok()?.load(Acquire);
        let places = (places as usize).min(at::PLACES_MAX);
        let mut all = (0..places).map(|place| (place, at::FIRST + place * at::PLACE_BYTES));
        // ORDERING(PLACE_ID): pairs with `Threads::register`. THREAD_DEATH: with `Record::end`.
        let says =
            |offset| self.map.atomic_u64(offset + at::ID).is_ok_and(|w| w.load(Acquire) == id);
        all.find(|(_, offset)| says(*offset))
    }
}

impl Token {
    /// Whose token it is.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The word that changes when the thread dies, to sleep on.
    #[inline]
    pub(crate) fn word(&self) -> &AtomicU32 {
        // SAFETY: `find` checked that the word is aligned and inside its place, which is inside
        // the file; mapped for the life of `peer`.
        unsafe { &*self.peer.map.base().add(self.word_offset).cast::<AtomicU32>() }
    }

    fn id_word(&self) -> &AtomicU64 {
        let offset = at::FIRST + self.place * at::PLACE_BYTES + at::ID;
        // SAFETY: as in `word`.
        unsafe { &*self.peer.map.base().add(offset).cast::<AtomicU64>() }
    }

    /// Whether the thread lives as far as its token tells. Once dead, dead for ever.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        // ORDERING(THREAD_DEATH): pairs with the kernel's mark, a full barrier, and with
        // `Record::end`; all that the thread wrote comes before.
        let held = robust::is_alive_word(self.word().load(Acquire));
        // ORDERING(PLACE_ID): pairs with the fence in `Threads::register`: after the token of a
        // new thread its id cannot be the old one.
        let same = self.id_word().load(Acquire) == self.id;
        held && same
    }

    /// Dead although its word does not say so: its node's file lock is free.
    #[cold]
    pub(crate) fn node_is_gone(&self) -> bool {
        self.peer.peer.proof_of_death().is_some()
    }

    /// As `node_is_gone`, for those who do not sleep: asks at most every 100 ms, whoever calls, and
    /// answers by what is known meanwhile.
    #[cold]
    pub(crate) fn is_gone_lately(&self) -> bool {
        let (asked, now) = (self.peer.asked_ns.load(Relaxed), clock::now_ns());
        let due = now.saturating_sub(asked) >= ASK_NS && !fault("lock.try.by_token_alone");
        // Of several that come at once, one.
        let asks = due && self.peer.asked_ns.compare_exchange(asked, now, Relaxed, Relaxed).is_ok();
        if asks { self.node_is_gone() } else { self.peer.peer.is_proved_dead() }
    }
}
