//! What rmw_zenoh writes on the wire, as its `docs/design.md` and sources have it: keys, liveliness
//! tokens, what is attached to a message, and the hash of a type.
//!
//! ```text
//! DOMAIN/TOPIC/TYPE/HASH                  messages, CDR; of a service, where its server is asked
//! @ros2_lv/DOMAIN/SESSION/NODE/NODE/NN/ENCLAVE/NAMESPACE/NAME                    a node
//! @ros2_lv/DOMAIN/SESSION/NODE/ID/KIND/ENCLAVE/NAMESPACE/NAME/TOPIC/TYPE/HASH/QOS   its port
//! ```
//! TYPE is `std_msgs::msg::dds_::String_`; KIND is MP of a publisher, MS of a subscription, SS of a
//! service's server, SC of its client. In tokens every '/' of a name is a '%', which alone stands
//! for nothing. A request has the client's number, stamp and id attached, its response the same
//! number and id.

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

use super::qos::Qos;

/// Bytes of an attachment: number, stamp, length of the id, the id; little-endian.
pub(crate) const ATTACHMENT_BYTES: usize = 33;
const GID_BYTES: usize = 16;

/// Whose message, which, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// Counted by the publisher or client, from 1.
    pub(crate) seq: i64,
    /// ns since 1970, by its clock.
    pub(crate) wall_ns: i64,
    /// Of the publisher or client.
    pub(crate) gid: [u8; GID_BYTES],
}

impl Attachment {
    pub(crate) fn to_bytes(self) -> [u8; ATTACHMENT_BYTES] {
        let mut out = [0; ATTACHMENT_BYTES];
        out[..8].copy_from_slice(&self.seq.to_le_bytes());
        out[8..16].copy_from_slice(&self.wall_ns.to_le_bytes());
        out[16] = GID_BYTES as u8;
        out[17..].copy_from_slice(&self.gid);
        out
    }

    /// None for what rmw_zenoh does not write.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (seq, rest) = bytes.split_first_chunk()?;
        let (wall_ns, rest) = rest.split_first_chunk()?;
        let (len, gid) = rest.split_first()?;
        let gid = gid.try_into().ok().filter(|_| usize::from(*len) == GID_BYTES)?;
        Some(Self { seq: i64::from_le_bytes(*seq), wall_ns: i64::from_le_bytes(*wall_ns), gid })
    }
}

/// The id of who has the token `token`.
pub(crate) fn gid(token: &str) -> [u8; GID_BYTES] {
    // The low word comes first, each little-endian: the number as it is.
    XxHash3_128::oneshot(token.as_bytes()).to_le_bytes()
}

/// The hash of the message or service that `description` is of, as REP 2016 has it.
pub(crate) fn hash(description: &str) -> String {
    let digest = Sha256::digest(description);
    digest.iter().fold("RIHS01_".to_owned(), |out, byte| out + &format!("{byte:02x}"))
}

/// `std_msgs/msg/String` as DDS calls it.
pub(crate) fn dds_type(name: &str) -> String {
    let mut parts: Vec<_> = name.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    format!("{}::dds_::{last}_", parts.join("::"))
}

/// The other way round; none for what is no `kind`: `msg`, `srv`.
pub(crate) fn ros_type(dds: &str, kind: &str) -> Option<String> {
    let (package, rest) = dds.split_once(&format!("::{kind}::dds_::"))?;
    Some(format!("{package}/{kind}/{}", rest.strip_suffix('_')?))
}

/// Whether ROS takes `name` for that of a topic.
pub(crate) fn is_topic_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let part = |part: &str| {
        part.starts_with(letter) && part.chars().all(|c| letter(c) || c.is_ascii_digit())
    };
    name.strip_prefix('/').is_some_and(|bare| bare.split('/').all(part))
}

/// A topic or a service with its type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Topic {
    /// With '/' in front.
    pub(crate) name: String,
    /// Like `std_msgs/msg/String`, `std_srvs/srv/Trigger`.
    pub(crate) of: String,
    pub(crate) hash: String,
}

