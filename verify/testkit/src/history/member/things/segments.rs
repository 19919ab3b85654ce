//! Segments: how large they are, and what has how much room in one.

use outlive::lock::{self, LocklessSet, RobustCondvar, RobustMutex, RobustRwLock, RobustSemaphore};

use super::locks::Data;
use crate::history::step::Verb;

/// Objects are placed in lines of so many bytes.
pub(crate) const LINE: usize = 64;
/// Lines of a segment, without those of the table of its objects.
pub(crate) const LINES: [u64; 2] = [16, 256];
/// Words of the first line, which members read and write.
pub(crate) const WORDS: usize = LINE / 8;

pub(crate) type Small = [u64; LINES[0] as usize * WORDS];
pub(crate) type Large = [u64; LINES[1] as usize * WORDS];

/// One of either size.
pub(crate) enum Segment {
    Small(lock::Segment<Small>),
    Large(lock::Segment<Large>),
}

/// Kinds of what is placed, by number.
pub(crate) const PLACED: [Verb; 5] =
    [Verb::Mutex, Verb::RwLock, Verb::Condvar, Verb::Semaphore, Verb::Set];

/// Lines that such an object takes.
pub(crate) fn lines(what: Verb, count: u64) -> u64 {
    let bytes = match what {
        Verb::Mutex => RobustMutex::<Data>::BYTES,
        Verb::RwLock => RobustRwLock::<Data>::BYTES,
        Verb::Condvar => RobustCondvar::BYTES,
        Verb::Semaphore => RobustSemaphore::bytes(count as usize),
        _ => LocklessSet::bytes(count as usize),
    };
    bytes.div_ceil(LINE) as u64
}
