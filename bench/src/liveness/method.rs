//! A way to know whether a process lives, and what both sides of it share.

use outlive::{Error, ErrorKind, Result};

use crate::pair::SharedMap;
use crate::scratch::TempRoot;

/// What watcher and watched share: memory, a directory, both made before the fork.
pub(crate) struct Stage {
    pub(super) map: SharedMap,
    pub(super) root: TempRoot,
}

impl Stage {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { map: SharedMap::new(8192)?, root: TempRoot::new() })
    }

    /// A place for domains that no method uses; a method that has none of its own has not made it.
    pub(crate) fn queue_root(&self) -> Result<std::path::PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let mut dir = std::fs::DirBuilder::new();
        let made = dir.recursive(true).mode(0o700).create(&self.root.0);
        made.map_err(|source| {
            let object = self.root.0.display().to_string();
            Error::new(ErrorKind::Io, "make", object, "").with_source(source)
        })?;
        Ok(self.root.0.join("queue"))
    }

    /// Words that no method uses.
    pub(crate) fn words(&self) -> &[std::sync::atomic::AtomicU64; 2] {
        self.map.words(4096)
    }
}

/// A way to know whether a process lives.
pub(crate) trait Method: Sized {
    const NAME: &'static str;
    /// What it gets wrong, or cannot see.
    const WRONG: &'static str;
    /// Looks of one run; the result is for one of them.
    const CHECKS: u64;

    /// Before the fork.
    fn new(stage: &Stage) -> Result<Self>;

    /// In the process that is watched, by its only thread.
    fn live(&mut self, stage: &Stage) -> Result<()> {
        let _ = stage;
        Ok(())
    }

    /// In the watcher, when the other is ready.
    fn watch(&mut self, stage: &Stage, pid: i32) -> Result<()>;

    fn is_alive(&mut self) -> bool;
}

/// The error of the system call that just failed.
pub(super) fn os_error(what: &str) -> Error {
    let source = std::io::Error::last_os_error();
    Error::new(ErrorKind::Io, what, "a process", "").with_source(source)
}
