//! A publisher's chunks: segments that grow on demand, free chunks, and chunks that wait for their
//! last reader.
//!
//! # Theory of operation
//! A chunk is *loaned* (the publisher fills it), then *published* (an entry of the ring names it),
//! then *retired* (its entry was overwritten), and *free* again once no subscriber's hazard names
//! it. Hazards are looked at only when no free chunk fits. The list of free chunks is a stack: the
//! one that was written last is the one still in the cache.

use std::path::{Path, PathBuf};

use super::hazard::Location;
use super::segments::DataMapping;
use crate::domain::header::{FileHeader, FileKind, round_up};
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::Draft;
use crate::sync::Ordering::Relaxed;
use crate::topic::ring::layout::{SEGMENTS_MAX, data};
use crate::{Error, ErrorKind, Result};

/// Where a publisher's data segments live and how much they may take.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) dir: PathBuf,
    pub(crate) topic: String,
    pub(crate) node: u64,
    pub(crate) port: u64,
    pub(crate) mode: u32,
    pub(crate) memory_bytes_max: u64,
}

#[derive(Debug)]
struct Segment {
    map: DataMapping,
    chunk_bytes: usize,
    chunks: u32,
    free: Vec<u32>,
}

/// All chunks of one publisher.
#[derive(Debug)]
pub(crate) struct Pool {
    config: PoolConfig,
    segments: Vec<Segment>,
    retired: Vec<Location>,
    bytes: u64,
}

/// A chunk that the publisher may write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) location: Location,
    pub(crate) ptr: *mut u8,
}

/// Name of segment `k` of a publisher.
pub(crate) fn segment_path(dir: &Path, node: u64, port: u64, k: usize) -> PathBuf {
    dir.join(format!("data.{node}.{port}.{k}"))
}

impl Pool {
    pub(crate) fn new(config: PoolConfig) -> Self {
        Self { config, segments: Vec::new(), retired: Vec::new(), bytes: 0 }
    }

