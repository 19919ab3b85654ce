//! The data segments of one publisher, mapped when a chunk of theirs is first read. What they say
//! is a claim: checked, then used.

use crate::domain::header::{FileHeader, FileKind};
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;
use crate::topic::chunks::hazard::Location;
use crate::topic::chunks::pool::segment_path;
use crate::topic::chunks::segments::DataMapping;
use crate::topic::membership::Topic;
use crate::topic::membership::entry::PublisherId;
use crate::topic::ring::layout;
use crate::topic::ring::layout::data;
use crate::{Error, ErrorKind, Result};

/// Those that are mapped, by number.
#[derive(Debug, Default)]
pub(super) struct Segments(Vec<Option<Segment>>);

#[derive(Debug)]
struct Segment {
    map: DataMapping,
    chunk_bytes: usize,
    chunks: u32,
}

impl Segments {
    /// Address of a chunk of publisher `id`: segment mapped, chunk and length inside it.
    ///
    /// # Errors
    /// `Corrupt`; those of opening the file.
    #[inline]
    pub(super) fn resolve(
        &mut self,
        topic: &Topic,
        id: PublisherId,
        location: Location,
        bytes: usize,
    ) -> Result<*const u8> {
        let k = location.segment() as usize;
        if !matches!(self.0.get(k), Some(Some(_))) {
            self.map(topic, id, k)?;
        }
        if let Some(Some(s)) = self.0.get(k)
            && (location.chunk() < s.chunks || fault("chunk.index_unchecked"))
            && (bytes <= s.chunk_bytes || fault("chunk.length_unchecked"))
            && !s.map.is_poisoned()
        {
            // In range: `map` checked that all chunks lie inside the mapping.
            return Ok(s
                .map
                .base()
                .wrapping_add(data::FIRST + location.chunk() as usize * s.chunk_bytes));
        }
        Err(corrupt(topic, id, "a chunk's position or length"))
    }

    #[cold]
    fn map(&mut self, topic: &Topic, id: PublisherId, k: usize) -> Result<()> {
        if k >= layout::SEGMENTS_MAX {
            return Err(corrupt(topic, id, "a chunk's segment"));
        }
        let path = segment_path(&topic.dir, id.node.0, id.port, k);
        let owner = topic.node.domain().access.owner_required();
        let expect = Expect { writable: false, min_len: PAGE as u64, owner };
        let (fd, file_bytes) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, file_bytes as usize, &path)?;
        if !fault("segment.namesake") {
            topic.node.must_be_listed()?;
        }
        let header = FileHeader::read(&map, FileKind::Data, file_bytes)?;
        let chunk_bytes = map.atomic_u64(data::CHUNK_BYTES)?.load(Relaxed);
        let chunks = map.atomic_u64(data::CHUNKS)?.load(Relaxed);
        let end = chunk_bytes.checked_mul(chunks).and_then(|b| b.checked_add(data::FIRST as u64));
        let aligned = chunk_bytes % topic.meta.of.align.max(64) as u64 == 0;
        let good = header.node == id.node.0
            && header.port == id.port
            && chunk_bytes > 0
            && aligned
            && chunks <= u64::from(u32::MAX)
            && end.is_some_and(|end| end <= file_bytes);
        if !good && !fault("segment.header_unchecked") {
            return Err(corrupt(topic, id, "the header of a data segment"));
        }
        if self.0.len() <= k {
            self.0.resize_with(k + 1, || None);
        }
        let (chunk_bytes, chunks) = (chunk_bytes as usize, chunks as u32);
        let map = DataMapping::new(map, false);
        self.0[k] = Some(Segment { map, chunk_bytes, chunks });
        Ok(())
    }

    /// The maps.
    pub(super) fn maps(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter().flatten().map(|s| &*s.map)
    }
}

/// Publisher `id` of `topic` wrote what no publisher writes.
#[cold]
pub(super) fn corrupt(topic: &Topic, id: PublisherId, what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("reading publisher {id} of"),
        topic.name.as_str(),
        format!("{what} is out of range: restart that publisher; it is not read any more"),
    )
}
