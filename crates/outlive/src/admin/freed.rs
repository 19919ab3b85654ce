//! How much shared memory goes with the files that a look removes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of a domain before something was removed, with the bytes that each takes.
pub(super) struct Before(Vec<(PathBuf, u64)>);

impl Before {
    /// What is there now. Files that cannot be looked at are left out.
    pub(super) fn of(dir: &Path) -> Self {
        let (mut files, mut dirs) = (Vec::new(), vec![dir.to_path_buf()]);
        while let Some(dir) = dirs.pop() {
            let entries = std::fs::read_dir(dir).into_iter().flatten();
            for entry in entries.flatten() {
                // Of a link, the link itself.
                let Ok(meta) = entry.metadata() else { continue };
                match meta.is_dir() {
                    true => dirs.push(entry.path()),
                    // Blocks, since a file may be longer than what it takes.
                    false => files.push((entry.path(), meta.blocks() * 512)),
                }
            }
        }
        Self(files)
    }

    /// Bytes of those files that are gone by now.
    pub(super) fn freed(&self) -> u64 {
        let gone = |path: &Path| {
            let looked = path.symlink_metadata();
            looked.is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
        };
        self.0.iter().filter(|(path, _)| gone(path)).map(|(_, bytes)| bytes).sum()
    }
}
