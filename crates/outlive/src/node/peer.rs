//! Another node as seen from here: its file, mapped read-only.
//!
//! Whether it lives is asked in two ways, with answers of two types:
//!
//! | | asks | answer |
//! |---|---|---|
//! | `hint` | the token's word, one load | `Hint` |
//! | `death`, `proof_of_death` | its file lock, on the very inode that is mapped | `Option<Dead>` |
//!
//! A hint is good for waking, looking again and refusing what can be tried again. What cannot be
//! undone takes a `Dead`: only this file makes one, and only of a lock that is free or a node file
//! that is gone. An answer that cannot be had is no proof.
//!
//! What to sleep on until it ends: `end`.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use super::own::Left;
use super::{layout, own};
use crate::domain::header::{FileHeader, FileKind};
use crate::os::PAGE;
use crate::os::death::deaths::Deaths;
use crate::os::death::robust;
use crate::os::death::robust::PendingGuard;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Expect};
use crate::os::fs::filelock;
use crate::os::fs::kept::KeptFd;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// A node's ordinal in its domain: handed out once, never reused. Only a domain that was removed,
/// since nobody was in it, begins again.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let settings = outlive::Node::builder().root(dir.path());
/// let camera = settings.clone().name("camera").open()?;
/// let planner = settings.name("planner").open()?;
/// let id = camera.id();
/// let watch = planner.watch(id)?;
/// drop(camera);
/// assert!(!watch.is_alive(), "node {id} left"); // no other node ever gets its number
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u64);

impl NodeId {
    /// The ordinal as a number, 1 or more.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let name = format!("log-of-node-{}", node.id().get());
    /// assert_eq!(name, "log-of-node-1"); // the first in its domain
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn get(self) -> u64 {
        self.0
    }

    /// The id with this ordinal, for instance from a command line.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::NodeId;
    ///
    /// let argument = node.id().to_string(); // as `outlive node list` prints it
    /// let id = NodeId::from_raw(argument.parse().unwrap());
    /// assert_eq!(id, node.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn from_raw(ordinal: u64) -> Self {
        Self(ordinal)
    }
}

/// What a node's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Hint {
    /// Its process had not begun to end.
    Alive,
    /// It has left, is dead or dying; or somebody wrote over its file.
    PerhapsDead,
}

impl Hint {
    #[inline]
    pub(crate) fn is_alive(self) -> bool {
        self == Self::Alive
    }
}

/// Proof that a node is dead, once and for ever. What cannot be undone takes one: forgetting what a
/// node borrowed or has yet to read, unlinking its files, telling of its death.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Dead {
    node: NodeId,
}

impl Dead {
    /// Whose death it proves.
    pub(crate) fn node(self) -> NodeId {
        self.node
    }
}

/// What changes when a node ends: to be read before that node is judged alive, and slept on then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) word: &'a AtomicU32,
    pub(crate) seen: u32,
    /// Its end has begun: only the file lock tells when that is over.
    pub(crate) has_begun: bool,
    /// The word is its token: at its death the kernel wakes one sleeper, who wakes the others.
    pub(crate) is_token: bool,
}

impl End<'_> {
    /// Until it is dropped: if we die after being woken, the kernel passes the wake on for us.
    pub(crate) fn pending_guard(&self) -> Option<PendingGuard> {
        self.is_token.then(|| robust::pending_guard(self.word))
    }

    /// Wakes others where the kernel may have woken only us.
    pub(crate) fn pass_on(&self) {
        if self.is_token && self.word.load(Relaxed) != self.seen {
            robust::pass_on(self.word);
        }
    }
}

/// A node that a port deals with: its file, or the proof that it was gone when first looked for.
pub(crate) type Life = std::result::Result<Arc<Peer>, Dead>;

/// Deaths that this process has proofs of so far.
static PROVED: AtomicU32 = AtomicU32::new(0);

/// How many nodes this process has found dead so far: while that stays, `hint` changes only with
/// the word.
#[inline]
pub(crate) fn deaths_proved() -> u32 {
    PROVED.load(Relaxed)
}

