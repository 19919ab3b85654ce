//! What kind of memory an address belongs to: asked once, when a lock is placed there.

use crate::Result;
use crate::os::syserr;

/// Whether all of `len` bytes at `start` are mapped shared and writable.
///
/// # Errors
/// When the list of mappings cannot be read.
pub(crate) fn is_shared(start: usize, len: usize) -> Result<bool> {
    // Not `self`, of which nothing can be read once the main thread has ended.
    let maps = std::fs::read_to_string("/proc/thread-self/maps")
        .map_err(|e| syserr::from_io("read", "/proc/thread-self/maps", e))?;
    Ok(covers(&maps, start, len))
}

/// `maps` lists ranges in ascending order: `start-end rw-s ...`.
fn covers(maps: &str, start: usize, len: usize) -> bool {
    let Some(end) = start.checked_add(len) else { return false };
    let mut at = start;
    for line in maps.lines() {
        let mut parts = line.split(' ');
        let (range, mode) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let bounds = range.split_once('-').and_then(|(from, to)| {
            Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
        });
        let Some((from, to)) = bounds else { continue };
        if to <= at {
            continue;
        }
        if from > at || !mode.starts_with("rw") || !mode.ends_with('s') {
            return false;
        }
        at = to;
        if at >= end {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 rw-s 00000000 00:01 12 /dev/shm/x
3000-4000 rw-s 00000000 00:01 13 /dev/shm/y
4000-5000 r--s 00000000 00:01 13 /dev/shm/z
6000-7000 rw-p 00000000 00:00 0 [heap]
";

    #[test]
    fn only_shared_writable_ranges_without_holes_count() {
        for (start, len) in [(0x1000, 0x2000), (0x1ff0, 8), (0x2ff0, 0x20), (0x1000, 0x3000)] {
            assert!(covers(MAPS, start, len), "{start:x} {len:x}");
        }
        for (start, len) in [(0, 8), (0x3ff8, 16), (0x4000, 8), (0x6000, 8), (usize::MAX, 8)] {
            assert!(!covers(MAPS, start, len), "{start:x} {len:x}");
        }
    }

    #[test]
    fn the_stack_is_private() {
        let here = 0_u64;
        assert!(!is_shared((&raw const here).addr(), 8).unwrap());
    }
}
