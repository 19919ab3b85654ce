//! Doorbells: what wakes a thread that cannot sleep on all its writers' words.
//!
//! `nodes/<node>.bells` is one page that any member may write. Ringing adds one to a word and
//! wakes it; a wrong value costs its owner one needless look. A process maps each such page once.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::Result;
use crate::domain::header::{CACHE_LINE, FileHeader, FileKind, HEADER_BYTES};
use crate::domain::path::{DomainPath, open_or_create};
use crate::node::NodeId;
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::os::process::fork::per_process::PerProcess;
use crate::os::sleep::futex;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Release;

/// Doorbells of a node; ports share them when there are more.
pub(in crate::wait) const DOORBELLS: u32 = ((PAGE - HEADER_BYTES) / CACHE_LINE) as u32;

/// The page of doorbells of a node.
#[derive(Clone, Debug)]
pub(crate) struct Doorbells {
    map: Arc<Mapping>,
}

pub(crate) fn bells_path(nodes: &Path, node: NodeId) -> PathBuf {
    nodes.join(format!("{node}.bells"))
}

/// A page that this process has mapped, by device and inode.
type Mapped = ((u64, u64), Weak<Mapping>);
static MAPPED: PerProcess<Vec<Mapped>> = PerProcess::new();

impl Doorbells {
    /// Our own doorbells; made by the first sleeper that needs one.
    pub(crate) fn open_own(domain: &DomainPath, node: NodeId) -> Result<Self> {
        let path = bells_path(&domain.nodes(), node);
        let fd = open_or_create(&path, domain.access.shared_mode, expect(domain), |map| {
            let total_bytes = PAGE as u64;
            FileHeader { kind: FileKind::Bells, total_bytes, node: node.0, port: 0 }.write(map)
        })?;
        Self::map(&fd, &path)
    }

    pub(crate) fn open_peer(domain: &DomainPath, node: NodeId) -> Result<Self> {
        let path = bells_path(&domain.nodes(), node);
        let (fd, _) = file::open_checked(&path, expect(domain))?;
        Self::map(&fd, &path)
    }

    fn map(fd: &OwnedFd, path: &Path) -> Result<Self> {
        let identity = file::identity(fd, path)?;
        let mut mapped = MAPPED.get().lock().unwrap_or_else(|e| e.into_inner());
        let known = mapped.iter().find(|(id, _)| *id == identity);
        if let Some(map) = known.and_then(|(_, map)| map.upgrade()) {
            return Ok(Self { map });
        }
        let map = Arc::new(Mapping::map_own(fd, PAGE, path)?);
        FileHeader::read(&map, FileKind::Bells, PAGE as u64)?;
        mapped.retain(|(_, map)| map.strong_count() > 0);
        mapped.push((identity, Arc::downgrade(&map)));
        Ok(Self { map })
    }

    pub(crate) fn word(&self, doorbell: u32) -> Result<&AtomicU32> {
        self.map.atomic_u32(HEADER_BYTES + (doorbell % DOORBELLS) as usize * CACHE_LINE)
    }

    /// Wakes whoever sleeps on `doorbell`.
    pub(crate) fn ring(&self, doorbell: u32) {
        if let Ok(word) = self.word(doorbell) {
            word.fetch_add(1, Release);
            futex::wake(word, i32::MAX);
        }
    }
}

fn expect(domain: &DomainPath) -> Expect {
    Expect { writable: true, min_len: PAGE as u64, owner: domain.access.owner_required() }
}