/// Whether it is dead: one load while its word says that it lives.
#[inline]
pub(crate) fn death_of(life: &Life) -> Option<Dead> {
    match life {
        Ok(peer) => peer.death(),
        Err(dead) => Some(*dead),
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A peer's node file.
#[derive(Debug)]
pub(crate) struct Peer {
    id: NodeId,
    map: Mapping,
    fd: KeptFd,
    ports_offset: usize,
    /// It is of this process.
    own: Option<Left>,
    /// 1 once its death is confirmed.
    gone: AtomicU32,
    /// 1 once the kernel tells `Deaths` of its death.
    watched: AtomicU32,
}

impl Peer {
    /// Maps and checks `nodes/<id>`.
    pub(crate) fn open(nodes: &Path, id: NodeId, access: &Access) -> Result<Self> {
        let path = nodes.join(id.0.to_string());
        let expect =
            Expect { writable: false, min_len: PAGE as u64, owner: access.owner_required() };
        let (fd, len) = file::open_checked(&path, expect).map_err(|e| damaged(e, &path, id))?;
        let ports_offset = layout::ports_offset(id.0);
        // Room for all ports it may ever have: pages beyond the end appear when the file grows.
        let map = Mapping::map_peer_beyond(
            &fd,
            layout::file_bytes(ports_offset, layout::PORTS_MAX),
            &path,
        )?;
        let header =
            FileHeader::read(&map, FileKind::Node, len).map_err(|e| damaged(e, &path, id))?;
        let ports = map.atomic_u32(layout::PORTS)?.load(Relaxed) as usize;
        if header.node != id.0 || ports != ports_offset {
            return Err(corrupt(&path, id));
        }
        let fd = KeptFd::new(fd, &path)?;
        let own = own::find(fd.file());
        let (gone, watched) = (AtomicU32::new(0), AtomicU32::new(0));
        Ok(Self { id, map, fd, ports_offset, own, gone, watched })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn map(&self) -> &Mapping {
        &self.map
    }

    /// What to sleep on until it ends.
    pub(crate) fn end(&self) -> End<'_> {
        // Before the token, which is closed first.
        // ORDERING(NODE_LEFT): pairs with `OwnNode::leave`.
        let left = self.own.as_deref().filter(|_| !fault("own.token_like_others"));
        let left = left.map(|left| (left, left.load(Acquire)));
        let token = self.token().load(Acquire);
        let (word, seen) = left.unwrap_or((self.token(), token));
        End { word, seen, has_begun: !robust::is_alive_word(token), is_token: left.is_none() }
    }

    /// The futex word of its token. Sleep on its `end`.
    #[inline]
    pub(crate) fn token(&self) -> &AtomicU32 {
        // SAFETY: aligned, and inside the first page, which is mapped for the life of `self`.
        unsafe { &*self.map.base().add(layout::TOKEN_WORD).cast::<AtomicU32>() }
    }

    /// What its word says, unless its death is known: two relaxed loads.
    #[inline]
    pub(crate) fn hint(&self) -> Hint {
        let held = robust::is_alive_word(self.token().load(Relaxed));
        if held && self.gone.load(Relaxed) == 0 { Hint::Alive } else { Hint::PerhapsDead }
    }

    /// Whether it is dead, asked of the file lock once the word says so. A word that says alive is
    /// believed, so whoever waits asks `proof_of_death` at the end of each long sleep.
    #[inline]
    pub(crate) fn death(&self) -> Option<Dead> {
        if self.hint().is_alive() { None } else { self.proof_of_death() }
    }

    /// Whether it is dead, asked of the file lock whatever the word says: the kernel may have been
    /// unable to mark it, for instance because somebody cut the file. Once dead, dead for ever.
    #[cold]
    pub(crate) fn proof_of_death(&self) -> Option<Dead> {
        let gone = self.gone.load(Acquire) == 1 || self.is_unlocked();
        if gone && self.gone.swap(1, Release) == 0 {
            PROVED.fetch_add(1, Relaxed);
        }
        gone.then_some(Dead { node: self.id })
    }

    /// Whether somebody here has that proof already: one load.
    pub(crate) fn is_proved_dead(&self) -> bool {
        self.gone.load(Acquire) == 1
    }

    /// A lock that cannot be asked about is held.
    #[cold]
    fn is_unlocked(&self) -> bool {
        if fault("death.by_word_alone") {
            return !robust::is_alive_word(self.token().load(Relaxed));
        }
        if fault("death.by_pid") {
            let pid = self.map.atomic_u32(layout::PID).map_or(0, |word| word.load(Relaxed));
            return !Path::new(&format!("/proc/{pid}")).exists();
        }
        match self.fd.now(self.map.path(), false) {
            Ok(file) => filelock::is_locked(&file).is_ok_and(|held| !held),
            // Ours was closed, and the name is gone: only those proved dead are removed.
            Err(e) => e.kind() == ErrorKind::NotFound,
        }
    }

    /// From here on its death is news of the process's `deaths`; look at it after this.
    pub(crate) fn tell_death_to(&self, deaths: &Deaths) {
        if self.watched.load(Relaxed) == 0 && deaths.watch(self.map.path()) {
            self.watched.store(1, Relaxed);
        }
    }

    /// The peer's block of subscriber port `port`.
    pub(crate) fn port(&self, port: u64) -> Result<PortView<'_>> {
        #[cfg(test)]
        crate::os::fixture::may("port", self.map.path())?;
        let block = port as usize % layout::PORTS_MAX;
        PortView::new(&self.map, self.ports_offset, block)
    }

    /// As `port`, for a port that a file name claims: `None` where its block does not lie inside
    /// the peer's file. A look beyond the end would put a page of zeros there for good.
    ///
    /// # Errors
    /// When that cannot be found out: then nobody knows what the port says.
    pub(crate) fn claimed_port(&self, port: u64) -> Result<Option<PortView<'_>>> {
        let exists = (port as usize % layout::PORTS_MAX) < self.port_blocks()?;
        if exists { self.port(port).map(Some) } else { Ok(None) }
    }

    /// Port blocks its file has room for right now.
    pub(crate) fn port_blocks(&self) -> Result<usize> {
        let path = self.map.path();
        let bytes = file::len_of(&self.fd.now(path, false)?, path)? as usize;
        let blocks = bytes.saturating_sub(self.ports_offset) / layout::PORT_BYTES;
        Ok(blocks.min(layout::PORTS_MAX))
    }

    /// Whether a node's port says that it is reliable, without mapping its file.
    pub(crate) fn read_reliable(
        nodes: &Path,
        id: NodeId,
        port: u64,
        access: &Access,
    ) -> Result<bool> {
        let [reliable] = Self::read_port(nodes, id, port, access, [self::port::RELIABLE])?;
        Ok(reliable == 1)
    }

    /// How the owner of a node's port wants to be woken, without mapping its file: the waiting
    /// flag, the generation and the socket, read in this order.
    pub(crate) fn read_request(
        nodes: &Path,
        id: NodeId,
        port: u64,
        access: &Access,
    ) -> Result<[u64; 3]> {
        use self::port::{GENERATION, SOCKET, WAITING};
        Self::read_port(nodes, id, port, access, [WAITING, GENERATION, SOCKET])
    }

    /// Words of a node's port, read in this order.
    fn read_port<const N: usize>(
        nodes: &Path,
        id: NodeId,
        port: u64,
        access: &Access,
        offsets: [usize; N],
    ) -> Result<[u64; N]> {
        let path = nodes.join(id.0.to_string());
        let expect =
            Expect { writable: false, min_len: PAGE as u64, owner: access.owner_required() };
        let (fd, _) = file::open_checked(&path, expect)?;
        let block =
            layout::ports_offset(id.0) + port as usize % layout::PORTS_MAX * layout::PORT_BYTES;
        file::read_words(fd, offsets.map(|at| (block + at) as u64), &path)
    }

    pub(crate) fn describe(&self) -> Result<(u32, u64, String)> {
        let pid = self.map.atomic_u32(layout::PID)?.load(Relaxed);
        let started = self.map.atomic_u64(layout::STARTED)?.load(Relaxed);
        let len = self.map.atomic_u64(layout::NAME_LEN)?.load(Relaxed) as usize;
        let len = len.min(crate::domain::name::NAME_BYTES_MAX);
        let name: Vec<u8> = (0..len)
            .map_while(|i| {
                let word = self.map.atomic_u64(layout::NAME + i / 8 * 8).ok()?.load(Relaxed);
                Some((word >> (i % 8 * 8)) as u8)
            })
            .collect();
        Ok((pid, started, String::from_utf8_lossy(&name).into_owned()))
    }
}