impl Topic {
    /// What tells it from others of its name.
    pub(crate) fn kind(&self) -> String {
        format!("{} {}", self.of, self.hash)
    }

    /// Where its messages or requests go.
    pub(crate) fn key(&self, domain: u32) -> String {
        format!("{domain}{}/{}/{}", self.name, dds_type(&self.of), self.hash)
    }
}

/// A node of ours in the graph of ROS.
#[derive(Clone, Debug)]
pub(crate) struct Participant {
    pub(crate) domain: u32,
    /// Id of the Zenoh session.
    pub(crate) session: String,
    /// With '/' in front, or only that.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Publisher,
    Subscription,
    Server,
    Client,
}

impl Port {
    fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "MP",
            Self::Subscription => "MS",
            Self::Server => "SS",
            Self::Client => "SC",
        }
    }
}

impl Participant {
    fn token(&self, id: u64, kind: &str) -> String {
        let Self { domain, session, namespace, name } = self;
        format!("@ros2_lv/{domain}/{session}/0/{id}/{kind}/%/{}/{name}", mangled(namespace))
    }

    /// The node's own token: its number in the session is 0.
    pub(crate) fn node_token(&self) -> String {
        self.token(0, "NN")
    }

    /// That of a port with the number `id`.
    pub(crate) fn port_token(&self, id: u64, port: Port, topic: &Topic, qos: Qos) -> String {
        let token = self.token(id, port.as_str());
        let (name, of) = (mangled(&topic.name), dds_type(&topic.of));
        format!("{token}/{name}/{of}/{}/{}", topic.hash, qos.in_token())
    }
}

/// A publisher or server of another session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) port: Port,
    pub(crate) topic: Topic,
    pub(crate) session: String,
    pub(crate) qos: Qos,
}

/// Where a publisher of `session` answers to those who ask for what it keeps; also its token for
/// those that were there before it. Its messages have time stamps of Zenoh.
pub(crate) fn kept_key(key: &str, session: &str) -> String {
    format!("{key}/@adv/pub/{session}/uhlc/_")
}

/// Asks the publishers of `session` on the topic with the key `key` for what they keep.
pub(crate) fn kept_selector(key: &str, session: &str) -> String {
    format!("{key}/@adv/pub/{session}/**?_anyke")
}

/// The publisher or server that the token of another session is of; none for any other token.
pub(crate) fn remote(token: &str, domain: u32, own_session: &str) -> Option<Remote> {
    let rest = token.strip_prefix(&format!("@ros2_lv/{domain}/"))?;
    // Releases may write more behind the QoS.
    let parts: Vec<&str> = rest.split('/').collect();
    let [session, _, _, port, _, _, _, name, of, hash, qos, ..] = parts.as_slice() else {
        return None;
    };
    let (port, kind) = match *port {
        "MP" => (Port::Publisher, "msg"),
        "SS" => (Port::Server, "srv"),
        _ => return None,
    };
    let name = name.replace('%', "/");
    let fine = *session != own_session && is_topic_name(&name);
    let topic = Topic { name, of: ros_type(of, kind)?, hash: (*hash).to_owned() };
    let qos = Qos::parse(qos);
    fine.then(|| Remote { port, topic, session: (*session).to_owned(), qos })
}

