//! Files of the real-time core: `rt/<name>.<role>.<node>`, each written by its node only.
//!
//! A file is complete when it appears. Its maker unlinks it; what a dead node leaves is removed by
//! whoever makes a file of that name next, and by `clean`.
//!
//! # Invariants
//! - Of a name and role there is one living file at most: it is linked under the directory's lock,
//!   after a look at the others.
//! - No two files ever made in a domain have the same serial.

use std::path::Path;
use std::sync::Arc;

use crate::domain::header::{FileHeader, FileKind, HEADER_BYTES, round_up};
use crate::domain::name::TopicName;
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::node::peer::{proof_by_name, unlink_of};
use crate::node::{Node, NodeId};
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::{Draft, Expect, TMP_PREFIX};
use crate::os::fs::map::Mapping;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::rt::thread::memory::{Words, file_bytes};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// Between two looks for a board that has not come yet, and at a lock that is held.
const LOOK_NS: u64 = 500_000;
/// Bits of a serial that count the files of a node; the node's ordinal is above them.
const COUNT_BITS: u32 = 32;
/// Ordinals and counts at most, so that a serial has a bit to spare.
const COUNT_MAX: u64 = (1 << 31) - 1;

/// What a file is for; one letter of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Writer,
    Reader,
    Board,
}

impl Role {
    fn letter(self) -> char {
        match self {
            Self::Writer => 'w',
            Self::Reader => 'r',
            Self::Board => 'b',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Writer => "writing end",
            Self::Reader => "reading end",
            Self::Board => "board",
        }
    }
}

/// What a file must be: both sides of a channel have to agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) role: Role,
    /// Sums up kind, type and sizes.
    pub(crate) tag: u64,
    pub(crate) words: usize,
}

