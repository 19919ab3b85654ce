//! Topics as channels of Foxglove.
//!
//! What outlive has in common with ROS 2 is sent as its messages, which viewers draw; all else as
//! JSON. What a topic's payloads are may show only when the first is there (compressed pictures,
//! MessagePack): then its channel goes and comes again as another.
//!
//! | file | what |
//! |---|---|
//! | `wire` | the protocol |
//! | `entrance` | who comes in |
//! | `client`, `hub` | one client; all of them |

mod client;
mod entrance;
mod hub;
mod wire;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use outlive::{Encoding, PayloadType};
use outlive_record::ros2::ToRos;

use crate::json::{Json, unrounded};
use crate::shared::{Failed, say};
use crate::topics::{Output, Shown};
use client::Message;
use hub::Hub;
use wire::Channel;

/// A channel does not change more often.
const CHANGE: Duration = Duration::from_secs(1);
/// Clients are told of their losses so often.
const TELL: Duration = Duration::from_secs(2);

/// Shows topics to whoever connects.
#[derive(Debug)]
pub(crate) struct Foxglove {
    hub: Arc<Hub>,
    topics: BTreeMap<String, Topic>,
    /// Topics by channel.
    names: BTreeMap<u32, String>,
    epoch_ns: u64,
    told_at: Instant,
}

#[derive(Debug)]
struct Topic {
    payload_type: PayloadType,
    attributes: BTreeMap<String, String>,
    form: Form,
    /// Which of the forms the channel has.
    which: usize,
    channel: u32,
    changed_at: Instant,
    left_out: u64,
}

#[derive(Debug)]
enum Form {
    Ros(ToRos),
    Json(Json),
    /// How viewers name messages and schemas, and the schema.
    Foreign {
        messages: &'static str,
        schemas: &'static str,
        schema: String,
    },
}

impl Foxglove {
    /// Listens where it is told to.
    pub(crate) fn start(
        at: SocketAddr,
        origins: Vec<String>,
        epoch_ns: u64,
        domain: &str,
    ) -> Result<Self, Failed> {
        let listener = TcpListener::bind(at).map_err(|e| {
            format!("cannot listen at {at}: {e}; --bind and --port choose another, 0 any free port")
        })?;
        let at = listener.local_addr()?;
        if !at.ip().is_loopback() {
            let ip = at.ip();
            say(format_args!("anyone who can reach {ip} sees these topics: there is no password"));
        }
        // Viewers forget the channels of another session.
        let session = format!("{}", epoch_ns + outlive::now_ns());
        let hub = Hub::new(format!("outlive {domain}"), session, origins);
        hub.listen(listener);
        say(format_args!("open ws://{at} in Foxglove (Open connection, Foxglove WebSocket)"));
        let (topics, names) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { hub, topics, names, epoch_ns, told_at: Instant::now() })
    }
}

impl Output for Foxglove {
    fn open(&mut self, name: &str, topic: &Shown, example: Option<&[u8]>) {
        let of = &topic.payload_type;
        let form = match (ToRos::of(of, self.epoch_ns), foreign(of)) {
            (Some(to), _) => Form::Ros(to),
            (None, Some(form)) => form,
            (None, None) => Form::Json(Json::of(of)),
        };
        let mut new = Topic {
            payload_type: of.clone(),
            attributes: topic.attributes.clone(),
            form,
            which: 0,
            channel: 0,
            changed_at: Instant::now().checked_sub(CHANGE).unwrap_or_else(Instant::now),
            left_out: 0,
        };
        // An example that is none of its type will be told of when somebody looks.
        let made = example.and_then(|payload| new.form.message(payload).ok());
        new.which = made.map_or(0, |made| made.which);
        new.channel = self.hub.advertise(new.channel_of(name, example));
        self.names.insert(new.channel, name.into());
        self.topics.insert(name.into(), new);
    }

