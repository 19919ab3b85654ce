//! Locks: their files, and who holds them.

use std::collections::BTreeMap;

use crate::history::step::Handle;

/// [`MUTEX`], [`RWLOCK`] or [`PI`], and its number.
pub(crate) type Name = (u64, u64);
pub(crate) const MUTEX: u64 = 0;
pub(crate) const RWLOCK: u64 = 1;
pub(crate) const PI: u64 = 2;

/// A lock by its name: its files, of which the last one is found by who opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) newest: u64,
    pub(crate) files: BTreeMap<u64, File>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) data: [u64; 4],
    pub(crate) state: State,
    pub(crate) readers: Vec<Reader>,
    /// Whoever waited for readers has died: that counts as inside, if it had come so far.
    pub(crate) unsure: bool,
    /// One who woke late has died: it may have inherited the data of a dead holder before, and
    /// have given the lock up.
    pub(crate) perhaps_lost: bool,
    /// Or have repaired the data.
    pub(crate) perhaps_healed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    /// By that thread, whose guard is forgotten or not; `broken`: inherited and not repaired.
    Held { guard: Handle, by: (usize, usize), forgotten: bool, broken: bool },
    /// Nobody's, after a death inside.
    Broken,
    /// Nobody's as long as that process lives, whose thread forgot its guard and ended.
    Leaked { member: usize, guard: Handle },
    /// Given up.
    Lost,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) guard: Handle,
    pub(crate) by: (usize, usize),
    pub(crate) forgotten: bool,
    /// Its thread forgot the guard and ended.
    pub(crate) leaked: bool,
}

impl Lock {
    pub(crate) fn file(&mut self) -> &mut File {
        self.files.entry(self.newest).or_default()
    }

    /// One that lies in a segment.
    pub(crate) fn begin(&mut self, file: u64) {
        self.files.entry(file).or_default();
    }

    /// Whether the one that is found by name is given up.
    pub(crate) fn is_lost(&self) -> bool {
        self.files.get(&self.newest).is_some_and(|f| f.state == State::Lost)
    }

    /// Whoever opens it next makes it again.
    pub(crate) fn replace(&mut self) {
        self.newest += 1;
    }
}
