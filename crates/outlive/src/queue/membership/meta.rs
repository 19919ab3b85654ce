//! `meta`: what all members of a queue agree on, written once by the first.

use std::path::Path;

use crate::domain::header::{FileHeader, FileKind, round_up};
use crate::domain::joining::read_or_create;
use crate::domain::name::TopicName;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft, Expect};
use crate::os::fs::map::Mapping;
use crate::queue::lane::layout::meta;
use crate::queue::lane::record::Shape;
use crate::sync::Ordering::Relaxed;
use crate::types::payload_type::shared::{Bounds, Parsed, Unreadable};
use crate::types::schema::{self, SCHEMA_BYTES_MAX};
use crate::types::{Encoding, PayloadType};
use crate::{Error, ErrorKind, Result};

/// Largest message type, bytes.
const SIZE_BYTES_MAX: usize = 1 << 39;
const BOUNDS: Bounds = Bounds { name_bytes: meta::NAME_BYTES_MAX, size_bytes: SIZE_BYTES_MAX };
const _: () = assert!(BOUNDS.schema() == meta::SCHEMA);

/// The type of a queue's messages, and how its records are laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) of: PayloadType,
    /// Every record carries a time stamp.
    pub(crate) stamped: bool,
    /// Every message begins with the head of a request or a reply.
    pub(crate) framed: bool,
    /// What a service's answers look like; in its queue of requests.
    pub(crate) answer: Option<PayloadType>,
}

impl Meta {
    /// What a member with messages of type `of` expects; `stamped` as it is or as it wants it;
    /// `schema` instead of the type's own description.
    pub(crate) fn of_type(mut of: PayloadType, stamped: bool, schema: Option<&[u8]>) -> Self {
        if let Some(schema) = schema {
            of.schema = schema.to_vec();
        }
        Self { of, stamped, framed: false, answer: None }
    }

    /// What a member of a service expects of its queue of requests.
    pub(crate) fn of_requests(of: &PayloadType, answer: &PayloadType, type_name: String) -> Self {
        Self { answer: Some(answer.clone()), ..Self::of_replies(of, type_name) }
    }

    /// What a member of a service expects of a queue of replies.
    pub(crate) fn of_replies(of: &PayloadType, type_name: String) -> Self {
        let of = of.clone().renamed(&type_name);
        Self { framed: true, ..Self::of_type(of, false, None) }
    }

    /// The type of the messages, by that name.
    pub(crate) fn payload_type(&self, name: &str) -> PayloadType {
        self.of.clone().renamed(name)
    }

    /// Whether a message may have `bytes` bytes, as far as this tells.
    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        match self.of.encoding {
            Encoding::Fixed => bytes == self.of.size,
            Encoding::Slice => bytes % self.of.size == 0,
            Encoding::Headed => bytes >= self.of.size,
            // Bytes of any number.
            _ => true,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        let PayloadType { encoding, size, align, .. } = self.of;
        Shape::new(encoding == Encoding::Fixed && !self.framed, size, align, self.stamped)
    }

    fn check(&self, queue: &TopicName) -> Result<()> {
        let bad = |why: String| {
            Err(Error::new(ErrorKind::InvalidArgument, "opening queue", queue.as_str(), why))
        };
        // Of a service the name is that of both types, so it checks its schemas itself.
        let of = self.of.check_shareable(BOUNDS, !self.framed);
        let answer = self.answer.as_ref().map_or(Ok(()), |a| a.check_shareable(BOUNDS, false));
        of.and(answer).or_else(bad)
    }