#[cold]
fn damaged(e: Error, path: &Path, id: NodeId) -> Error {
    if e.kind() == ErrorKind::Corrupt { corrupt(path, id) } else { e }
}

#[cold]
fn corrupt(path: &Path, id: NodeId) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "opening node file",
        path.display().to_string(),
        format!(
            "somebody truncated or overwrote it: end the process of node {id}, then run \
             'outlive clean'"
        ),
    )
}

/// Whether node `id` is dead, by its name: its file is gone or the file's lock is free. A number is
/// handed out once, so the name is one file for ever.
///
/// # Errors
/// When that cannot be found out (out of descriptors, no permission): then it counts as alive.
pub(crate) fn proof_by_name(nodes: &Path, id: NodeId) -> Result<Option<Dead>> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    let gone = match file::open_checked(&nodes.join(id.0.to_string()), expect) {
        Ok((fd, _)) => !filelock::is_locked(&fd)?,
        Err(e) if e.kind() == ErrorKind::NotFound => true,
        Err(e) => return Err(e),
    };
    let gone = gone || fault("reclaim.of_the_living");
    Ok(gone.then_some(Dead { node: id }))
}

/// Unlinks a file of a dead node; false if it was gone.
pub(crate) fn unlink_of(dead: Dead, owner: NodeId, path: &Path) -> Result<bool> {
    debug_assert_eq!(dead.node(), owner);
    file::unlink(path)
}