    fn close(&mut self, name: &str) {
        if let Some(topic) = self.topics.remove(name) {
            self.names.remove(&topic.channel);
            self.hub.unadvertise(topic.channel);
        }
    }

    fn wanted(&self, name: &str) -> bool {
        self.topics.get(name).is_some_and(|topic| self.hub.wanted(topic.channel))
    }

    fn show(&mut self, name: &str, to: Option<u64>, time_ns: u64, payload: &[u8]) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        let made = match topic.form.message(payload) {
            Ok(made) => made,
            Err(why) => {
                topic.left_out += 1;
                if topic.left_out == 1 {
                    let text = format!("{name}: some messages are left out: {why}");
                    say(&text);
                    self.hub.warn(&format!("wrong {name}"), &text);
                }
                return;
            }
        };
        if made.which != topic.which {
            if topic.changed_at.elapsed() < CHANGE {
                topic.left_out += 1;
                return;
            }
            self.hub.unadvertise(topic.channel);
            self.names.remove(&topic.channel);
            topic.which = made.which;
            topic.changed_at = Instant::now();
            topic.channel = self.hub.advertise(topic.channel_of(name, Some(payload)));
            self.names.insert(topic.channel, name.into());
        }
        let message = Message { time_ns, data: Arc::new(made.data) };
        self.hub.message(topic.channel, to, &message);
    }

    fn set_epoch(&mut self, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
        for topic in self.topics.values() {
            if let Form::Ros(to) = &topic.form {
                to.set_epoch(epoch_ns);
            }
        }
    }

    fn wait(&mut self, until: Instant) -> Vec<(String, u64)> {
        if self.told_at.elapsed() >= TELL {
            self.told_at = Instant::now();
            self.hub.tell_losses();
        }
        let newcomers = self.hub.wait(until).into_iter();
        newcomers.filter_map(|(c, client)| Some((self.names.get(&c)?.clone(), client))).collect()
    }

    fn left_out(&self, name: &str) -> u64 {
        self.topics.get(name).map_or(0, |topic| topic.left_out)
    }

    fn figures(&self) -> String {
        let (past, clients) = self.hub.counts();
        let mut text = String::new();
        let mut all = past;
        for (peer, counts) in clients {
            text += &format!(
                "client {peer} sent {} bytes {} dropped {}\n",
                counts.sent, counts.sent_bytes, counts.dropped
            );
            all.sent += counts.sent;
            all.sent_bytes += counts.sent_bytes;
            all.dropped += counts.dropped;
        }
        format!("{text}all sent {} bytes {} dropped {}\n", all.sent, all.sent_bytes, all.dropped)
    }

    fn end(&mut self) -> Result<(), Failed> {
        self.hub.end();
        Ok(())
    }
}

impl Topic {
    /// `example`: a payload, for a schema that only messages tell.
    fn channel_of(&self, name: &str, example: Option<&[u8]>) -> Channel {
        let of = &self.payload_type;
        let (encoding, schema_name, schema_encoding, schema) = match &self.form {
            Form::Ros(to) => {
                let text = |of: Option<&str>| of.unwrap_or_default().to_owned();
                ("cdr", text(to.name(self.which)), "ros2msg", text(to.definition(self.which)))
            }
            Form::Foreign { messages, schemas, schema } => {
                (*messages, of.name().to_owned(), *schemas, schema.clone())
            }
            Form::Json(json) => {
                let example = example.filter(|_| json.needs_example());
                // A number is one in the schema, however large.
                let example = example.and_then(|payload| json.value(payload).ok());
                let schema = json.schema(of.name(), example.as_ref()).to_string();
                ("json", of.name().to_owned(), "jsonschema", schema)
            }
        };
        let mut metadata = self.attributes.clone();
        metadata.insert("outlive.type".into(), of.name().into());
        metadata.insert("outlive.encoding".into(), of.encoding().as_str().into());
        let topic = name.to_owned();
        Channel { id: 0, topic, encoding, schema_name, schema_encoding, schema, metadata }
    }
}