    /// A free chunk of at least `bytes`, without growing; `None` means scan or grow.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Chunk> {
        let fits = |s: &Segment| s.chunk_bytes >= bytes && !s.free.is_empty();
        // Nearly always there is one segment, or the first one fits.
        let k = match &self.segments[..] {
            [only] if fits(only) => 0,
            segments => {
                let fitting = segments.iter().enumerate().filter(|(_, s)| fits(s));
                fitting.min_by_key(|(_, s)| s.chunk_bytes)?.0
            }
        };
        let segment = &mut self.segments[k];
        let chunk = segment.free.pop()?;
        let offset = data::FIRST + chunk as usize * segment.chunk_bytes;
        let ptr = segment.map.base().wrapping_add(offset).cast_mut();
        Some(Chunk { location: Location::new(k as u16, chunk), ptr })
    }

    /// A loan that was not published, or a retired chunk that nobody reads.
    #[inline]
    pub(crate) fn give_back(&mut self, location: Location) {
        if let Some(segment) = self.segments.get_mut(location.segment() as usize) {
            debug_assert!(location.chunk() < segment.chunks);
            segment.free.push(location.chunk());
        }
    }

    /// The entry that named `location` is overwritten.
    #[inline]
    pub(crate) fn retire(&mut self, location: Location) {
        self.retired.push(location);
    }

    /// Frees every retired chunk that is not in `held`.
    pub(crate) fn reclaim(&mut self, held: &[Location]) {
        let mut kept = 0;
        for i in 0..self.retired.len() {
            let location = self.retired[i];
            if held.contains(&location) {
                self.retired[kept] = location;
                kept += 1;
            } else {
                // The youngest is pushed last: it is the hottest.
                self.give_back(location);
            }
        }
        self.retired.truncate(kept);
    }

    /// Adds a segment with room for payloads of `bytes` bytes and `count` chunks at first.
    ///
    /// # Errors
    /// `OutOfMemory` past the publisher's bound, `NoSpace` on a full RAM disk. Chunks in use stay
    /// as they are.
    ///
    /// # Crash safety
    /// **Strict.** The segment appears complete; no entry names it before the next commit.
    pub(crate) fn grow(&mut self, bytes: usize, align: usize, count: usize) -> Result<()> {
        let (chunk_bytes, fit) = self.room_for(bytes, align);
        let same: usize = self
            .segments
            .iter()
            .filter(|s| s.chunk_bytes >= bytes)
            .map(|s| s.chunks as usize)
            .sum();
        // Doubling: as many again as there are of this size.
        let chunks = count.max(same).min(fit);
        let (needs, allowed) = (chunk_bytes + data::FIRST, self.config.memory_bytes_max);
        if needs as u64 > allowed {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                "growing the publisher's memory on topic",
                &self.config.topic,
                format!(
                    "a payload of {bytes} bytes needs {needs} bytes of shared memory, and \
                     {allowed} are allowed: raise memory_bytes_max"
                ),
            ));
        }
        if chunks == 0 || self.segments.len() >= SEGMENTS_MAX {
            let [bytes, segments, allowed] = self.figures();
            return Err(at_bound(&self.config.topic, bytes, segments, allowed));
        }
        self.add_most(chunk_bytes, chunks)
    }

    /// Adds a segment of `chunks` chunks, of half as many where the system refuses that, and so on:
    /// one chunk is enough to go on, but segments are limited in number.
    fn add_most(&mut self, chunk_bytes: usize, mut chunks: usize) -> Result<()> {
        use ErrorKind::{NoSpace, OutOfMemory};
        loop {
            match self.add(chunk_bytes, chunks) {
                Err(e) if chunks > 1 && matches!(e.kind(), NoSpace | OutOfMemory) => chunks /= 2,
                done => return done,
            }
        }
    }

    /// Bytes of a chunk for payloads of `bytes`, and how many more there may be.
    fn room_for(&self, bytes: usize, align: usize) -> (usize, usize) {
        let chunk_bytes = chunk_bytes(bytes, align, self.segments.last().map(|s| s.chunk_bytes));
        let room = (self.config.memory_bytes_max.saturating_sub(self.bytes)) as usize;
        (chunk_bytes, room.saturating_sub(data::FIRST) / chunk_bytes)
    }

    /// Whether `grow` would refuse, because of chunks that are in use.
    pub(crate) fn is_at_bound(&self, bytes: usize, align: usize) -> bool {
        let (chunk_bytes, fit) = self.room_for(bytes, align);
        let ever = (chunk_bytes + data::FIRST) as u64 <= self.config.memory_bytes_max;
        ever && (fit == 0 || self.segments.len() >= SEGMENTS_MAX)
    }

    /// Bytes and segments in use, and bytes allowed.
    pub(crate) fn figures(&self) -> [u64; 3] {
        [self.bytes, self.segments.len() as u64, self.config.memory_bytes_max]
    }

    fn add(&mut self, chunk_bytes: usize, chunks: usize) -> Result<()> {
        let c = &self.config;
        let k = self.segments.len();
        let len = round_up(data::FIRST + chunk_bytes * chunks, PAGE);
        let path = segment_path(&c.dir, c.node, c.port, k);
        let draft = Draft::new(&c.dir, len as u64, c.mode)?;
        let map = draft.map_reserve(len, &path)?;
        FileHeader { kind: FileKind::Data, total_bytes: len as u64, node: c.node, port: c.port }
            .write(&map)?;
        map.atomic_u64(data::CHUNK_BYTES)?.store(chunk_bytes as u64, Relaxed);
        map.atomic_u64(data::CHUNKS)?.store(chunks as u64, Relaxed);
        draft.link(&path)?;
        let map = DataMapping::new(map, true);
        let free = (0..chunks as u32).rev().collect();
        self.segments.push(Segment { map, chunk_bytes, chunks: chunks as u32, free });
        self.bytes += len as u64;
        Ok(())
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether somebody cut the chunk's segment short.
    #[inline]
    pub(crate) fn is_poisoned(&self, location: Location) -> bool {
        self.segments.get(location.segment() as usize).is_none_or(|s| s.map.is_poisoned())
    }

    /// Removes the files; only for a publisher whose ring nobody can find any more.
    pub(crate) fn unlink(&self) {
        let c = &self.config;
        for k in 0..self.segments.len() {
            let _ = file::unlink(&segment_path(&c.dir, c.node, c.port, k));
        }
    }
}

/// All of `bytes` bytes of a publisher are in use.
#[cold]
pub(in crate::topic) fn at_bound(topic: &str, bytes: u64, segments: u64, allowed: u64) -> Error {
    let remedy = match segments >= SEGMENTS_MAX as u64 {
        true => format!(
            "{bytes} bytes in all {segments} segments that a publisher has are in use: let \
             subscribers drop samples, lower the depth, or open the publisher again"
        ),
        false => format!(
            "{bytes} bytes in {segments} segments are in use of {allowed} allowed: raise \
             memory_bytes_max, lower the depth, or let subscribers drop samples"
        ),
    };
    Error::new(ErrorKind::OutOfMemory, "growing the publisher's memory on topic", topic, remedy)
}