/// The node `id` as a port deals with it; `open` finds its file.
pub(super) fn life(id: NodeId, open: impl FnOnce() -> Result<Arc<Peer>>) -> Result<Life> {
    match open() {
        Ok(peer) => Ok(Ok(peer)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Err(Dead { node: id })),
        Err(e) => Err(e),
    }
}

/// Bytes of one subscriber port; written by its node only.
pub(crate) mod port {
    use crate::domain::header::CACHE_LINE;
    /// Port id, 0 while the block is free. Stored last on opening.
    pub(crate) const ID: usize = 0;
    /// Topic bell epoch of the last look at the topic's directory.
    pub(crate) const SEEN: usize = 8;
    /// Most samples this subscriber holds at once.
    pub(crate) const BORROWS: usize = 16;
    /// 1: publishers wait for this subscriber before they overwrite what it has not read.
    pub(crate) const RELIABLE: usize = 24;
    /// 1 + number of the block with the places that did not fit into this one; 0: none.
    pub(crate) const NEXT: usize = 32;
    /// 0 awake, 1 asleep on words, 2 | doorbell << 2 asleep on a doorbell, 3 waits for a
    /// descriptor.
    pub(crate) const WAITING: usize = CACHE_LINE;
    /// Who waits for a descriptor: the number of its socket, and the generation.
    pub(crate) const SOCKET: usize = WAITING + 8;
    pub(crate) const GENERATION: usize = WAITING + 16;
    pub(crate) const HAZARDS: usize = 2 * CACHE_LINE;
    pub(crate) const HAZARDS_MAX: usize = 64;
    pub(crate) const SOURCES: usize = HAZARDS + HAZARDS_MAX * 8;
    /// One attached publisher: node, port, cursor, changes.
    pub(crate) const SOURCE_BYTES: usize = 32;
    pub(crate) const SOURCE_NODE: usize = 0;
    pub(crate) const SOURCE_PORT: usize = 8;
    pub(crate) const SOURCE_CURSOR: usize = 16;
    pub(crate) const SOURCE_CHANGES: usize = 24;
    pub(crate) const SOURCES_FIRST: usize = 96;
    /// In a block that is no port but has further places of one.
    pub(crate) const MORE: usize = CACHE_LINE;
    pub(crate) const MORE_SOURCES: usize = 128;
    /// Most such blocks of one port.
    pub(crate) const MORE_MAX: usize = 4;
    pub(crate) const SOURCES_MAX: usize = SOURCES_FIRST + MORE_MAX * MORE_SOURCES;
    const _: () = assert!(SOURCES + SOURCES_FIRST * SOURCE_BYTES <= crate::os::PAGE);
    const _: () = assert!(MORE + MORE_SOURCES * SOURCE_BYTES <= super::layout::PORT_BYTES);
    // The word that counts changes of a place is one whichever kind of block it lies in.
    const _: () = assert!((SOURCES - MORE) % SOURCE_BYTES == 0);
}

/// One subscriber port block, own or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortView<'a> {
    base: *const u8,
    map: &'a Mapping,
    /// Where block 0 of the node begins.
    ports: usize,
}

/// The words of one attached publisher: whom the place names, and how far that one is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) node: &'a AtomicU64,
    pub(crate) port: &'a AtomicU64,
    /// Next message to read.
    pub(crate) cursor: &'a AtomicU64,
    /// Odd while node and port are being changed; never takes a value twice.
    pub(crate) changes: &'a AtomicU64,
}

impl Place<'_> {
    /// Owner: makes it nobody's, in a block that nobody reads yet; `changes` stays.
    pub(super) fn reset(self) {
        [self.node, self.port, self.cursor].iter().for_each(|word| word.store(0, Relaxed));
    }
}

/// A place that names nobody, for what a peer's chain of blocks does not have.
fn nowhere<'a>() -> Place<'a> {
    static WORDS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
    let [node, port, cursor, changes] = WORDS.each_ref();
    Place { node, port, cursor, changes }
}

// SAFETY: a view is a shared borrow of a `Mapping`, which is `Sync`; all access is atomic.
unsafe impl Send for PortView<'_> {}
// SAFETY: as above.
unsafe impl Sync for PortView<'_> {}