fn mangled(name: &str) -> String {
    name.replace('/', "%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ros2::known::Known;

    fn type_hash(name: &str) -> Option<String> {
        Known::default().hash(name)
    }

    const STRING: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn keep(depth: u64) -> Qos {
        Qos { reliable: true, keeps: false, depth: Some(depth) }
    }

    /// The examples of rmw_zenoh's docs/design.md.
    #[test]
    fn keys_and_tokens_are_those_of_the_design_document() {
        let topic =
            Known::default().topic("/chatter", "std_msgs/msg/String").expect("a known type");
        let key = format!("0/chatter/std_msgs::msg::dds_::String_/{STRING}");
        assert_eq!(topic.key(0), key);
        let spaced =
            Known::default().topic("/robot1/chatter", "std_msgs/msg/String").expect("a known type");
        let key = format!("0/robot1/chatter/std_msgs::msg::dds_::String_/{STRING}");
        assert_eq!(spaced.key(0), key);

        let mut node = Participant {
            domain: 2,
            session: "aac3178e146ba6f1fc6e6a4085e77f21".into(),
            namespace: "/".into(),
            name: "listener".into(),
        };
        let listener = "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener";
        assert_eq!(node.node_token(), listener);
        let subscription = format!(
            "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MS/%/%/listener/%chatter/\
             std_msgs::msg::dds_::String_/{STRING}/::,10:,:,:,,"
        );
        assert_eq!(node.port_token(10, Port::Subscription, &topic, keep(10)), subscription);
        node.session = "8b20917502ee955ac4476e0266340d5c".into();
        node.name = "talker".into();
        let talker = format!(
            "@ros2_lv/2/8b20917502ee955ac4476e0266340d5c/0/10/MP/%/%/talker/%chatter/\
             std_msgs::msg::dds_::String_/{STRING}/::,7:,:,:,,"
        );
        assert_eq!(node.port_token(10, Port::Publisher, &topic, keep(7)), talker);

        let session = node.session.clone();
        let mut shown = Remote { port: Port::Publisher, topic, session, qos: keep(7) };
        assert_eq!(remote(&talker, 2, "other"), Some(shown.clone()));
        assert_eq!(remote(&format!("{talker}/zenoh/shm"), 2, "other"), Some(shown.clone()));
        shown.qos = Qos { keeps: true, ..keep(1) };
        let keeps = talker.replace("/::,7", "/:1:,1");
        assert_eq!(remote(&keeps, 2, "other"), Some(shown));
        assert_eq!(remote(&talker, 2, &node.session), None, "our own");
        assert_eq!(remote(&talker, 0, "other"), None, "another domain");
        for other in [listener, &subscription, "@ros2_lv/2/a/0/1/MP", "", "@ros2_lv/2/////////////"]
        {
            assert_eq!(remote(other, 2, "other"), None, "{other}");
        }
    }

    /// The examples of rmw_zenoh's docs/design.md.
    #[test]
    fn keys_and_tokens_of_services_are_those_of_the_design_document() {
        let add = Known::default()
            .topic("/add_two_ints", "example_interfaces/srv/AddTwoInts")
            .expect("known");
        let hash = "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a";
        let key = format!("2/add_two_ints/example_interfaces::srv::dds_::AddTwoInts_/{hash}");
        assert_eq!(add.key(2), key);
        let node = Participant {
            domain: 2,
            session: "f9980ee0495eaafb3e38f0d19e2eae12".into(),
            namespace: "/".into(),
            name: "add_two_ints_server".into(),
        };
        let server = format!(
            "@ros2_lv/2/f9980ee0495eaafb3e38f0d19e2eae12/0/10/SS/%/%/add_two_ints_server/\
             %add_two_ints/example_interfaces::srv::dds_::AddTwoInts_/{hash}/::,10:,:,:,,"
        );
        assert_eq!(node.port_token(10, Port::Server, &add, Qos::SERVICE), server);
        let client = node.port_token(11, Port::Client, &add, Qos::SERVICE);
        assert_eq!(client, server.replace("/10/SS/", "/11/SC/"));
        let (port, session) = (Port::Server, node.session.clone());
        let there = Remote { port, topic: add, session, qos: Qos::SERVICE };
        assert_eq!(remote(&server, 2, "other"), Some(there));
        assert_eq!(remote(&server, 2, &node.session), None, "our own");
        for other in [client, server.replace("::srv::", "::msg::"), server.replace("SS", "MP")] {
            assert_eq!(remote(&other, 2, "other"), None, "{other}");
        }
    }

    /// Hashes that rosidl's generators have written into the sources of ROS 2 packages.
    #[test]
    fn hashes_are_those_that_ros_generates() {
        for (name, hash) in [
            ("String", &STRING[7..]),
            ("Empty", "20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"),
            // `char` of a .msg file is `uint8` there.
            ("Char", "3ad2d04dd29ba19d04b16659afa3ccaedd691914b02a64e82e252f2fa6a586a9"),
            ("ByteMultiArray", "972fec7f50ab3c1d06783c228e79e8a9a509021708c511c059926261ada901d4"),
        ] {
            let name = format!("std_msgs/msg/{name}");
            assert_eq!(type_hash(&name), Some(format!("RIHS01_{hash}")), "{name}");
        }
        for (name, hash) in [
            ("Imu", "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"),
            ("Image", "d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"),
        ] {
            let name = format!("sensor_msgs/msg/{name}");
            assert_eq!(type_hash(&name), Some(format!("RIHS01_{hash}")), "{name}");
        }
        // As several other projects have them from Jazzy.
        for (name, hash) in [
            ("std_srvs/Empty", "5888399dedec5ccc85ea6451949fd2c9f97bfdf963f9a588821639fcd31b5d19"),
            (
                "std_srvs/SetBool",
                "abe9e4bb6b41b40e6789712c00ec8871923e089af3f667a79992a428cff2da0a",
            ),
            (
                "std_srvs/Trigger",
                "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
            ),
            (
                "sensor_msgs/SetCameraInfo",
                "a10cca5d33dc637c8d49db50ab288701a3592bb9cd854f2f16a0659613b68984",
            ),
        ] {
            let name = name.replace('/', "/srv/");
            assert_eq!(type_hash(&name), Some(format!("RIHS01_{hash}")), "{name}");
        }
        assert_eq!(type_hash("mine/msg/Own"), None);
    }

    #[test]
    fn an_attachment_survives_the_wire_and_garbage_is_none() {
        let token = "@ros2_lv/0/1/0/0/NN/%/%/n";
        let attachment = Attachment { seq: 1, wall_ns: 1 << 60, gid: gid(token) };
        let bytes = attachment.to_bytes();
        assert_eq!((bytes[0], bytes[16]), (1, 16));
        assert_eq!(Attachment::parse(&bytes), Some(attachment));
        for len in 0..bytes.len() {
            assert_eq!(Attachment::parse(&bytes[..len]), None, "{len}");
        }
        let mut wrong = bytes;
        wrong[16] = 15;
        assert_eq!(Attachment::parse(&wrong), None);
        assert_eq!(Attachment::parse(&[&bytes[..], &[0]].concat()), None, "too long");
    }

    #[test]
    fn ids_are_xxh3_of_the_token_low_word_first() {
        // XXH3_128bits("") of the specification of xxHash.
        let expected = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128;
        assert_eq!(gid(""), expected.to_le_bytes());
    }

    #[test]
    fn names_of_types_and_topics() {
        assert_eq!(dds_type("tf2_msgs/msg/TFMessage"), "tf2_msgs::msg::dds_::TFMessage_");
        assert_eq!(
            ros_type("tf2_msgs::msg::dds_::TFMessage_", "msg").as_deref(),
            Some("tf2_msgs/msg/TFMessage")
        );
        let add = "example_interfaces::srv::dds_::AddTwoInts_";
        assert_eq!(ros_type(add, "msg"), None);
        assert_eq!(ros_type(add, "srv").as_deref(), Some("example_interfaces/srv/AddTwoInts"));
        for fine in ["/chatter", "/a/b_1", "/_x"] {
            assert!(is_topic_name(fine), "{fine}");
        }
        for wrong in ["chatter", "/", "/a//b", "/1a", "/a-b", "/a.b", "/a/"] {
            assert!(!is_topic_name(wrong), "{wrong}");
        }
    }
}