/// Size of a chunk for payloads of `bytes`: as asked the first time, with slack when payloads
/// turn out to grow.
fn chunk_bytes(bytes: usize, align: usize, last: Option<usize>) -> usize {
    let unit = if bytes >= PAGE { PAGE } else { 64 };
    let unit = unit.max(align);
    match last {
        Some(last) if bytes <= last => last,
        Some(_) => round_up(bytes + bytes / 4, unit),
        None => round_up(bytes.max(1), unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::TempDir;

    fn pool(dir: &TempDir, max: u64) -> Pool {
        Pool::new(PoolConfig {
            dir: dir.path().to_path_buf(),
            topic: "/t".into(),
            node: 1,
            port: 2,
            mode: 0o600,
            memory_bytes_max: max,
        })
    }

    #[test]
    fn the_chunk_written_last_is_loaned_first_and_held_chunks_stay_away() {
        let dir = TempDir::new("pool");
        let mut p = pool(&dir, 1 << 20);
        assert!(p.take(100).is_none());
        p.grow(100, 8, 3).unwrap();
        let a = p.take(100).unwrap().location;
        let b = p.take(100).unwrap().location;
        p.retire(a);
        p.retire(b);
        p.reclaim(&[a]);
        assert_eq!(p.take(100).unwrap().location, b);
        assert_ne!(p.take(100).unwrap().location, a);
        assert!(p.take(100).is_none(), "a is still held");
        p.reclaim(&[]);
        assert_eq!(p.take(100).unwrap().location, a);
    }

    #[test]
    fn growth_doubles_up_to_the_bound_and_then_says_out_of_memory() {
        let dir = TempDir::new("pool-bound");
        let mut p = pool(&dir, 64 * 1024);
        let mut taken = 0;
        let e = loop {
            match p.take(4096) {
                Some(_) => taken += 1,
                None => match p.grow(4096, 64, 2) {
                    Ok(()) => {}
                    Err(e) => break e,
                },
            }
        };
        assert_eq!(e.kind(), ErrorKind::OutOfMemory);
        assert!(taken >= 10 && p.bytes() <= 64 * 1024, "{taken} chunks in {} bytes", p.bytes());
    }

    #[test]
    fn a_payload_that_never_fits_is_told_what_it_needs() {
        let dir = TempDir::new("pool-never");
        let mut p = pool(&dir, 1 << 20);
        let e = p.grow(1 << 20, 8, 1).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::OutOfMemory);
        let told = "a payload of 1048576 bytes needs 1052672 bytes of shared memory";
        assert!(e.to_string().contains(told), "{e}");
        assert!(p.grow(4096, 8, 1).is_ok());
    }

    #[test]
    fn what_the_system_refuses_is_tried_with_half_as_many_chunks() {
        use crate::os::fixture;

        let dir = TempDir::new("pool-half");
        let mut p = pool(&dir, 1 << 20);
        fixture::refuse("map", "/data.", libc::ENOMEM, 2);
        p.grow(4096, 8, 8).unwrap();
        assert_eq!((fixture::refuse_none(), p.segments[0].chunks), (0, 2));
        fixture::refuse("map", "/data.", libc::ENOMEM, u32::MAX);
        let told = p.grow(4096, 8, 8).unwrap_err();
        fixture::refuse_none();
        assert_eq!((told.kind(), p.segments.len()), (ErrorKind::OutOfMemory, 1));
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 1, "what could not be mapped is gone");
    }

    #[test]
    fn a_publisher_out_of_segments_is_told_so() {
        let told = |segments| at_bound("/t", 1, segments, 100).to_string();
        assert!(told(63).contains("raise memory_bytes_max"), "{}", told(63));
        assert!(told(64).contains("all 64 segments"), "{}", told(64));
        assert!(!told(64).contains("memory_bytes_max"), "{}", told(64));
    }

    #[test]
    fn larger_payloads_get_larger_chunks_and_small_ones_the_smallest_that_fits() {
        let dir = TempDir::new("pool-sizes");
        let mut p = pool(&dir, 1 << 20);
        p.grow(100, 8, 1).unwrap();
        p.grow(10_000, 8, 1).unwrap();
        assert_eq!(p.take(50).unwrap().location.segment(), 0);
        assert_eq!(p.take(50).unwrap().location.segment(), 1, "better large than none");
        assert!(p.take(20_000).is_none());
    }
}
