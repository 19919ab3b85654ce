//! What members of a topic and of a queue do alike when they join.

use std::path::Path;

use super::header::{FileHeader, FileKind};
use super::name::TopicName;
use super::path::{DomainPath, open_or_create};
use crate::os::fs::file::{Dir, Expect};
use crate::os::fs::map::Mapping;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::{Error, ErrorKind, Result};

/// Between two tries to join.
const PAUSE_NS: u64 = 50_000;

/// Held while a member joins; frees the directory for removal when dropped.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) _dir: Dir,
}

/// Tries to join `object` until it is `deadline`; `attempt` answers `None` where the next may do.
///
/// # Errors
/// `Timeout`; those of `attempt`.
pub(crate) fn join_until<J>(
    what: &str,
    object: &TopicName,
    deadline: Deadline,
    attempt: impl Fn() -> Result<Option<J>>,
) -> Result<J> {
    loop {
        if let Some(joined) = attempt()? {
            return Ok(joined);
        }
        if deadline.has_passed() {
            let remedy =
                "a stopped process that joins or cleans it holds its directory: continue or end it";
            return Err(Error::new(ErrorKind::Timeout, what, object.as_str(), remedy));
        }
        // Whoever is in the way may need this core.
        sched::sleep_until(deadline.min(Deadline::in_ns(PAUSE_NS)));
    }
}

/// Reads what all members agree on, or makes it if nobody has yet; somebody may make or remove it
/// meanwhile.
///
/// # Errors
/// Those of both; `NotFound` where it is removed each time.
///
/// # Crash safety
/// **Strict.** As `create`.
pub(crate) fn read_or_create<M>(
    read: impl Fn() -> Result<M>,
    create: impl Fn() -> Result<()>,
) -> Result<M> {
    for _ in 0..3 {
        match read() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
        match create() {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    read()
}

/// Maps the `bell` in `dir`, of `bytes` bytes, making it if nobody has yet; each of `epochs` is the
/// offset of a word.
///
/// # Crash safety
/// **Strict.** Commit point: the link of the complete file.
pub(crate) fn open_bell(
    dir: &Path,
    domain: &DomainPath,
    bytes: usize,
    epochs: &[usize],
) -> Result<Mapping> {
    let (path, total_bytes) = (dir.join("bell"), bytes as u64);
    let owner = domain.access.owner_required();
    let expect = Expect { writable: true, min_len: total_bytes, owner };
    let fd = open_or_create(&path, domain.access.shared_mode, expect, |map| {
        // Begins at 1: a member that says which epoch it has seen says 0 until it has looked.
        for &epoch in epochs {
            map.atomic_u64(epoch)?.store(1, Relaxed);
        }
        FileHeader { kind: FileKind::Bell, total_bytes, node: 0, port: 0 }.write(map)
    })?;
    let map = Mapping::map_own(&fd, bytes, &path)?;
    FileHeader::read(&map, FileKind::Bell, total_bytes)?;
    for &epoch in epochs {
        map.atomic_u64(epoch)?;
    }
    Ok(map)
}