/// A tag of anything.
pub(crate) fn tag_of(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter().chain(&[0xff])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// Makes a file of ours, all words but its serial 0.
///
/// # Errors
/// `InvalidName`, `NoSpace`; `AlreadyExists` while a living node has one of that name and role;
/// `Timeout` after 10 s when a stopped process holds the directory's lock.
///
/// # Crash safety
/// **Strict.** Commit point: the link of the complete file.
pub(crate) fn create(node: &Node, name: &str, shape: Shape) -> Result<Arc<Words>> {
    node.tend()?;
    node.must_be_listed()?;
    let name = TopicName::of("real-time name", name)?;
    let (domain, dir) = (node.domain(), node.domain().realtime());
    let prefix = prefix(&name, shape.role);
    let path = dir.join(format!("{prefix}{}", node.id()));
    let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
    loop {
        // A cleaner may remove the empty directory in between.
        let attempt = file::make_dir(&dir, &domain.access).and_then(|()| {
            // Whoever holds it makes the only living file of a name.
            let _lock = file::lock_dir(&dir, deadline)?;
            if let Some(other) = living(node, &dir, &prefix)? {
                return Ok(Err(other));
            }
            place(node, &dir, &path, shape).map(Ok)
        });
        let in_time = !deadline.has_passed();
        match attempt {
            Err(e) if e.kind() == ErrorKind::NotFound && in_time => {}
            Err(e) => return Err(e),
            Ok(Ok(map)) => {
                let words = Words::own(map, path, node.clone(), shape.words);
                words.prefault();
                return Ok(words);
            }
            // It is dying: the kernel has told its word and not yet freed its lock.
            Ok(Err(other)) if in_time && is_dying(node, other)? => {
                sched::sleep_until(Deadline::in_ns(LOOK_NS));
            }
            Ok(Err(other)) => return Err(taken(&name, shape.role, other)),
        }
    }
}

fn prefix(name: &TopicName, role: Role) -> String {
    format!("{}.{}.", name.file(), role.letter())
}

fn taken(name: &TopicName, role: Role, other: NodeId) -> Error {
    let object = format!("{} ({})", name.as_str(), role.name());
    let remedy = format!(
        "node {other} lives and has it, and there can be only one: end it first, also if it is \
         stopped"
    );
    Error::new(ErrorKind::AlreadyExists, "making", object, remedy)
}

/// # Errors
/// Why it cannot be looked at now, which is no sign of death.
fn is_dying(node: &Node, other: NodeId) -> Result<bool> {
    match node.watch(other) {
        Ok(watch) => Ok(!watch.seems_alive()),
        Err(e) if e.kind() == ErrorKind::NotFound || fault("rt_file.unseen_is_dying") => Ok(true),
        Err(e) => Err(e),
    }
}

/// The living node that has a file of that name and role; those of the dead are removed.
fn living(node: &Node, dir: &Path, prefix: &str) -> Result<Option<NodeId>> {
    let domain = node.domain();
    remove_dead(domain, |file| file.starts_with(prefix))?;
    for file in file::names_in(&domain.realtime())? {
        let Some(owner) = of_prefix(&file, prefix) else { continue };
        if fault("rt_file.second_end") && owner != node.id() {
            continue;
        }
        // Dropped: its owner is about to unlink it.
        let left = map_peer(domain, &dir.join(&file))
            .and_then(|(map, _)| Ok(Words::peer(map, node.watch(owner)?, 0).has_left()));
        match left {
            Ok(true) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            _ => return Ok(Some(owner)),
        }
    }
    Ok(None)
}

fn of_prefix(file: &str, prefix: &str) -> Option<NodeId> {
    file.strip_prefix(prefix)?.parse().ok().map(NodeId::from_raw)
}

fn place(node: &Node, dir: &Path, path: &Path, shape: Shape) -> Result<Mapping> {
    let bytes = round_up(file_bytes(shape.words), PAGE);
    let serial = next_serial(node)?;
    let draft = Draft::new(dir, bytes as u64, node.domain().access.own_mode)?;
    let map = draft.map()?;
    let (total_bytes, node) = (bytes as u64, node.id().get());
    FileHeader { kind: FileKind::Realtime, total_bytes, node, port: shape.tag }.write(&map)?;
    map.atomic_u64(HEADER_BYTES)?.store(serial, Relaxed);
    draft.link(path)?;
    Ok(map)
}

/// Never given twice: ordinals of nodes are not, and a node belongs to one process.
fn next_serial(node: &Node) -> Result<u64> {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let (count, node) = (COUNT.fetch_add(1, Relaxed), node.id().get());
    if count > COUNT_MAX || node > COUNT_MAX {
        let why = "2^31 nodes of the domain, or real-time ends of the process: restart them";
        let what = "numbering real-time end";
        return Err(Error::new(ErrorKind::TooManyMembers, what, format!("node {node}"), why));
    }
    Ok(node << COUNT_BITS | count)
}

/// The living board `name`, waiting for it to come until `deadline`.
///
/// # Errors
/// `Timeout` when nobody made it; else as `look`.
pub(crate) fn find(
    node: &Node,
    name: &str,
    shape: Shape,
    deadline: Deadline,
) -> Result<Arc<Words>> {
    loop {
        if let Some(words) = look(node, name, shape)? {
            words.prefault();
            return Ok(words);
        }
        if deadline.has_passed() {
            let remedy = "its owner has not come: start it, or allow more time";
            return Err(not_found_in_time(name, shape.role, remedy));
        }
        sched::sleep_until(Deadline::in_ns(LOOK_NS));
    }
}

#[cold]
pub(in crate::rt) fn not_found_in_time(name: &str, role: Role, remedy: &str) -> Error {
    let object = format!("{name} ({})", role.name());
    Error::new(ErrorKind::Timeout, "finding real-time peer", object, remedy)
}

/// The file of that name and role whose node lives and which was not dropped.
///
/// # Errors
/// `TypeMismatch` when it is of another type, size or depth; `Corrupt`.
pub(in crate::rt) fn look(node: &Node, name: &str, shape: Shape) -> Result<Option<Arc<Words>>> {
    node.tend()?;
    let name = TopicName::of("real-time name", name)?;
    let prefix = prefix(&name, shape.role);
    let domain = node.domain();
    let mut there: Vec<NodeId> = file::names_in(&domain.realtime())?
        .iter()
        .filter_map(|file| of_prefix(file, &prefix))
        .collect();
    there.sort_unstable();
    for owner in there.into_iter().rev() {
        if proof_by_name(&domain.nodes(), owner)?.is_some() {
            continue;
        }
        let path = domain.realtime().join(format!("{prefix}{owner}"));
        let found = node.watch(owner).and_then(|watch| Ok((watch, open(domain, &path, shape)?)));
        match found {
            Ok((watch, map)) => {
                node.must_be_listed()?;
                let words = Words::peer(map, watch, shape.words);
                if !words.has_left() {
                    return Ok(Some(words));
                }
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

fn map_peer(domain: &DomainPath, path: &Path) -> Result<(Mapping, FileHeader)> {
    let owner = domain.access.owner_required();
    let min_len = file_bytes(0) as u64;
    let (fd, len) = file::open_checked(path, Expect { writable: false, min_len, owner })?;
    let map = Mapping::map_peer(&fd, len as usize, path)?;
    let header = FileHeader::read(&map, FileKind::Realtime, len)?;
    Ok((map, header))
}

fn open(domain: &DomainPath, path: &Path, shape: Shape) -> Result<Mapping> {
    let (map, header) = map_peer(domain, path)?;
    if header.port != shape.tag || map.len() < file_bytes(shape.words) {
        return Err(Error::new(
            ErrorKind::TypeMismatch,
            "opening",
            map.name(),
            "its owner gave another type, depth or place in the pipeline: use the same",
        ));
    }
    Ok(map)
}

fn owner_of(file: &str) -> Option<NodeId> {
    file.rsplit_once('.')?.1.parse().ok().map(NodeId::from_raw)
}

fn remove_dead(domain: &DomainPath, of: impl Fn(&str) -> bool) -> Result<usize> {
    let (mut removed, mut strange) = (0, None);
    for file in file::names_in(&domain.realtime())? {
        match remove_if_dead(domain, &file, &of) {
            Ok(done) => removed += done,
            Err(e) => strange = strange.or(Some(e)),
        }
    }
    strange.map_or(Ok(removed), Err)
}

fn remove_if_dead(domain: &DomainPath, file: &str, of: impl Fn(&str) -> bool) -> Result<usize> {
    let path = domain.realtime().join(file);
    if file.starts_with(TMP_PREFIX) {
        return file::remove_unfinished(&path);
    }
    let Some(node) = owner_of(file).filter(|_| of(file)) else { return Ok(0) };
    let Some(dead) = proof_by_name(&domain.nodes(), node)? else { return Ok(0) };
    Ok(usize::from(unlink_of(dead, node, &path)?))
}

/// Removes the files of dead nodes; returns how many. Goes before the node files do.
///
/// # Crash safety
/// **Strict.** Each unlink stands alone.
pub(crate) fn clean(domain: &DomainPath) -> Result<usize> {
    remove_dead(domain, |_| true)
}

/// Checks the headers; returns how many files were looked at.
pub(crate) fn check(domain: &DomainPath, faults: &mut Vec<String>) -> Result<usize> {
    let mut files = 0;
    for name in
        file::names_in(&domain.realtime())?.iter().filter(|name| !name.starts_with(TMP_PREFIX))
    {
        files += 1;
        let path = domain.realtime().join(name);
        let serial = |map: &Mapping| map.atomic_u64(HEADER_BYTES).map(|word| word.load(Relaxed));
        let read = map_peer(domain, &path).and_then(|(map, header)| Ok((serial(&map)?, header)));
        match read {
            Ok((serial, header))
                if owner_of(name).map(NodeId::get) == Some(header.node)
                    && serial >> COUNT_BITS == header.node => {}
            Ok(_) => {
                faults.push(format!("{}: its header or serial names another node", path.display()))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => faults.push(e.into_fault()?),
        }
    }
    Ok(files)
}