/// Payloads in a third-party encoding that viewers know: they get them as they are. Binary schemas
/// are text there.
fn foreign(of: &PayloadType) -> Option<Form> {
    let text = || String::from_utf8_lossy(of.schema()).into_owned();
    let (messages, schemas, schema) = match of.encoding() {
        Encoding::Json if of.schema().is_empty() => {
            ("json", "jsonschema", r#"{"type":"object"}"#.into())
        }
        _ if of.schema().is_empty() => return None,
        Encoding::Json => ("json", "jsonschema", text()),
        Encoding::Cdr => ("cdr", "ros2msg", text()),
        Encoding::Protobuf => ("protobuf", "protobuf", BASE64.encode(of.schema())),
        Encoding::FlatBuffer => ("flatbuffer", "flatbuffer", BASE64.encode(of.schema())),
        _ => return None,
    };
    Some(Form::Foreign { messages, schemas, schema })
}

/// A message as it is sent.
struct Made {
    which: usize,
    data: Vec<u8>,
}

impl Form {
    fn message(&self, payload: &[u8]) -> Result<Made, String> {
        match self {
            Self::Ros(to) => to.message(payload).map(|(which, data)| Made { which, data }),
            Self::Foreign { .. } => Ok(Made { which: 0, data: payload.to_vec() }),
            Self::Json(json) => {
                let data = unrounded(json.value(payload)?).to_string().into_bytes();
                // Where messages tell their schema it is known from the first one on.
                Ok(Made { which: usize::from(json.needs_example()), data })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(encoding: Encoding, schema: &[u8]) -> Option<(&'static str, &'static str, String)> {
        match foreign(&PayloadType::encoded(encoding, "x.Y", schema).unwrap())? {
            Form::Foreign { messages, schemas, schema } => Some((messages, schemas, schema)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn viewers_get_encodings_that_they_know_with_their_schema() {
        let json = says(Encoding::Json, b"{ \"type\": \"object\" }").unwrap();
        assert_eq!(json, ("json", "jsonschema", "{\"type\":\"object\"}".into()));
        assert!(says(Encoding::Json, b"").is_some());
        let cdr = says(Encoding::Cdr, b"float64 x\n").unwrap();
        assert_eq!(cdr, ("cdr", "ros2msg", "float64 x\n".into()));
        let buffer = says(Encoding::FlatBuffer, b"\0\0\0\0BFBS").unwrap();
        assert_eq!(buffer, ("flatbuffer", "flatbuffer", "AAAAAEJGQlM=".into()));
        for (encoding, schema) in [(Encoding::Arrow, &b"x"[..]), (Encoding::Protobuf, b"")] {
            assert_eq!(says(encoding, schema), None);
        }
        assert!(foreign(&PayloadType::of::<f64>()).is_none());
    }

    #[test]
    fn stamps_of_headers_follow_the_epoch() {
        use outlive::msg::{Header, Imu};
        use outlive::zerocopy::{FromZeros, IntoBytes};
        let at = ([127, 0, 0, 1], 0).into();
        let mut shows = Foxglove::start(at, Vec::new(), 0, "test").unwrap();
        let payload_type = PayloadType::of::<Imu>();
        let imu = Shown { payload_type, attributes: BTreeMap::new() };
        shows.open("/before", &imu, None);
        shows.set_epoch(3_600_000_000_000);
        shows.open("/after", &imu, None);
        let header = Header { stamp_ns: 5_000_000_000, ..Header::now("base") };
        let imu = Imu { header, ..Imu::new_zeroed() };
        for name in ["/before", "/after"] {
            let made = shows.topics[name].form.message(imu.as_bytes()).unwrap();
            // After the head of CDR.
            assert_eq!(made.data[4..8], 3605u32.to_le_bytes(), "{name}");
        }
        shows.end().unwrap();
    }
}