    /// Reads `meta` in the queue's directory; `NotFound` while the queue is being made or removed.
    pub(crate) fn read(dir: &Path, access: &Access) -> Result<Self> {
        let path = dir.join("meta");
        let owner = access.owner_required();
        let expect = Expect { writable: false, min_len: meta::SCHEMA as u64, owner };
        let (fd, len) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, len as usize, &path)?;
        Self::parse(&map, len).map_err(|e| e.error(&map))
    }

    fn parse(map: &Mapping, len: u64) -> Parsed<Self> {
        FileHeader::read(map, FileKind::QueueMeta, len)?;
        let of = PayloadType::read(map, len, BOUNDS)?;
        let flags = map.atomic_u32(meta::FLAGS)?.load(Relaxed);
        if flags & !(meta::FLAG_STAMPED | meta::FLAG_FRAMED) != 0 {
            return Err(Unreadable::Field("flags"));
        }
        let (stamped, framed) = (flags & meta::FLAG_STAMPED != 0, flags & meta::FLAG_FRAMED != 0);
        let answer = Self::parse_answer(map, answer_at(&of), len)?;
        Ok(Self { of, stamped, framed, answer })
    }

    fn parse_answer(map: &Mapping, from: usize, len: u64) -> Parsed<Option<PayloadType>> {
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let bytes = at(meta::ANSWER_LEN)?;
        if bytes == 0 {
            return Ok(None);
        }
        let most = meta::ANSWER_SCHEMA + SCHEMA_BYTES_MAX;
        if bytes < meta::ANSWER_SCHEMA || bytes > most || from + bytes > len as usize {
            return Err(Unreadable::Field("description of answers"));
        }
        let (size, align) = (at(from + meta::ANSWER_SIZE)?, at(from + meta::ANSWER_ALIGN)?);
        BOUNDS.check(size, align)?;
        let encoding = u32::try_from(at(from + meta::ANSWER_ENCODING)?).ok();
        let encoding =
            encoding.and_then(Encoding::from_raw).ok_or(Unreadable::Field("encoding"))?;
        let schema = map.copy_out(from + meta::ANSWER_SCHEMA, bytes - meta::ANSWER_SCHEMA)?;
        Ok(Some(PayloadType::from_parts(encoding, "", (size, align), schema)))
    }

    /// Reads the queue's `meta`, or makes it as `wanted` if nobody has yet.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(crate) fn open_or_create(
        dir: &Path,
        queue: &TopicName,
        wanted: &Self,
        access: &Access,
    ) -> Result<Self> {
        wanted.check(queue)?;
        let meta = read_or_create(|| Self::read(dir, access), || wanted.create(dir, access))?;
        meta.accept(queue, wanted)
    }

    fn create(&self, dir: &Path, access: &Access) -> Result<()> {
        let behind = answer_at(&self.of);
        let answer_bytes = self.answer.as_ref().map_or(0, |a| meta::ANSWER_SCHEMA + a.schema.len());
        let bytes = round_up(behind + answer_bytes, 64);
        let draft = Draft::new(dir, bytes as u64, access.own_mode)?;
        {
            let map = draft.map()?;
            let total_bytes = bytes as u64;
            FileHeader { kind: FileKind::QueueMeta, total_bytes, node: 0, port: 0 }.write(&map)?;
            self.of.write(&map, BOUNDS)?;
            let stamped = if self.stamped { meta::FLAG_STAMPED } else { 0 };
            let flags = stamped | if self.framed { meta::FLAG_FRAMED } else { 0 };
            map.atomic_u32(meta::FLAGS)?.store(flags, Relaxed);
            map.atomic_u64(meta::ANSWER_LEN)?.store(answer_bytes as u64, Relaxed);
            if let Some(answer) = &self.answer {
                for (offset, value) in [
                    (meta::ANSWER_ENCODING, answer.encoding as usize),
                    (meta::ANSWER_SIZE, answer.size),
                    (meta::ANSWER_ALIGN, answer.align),
                ] {
                    map.atomic_u64(behind + offset)?.store(value as u64, Relaxed);
                }
                map.copy_in(behind + meta::ANSWER_SCHEMA, &answer.schema)?;
            }
        }
        draft.link(&dir.join("meta")).map(drop)
    }

    /// Compares with what a member expects; the error lists every field that differs.
    fn accept(self, queue: &TopicName, wanted: &Self) -> Result<Self> {
        let mut differences = self.of.differences(&wanted.of);
        if let (Some(has), Some(want)) = (&self.answer, &wanted.answer) {
            // Sizes and encodings are part of the type's name.
            let of_answers = schema::differences(
                (has.encoding, &want.name, &has.schema),
                (want.encoding, &want.name, &want.schema),
            );
            differences.extend(of_answers.iter().map(|line| format!("answers: {line}")));
            if has.align != want.align {
                differences.push(format!(
                    "alignment of answers is {}, this program has {}",
                    has.align, want.align
                ));
            }
        }
        if wanted.framed != self.framed {
            differences.push("one is a queue, the other part of a service".into());
        }
        if wanted.stamped && !self.stamped {
            differences.push("it carries no time stamps, this program wants them".into());
        }
        if differences.is_empty() {
            return Ok(self);
        }
        let (what, kind) = match wanted.framed {
            true => ("opening service", "types, or another service"),
            false => ("opening queue", "type, or another queue"),
        };
        Err(Error::new(
            ErrorKind::TypeMismatch,
            what,
            queue.as_str(),
            format!("{}: use the same {kind}", differences.join("; ")),
        ))
    }
}

/// Where the description of a service's answers begins.
fn answer_at(of: &PayloadType) -> usize {
    round_up(meta::SCHEMA + of.schema.len(), 8)
}
