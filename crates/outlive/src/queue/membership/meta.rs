//! `meta`: what all members of a queue agree on, written once by the first.

use std::path::Path;

use crate::domain::header::{FileHeader, FileKind, round_up};
use crate::domain::joining::read_or_create;
use crate::domain::name::TopicName;
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft, Expect};
use crate::os::fs::map::Mapping;
use crate::queue::lane::layout::meta;
use crate::queue::lane::record::Shape;
use crate::sync::Ordering::Relaxed;
use crate::types::schema::{self, SCHEMA_BYTES_MAX};
use crate::types::{Encoding, PayloadType};
use crate::{Error, ErrorKind, Result};

/// Largest message type, bytes.
const SIZE_BYTES_MAX: usize = 1 << 39;

/// The type of a queue's messages, and how its records are laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) encoding: Encoding,
    pub(crate) type_name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Every record carries a time stamp.
    pub(crate) stamped: bool,
    /// Every message begins with the head of a request or a reply.
    pub(crate) framed: bool,
    pub(crate) schema: Vec<u8>,
    /// What a service's answers look like; in its queue of requests.
    pub(crate) answer: Option<PayloadType>,
}

impl Meta {
    /// What a member with messages of type `of` expects; `stamped` as it is or as it wants it;
    /// `schema` instead of the type's own description.
    pub(crate) fn of_type(of: PayloadType, stamped: bool, schema: Option<&[u8]>) -> Self {
        let PayloadType { encoding, size, align, .. } = of;
        let schema = schema.map_or(of.schema, <[u8]>::to_vec);
        let (type_name, framed, answer) = (of.name, false, None);
        Self { encoding, type_name, size, align, stamped, framed, schema, answer }
    }

    /// What a member of a service expects of its queue of requests.
    pub(crate) fn of_requests(of: &PayloadType, answer: &PayloadType, type_name: String) -> Self {
        Self { answer: Some(answer.clone()), ..Self::of_replies(of, type_name) }
    }

    /// What a member of a service expects of a queue of replies.
    pub(crate) fn of_replies(of: &PayloadType, type_name: String) -> Self {
        Self { framed: true, type_name, ..Self::of_type(of.clone(), false, None) }
    }

    /// The type of the messages, by that name.
    pub(crate) fn payload_type(&self, name: &str) -> PayloadType {
        let Self { encoding, size, align, .. } = *self;
        PayloadType::from_parts(encoding, name, (size, align), self.schema.clone())
    }

    /// Whether a message may have `bytes` bytes, as far as this tells.
    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        match self.encoding {
            Encoding::Fixed => bytes == self.size,
            Encoding::Slice => bytes % self.size == 0,
            Encoding::Headed => bytes >= self.size,
            // Bytes of any number.
            _ => true,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        let fixed = self.encoding == Encoding::Fixed && !self.framed;
        Shape::new(fixed, self.size, self.align, self.stamped)
    }

    fn check(&self, queue: &TopicName) -> Result<()> {
        let bad = |why: String| {
            Err(Error::new(ErrorKind::InvalidArgument, "opening queue", queue.as_str(), why))
        };
        if self.size == 0 || self.align > PAGE {
            return bad("types of 0 bytes or aligned to more than 4096 cannot be shared".into());
        }
        if self.type_name.is_empty() || self.type_name.len() > meta::NAME_BYTES_MAX {
            return bad(format!("a type name has 1 to {} bytes", meta::NAME_BYTES_MAX));
        }
        let answer = self.answer.as_ref();
        if answer.is_some_and(|a| a.size == 0 || a.align > PAGE) {
            return bad("types of 0 bytes or aligned to more than 4096 cannot be shared".into());
        }
        // Of a service the name here is that of both types, so it checks its schemas itself.
        let stored = schema::stored((self.encoding, &self.type_name, &self.schema));
        if let Err(why) = stored
            && !self.framed
        {
            return bad(why);
        }
        let longest = self.schema.len().max(answer.map_or(0, |a| a.schema.len()));
        if longest > SCHEMA_BYTES_MAX {
            return bad(format!("a schema has at most {} bytes", SCHEMA_BYTES_MAX));
        }
        Ok(())
    }

