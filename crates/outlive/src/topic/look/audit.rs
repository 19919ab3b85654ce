//! The invariants of a topic's shared bytes, checked from outside and read-only.
//!
//! | file | checked |
//! |---|---|
//! | every | header: magic, layout, kind, length; name and header agree |
//! | `pub` | each `seq` belongs to its entry; the one unfinished message is the newest |
//! | `pub` | each committed entry has a legal descriptor, its chunk lies in a segment |
//! | `data` | chunks lie inside the file; its ring exists or it is to be removed |
//! | `sub` | names a node and a port |
//! | node | token word in its place; port blocks that are open have legal hazards |

use std::path::Path;

use super::inspect::Ring;
use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::node::peer::{Peer, port};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::chunks::pool::segment_path;
use crate::topic::membership::entry::{Entry as DirEntry, PublisherId, list, ring_path};
use crate::topic::membership::meta::Meta;
use crate::topic::ring::entries::{Descriptor, ENTRY_HEAD_WORDS};
use crate::topic::ring::layout;
use crate::topic::ring::layout::{data, ring};
use crate::{ErrorKind, Result};

/// Checks the topic in `dir`; returns the number of files looked at.
pub(crate) fn check_topic(
    domain: &DomainPath,
    dir: &Path,
    faults: &mut Vec<String>,
) -> Result<usize> {
    let entries = match list(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    let meta = match Meta::read(dir, &domain.access) {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            // Being made or removed: then no ring may be in it any more.
            let entries = list(dir).unwrap_or_default();
            if entries.iter().any(|e| matches!(e, DirEntry::Publisher(_))) {
                faults.push(format!("{}: a ring without meta", dir.display()));
            }
            return Ok(entries.len());
        }
        Err(e) => {
            faults.push(e.into_fault()?);
            return Ok(entries.len());
        }
    };
    for entry in &entries {
        if let DirEntry::Publisher(id) = entry {
            match check_ring(domain, dir, *id, &meta, faults) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => faults.push(e.into_fault()?),
                Ok(()) => {}
            }
        }
    }
    Ok(entries.len())
}

fn check_ring(
    domain: &DomainPath,
    dir: &Path,
    id: PublisherId,
    meta: &Meta,
    faults: &mut Vec<String>,
) -> Result<()> {
    let path = ring_path(dir, id);
    let whole = Ring::open(domain, dir, id, meta)?;
    let at = |offset: usize| whole.word(offset);
    let mut wrong = |what: String| faults.push(format!("{}: {what}", path.display()));
    let head = at(ring::HEAD);
    // The counter is stored after the commit: it may be one behind.
    let (mut newest, mut unfinished) = (0, None);
    for index in 0..whole.depth {
        let entry = whole.entry(index);
        let seq = at(entry);
        if seq == 0 {
            continue;
        }
        let n = (seq - 1) / 2;
        if n % whole.depth != index {
            wrong(format!("entry {index} has the sequence word {seq}"));
            continue;
        }
        if seq % 2 == 1 && at(ring::VOLATILE) & 1 == 1 {
            // Withdrawn, or being written: several at a time.
            continue;
        }
        newest = newest.max(n + 1);
        if seq % 2 == 1 {
            // Both at once: a live publisher may have finished the one and begun the other.
            if let Some((other, entry, seq)) = unfinished.replace((n, entry, seq))
                && at(entry) == seq
            {
                wrong(format!("messages {other} and {n} are both unfinished"));
            }
            continue;
        }
        let (descriptor, body) = (at(entry + 16), at(entry + ENTRY_HEAD_WORDS * 8));
        // A live publisher may be past it by now, or gone with all of it: then what was read says
        // nothing.
        let still = || at(entry) == seq && (path.exists() || fault("audit.looks_once"));
        match Descriptor::decode(descriptor) {
            Some(Descriptor::Inline { bytes })
                if bytes <= meta.entry_bytes - layout::ENTRY_HEAD_BYTES => {}
            Some(Descriptor::Chunk { bytes }) => {
                let looked =
                    Location::decode(body).map(|l| chunk_exists(domain, dir, id, l, bytes));
                let good = match looked {
                    Some(Err(e)) if e.is_lack() => return Err(e),
                    looked => matches!(looked, Some(Ok(true))),
                };
                if !good && still() {
                    wrong(format!("message {n} names chunk {body:#x} of {bytes} bytes"));
                }
            }
            _ if still() => wrong(format!("message {n} has the descriptor {descriptor:#x}")),
            _ => {}
        }
    }
    if let Some((n, ..)) = unfinished
        && n + 1 != newest
        && at(ring::HEAD) == head
    {
        wrong(format!("message {n} is unfinished, yet {newest} were begun"));
    }
    if newest > head.saturating_add(1) && at(ring::HEAD) == head {
        wrong(format!("{newest} messages were begun, the counter says {head}"));
    }
    Ok(())
}

fn chunk_exists(
    domain: &DomainPath,
    dir: &Path,
    id: PublisherId,
    location: Location,
    bytes: usize,
) -> Result<bool> {
    let path = segment_path(dir, id.node.0, id.port, location.segment() as usize);
    let owner = domain.access.owner_required();
    let expect = Expect { writable: false, min_len: data::FIRST as u64, owner };
    let (fd, file_bytes) = file::open_checked(&path, expect)?;
    let map = Mapping::map_peer(&fd, data::FIRST, &path)?;
    FileHeader::read(&map, FileKind::Data, file_bytes)?;
    let chunk_bytes = map.atomic_u64(data::CHUNK_BYTES)?.load(Relaxed);
    let chunks = map.atomic_u64(data::CHUNKS)?.load(Relaxed);
    let end = chunk_bytes.checked_mul(chunks).and_then(|b| b.checked_add(data::FIRST as u64));
    Ok(u64::from(location.chunk()) < chunks
        && bytes as u64 <= chunk_bytes
        && end.is_some_and(|end| end <= file_bytes))
}

/// Checks the open port blocks among the first ones of a node.
pub(crate) fn check_node(peer: &Peer, faults: &mut Vec<String>) -> Result<()> {
    let blocks = match peer.port_blocks() {
        Ok(blocks) => blocks,
        Err(e) => {
            faults.push(e.into_fault()?);
            return Ok(());
        }
    };
    for block in 0..blocks {
        let Ok(view) = peer.port(block as u64) else { continue };
        let id = view.id().load(Acquire);
        if id == 0 {
            continue;
        }
        let name = format!("{}: port {id}", peer.map().path().display());
        if id as usize % crate::node::layout::PORTS_MAX != block {
            faults.push(format!("{name} is in block {block}"));
        }
        let borrows = view.borrows().load(Relaxed);
        if borrows == 0 || borrows > port::HAZARDS_MAX as u64 {
            faults.push(format!("{name} allows {borrows} borrows"));
        }
        for hazard in view.hazards() {
            let word = hazard.load(Relaxed);
            let legal = word == 0
                || (0..port::SOURCES_MAX).any(|slot| hazard::held_by(word, slot).is_some());
            if !legal {
                faults.push(format!("{name} has the hazard word {word:#x}"));
            }
        }
    }
    Ok(())
}