impl<'a> PortView<'a> {
    /// Block number `block` of those that begin at `ports`.
    pub(crate) fn new(map: &'a Mapping, ports: usize, block: usize) -> Result<Self> {
        let offset = ports + block * layout::PORT_BYTES;
        let base = map.bytes(offset, layout::PORT_BYTES)?;
        // Everything below is reached at 8-aligned offsets from here.
        map.atomic_u64(offset)?;
        Ok(Self { base, map, ports })
    }

    /// As `new`, for a block that `new` has accepted in this mapping before.
    #[inline]
    pub(crate) fn checked(map: &'a Mapping, ports: usize, block: usize) -> Self {
        debug_assert!(Self::new(map, ports, block).is_ok());
        let offset = ports + block * layout::PORT_BYTES;
        Self { base: map.base().wrapping_add(offset), map, ports }
    }

    #[inline]
    fn u64_at(self, offset: usize) -> &'a AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset + 8 <= layout::PORT_BYTES);
        // SAFETY: `new` checked PORT_BYTES from `base`, 8-aligned; callers pass offsets within
        // (asserted above); the mapping outlives 'a.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    pub(crate) fn id(self) -> &'a AtomicU64 {
        self.u64_at(port::ID)
    }

    pub(crate) fn seen(self) -> &'a AtomicU64 {
        self.u64_at(port::SEEN)
    }

    pub(crate) fn borrows(self) -> &'a AtomicU64 {
        self.u64_at(port::BORROWS)
    }

    pub(crate) fn reliable(self) -> &'a AtomicU64 {
        self.u64_at(port::RELIABLE)
    }

    #[inline]
    pub(crate) fn waiting(self) -> &'a AtomicU32 {
        // SAFETY: as in `u64_at`; 4-aligned.
        unsafe { &*self.base.add(port::WAITING).cast::<AtomicU32>() }
    }

    pub(crate) fn socket(self) -> &'a AtomicU64 {
        self.u64_at(port::SOCKET)
    }

    pub(crate) fn generation(self) -> &'a AtomicU64 {
        self.u64_at(port::GENERATION)
    }

    /// The hazard words in use: at most `HAZARDS_MAX`, whatever the block claims.
    #[inline]
    pub(crate) fn hazards(self) -> &'a [AtomicU64] {
        let claimed = self.borrows().load(Relaxed) as usize;
        let unchecked = fault("hazard.count_unchecked");
        let n = if unchecked { claimed } else { claimed.min(port::HAZARDS_MAX) };
        // SAFETY: as in `u64_at`; HAZARDS_MAX words lie inside the block (asserted in `port`).
        unsafe { std::slice::from_raw_parts(self.base.add(port::HAZARDS).cast(), n) }
    }

    /// The place of source `slot`.
    #[inline]
    pub(crate) fn source(self, slot: usize) -> Place<'a> {
        if slot < port::SOURCES_FIRST {
            return self.place(port::SOURCES + slot * port::SOURCE_BYTES);
        }
        self.further_source(slot - port::SOURCES_FIRST)
    }

    #[cold]
    fn further_source(self, slot: usize) -> Place<'a> {
        let block = self.chain().nth(slot / port::MORE_SOURCES);
        block.map_or_else(nowhere, |b| b.further_place(slot % port::MORE_SOURCES))
    }

    /// A place of a block that is no port itself.
    pub(crate) fn further_place(self, slot: usize) -> Place<'a> {
        self.place(port::MORE + slot * port::SOURCE_BYTES)
    }

    #[inline]
    fn place(self, at: usize) -> Place<'a> {
        Place {
            node: self.u64_at(at + port::SOURCE_NODE),
            port: self.u64_at(at + port::SOURCE_PORT),
            cursor: self.u64_at(at + port::SOURCE_CURSOR),
            changes: self.u64_at(at + port::SOURCE_CHANGES),
        }
    }

    pub(crate) fn next(self) -> &'a AtomicU64 {
        self.u64_at(port::NEXT)
    }

    /// The blocks with further places of this port, as it says; bounded whatever it says.
    pub(crate) fn chain(self) -> impl Iterator<Item = Self> {
        let after = |block: &Self| {
            // ORDERING(MORE): pairs with `Ports::extend`; carries the block's places.
            let next = block.next().load(Acquire).checked_sub(1)? as usize;
            let exists = next < layout::PORTS_MAX;
            if exists { Self::new(block.map, block.ports, next).ok() } else { None }
        };
        std::iter::successors(after(&self), after).take(port::MORE_MAX)
    }

    /// How many places it has.
    pub(crate) fn sources(self) -> usize {
        port::SOURCES_FIRST + self.chain().count() * port::MORE_SOURCES
    }
}
