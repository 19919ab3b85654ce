//! Files of the real-time core: `rt/<name>.<role>.<node>`, each written by its node only.
//!
//! A file is complete when it appears. Its maker unlinks it; what a dead node leaves is removed by
//! whoever makes a file of that name next, and by `clean`. Peers are found once, at the start.

use std::path::Path;
use std::sync::Arc;

use super::memory::Words;
use crate::layout::{FileHeader, FileKind, HEADER_BYTES, PAGE, round_up};
use crate::name::TopicName;
use crate::node::domain::DomainPath;
use crate::node::peer::node_is_gone;
use crate::node::{Node, NodeId};
use crate::os::file::{self, Draft, Expect, TMP_PREFIX};
use crate::os::map::Mapping;
use crate::os::{clock, sched};
use crate::topic::membership::remove_unfinished;
use crate::{Error, ErrorKind, Result};

/// Between two looks for a peer that has not come yet.
const LOOK_NS: u64 = 500_000;

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

/// Makes a file of ours, all words 0.
///
/// # Errors
/// `InvalidName`, `NoSpace`; `AlreadyExists` when this node has one of that name and role.
///
/// # Crash safety
/// **Strict.** Commit point: the link of the complete file.
pub(crate) fn create(node: &Node, name: &str, shape: Shape) -> Result<Arc<Words>> {
    node.tend()?;
    let name = TopicName::of("real-time name", name)?;
    let (domain, dir) = (node.domain(), node.domain().realtime());
    let bytes = round_up(HEADER_BYTES + 8 * shape.words, PAGE);
    let prefix = format!("{}.{}.", name.file(), shape.role.letter());
    let path = dir.join(format!("{prefix}{}", node.id()));
    // A cleaner may remove the empty directory in between.
    for attempt in 0.. {
        file::make_dir(&dir, &domain.access)?;
        match place(node, &dir, &path, bytes, shape) {
            Err(e) if e.kind() == ErrorKind::NotFound && attempt < 100 => {}
            Err(e) => return Err(e),
            Ok(map) => {
                remove_dead(domain, |file| file.starts_with(&prefix))?;
                let words = Words::own(map, path, node.clone(), shape.words);
                words.prefault();
                return Ok(words);
            }
        }
    }
    unreachable!("the last attempt returns")
}

fn place(node: &Node, dir: &Path, path: &Path, bytes: usize, shape: Shape) -> Result<Mapping> {
    let draft = Draft::new(dir, bytes as u64, node.domain().access.own_mode)?;
    let map = draft.map()?;
    let (total_bytes, node) = (bytes as u64, node.id().get());
    FileHeader { kind: FileKind::Realtime, total_bytes, node, port: shape.tag }.write(&map)?;
    draft.link(path)?;
    Ok(map)
}

/// Finds the living peer's file, waiting for it to come until `deadline_ns`.
///
/// # Errors
/// `Timeout` when nobody made it; `TypeMismatch` when it is of another type, size or depth;
/// `Corrupt`.
pub(crate) fn find(node: &Node, name: &str, shape: Shape, deadline_ns: u64) -> Result<Arc<Words>> {
    let name = TopicName::of("real-time name", name)?;
    let prefix = format!("{}.{}.", name.file(), shape.role.letter());
    loop {
        node.tend()?;
        let mut there: Vec<u64> = entries(node.domain())?
            .iter()
            .filter_map(|file| file.strip_prefix(&prefix)?.parse().ok())
            .collect();
        there.sort_unstable();
        for ordinal in there.into_iter().rev() {
            let watch = match node.watch(NodeId::from_raw(ordinal)) {
                Ok(watch) if watch.is_alive() => watch,
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => continue,
            };
            let path = node.domain().realtime().join(format!("{prefix}{ordinal}"));
            match open(node.domain(), &path, shape) {
                Ok(map) => {
                    let words = Words::peer(map, watch, shape.words);
                    words.prefault();
                    return Ok(words);
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        if clock::now_ns() >= deadline_ns {
            let remedy = "its owner has not come: start it, or allow more time";
            let what = "finding real-time peer";
            let object = format!("{} ({})", name.as_str(), shape.role.letter());
            return Err(Error::new(ErrorKind::Timeout, what, object, remedy));
        }
        sched::sleep_until(clock::now_ns() + LOOK_NS);
    }
}

fn open(domain: &DomainPath, path: &Path, shape: Shape) -> Result<Mapping> {
    let owner = domain.access.owner_required();
    let min_len = HEADER_BYTES as u64;
    let (fd, len) = file::open_checked(path, Expect { writable: false, min_len, owner })?;
    let map = Mapping::map_peer(&fd, len as usize, path)?;
    let header = FileHeader::read(&map, FileKind::Realtime, len)?;
    if header.port != shape.tag || map.len() < HEADER_BYTES + 8 * shape.words {
        return Err(Error::new(
            ErrorKind::TypeMismatch,
            "opening",
            map.name(),
            "its owner gave another type, depth or place in the pipeline: use the same",
        ));
    }
    Ok(map)
}

/// Files in `rt/`; none if it does not exist.
fn entries(domain: &DomainPath) -> Result<Vec<String>> {
    match file::open_dir(&domain.realtime()).and_then(|dir| dir.entries()) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

fn owner_of(file: &str) -> Option<NodeId> {
    file.rsplit_once('.')?.1.parse().ok().map(NodeId::from_raw)
}

fn remove_dead(domain: &DomainPath, of: impl Fn(&str) -> bool) -> Result<usize> {
    let mut removed = 0;
    for file in entries(domain)? {
        let path = domain.realtime().join(&file);
        if file.starts_with(TMP_PREFIX) {
            removed += remove_unfinished(&path)?;
            continue;
        }
        let Some(node) = owner_of(&file).filter(|_| of(&file)) else { continue };
        if node_is_gone(&domain.nodes(), node)? {
            removed += usize::from(file::unlink(&path)?);
        }
    }
    Ok(removed)
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
    for name in entries(domain)?.iter().filter(|name| !name.starts_with(TMP_PREFIX)) {
        files += 1;
        let path = domain.realtime().join(name);
        let owner = domain.access.owner_required();
        let min_len = HEADER_BYTES as u64;
        let read = file::open_checked(&path, Expect { writable: false, min_len, owner }).and_then(
            |(fd, len)| {
                let map = Mapping::map_peer(&fd, len as usize, &path)?;
                FileHeader::read(&map, FileKind::Realtime, len)
            },
        );
        match read {
            Ok(header) if owner_of(name).map(NodeId::get) == Some(header.node) => {}
            Ok(_) => faults.push(format!("{}: its header names another node", path.display())),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => faults.push(e.to_string()),
        }
    }
    Ok(files)
}
