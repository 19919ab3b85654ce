//! The `bell` of a topic or queue: words that count how often its members came or went, to look at
//! and to sleep on; and who tidies up after members that leave together.
//!
//! Who leaves while another holds the directory's lock cannot look for itself, and the other may
//! have looked before: so it counts up a word of the bell before it tries the lock, and whoever has
//! let the lock go looks again if that has changed. A joiner, who holds it as well, looks
//! afterwards.

use std::path::Path;

use super::header::{FileHeader, FileKind};
use super::path::{DomainPath, open_or_create};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::os::sleep::futex;
use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{ErrorKind, Result};

/// How often a member asked for what nobody needs to be removed.
const ASKED: usize = 80;
pub(crate) const BYTES: usize = 128;

/// Rounds of one cleanup; each needs somebody who left during the one before.
const ROUNDS_MAX: u32 = 1000;

/// The file `bell` in an object's directory.
#[derive(Debug)]
pub(crate) struct Bell(Mapping);

impl Bell {
    /// Maps the bell in `dir`, making it if nobody has yet; each of `epochs` is the offset of a
    /// word.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(crate) fn open(dir: &Path, domain: &DomainPath, epochs: &[usize]) -> Result<Self> {
        let (path, total_bytes) = (dir.join("bell"), BYTES as u64);
        let owner = domain.access.owner_required();
        let expect = Expect { writable: true, min_len: total_bytes, owner };
        let fd = open_or_create(&path, domain.access.shared_mode, expect, |map| {
            // Begins at 1: a member that says which epoch it has seen says 0 until it has looked.
            for &epoch in epochs {
                map.atomic_u64(epoch)?.store(1, Relaxed);
            }
            FileHeader { kind: FileKind::Bell, total_bytes, node: 0, port: 0 }.write(map)
        })?;
        let map = Mapping::map_own(&fd, BYTES, &path)?;
        FileHeader::read(&map, FileKind::Bell, total_bytes)?;
        Ok(Self(map))
    }

    /// The bell in `dir` as it is, to read; `None` where there is none.
    pub(crate) fn existing(dir: &Path, domain: &DomainPath) -> Result<Option<Self>> {
        let path = dir.join("bell");
        let owner = domain.access.owner_required();
        match file::open_checked(&path, Expect { writable: false, min_len: BYTES as u64, owner }) {
            Ok((fd, _)) => Mapping::map_peer(&fd, BYTES, &path).map(|map| Some(Self(map))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// How often members came or went, at the offset `epoch`.
    #[inline]
    pub(crate) fn word(&self, epoch: usize) -> &AtomicU64 {
        // Offsets are constants below `BYTES`, and so much is mapped.
        match self.0.atomic_u64(epoch) {
            Ok(word) => word,
            Err(_) => unreachable!("{BYTES} bytes are mapped"),
        }
    }

    /// The futex half of an epoch, to sleep on.
    pub(crate) fn futex(&self, epoch: usize) -> &AtomicU32 {
        futex::low_half(self.word(epoch))
    }

    /// Says that a member came or went; returns the new epoch.
    pub(crate) fn ring(&self, epoch: usize) -> u64 {
        if fault("bell.not_rung") {
            return self.word(epoch).load(Relaxed);
        }
        // ORDERING(BELL): pairs with `seen`; the member's file is linked before it.
        let now = self.word(epoch).fetch_add(1, Release).wrapping_add(1);
        futex::wake(self.futex(epoch), i32::MAX);
        now
    }

    /// The epoch, read before a look at the directory.
    pub(crate) fn seen(&self, epoch: usize) -> u64 {
        // ORDERING(BELL): pairs with `ring`.
        self.word(epoch).load(Acquire)
    }

    /// A member that leaves asks, before it tries the lock.
    ///
    /// # Crash safety
    /// **Strict.** It counts nothing that is kept: who holds the lock looks once more.
    pub(crate) fn ask(&self) {
        if !fault("reclaim.not_asked") {
            // ORDERING(ASKED): pairs with `in_rounds`. Before the lock is tried: who holds it now
            // looks at this after letting it go.
            self.word(ASKED).fetch_add(1, SeqCst);
        }
    }
}

/// Looks by `once`, and again as long as others ask for it, also after one that failed; `once` says
/// whether it is over: the object is gone, or somebody else holds it.
///
/// # Errors
/// Those of the last look, but that the object is gone after the first one is none.
pub(crate) fn in_rounds(bell: Option<&Bell>, mut once: impl FnMut() -> Result<bool>) -> Result<()> {
    // ORDERING(ASKED): pairs with `Bell::ask`.
    let count = || bell.map(|bell| bell.word(ASKED).load(SeqCst));
    for round in 0..ROUNDS_MAX {
        let before = count();
        match once() {
            // Another has removed it meanwhile.
            Err(e) if e.kind() == ErrorKind::NotFound && round > 0 => break,
            Err(e) if fault("reclaim.failed_is_over") => return Err(e),
            Ok(true) => break,
            over if count() == before || round == ROUNDS_MAX - 1 => return over.map(drop),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::TempDir;
    use crate::{Error, Node};

    #[test]
    fn who_asked_during_a_look_that_failed_is_served_by_another() {
        let dir = TempDir::new("asked");
        let node = Node::builder().root(dir.path()).open().unwrap();
        let bell = Bell::open(dir.path(), node.domain(), &[64]).unwrap();
        let mut looks = 0;
        let busy = || Error::new(ErrorKind::Permission, "looking at", "a file", "not ours");
        let once = || {
            looks += 1;
            if looks == 1 {
                bell.ask();
                return Err(busy());
            }
            Ok(false)
        };
        in_rounds(Some(&bell), once).unwrap();
        assert_eq!(looks, 2);
        let failed = in_rounds(Some(&bell), || Err(busy())).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Permission);
    }
}
