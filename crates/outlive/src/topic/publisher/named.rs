//! Which chunk each entry of the ring names, and the pool that they come from.
//!
//! # Invariants
//! - A chunk is in exactly one of: free, loaned, named by one entry of the ring, retired.

use super::ring::OwnRing;
use crate::topic::chunks::hazard::Location;
use crate::topic::chunks::pool::{Pool, PoolConfig};

/// A publisher's chunks.
#[derive(Debug)]
pub(super) struct Named {
    by_entry: Box<[Option<Location>]>,
    /// Whether any entry ever named one.
    any: bool,
    pub(super) pool: Pool,
}

impl Named {
    /// Of a ring of `depth` messages: none yet.
    pub(super) fn new(depth: usize, config: PoolConfig) -> Self {
        Self { by_entry: vec![None; depth].into(), any: false, pool: Pool::new(config) }
    }

    /// The entry of message `n` names `chunk` now, and no longer the one that it named before.
    #[inline(always)]
    pub(super) fn rename(&mut self, ring: &OwnRing, n: u64, chunk: Option<Location>) {
        self.any |= chunk.is_some();
        // Most publishers never send one: nothing to look up.
        if self.any {
            self.exchange(ring.index(n), chunk);
        }
    }

    fn exchange(&mut self, index: usize, chunk: Option<Location>) {
        if let Some(old) = std::mem::replace(&mut self.by_entry[index], chunk) {
            self.pool.retire(old);
        }
    }

    /// What the entry of message `n` names.
    pub(super) fn get(&self, ring: &OwnRing, n: u64) -> Option<Location> {
        self.by_entry[ring.index(n)]
    }
}
