//! Which line of which lock the calling thread reads on: a small cache, so that reading again
//! takes no search.

use std::cell::Cell;
use std::ptr::NonNull;

use super::readers::Line;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// Locks a thread remembers its line of; by number, the younger replaces the older.
const REMEMBERED: usize = 16;

#[derive(Clone, Copy)]
struct Known {
    lock: u64,
    line: Option<NonNull<Line>>,
    me: u64,
}

thread_local! {
    static KNOWN: [Cell<Known>; REMEMBERED] =
        const { [const { Cell::new(Known { lock: 0, line: None, me: 0 }) }; REMEMBERED] };
}

/// A number that no other handle of this process ever had.
pub(in crate::lock) fn next_key() -> u64 {
    static KEYS: AtomicU64 = AtomicU64::new(1);
    KEYS.fetch_add(1, Relaxed)
}

/// The calling thread's line of the lock `key`, and its id. The line may be somebody else's by now.
#[inline(always)]
pub(in crate::lock) fn recall(key: u64) -> Option<(NonNull<Line>, u64)> {
    KNOWN.with(|known| {
        let Known { lock, line, me } = known[key as usize % REMEMBERED].get();
        if lock == key { line.map(|line| (line, me)) } else { None }
    })
}

pub(in crate::lock) fn remember(key: u64, line: NonNull<Line>, me: u64) {
    KNOWN.with(|known| {
        known[key as usize % REMEMBERED].set(Known { lock: key, line: Some(line), me });
    });
}
