//! Subscriber port blocks of our own node file: handing out, growing, taking back.

use std::sync::Arc;

use super::layout;
use super::peer::{PortView, port};
use super::token::Token;
use crate::os::fs::file;
use crate::os::process::fork::NotInChild;
use crate::sync::Mutex;
use crate::sync::Ordering::{Relaxed, Release};
use crate::{Error, ErrorKind, Result, crash_point};

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
        let block = self.free_block(&mut table, fd, token)?;
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
        view.next().store(0, Relaxed);
        for slot in 0..port::SOURCES_FIRST {
            view.source(slot).reset();
        }
        // ORDERING(PORT_ID): pairs with `Subscribers::admit`; carries the zeroed block.
        view.id().store(id, Release);
        table.used[block] = true;
        Ok(id)
    }

    /// The number of a block that is nobody's and exists in the file.
    fn free_block(&self, table: &mut Table, fd: &NotInChild, token: &Token) -> Result<usize> {
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
            let file = fd.now(token.map().path())?;
            file::grow(&file, layout::file_bytes(self.offset, capacity) as u64)?;
            table.capacity = capacity;
        }
        if block == table.used.len() {
            table.used.push(false);
        }
        Ok(block)
    }

    /// Gives port `id` a block with further places; `false` when it has as many as it may.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `next`; until then the block is nobody's.
    pub(crate) fn extend(&self, fd: &NotInChild, token: &Token, id: u64) -> Result<bool> {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        let first = self.view(token, id)?;
        if first.chain().count() >= port::MORE_MAX {
            return Ok(false);
        }
        let last = first.chain().last().unwrap_or(first);
        let block = self.free_block(&mut table, fd, token)?;
        let view = PortView::new(token.map(), self.offset, block)?;
        view.id().store(0, Relaxed);
        view.next().store(0, Relaxed);
        for slot in 0..port::MORE_SOURCES {
            let place = view.further_place(slot);
            place.reset();
            let changes = place.changes;
            // Even, and no value that it had: the block may have been a port's.
            changes.store((changes.load(Relaxed) | 1).wrapping_add(1), Relaxed);
        }
        crash_point!("ports.extend.before_link");
        // ORDERING(MORE): pairs with `PortView::chain`; carries the block's places.
        last.next().store(block as u64 + 1, Release);
        table.used[block] = true;
        Ok(true)
    }

    /// The number of the block of port `id`.
    fn block(id: u64) -> usize {
        id as usize % layout::PORTS_MAX
    }

    fn view<'a>(&self, token: &'a Token, id: u64) -> Result<PortView<'a>> {
        PortView::new(token.map(), self.offset, Self::block(id))
    }

    /// Gives a block back; no sample may be borrowed through it any more.
    pub(crate) fn release(&self, token: &Arc<Token>, id: u64) {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        if let Ok(view) = self.view(token, id) {
            view.id().store(0, Release);
            for block in std::iter::once(view).chain(view.chain()) {
                let next = block.next().load(Relaxed).wrapping_sub(1) as usize;
                if let Some(used) = table.used.get_mut(next) {
                    *used = false;
                }
            }
            view.next().store(0, Relaxed);
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
    ports: usize,
    block: usize,
    id: u64,
}

impl OwnPort {
    pub(super) fn new(token: &Arc<Token>, ports: &Ports, id: u64) -> Result<Self> {
        let (ports, block) = (ports.offset, Ports::block(id));
        PortView::new(token.map(), ports, block)?;
        Ok(Self { token: Arc::clone(token), ports, block, id })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub(crate) fn view(&self) -> PortView<'_> {
        PortView::checked(self.token.map(), self.ports, self.block)
    }
}
