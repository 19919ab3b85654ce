//! What those do alike who remove what no member of a topic or queue needs any more.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::os::fs::file;
use crate::os::fs::file::{Dir, TMP_PREFIX};

/// A directory of members, held by one who removes: nobody joins meanwhile.
#[derive(Debug)]
pub(crate) struct Removing {
    path: PathBuf,
    names: Vec<String>,
    _dir: Dir,
}

impl Removing {
    /// Holds the directory at `path`; `None` while somebody is joining or cleaning: then it is not
    /// for us to remove anything.
    pub(crate) fn begin(path: &Path) -> Result<Option<Self>> {
        let dir = file::open_dir(path)?;
        if !dir.try_lock_exclusive()? || !dir.still_at(path)? {
            return Ok(None);
        }
        let names = dir.entries()?;
        Ok(Some(Self { path: path.to_path_buf(), names, _dir: dir }))
    }

    /// The names in it when it was taken.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Removes the files whose makers died over them; returns how many.
    ///
    /// # Crash safety
    /// **Strict.** Each unlink stands alone.
    pub(crate) fn remove_unfinished(&self) -> Result<usize> {
        let mut removed = 0;
        for name in self.names.iter().filter(|name| name.starts_with(TMP_PREFIX)) {
            removed += file::remove_unfinished(&self.path.join(name))?;
        }
        Ok(removed)
    }

    /// Removes those to which `order` gives a place, the lowest first, and then the directory, if
    /// nothing is left in it; returns how many files went, and whether the directory did.
    ///
    /// # Crash safety
    /// **Strict.** Each unlink stands alone: what remains is found by the next look.
    pub(crate) fn remove_all(&self, order: impl Fn(&str) -> Option<u8>) -> Result<(usize, bool)> {
        let placed = self.names.iter().filter_map(|name| Some((order(name)?, name)));
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        let mut removed = 0;
        for (_, name) in placed {
            removed += usize::from(file::unlink(&self.path.join(name))?);
        }
        Ok((removed, file::remove_dir(&self.path)?))
    }
}
