//! `meta`: what all members of a topic agree on, written once by the first.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::attributes;
use crate::domain::header::{FileHeader, FileKind, round_up};
use crate::domain::joining::read_or_create;
use crate::domain::name::TopicName;
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft, Expect};
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Relaxed;
use crate::topic::ring::layout;
use crate::topic::ring::layout::meta;
use crate::types::payload::{Encoding, Payload};
use crate::types::payload_type::PAYLOAD_BYTES_MAX;
use crate::types::payload_type::PayloadType;
use crate::types::schema::{self, SCHEMA_BYTES_MAX};
use crate::{Error, ErrorKind, Result};

/// Depth of a topic whose creator did not ask for one, messages.
pub(crate) const DEPTH_DEFAULT: u64 = 16;

/// What a member expects of a topic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedMeta {
    pub(crate) encoding: Encoding,
    pub(crate) type_name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Messages asked for, 0 for "whatever it has". Each publisher has its own; whoever makes the
    /// topic says what those get that do not ask.
    pub(crate) depth: u64,
    pub(crate) schema: Vec<u8>,
    /// Of no account unless it makes the topic.
    pub(crate) attributes: BTreeMap<String, String>,
}

impl WantedMeta {
    pub(crate) fn of<T: Payload + ?Sized>() -> Self {
        Self::of_type(&T::payload_type())
    }

    pub(crate) fn of_type(of: &PayloadType) -> Self {
        let (type_name, schema) = (of.name.clone(), of.schema.clone());
        let PayloadType { encoding, size, align, .. } = *of;
        Self { encoding, type_name, size, align, depth: 0, schema, attributes: BTreeMap::new() }
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
        if self.size == 0 || self.align > PAGE {
            return bad("types of 0 bytes or aligned to more than 4096 cannot be shared".into());
        }
        if self.type_name.is_empty() || self.type_name.len() > meta::NAME_BYTES_MAX {
            return bad(format!(
                "a type name has 1 to 256 bytes and '{}' has {}: give another",
                self.type_name,
                self.type_name.len()
            ));
        }
        if let Err(why) = schema::stored((self.encoding, &self.type_name, &self.schema)) {
            return bad(why);
        }
        attributes::to_text(&self.attributes).map(drop).or_else(bad)
    }
}

/// The checked content of a topic's `meta`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) encoding: Encoding,
    pub(crate) type_name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Of the rings of publishers that do not ask for another.
    pub(crate) depth: u64,
    pub(crate) entry_bytes: usize,
    pub(crate) schema: Vec<u8>,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Meta {
    /// Reads `meta` in the topic's directory; `NotFound` while the topic is being made or removed.
    pub(crate) fn read(dir: &Path, access: &Access) -> Result<Self> {
        let path = dir.join("meta");
        let expect = Expect {
            writable: false,
            min_len: meta::SCHEMA as u64,
            owner: access.owner_required(),
        };
        let (fd, len) = file::open_checked(&path, expect)?;
        Self::parse(&fd, len, &path)
    }

    fn parse(fd: &OwnedFd, len: u64, path: &Path) -> Result<Self> {
        let corrupt = |field: &str| {
            Error::new(
                ErrorKind::Corrupt,
                "reading",
                path.display().to_string(),
                format!("its {field} is out of range: stop the members and run 'outlive clean'"),
            )
        };
        let map = Mapping::map_peer(fd, len as usize, path)?;
        FileHeader::read(&map, FileKind::Meta, len)?;
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let encoding = Encoding::from_raw(map.atomic_u32(meta::ENCODING)?.load(Relaxed))
            .ok_or_else(|| corrupt("encoding"))?;
        let (size, align) = (at(meta::SIZE)?, at(meta::ALIGN)?);
        if size == 0 || size > PAYLOAD_BYTES_MAX {
            return Err(corrupt("element size"));
        }
        if !align.is_power_of_two() || align > PAGE {
            return Err(corrupt("alignment"));
        }
        let depth = at(meta::DEPTH)? as u64;
        if !layout::is_depth(depth) {
            return Err(corrupt("depth"));
        }
        let entry_bytes = at(meta::ENTRY_BYTES)?;
        if !layout::is_entry_bytes(entry_bytes) {
            return Err(corrupt("entry size"));
        }
        let name_len = at(meta::NAME_LEN)?;
        if name_len == 0 || name_len > meta::NAME_BYTES_MAX {
            return Err(corrupt("type name"));
        }
        let schema_len = at(meta::SCHEMA_LEN)?;
        if schema_len > SCHEMA_BYTES_MAX || meta::SCHEMA + schema_len > len as usize {
            return Err(corrupt("schema"));
        }
        let (from, attributes_len) = (meta::SCHEMA + schema_len, at(meta::ATTRIBUTES_LEN)?);
        if attributes_len > attributes::BYTES_MAX || from + attributes_len > len as usize {
            return Err(corrupt("length of the attributes"));
        }
        let type_name = String::from_utf8(map.copy_out(meta::NAME, name_len)?)
            .map_err(|_| corrupt("type name"))?;
        let schema = map.copy_out(meta::SCHEMA, schema_len)?;
        let attributes = attributes::parse(&map.copy_out(from, attributes_len)?);
        Ok(Self { encoding, type_name, size, align, depth, entry_bytes, schema, attributes })
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
        let slice = wanted.encoding != Encoding::Fixed;
        let entry_bytes = layout::entry_bytes(wanted.size, wanted.align, slice);
        let depth = match wanted.depth {
            0 => DEPTH_DEFAULT,
            n => n.next_power_of_two(),
        };
        // Checked by the caller.
        let attributes = attributes::to_text(&wanted.attributes).unwrap_or_default();
        let behind = meta::SCHEMA + wanted.schema.len();
        let bytes = round_up(behind + attributes.len(), 64);
        let path = dir.join("meta");
        let draft = Draft::new(dir, bytes as u64, access.own_mode)?;
        {
            let map = draft.map()?;
            let total_bytes = bytes as u64;
            FileHeader { kind: FileKind::Meta, total_bytes, node: 0, port: 0 }.write(&map)?;
            map.atomic_u32(meta::ENCODING)?.store(wanted.encoding as u32, Relaxed);
            for (offset, value) in [
                (meta::SIZE, wanted.size),
                (meta::ALIGN, wanted.align),
                (meta::DEPTH, depth as usize),
                (meta::ENTRY_BYTES, entry_bytes),
                (meta::NAME_LEN, wanted.type_name.len()),
                (meta::SCHEMA_LEN, wanted.schema.len()),
                (meta::ATTRIBUTES_LEN, attributes.len()),
            ] {
                map.atomic_u64(offset)?.store(value as u64, Relaxed);
            }
            map.copy_in(meta::NAME, wanted.type_name.as_bytes())?;
            map.copy_in(meta::SCHEMA, &wanted.schema)?;
            map.copy_in(behind, &attributes)?;
        }
        draft.link(&path).map(drop)
    }

    /// Compares with what a member expects; the error lists every field that differs.
    fn accept(self, topic: &TopicName, wanted: &WantedMeta) -> Result<Self> {
        let of = |encoding, name: &str, form, schema: &[u8]| {
            PayloadType::from_parts(encoding, name, form, schema.into())
        };
        let has = of(self.encoding, &self.type_name, (self.size, self.align), &self.schema);
        let form = (wanted.size, wanted.align);
        let differences =
            has.differences(&of(wanted.encoding, &wanted.type_name, form, &wanted.schema));
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
