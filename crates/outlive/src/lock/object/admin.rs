//! Locks as tools see them: listing, auditing, cleaning, without being a member.
//!
//! # What the audit checks
//! | object | invariant |
//! |---|---|
//! | every file | header, kind, sizes; the object lies inside; tag and domain are its own |
//! | mutex, rwlock | the word is free, final, or names a thread's possible id; the heir too |
//! | rwlock | a line in use has its bit; lines hold ids |
//! | semaphore | each permit is free or names an id |
//! | set | each id lies within the reach of its place |
//!
//! Not checked: the protected data, and objects inside segments, whose places only users know.

use std::path::Path;
use std::sync::Arc;

use super::layout::{self, LockKind, file as at, head};
use super::{ObjectType, read_type};
use crate::domain::name::TopicName;
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::lock::mutex::word::{ABANDONED, BROKEN, ID, LOST, WAITERS};
use crate::lock::rwlock::readers::{LINES_MAX, READING};
use crate::lock::set::slots::{home, search_length};
use crate::node::threads::peers::{ThreadPeer, Verdict};
use crate::node::threads::tokens::{ORDINAL_END, ORDINAL_FIRST, node_of, ordinal_of};
use crate::node::{Node, NodeId};
use crate::os::death::robust;
use crate::os::fs::file;
use crate::os::fs::file::{Dir, Expect, TMP_PREFIX};
use crate::os::fs::filelock;
use crate::os::fs::map::Mapping;
use crate::os::sleep::pi;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Acquire;
use crate::{Error, ErrorKind, Result};

/// The longest that a cleaner waits for another one who removes locks.
const CLEAN_NS_MAX: u64 = 100_000_000;

/// Who holds a lock, at the moment of the look.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let settings = outlive::Node::builder().root(dir.path());
/// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
/// use outlive::lock::LockState;
///
/// let state = |state| match state {
///     LockState::Free => "free",
///     LockState::Held { alive: true, .. } => "held",
///     LockState::Held { .. } | LockState::Abandoned => "inherited by the next taker",
///     _ => "to be removed",
/// };
/// let battery = node.mutex::<f64>("/battery")?;
/// let guard = battery.lock()?;
/// assert_eq!(state(domain.locks()?[0].state), "held");
/// drop(guard);
/// assert_eq!(state(domain.locks()?[0].state), "free");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// Nobody, or the object is never held.
    Free,
    /// A thread.
    Held {
        /// Its node.
        node: NodeId,
        /// Its ordinal in the domain.
        thread: u64,
        /// Whether it lives. If not, the next taker inherits.
        alive: bool,
    },
    /// An owner that panicked: the next taker inherits.
    Abandoned,
    /// Given up for good.
    Unrecoverable,
}

/// A lock file and its state.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let settings = outlive::Node::builder().root(dir.path());
/// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
/// use outlive::lock::LockInfo;
///
/// fn line(lock: &LockInfo) -> String {
///     format!("{} {}: {} of {} in use", lock.kind.as_str(), lock.name, lock.users, lock.count)
/// }
///
/// let gpu = node.semaphore("/gpu", 2)?;
/// let _permit = gpu.acquire()?;
/// assert_eq!(line(&domain.locks()?[0]), "semaphore /gpu: 1 of 2 in use");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: LockKind,
    /// Type of the protected data, empty if there is none.
    pub type_name: String,
    /// Size of the protected data, bytes.
    pub data_bytes: usize,
    /// Permits of a semaphore, capacity of a set.
    pub count: usize,
    /// Owner of a mutex, writer of a reader/writer lock.
    pub state: LockState,
    /// Whether somebody waits, or did when the owner last looked.
    pub waiters: bool,
    /// Reading threads, permits held, or members of a set.
    pub users: usize,
}

struct File {
    map: Mapping,
    ty: ObjectType,
}

impl File {
    fn open(path: &Path, domain: &DomainPath) -> Result<Self> {
        let owner = domain.access.owner_required();
        let min_len = (at::OBJECT + head::BYTES) as u64;
        let (fd, len) = file::open_checked(path, Expect { writable: false, min_len, owner })?;
        let map = Mapping::map_peer(&fd, len as usize, path)?;
        let ty = read_type(&map, len)?;
        Ok(Self { map, ty })
    }

    fn word(&self, offset: usize) -> u64 {
        self.map.atomic_u64(at::OBJECT + offset).map_or(0, |word| word.load(Acquire))
    }

    /// The kernel's word of a mutex with priority inheritance.
    fn pi_word(&self) -> u32 {
        let at = layout::file_bytes(self.ty.kind, self.ty.bytes) - pi::WORD_BEFORE_END;
        self.map.atomic_u32(at).map_or(0, |word| word.load(Acquire))
    }

    /// The words of a semaphore or a set.
    fn words(&self) -> impl Iterator<Item = u64> {
        (0..self.ty.count).map(|i| self.word(layout::WORDS + 8 * i))
    }

