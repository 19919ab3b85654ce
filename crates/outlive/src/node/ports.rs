//! Subscriber port blocks of our own node file: handing out, growing, taking back.

use std::sync::Arc;

use super::layout;
use super::peer::{PortView, port};
use super::token::Token;
use crate::os::file;
use crate::os::fork::NotInChild;
use crate::sync::Mutex;
use crate::sync::Ordering::{Relaxed, Release};
use crate::{Error, ErrorKind, Result};

/// Allocator of port blocks.
#[derive(Debug)]
pub(crate) struct Ports {
    offset: usize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    used: Vec<bool>,
    capacity: usize,
    serial: u64,
}

impl Ports {
    pub(crate) fn new(offset: usize) -> Self {
        let table = Table { used: Vec::new(), capacity: layout::PORTS_FIRST, serial: 0 };
        Self { offset, table: Mutex::new(table) }
    }

    /// A port id that this node never used before; for ports without a block.
    pub(crate) fn next_serial(&self) -> u64 {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        table.serial += 1;
        table.serial
    }

    /// Takes a free block, zeroed but for its number of borrows; its id is stored by `publish`.
    ///
    /// # Crash safety
    /// **Strict.** The block belongs to nobody until its id is stored and its `sub` file linked.
    pub(crate) fn allocate(
        &self,
        fd: &NotInChild,
        token: &Token,
        borrows: usize,
        reliable: bool,
    ) -> Result<u64> {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        let block = table.used.iter().position(|used| !used).unwrap_or(table.used.len());
        if block >= layout::PORTS_MAX {
            return Err(Error::new(
                ErrorKind::TooManyMembers,
                "opening a subscriber on",
                token.map().name(),
                format!("a node has at most {} subscribers: open another node", layout::PORTS_MAX),
            ));
        }
        if block >= table.capacity {
            let capacity = (table.capacity * 2).min(layout::PORTS_MAX);
            file::grow(fd, layout::file_bytes(self.offset, capacity) as u64)?;
            table.capacity = capacity;
        }
        if block == table.used.len() {
            table.used.push(false);
        }
        table.serial += 1;
        let id = table.serial * layout::PORTS_MAX as u64 + block as u64;
        let view = self.view(token, id)?;
        view.waiting().store(0, Relaxed);
        view.seen().store(0, Relaxed);
        view.reliable().store(u64::from(reliable), Relaxed);
        view.borrows().store(port::HAZARDS_MAX as u64, Relaxed);
        for hazard in view.hazards() {
            hazard.store(0, Relaxed);
        }
        view.borrows().store(borrows as u64, Relaxed);
        for slot in 0..port::SOURCES_MAX {
            // All but `changes`, which never takes a value twice.
            view.source(slot)[..3].iter().for_each(|word| word.store(0, Relaxed));
        }
        // ORDERING(PORT_ID): pairs with `Subscribers::admit`; carries the zeroed block.
        view.id().store(id, Release);
        table.used[block] = true;
        Ok(id)
    }

    /// Where the block of port `id` begins in the node's file.
    pub(crate) fn block_offset(&self, id: u64) -> usize {
        self.offset + id as usize % layout::PORTS_MAX * layout::PORT_BYTES
    }

    fn view<'a>(&self, token: &'a Token, id: u64) -> Result<PortView<'a>> {
        PortView::new(token.map(), self.block_offset(id))
    }

    /// Gives a block back; no sample may be borrowed through it any more.
    pub(crate) fn release(&self, token: &Arc<Token>, id: u64) {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        if let Ok(view) = self.view(token, id) {
            view.id().store(0, Release);
        }
        if let Some(used) = table.used.get_mut(id as usize % layout::PORTS_MAX) {
            *used = false;
        }
    }
}

/// A port block of our own, kept mapped.
#[derive(Clone, Debug)]
pub(crate) struct OwnPort {
    token: Arc<Token>,
    offset: usize,
}

impl OwnPort {
    pub(super) fn new(token: &Arc<Token>, offset: usize) -> Result<Self> {
        PortView::new(token.map(), offset)?;
        Ok(Self { token: Arc::clone(token), offset })
    }

    #[inline]
    pub(crate) fn view(&self) -> PortView<'_> {
        PortView::checked(self.token.map(), self.offset)
    }
}
