//! What bridges say to each other: keys, the header of a message, the note on a topic.
//!
//! ```text
//! outlive/1/NAMESPACE/BRIDGE/live/bridge/here         liveliness token of a bridge
//! outlive/1/NAMESPACE/BRIDGE/live/node/ID/HOST/NAME   ... of a node
//! outlive/1/NAMESPACE/BRIDGE/live/topic/NAME          ... of a topic that is carried
//! outlive/1/NAMESPACE/BRIDGE/live/service/NAME        ... of a service with a server
//! outlive/1/NAMESPACE/BRIDGE/live/queue/NAME          ... of a queue with a consumer
//! outlive/1/NAMESPACE/BRIDGE/note/topic/NAME          answers with the type, as JSON
//! outlive/1/NAMESPACE/BRIDGE/note/service/NAME        ... with both types
//! outlive/1/NAMESPACE/BRIDGE/note/queue/NAME          ... as that of a topic
//! outlive/1/NAMESPACE/BRIDGE/data/NAME                messages; the header is the attachment.
//!                                                     Behind a node's last one: only a header
//! outlive/1/NAMESPACE/BRIDGE/call/NAME                requests; answers are replies
//! outlive/1/NAMESPACE/BRIDGE/send/NAME                a message of a queue; the reply: it is in
//! ```
//! BRIDGE is the Zenoh id of the bridge's session: new with each start.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use outlive::{Encoding, PayloadType};
use serde::{Deserialize, Serialize};

/// Version of all this; part of every key, so that versions do not meet.
const VERSION: u8 = 1;
/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 40;
/// Payload bytes that a message may claim to have.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

const FLAG_LZ4: u8 = 1;
const FLAG_LAST: u8 = 2;

/// What goes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The payload is an LZ4 block.
    pub(crate) compressed: bool,
    /// No message: the node has no publisher of the topic any more, and all of it went before this.
    pub(crate) last: bool,
    /// Ordinal of the node that published it, in its own domain.
    pub(crate) node: u64,
    /// Number among what this bridge has sent on this topic, from 0; it goes on when the topic is
    /// gone and comes back.
    pub(crate) seq: u64,
    /// When it was published, ns since 1970 by the clock of its machine.
    pub(crate) wall_ns: u64,
    /// Bytes of the payload before compression.
    pub(crate) payload_bytes: u64,
}

impl Header {
    /// Goes behind the last message of `node`.
    pub(crate) fn last_of(node: u64) -> Self {
        Self { compressed: false, last: true, node, seq: 0, wall_ns: 0, payload_bytes: 0 }
    }

    /// version, flags, 6 x 0, node, seq, wall_ns, payload_bytes; little-endian.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = VERSION;
        out[1] = if self.compressed { FLAG_LZ4 } else { 0 } | if self.last { FLAG_LAST } else { 0 };
        let words = [self.node, self.seq, self.wall_ns, self.payload_bytes];
        for (to, word) in out[8..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Whether `wire` bytes can be such a payload. LZ4 makes of a byte at most 255.
    pub(crate) fn is_possible(&self, wire: usize) -> bool {
        match (self.compressed, wire as u64) {
            (true, wire) => wire <= self.payload_bytes && self.payload_bytes <= 255 * wire,
            (false, wire) => wire == self.payload_bytes,
        }
    }

    /// None for what no bridge writes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != HEADER_BYTES
            || bytes[0] != VERSION
            || bytes[1] & !(FLAG_LZ4 | FLAG_LAST) != 0
        {
            return None;
        }
        let mut words =
            bytes[8..].chunks_exact(8).filter_map(|w| w.try_into().ok()).map(u64::from_le_bytes);
        let header = Self {
            compressed: bytes[1] & FLAG_LZ4 != 0,
            last: bytes[1] & FLAG_LAST != 0,
            node: words.next()?,
            seq: words.next()?,
            wall_ns: words.next()?,
            payload_bytes: words.next()?,
        };
        (header.payload_bytes <= PAYLOAD_BYTES_MAX).then_some(header)
    }
}

/// A payload type, as another machine is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TypeNote {
    encoding: String,
    name: String,
    size: usize,
    align: usize,
    schema: Vec<u8>,
    /// `little` or `big`: payloads travel as they lie in memory.
    endian: String,
}

const ENDIAN: &str = if cfg!(target_endian = "little") { "little" } else { "big" };

impl TypeNote {
    pub(crate) fn of(of: &PayloadType) -> Self {
        Self {
            encoding: of.encoding().as_str().into(),
            name: of.name().into(),
            size: of.size(),
            align: of.align(),
            schema: of.schema().to_vec(),
            endian: ENDIAN.into(),
        }
    }

    /// Why it cannot be opened here.
    pub(crate) fn payload_type(&self) -> Result<PayloadType, String> {
        if self.endian != ENDIAN {
            return Err(format!("the other machine is {}-endian, this one is not", self.endian));
        }
        let encoding = Encoding::from_name(&self.encoding).ok_or_else(|| {
            format!("encoding '{}' is unknown here: use bridges of one version", self.encoding)
        })?;
        PayloadType::stored(encoding, &self.name, (self.size, self.align), &self.schema)
            .map_err(|e| e.to_string())
    }
}

