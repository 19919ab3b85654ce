//! Who tidies up after members that leave together.
//!
//! Who leaves while another holds the directory's lock cannot look for itself, and the other may
//! have looked before: so it counts up a word of the bell before it tries the lock, and whoever has
//! let the lock go looks again if that has changed. A joiner, who holds it as well, looks
//! afterwards.

use std::path::Path;

use super::path::DomainPath;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicU64, fault};
use crate::{ErrorKind, Result};

/// Rounds of one cleanup; each needs somebody who left during the one before.
const ROUNDS_MAX: u32 = 1000;

/// A member that leaves asks, by the bell's word `asked`, before it tries the lock.
///
/// # Crash safety
/// **Strict.** It counts nothing that is kept: who holds the lock looks once more.
pub(crate) fn ask(asked: &AtomicU64) {
    if !fault("reclaim.not_asked") {
        // ORDERING(ASKED): pairs with `in_rounds`. Before the lock is tried: who holds it now looks
        // at this after letting it go.
        asked.fetch_add(1, SeqCst);
    }
}

/// Looks by `once`, and again as long as others ask for it, also after one that failed; `once` says
/// whether it is over: the object is gone, or somebody else holds it.
///
/// # Errors
/// Those of the last look, but that the object is gone after the first one is none.
pub(crate) fn in_rounds(
    asked: Option<&AtomicU64>,
    mut once: impl FnMut() -> Result<bool>,
) -> Result<()> {
    // ORDERING(ASKED): pairs with `ask`.
    let count = || asked.map(|word| word.load(SeqCst));
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

/// The bell in `dir`, of `bytes` bytes, as it is, to read; `None` where there is none.
pub(crate) fn existing_bell(
    dir: &Path,
    domain: &DomainPath,
    bytes: usize,
) -> Result<Option<Mapping>> {
    let path = dir.join("bell");
    let owner = domain.access.owner_required();
    match file::open_checked(&path, Expect { writable: false, min_len: bytes as u64, owner }) {
        Ok((fd, _)) => Mapping::map_peer(&fd, bytes, &path).map(Some),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn who_asked_during_a_look_that_failed_is_served_by_another() {
        let (asked, mut looks) = (AtomicU64::new(0), 0);
        let busy = || Error::new(ErrorKind::Permission, "looking at", "a file", "not ours");
        let once = || {
            looks += 1;
            if looks == 1 {
                ask(&asked);
                return Err(busy());
            }
            Ok(false)
        };
        in_rounds(Some(&asked), once).unwrap();
        assert_eq!(looks, 2);
        let failed = in_rounds(Some(&asked), || Err(busy())).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Permission);
    }
}
