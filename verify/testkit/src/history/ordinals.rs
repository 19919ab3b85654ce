//! The domain's counters near their ends: as after years in which nobody restarted the robot.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The last ordinal of a node, and how many threads there are (`SHM_LAYOUT.md`, `id`).
pub(super) const NODE_LAST: u64 = (1 << 31) - 2;
const THREADS: u64 = (1 << 30) - 16 - (1 << 22);
/// Where the next ones lie in `id`.
const NEXT_NODE: u64 = 80;
const NEXT_THREAD: u64 = 88;

/// Leaves only so many ordinals to the domain in `root`.
pub(super) fn leave(root: &Path, nodes: u64, threads: u64) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let id = entry?.path().join("id");
        if id.exists() {
            let file = OpenOptions::new().write(true).open(id)?;
            file.write_all_at(&(NODE_LAST + 1 - nodes).to_le_bytes(), NEXT_NODE)?;
            file.write_all_at(&(THREADS - threads).to_le_bytes(), NEXT_THREAD)?;
        }
    }
    Ok(())
}