    fn lines(&self) -> impl Iterator<Item = u64> {
        (0..LINES_MAX).map(|i| self.word(layout::LINES + i * layout::OBJECT_ALIGN))
    }
}

/// All locks by name. Files that cannot be read are left out.
pub(crate) fn list(domain: &DomainPath) -> Result<Vec<LockInfo>> {
    let mut out = Vec::new();
    for file_name in file::names_in(&domain.locks())? {
        let Some(name) = TopicName::from_file(&file_name) else { continue };
        let file = match File::open(&domain.locks().join(&file_name), domain) {
            Ok(file) => file,
            Err(e) if e.is_unreadable() => continue,
            Err(e) => return Err(e),
        };
        out.push(describe(domain, name.as_str(), &file));
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

fn state_of(domain: &DomainPath, word: u64) -> LockState {
    match word & ID {
        0 => LockState::Free,
        LOST => LockState::Unrecoverable,
        ABANDONED => LockState::Abandoned,
        id => {
            let alive = match ThreadPeer::open(domain, node_of(id)) {
                Ok(None) => false,
                Ok(Some(peer)) => {
                    let verdict = Arc::new(peer).judge(id);
                    matches!(verdict, Verdict::Alive(token) if !token.node_is_gone())
                }
                // Who cannot be asked is not dead.
                Err(_) => true,
            };
            LockState::Held { node: node_of(id), thread: ordinal_of(id), alive }
        }
    }
}

fn describe(domain: &DomainPath, name: &str, file: &File) -> LockInfo {
    let has_owner = file.ty.kind.has_owner();
    let mut word = if has_owner { file.word(head::WORD) } else { 0 };
    let state = loop {
        let state = state_of(domain, word);
        if !matches!(state, LockState::Held { alive: false, .. }) {
            break state;
        }
        // It may have let go and ended since we looked.
        let now = file.word(head::WORD);
        if now & ID == word & ID {
            break state;
        }
        word = now;
    };
    let users = match file.ty.kind {
        LockKind::RwLock => file.lines().filter(|line| line & READING != 0).count(),
        LockKind::Semaphore | LockKind::Set => file.words().filter(|word| *word != 0).count(),
        _ => 0,
    };
    let waiters = match file.ty.kind {
        LockKind::PiMutex => file.pi_word() & robust::WAITERS != 0,
        _ if has_owner => word & WAITERS != 0,
        _ => file.word(head::DRAIN) != 0,
    };
    let File { ty, .. } = file;
    LockInfo {
        name: name.into(),
        kind: ty.kind,
        type_name: ty.type_name.clone(),
        data_bytes: ty.size,
        count: ty.count,
        state,
        waiters,
        users,
    }
}

/// Removes the lock files that nobody has open; returns how many.
///
/// # Errors
/// `Timeout` when a stopped process is removing locks; the first file that cannot be removed, after
/// all others.
///
/// # Crash safety
/// **Strict.** Each unlink stands alone.
pub(crate) fn clean(domain: &DomainPath) -> Result<usize> {
    // Not for long: the caller has the domain's lock, which every node needs to open.
    let Some(turn) = turn(domain, CLEAN_NS_MAX)? else { return Ok(0) };
    let (mut removed, mut strange) = (0, None);
    for name in turn.entries()? {
        let path = domain.locks().join(&name);
        let done = if name.starts_with(TMP_PREFIX) {
            file::remove_unfinished(&path)
        } else if TopicName::from_file(&name).is_some() {
            remove(&turn, domain, &path, false).map(|done| usize::from(done == Removed::Yes))
        } else {
            Ok(0)
        };
        match done {
            Ok(done) => removed += done,
            // What is strange in one place keeps nobody from the others.
            Err(e) => strange = strange.or(Some(e)),
        }
    }
    strange.map_or(Ok(removed), Err)
}

/// Who removes locks does so alone: between a look at a file and its unlink another one could make
/// room for a new file of that name. `None` without any lock.
fn turn(domain: &DomainPath, ns_max: u64) -> Result<Option<Dir>> {
    match file::lock_dir(&domain.locks(), Deadline::in_ns(ns_max)) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        locked => locked.map(Some),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    Yes,
    InUse,
    Absent,
}

fn remove(_: &Dir, domain: &DomainPath, path: &Path, even_if_lost: bool) -> Result<Removed> {
    let owner = domain.access.owner_required();
    let fd = match file::open_checked(path, Expect { writable: true, min_len: 0, owner }) {
        Ok((fd, _)) => fd,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Removed::Absent),
        Err(e) => return Err(e),
    };
    // Users hold it shared; who opens it now finds it gone and makes it anew.
    let unused = filelock::try_lock_write(&fd)?;
    let lost = || {
        let file = File::open(path, domain)?;
        let has_owner = file.ty.kind.has_owner();
        Ok::<_, Error>(has_owner && file.word(head::WORD) & ID == LOST)
    };
    let free = unused || (even_if_lost && lost()?);
    if !free {
        return Ok(Removed::InUse);
    }
    let there = file::same_file(&fd, path)? && file::unlink(path)?;
    Ok(if there { Removed::Yes } else { Removed::Absent })
}

/// Removes the lock, set or segment `name`; whether it was there.
///
/// # Crash safety
/// **Strict.** One unlink.
pub(crate) fn remove_named(domain: &DomainPath, name: &str) -> Result<bool> {
    let name = TopicName::of("lock name", name)?;
    let Some(turn) = turn(domain, SLOW_PATH_NS_MAX)? else { return Ok(false) };
    match remove(&turn, domain, &domain.locks().join(name.file()), true)? {
        Removed::Yes => Ok(true),
        Removed::Absent => Ok(false),
        Removed::InUse => Err(Error::new(
            ErrorKind::WouldBlock,
            "removing lock",
            name.as_str(),
            "somebody has it open: end its users first, or open it where another one has just \
             made it again",
        )),
    }
}

impl Node {
    /// Removes the lock, set or segment `name`; false if there is none. Opening it creates it
    /// again. [`Domain::remove_lock`](crate::Domain::remove_lock) does so from outside.
    ///
    /// # Errors
    /// `WouldBlock` while somebody has it open, unless it is an unrecoverable lock: its users get
    /// `Unrecoverable` until they open it again. When another process has removed that and opened
    /// it again before us, the new one is in use: open it. `Timeout` after 10 s when a stopped
    /// process is removing locks.
    ///
    /// # Crash safety
    /// **Strict.** One unlink.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let map = node.mutex_with::<u64>("/map", &7)?;
    /// assert!(node.remove_lock("/map").is_err()); // it is open
    /// drop(map);
    /// assert!(node.remove_lock("/map")?);
    /// assert_eq!(*node.mutex::<u64>("/map")?.lock()?, 0); // a new one
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn remove_lock(&self, name: &str) -> Result<bool> {
        self.tend()?;
        remove_named(self.domain(), name)
    }
}

/// Checks all lock files; returns how many were looked at.
pub(crate) fn check(domain: &DomainPath, faults: &mut Vec<String>) -> Result<usize> {
    let mut files = 0;
    for name in file::names_in(&domain.locks())? {
        if name.starts_with(TMP_PREFIX) {
            continue;
        }
        files += 1;
        let path = domain.locks().join(&name);
        if TopicName::from_file(&name).is_none() {
            faults.push(format!("{}: no lock's name", path.display()));
            continue;
        }
        match File::open(&path, domain) {
            Ok(file) => check_file(&file, &mut |what| {
                faults.push(format!("{}: {what}", path.display()));
            }),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => faults.push(e.into_fault()?),
        }
    }
    Ok(files)
}

/// Whether a thread can have this id.
fn is_id(id: u64) -> bool {
    let ordinal = id & 0xffff_ffff;
    node_of(id).get() != 0 && (ORDINAL_FIRST..ORDINAL_END).contains(&ordinal)
}

fn check_file(file: &File, fault: &mut dyn FnMut(String)) {
    if file.word(head::TAG) != file.ty.tag() {
        fault(format!("the tag {:#x} is another type's", file.word(head::TAG)));
    }
    if file.word(head::DOMAIN) == 0 {
        fault("it belongs to no domain".into());
    }
    let word = file.word(head::WORD);
    if file.ty.kind.has_owner() {
        let owner = word & ID;
        let held = is_id(owner) || owner == LOST || owner == ABANDONED;
        if !held && (owner != 0 || word & BROKEN != 0) {
            fault(format!("the lock word is {word:#x}"));
        }
        let heir = file.word(head::HEIR) & ID;
        if heir != 0 && !is_id(heir) {
            fault(format!("the heir is {heir:#x}"));
        }
    }
    match file.ty.kind {
        LockKind::RwLock => {
            for (at, line) in file.lines().enumerate() {
                // The line first: its bit was set before it.
                if line != 0 && !is_id(line & ID) {
                    fault(format!("line {at} is {line:#x}"));
                }
                if line != 0 && file.word(head::BITMAP) >> at & 1 == 0 {
                    fault(format!("line {at} is in use, its bit is not set"));
                }
            }
        }
        LockKind::Semaphore => {
            for (at, holder) in file.words().enumerate() {
                if holder != 0 && !is_id(holder) {
                    fault(format!("permit {at} is {holder:#x}"));
                }
            }
        }
        LockKind::Set => {
            let count = file.ty.count;
            for (at, id) in file.words().enumerate().filter(|(_, id)| *id != 0) {
                let reach = search_length(file.word(head::WORD), count);
                let distance = (at + count - home(id, count)) % count;
                if distance >= reach {
                    fault(format!("id {id} lies {distance} places from its own, beyond the reach"));
                }
            }
        }
        _ => {}
    }
}
