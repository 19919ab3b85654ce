//! `meta`: what all members of a topic agree on, written once by the first.

use std::collections::BTreeMap;
use std::path::Path;

use super::attributes;
use crate::domain::header::{FileHeader, FileKind, round_up};
use crate::domain::joining::read_or_create;
use crate::domain::name::TopicName;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft, Expect};
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Relaxed;
use crate::topic::ring::layout;
use crate::topic::ring::layout::meta;
use crate::types::encoding::Encoding;
use crate::types::payload::Payload;
use crate::types::payload_type::shared::{Bounds, Parsed, Unreadable};
use crate::types::payload_type::{PAYLOAD_BYTES_MAX, PayloadType};
use crate::{Error, ErrorKind, Result};

const BOUNDS: Bounds = Bounds { name_bytes: meta::NAME_BYTES_MAX, size_bytes: PAYLOAD_BYTES_MAX };
const _: () = assert!(BOUNDS.schema() == meta::SCHEMA);

/// Depth of a topic whose creator did not ask for one, messages.
pub(crate) const DEPTH_DEFAULT: u64 = 16;

/// What a member expects of a topic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedMeta {
    pub(crate) of: PayloadType,
    /// Messages asked for, 0 for "whatever it has". Each publisher has its own; whoever makes the
    /// topic says what those get that do not ask.
    pub(crate) depth: u64,
    /// Of no account unless it makes the topic.
    pub(crate) attributes: BTreeMap<String, String>,
}

impl WantedMeta {
    pub(crate) fn of<T: Payload + ?Sized>() -> Self {
        Self::of_type(T::payload_type())
    }

    pub(crate) fn of_type(of: PayloadType) -> Self {
        Self { of, depth: 0, attributes: BTreeMap::new() }
    }

    fn check(&self, topic: &TopicName) -> Result<()> {
        let bad = |why: String| {
            Err(Error::new(ErrorKind::InvalidArgument, "opening topic", topic.as_str(), why))
        };
        if self.depth > layout::DEPTH_MAX {
            return bad(format!(
                "a depth of {} is more than {}: use a smaller one",
                self.depth,
                layout::DEPTH_MAX
            ));
        }
        self.of.check_shareable(BOUNDS, true).or_else(bad)?;
        attributes::to_text(&self.attributes).map(drop).or_else(bad)
    }
}

/// The checked content of a topic's `meta`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) of: PayloadType,
    /// Of the rings of publishers that do not ask for another.
    pub(crate) depth: u64,
    pub(crate) entry_bytes: usize,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Meta {
    /// Reads `meta` in the topic's directory; `NotFound` while the topic is being made or removed.
    pub(crate) fn read(dir: &Path, access: &Access) -> Result<Self> {
        let path = dir.join("meta");
        let owner = access.owner_required();
        let expect = Expect { writable: false, min_len: meta::SCHEMA as u64, owner };
        let (fd, len) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, len as usize, &path)?;
        Self::parse(&map, len).map_err(|e| e.error(&map))
    }

    fn parse(map: &Mapping, len: u64) -> Parsed<Self> {
        FileHeader::read(map, FileKind::Meta, len)?;
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let of = PayloadType::read(map, len, BOUNDS)?;
        let depth = at(meta::DEPTH)? as u64;
        if !layout::is_depth(depth) {
            return Err(Unreadable::Field("depth"));
        }
        let entry_bytes = at(meta::ENTRY_BYTES)?;
        if !layout::is_entry_bytes(entry_bytes) {
            return Err(Unreadable::Field("entry size"));
        }
        let (from, length) = (meta::SCHEMA + of.schema().len(), at(meta::ATTRIBUTES_LEN)?);
        if length > attributes::BYTES_MAX || from + length > len as usize {
            return Err(Unreadable::Field("length of the attributes"));
        }
        let attributes = attributes::parse(&map.copy_out(from, length)?);
        Ok(Self { of, depth, entry_bytes, attributes })
    }

    /// Reads the topic's `meta`, or makes it from `wanted` if nobody has yet.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(crate) fn open_or_create(
        dir: &Path,
        topic: &TopicName,
        wanted: &WantedMeta,
        access: &Access,
    ) -> Result<Self> {
        wanted.check(topic)?;
        let meta =
            read_or_create(|| Self::read(dir, access), || Self::create(dir, wanted, access))?;
        meta.accept(topic, wanted)
    }

    fn create(dir: &Path, wanted: &WantedMeta, access: &Access) -> Result<()> {
        let of = &wanted.of;
        let slice = of.encoding() != Encoding::Fixed;
        let entry_bytes = layout::entry_bytes(of.size(), of.align(), slice);
        let depth = match wanted.depth {
            0 => DEPTH_DEFAULT,
            n => n.next_power_of_two(),
        };
        // Checked by the caller.
        let attributes = attributes::to_text(&wanted.attributes).unwrap_or_default();
        let behind = meta::SCHEMA + of.schema().len();
        let bytes = round_up(behind + attributes.len(), 64);
        let draft = Draft::new(dir, bytes as u64, access.own_mode)?;
        {
            let map = draft.map()?;
            let total_bytes = bytes as u64;
            FileHeader { kind: FileKind::Meta, total_bytes, node: 0, port: 0 }.write(&map)?;
            of.write(&map, BOUNDS)?;
            for (offset, value) in [
                (meta::DEPTH, depth as usize),
                (meta::ENTRY_BYTES, entry_bytes),
                (meta::ATTRIBUTES_LEN, attributes.len()),
            ] {
                map.atomic_u64(offset)?.store(value as u64, Relaxed);
            }
            map.copy_in(behind, &attributes)?;
        }
        draft.link(&dir.join("meta")).map(drop)
    }

    /// Compares with what a member expects; the error lists every field that differs.
    fn accept(self, topic: &TopicName, wanted: &WantedMeta) -> Result<Self> {
        let differences = self.of.differences(&wanted.of);
        if differences.is_empty() {
            return Ok(self);
        }
        Err(Error::new(
            ErrorKind::TypeMismatch,
            "opening topic",
            topic.as_str(),
            remedy(&differences),
        ))
    }
}

/// All differences, one line each if they are several, and what to do about them.
fn remedy(differences: &[String]) -> String {
    let what = match differences {
        [one] => format!("{one}: "),
        several => format!("the two differ:\n  {}\n", several.join("\n  ")),
    };
    format!(
        "{what}use the same type in all programs, or another topic; a topic's type can change \
         once all its members have left or died"
    )
}