/// What is needed to make a topic as it is elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TopicNote {
    #[serde(rename = "type")]
    pub(crate) of: TypeNote,
    pub(crate) depth: u64,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// The same of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServiceNote {
    pub(crate) request: TypeNote,
    pub(crate) response: TypeNote,
}

/// The same of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueueNote {
    #[serde(rename = "type")]
    pub(crate) of: TypeNote,
    pub(crate) stamped: bool,
}

/// What a token is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    /// The bridge itself.
    Bridge,
    Node {
        id: u64,
        host: String,
        name: String,
    },
    Topic(String),
    Service(String),
    Queue(String),
}

/// The keys of one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(namespace: &str) -> Self {
        Self { prefix: format!("outlive/{VERSION}/{namespace}") }
    }

    /// Of `bridge`: `kind` is one of the words above, `name` what follows.
    pub(crate) fn of(&self, bridge: &str, kind: &str, name: &str) -> String {
        format!("{}/{bridge}/{kind}/{}", self.prefix, crate::config::pattern::bare(name))
    }

    /// The tokens of all bridges.
    pub(crate) fn all_tokens(&self) -> String {
        format!("{}/*/live/**", self.prefix)
    }

    /// The bridge and what its token is of; none for keys that no bridge writes.
    pub(crate) fn token(&self, key: &str) -> Option<(String, Of)> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let (bridge, rest) = rest.split_once("/live/")?;
        let (kind, name) = rest.split_once('/')?;
        let of = match kind {
            "bridge" => Of::Bridge,
            "topic" => Of::Topic(format!("/{name}")),
            "service" => Of::Service(format!("/{name}")),
            "queue" => Of::Queue(format!("/{name}")),
            "node" => {
                let mut parts = name.splitn(3, '/');
                let id = parts.next()?.parse().ok()?;
                let (host, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
                Of::Node { id, host, name }
            }
            _ => return None,
        };
        Some((bridge.to_owned(), of))
    }
}

/// Now, ns since 1970.
pub(crate) fn wall_now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire_and_garbage_is_none() {
        let header = Header {
            compressed: true,
            last: false,
            node: 7,
            seq: u64::MAX,
            wall_ns: 1_700_000_000_000_000_000,
            payload_bytes: 4096,
        };
        let bytes = header.to_bytes();
        assert_eq!(Header::parse(&bytes), Some(header));
        let last = Header::last_of(7);
        assert_eq!(Header::parse(&last.to_bytes()), Some(last));
        assert_eq!(Header::parse(&bytes[1..]), None);
        for (at, value) in [(0, 2), (1, 0x80), (38, 1)] {
            let mut wrong = bytes;
            wrong[at] = value;
            assert_eq!(Header::parse(&wrong), None, "byte {at} is {value}");
        }
    }

    #[test]
    fn no_few_bytes_are_many_packed() {
        let packed = |payload_bytes| Header {
            compressed: true,
            last: false,
            node: 1,
            seq: 1,
            wall_ns: 1,
            payload_bytes,
        };
        assert!(!packed(1 << 30).is_possible(20));
        assert!(packed(5100).is_possible(20) && !packed(5101).is_possible(20));
        for of in [vec![0; 1 << 20], vec![7; 5000]] {
            let wire = lz4_flex::block::compress(&of).len();
            assert!(packed(of.len() as u64).is_possible(wire), "{} in {wire}", of.len());
        }
        let plain = Header { compressed: false, ..packed(20) };
        assert!(plain.is_possible(20) && !plain.is_possible(21));
    }

    #[test]
    fn tokens_say_whose_they_are() {
        let keys = Keys::new("fleet/a");
        let topic = keys.of("b1", "live/topic", "/camera/front");
        assert_eq!(topic, "outlive/1/fleet/a/b1/live/topic/camera/front");
        assert_eq!(keys.token(&topic), Some(("b1".into(), Of::Topic("/camera/front".into()))));
        let node = Of::Node { id: 3, host: "robot".into(), name: "camera".into() };
        let key = keys.of("b1", "live/node", "3/robot/camera");
        assert_eq!(keys.token(&key), Some(("b1".into(), node)));
        for wrong in ["outlive/1/fleet/b1/live/topic/x", "", "outlive/1/fleet/a/b1/live/node/x/y/z"]
        {
            assert_eq!(keys.token(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_note_makes_the_same_type() {
        let pose = PayloadType::of::<outlive::msg::Pose>();
        let note = TypeNote::of(&pose);
        assert_eq!(note.payload_type().expect("same"), pose);
        let goal = PayloadType::encoded(Encoding::Json, "robot/Goal", b"{}").expect("a type");
        assert_eq!(TypeNote::of(&goal).payload_type().expect("same"), goal);
        let strange = TypeNote { encoding: "xml".into(), ..note.clone() };
        assert!(strange.payload_type().expect_err("unknown").contains("'xml' is unknown"));
        let wrong = TypeNote { align: 3, ..note };
        assert!(wrong.payload_type().is_err());
    }
}