    /// Reads `meta` in the queue's directory; `NotFound` while the queue is being made or removed.
    pub(crate) fn read(dir: &Path, access: &Access) -> Result<Self> {
        let path = dir.join("meta");
        let owner = access.owner_required();
        let expect = Expect { writable: false, min_len: meta::SCHEMA as u64, owner };
        let (fd, len) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, len as usize, &path)?;
        Self::parse(&map, len).map_err(|e| match e {
            Parse::Error(e) => e,
            Parse::Field(field) => Error::new(
                ErrorKind::Corrupt,
                "reading",
                path.display().to_string(),
                format!("its {field} is out of range: stop the members and run 'outlive clean'"),
            ),
        })
    }

    fn parse(map: &Mapping, len: u64) -> std::result::Result<Self, Parse> {
        FileHeader::read(map, FileKind::QueueMeta, len)?;
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let encoding = Encoding::from_raw(map.atomic_u32(meta::ENCODING)?.load(Relaxed))
            .ok_or(Parse::Field("encoding"))?;
        let flags = map.atomic_u32(meta::FLAGS)?.load(Relaxed);
        if flags & !(meta::FLAG_STAMPED | meta::FLAG_FRAMED) != 0 {
            return Err(Parse::Field("flags"));
        }
        let (size, align) = (at(meta::SIZE)?, at(meta::ALIGN)?);
        check_form(size, align)?;
        let (name_len, schema_len) = (at(meta::NAME_LEN)?, at(meta::SCHEMA_LEN)?);
        if name_len == 0 || name_len > meta::NAME_BYTES_MAX {
            return Err(Parse::Field("type name"));
        }
        if schema_len > SCHEMA_BYTES_MAX || meta::SCHEMA + schema_len > len as usize {
            return Err(Parse::Field("schema"));
        }
        let type_name = String::from_utf8(map.copy_out(meta::NAME, name_len)?)
            .map_err(|_| Parse::Field("type name"))?;
        let schema = map.copy_out(meta::SCHEMA, schema_len)?;
        let (stamped, framed) = (flags & meta::FLAG_STAMPED != 0, flags & meta::FLAG_FRAMED != 0);
        let from = round_up(meta::SCHEMA + schema_len, 8);
        let answer = Self::parse_answer(map, from, len)?;
        Ok(Self { encoding, type_name, size, align, stamped, framed, schema, answer })
    }

    fn parse_answer(
        map: &Mapping,
        from: usize,
        len: u64,
    ) -> std::result::Result<Option<PayloadType>, Parse> {
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let bytes = at(meta::ANSWER_LEN)?;
        if bytes == 0 {
            return Ok(None);
        }
        let most = meta::ANSWER_SCHEMA + SCHEMA_BYTES_MAX;
        if bytes < meta::ANSWER_SCHEMA || bytes > most || from + bytes > len as usize {
            return Err(Parse::Field("description of answers"));
        }
        let (size, align) = (at(from + meta::ANSWER_SIZE)?, at(from + meta::ANSWER_ALIGN)?);
        check_form(size, align)?;
        let encoding = u32::try_from(at(from + meta::ANSWER_ENCODING)?).ok();
        let encoding = encoding.and_then(Encoding::from_raw).ok_or(Parse::Field("encoding"))?;
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
        let behind = round_up(meta::SCHEMA + self.schema.len(), 8);
        let answer_bytes = self.answer.as_ref().map_or(0, |a| meta::ANSWER_SCHEMA + a.schema.len());
        let bytes = round_up(behind + answer_bytes, 64);
        let draft = Draft::new(dir, bytes as u64, access.own_mode)?;
        {
            let map = draft.map()?;
            let total_bytes = bytes as u64;
            FileHeader { kind: FileKind::QueueMeta, total_bytes, node: 0, port: 0 }.write(&map)?;
            map.atomic_u32(meta::ENCODING)?.store(self.encoding as u32, Relaxed);
            let stamped = if self.stamped { meta::FLAG_STAMPED } else { 0 };
            let flags = stamped | if self.framed { meta::FLAG_FRAMED } else { 0 };
            map.atomic_u32(meta::FLAGS)?.store(flags, Relaxed);
            for (offset, value) in [
                (meta::SIZE, self.size),
                (meta::ALIGN, self.align),
                (meta::ANSWER_LEN, answer_bytes),
                (meta::NAME_LEN, self.type_name.len()),
                (meta::SCHEMA_LEN, self.schema.len()),
            ] {
                map.atomic_u64(offset)?.store(value as u64, Relaxed);
            }
            map.copy_in(meta::NAME, self.type_name.as_bytes())?;
            map.copy_in(meta::SCHEMA, &self.schema)?;
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
        let wanted_type = wanted.payload_type(&wanted.type_name);
        let mut differences = self.payload_type(&self.type_name).differences(&wanted_type);
        if let (Some(has), Some(want)) = (&self.answer, &wanted.answer) {
            // Sizes and encodings stand in the type's name.
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
        Err(Error::new(
            ErrorKind::TypeMismatch,
            "opening queue",
            queue.as_str(),
            format!("{}: use the same type, or another queue", differences.join("; ")),
        ))
    }
}

fn check_form(size: usize, align: usize) -> std::result::Result<(), Parse> {
    if size == 0 || size > SIZE_BYTES_MAX {
        return Err(Parse::Field("element size"));
    }
    if !align.is_power_of_two() || align > PAGE {
        return Err(Parse::Field("alignment"));
    }
    Ok(())
}

/// Why a `meta` cannot be used.
enum Parse {
    Error(Error),
    Field(&'static str),
}

impl From<Error> for Parse {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}
