//! Values of all shapes and sizes there and back; bytes that are no value.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;
use crate::ErrorKind;
use crate::os::fixture::TempDir;
use crate::topic::ring::layout::SLICE_INLINE_BYTES_MAX;
use crate::types::Encoding;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
enum Step {
    Wait,
    Turn(f32),
    Drive { to: (f64, f64), speed: Option<f64> },
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
struct Plan {
    goal: String,
    steps: Vec<Step>,
    costs: BTreeMap<String, i64>,
    #[serde(with = "serde_bytes")]
    map: Vec<u8>,
    next: Option<Box<Plan>>,
    id: u128,
}

fn plan() -> Plan {
    let drive = Step::Drive { to: (1.5, -2.0), speed: None };
    Plan {
        goal: "dock ⚓".into(),
        steps: vec![Step::Wait, Step::Turn(0.5), drive],
        costs: [("energy".into(), -7), ("time".into(), i64::MAX)].into(),
        map: vec![0, 1, 254, 255],
        next: Some(Box::default()),
        id: u128::MAX,
    }
}

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn pair<T: 'static>(node: &Node) -> (Publisher<T>, Subscriber<T>) {
    let topic = || node.msgpack::<T>("/value").unwrap().type_name("test/Value");
    (topic().publisher().unwrap(), topic().subscriber().unwrap())
}

#[test]
fn nested_values_arrive_as_they_were() {
    let dir = TempDir::new("msgpack-nested");
    let node = node(&dir);
    let (publisher, mut subscriber) = pair::<Plan>(&node);
    assert!(subscriber.receive_value().unwrap().is_none());
    for value in [Plan::default(), plan(), Plan { next: Some(Box::new(plan())), ..plan() }] {
        publisher.publish_value(&value).unwrap();
        let got = subscriber.receive_value().unwrap().unwrap();
        assert_eq!((&*got, got.meta().publisher), (&value, publisher.id()));
        assert_eq!(got.into_inner(), value);
    }
    publisher.publish_value(&plan()).unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    assert_eq!(sample.decode().unwrap(), plan());
    assert_eq!(rmp_serde::from_slice::<Plan>(sample.as_bytes()).unwrap(), plan());
}

#[test]
fn fields_may_be_added_and_left_out() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Newer {
        goal: String,
        #[serde(default)]
        urgent: bool,
    }
    let bytes = rmp_serde::to_vec_named(&plan()).unwrap();
    let newer: Newer = MsgPack::<Plan>::new(&bytes).decode_as().unwrap();
    assert_eq!(newer, Newer { goal: "dock ⚓".into(), urgent: false });
}

#[test]
fn ten_megabytes_come_through_and_text_and_bytes_are_borrowed_from_shared_memory() {
    #[derive(Serialize, Deserialize)]
    struct Frame<'a> {
        name: &'a str,
        #[serde(with = "serde_bytes")]
        pixels: &'a [u8],
    }
    let dir = TempDir::new("msgpack-large");
    let node = node(&dir);
    let pixels: Vec<u8> = (0..10_000_000u32).map(|i| (i ^ i >> 8) as u8).collect();
    let topic = || node.msgpack::<Frame<'static>>("/frame").unwrap().type_name("test/Frame");
    let (publisher, mut subscriber) =
        (topic().depth(2).publisher().unwrap(), topic().subscriber().unwrap());
    // What a frame borrows is leaked: its type must live for ever, its values need not.
    let pixels: &'static [u8] = pixels.leak();
    for _ in 0..5 {
        publisher.publish_value(&Frame { name: "left", pixels }).unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        let frame: Frame<'_> = sample.decode_as().unwrap();
        assert!(frame.name == "left" && frame.pixels == pixels && sample.is_borrowed());
        assert!(sample.as_bytes().as_ptr_range().contains(&frame.pixels.as_ptr()));
    }

    let floats: Vec<f64> = (0..1_200_000).map(f64::from).collect();
    let (publisher, mut subscriber) = pair::<Vec<f64>>(&node);
    publisher.publish_value(&floats).unwrap();
    assert_eq!(*subscriber.receive_value().unwrap().unwrap(), floats);
}

#[test]
fn lengths_may_jump_up_and_down_around_every_boundary() {
    let dir = TempDir::new("msgpack-lengths");
    let node = node(&dir);
    let (publisher, mut subscriber) = pair::<String>(&node);
    let around = [0, 1, 31, 32, 99, 100, 101, 102, 103, 104, 105, 110, 117, 118, 255, 256, 4096];
    let far = [100_000, 3, 100_000, 100_000, 112_499, 112_500, 130_000, 50, 65_535, 65_536, 0];
    let mut most = 0;
    for round in 0..3 {
        for length in around.into_iter().chain(far) {
            let text = "x".repeat(length + round);
            publisher.publish_value(&text).unwrap();
            let sample = subscriber.receive().unwrap().unwrap();
            assert_eq!(sample.decode().unwrap(), text);
            assert_eq!(sample.is_borrowed(), sample.as_bytes().len() > SLICE_INLINE_BYTES_MAX);
        }
        most = if round == 0 { publisher.memory_bytes() } else { most };
        assert_eq!(publisher.memory_bytes(), most, "no round needs more than the first");
    }
}

/// Longer each time it is serialised.
struct Grows(Cell<usize>);

impl Serialize for Grows {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.set(self.0.get() * 2);
        to.serialize_bytes(&vec![0; self.0.get()])
    }
}

struct Refuses;

impl Serialize for Refuses {
    fn serialize<S: serde::Serializer>(&self, _to: S) -> std::result::Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("not today"))
    }
}

#[test]
fn a_value_that_cannot_be_encoded_is_told_and_takes_nothing_with_it() {
    let dir = TempDir::new("msgpack-unencodable");
    let node = node(&dir);
    let publisher = node.msgpack::<Grows>("/grows").unwrap().publisher().unwrap();
    let grows = Grows(Cell::new(100));
    for _ in 0..4 {
        let e = publisher.publish_value(&grows).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains("its length changes"), "{e}");
    }
    assert_eq!(publisher.published(), 0);
    let publisher = node.msgpack::<Refuses>("/refuses").unwrap().publisher().unwrap();
    let e = publisher.publish_value(&Refuses).unwrap_err();
    assert_eq!((e.kind(), e.object()), (ErrorKind::InvalidArgument, "/refuses"));
    assert!(e.to_string().contains("not today"), "{e}");
    assert_eq!(publisher.published(), 0);
}

#[test]
fn bytes_that_are_no_value_are_corrupt_and_the_next_message_is_read() {
    let dir = TempDir::new("msgpack-garbage");
    let node = node(&dir);
    let (publisher, mut subscriber) = pair::<Plan>(&node);
    let whole = rmp_serde::to_vec_named(&plan()).unwrap();
    let behind = [&whole[..], &[0xc0]].concat();
    for garbage in [&b""[..], &[0xc1], &[0xff; 500], &whole[..whole.len() - 1], &behind] {
        publisher.publish(MsgPack::new(garbage)).unwrap();
        let e = subscriber.receive_value().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt);
        assert!(e.object().starts_with("/value (message "), "{e}");
        assert!(e.remedy().contains("type_name()") && e.to_string().contains("Plan"), "{e}");
    }
    publisher.publish(MsgPack::new(&[1, 2])).unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    let e = sample.decode().unwrap_err();
    assert_eq!(e.object(), format!("message 5 of publisher {}", publisher.id()));
    publisher.publish_value(&plan()).unwrap();
    assert_eq!(*subscriber.receive_value().unwrap().unwrap(), plan());
}

#[test]
fn no_garbage_panics_or_exhausts_memory_or_stack() {
    let whole = rmp_serde::to_vec_named(&Plan { next: Some(Box::new(plan())), ..plan() }).unwrap();
    let mut state = 0x5eed_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(1 + next() as usize % bytes.len());
        let _ = MsgPack::<Plan>::new(&bytes).decode();
    }
    // Arrays in arrays, maps in maps, and lengths of 4 Gi that are not there.
    for deep in [vec![0x91; 100_000], vec![0x81; 100_000]] {
        assert!(MsgPack::<serde::de::IgnoredAny>::new(&deep).decode().is_err());
    }
    for promise in [[0xdd, 255, 255, 255, 255], [0xdf, 255, 255, 255, 255]] {
        assert!(MsgPack::<Vec<u64>>::new(&promise).decode().is_err());
        assert!(MsgPack::<BTreeMap<u64, u64>>::new(&promise).decode().is_err());
    }
}

#[test]
fn names_keep_types_apart_and_other_encodings_are_refused() {
    let dir = TempDir::new("msgpack-names");
    let node = node(&dir);
    let _publisher = node.msgpack::<Plan>("/plan").unwrap().publisher().unwrap();
    node.msgpack::<Plan>("/plan").unwrap().subscriber().unwrap();
    let e = node.msgpack::<Step>("/plan").unwrap().subscriber().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert!(e.to_string().contains("tests::Plan, this program has"), "{e}");
    let e = node.topic::<[u8]>("/plan").unwrap().subscriber().unwrap_err();
    assert!(e.to_string().contains("encoding is msgpack, this program has bytes"), "{e}");
    let long = "x".repeat(257);
    let e = node.msgpack::<Plan>("/long").unwrap().type_name(&long).publisher().unwrap_err();
    assert!(e.to_string().contains("257: give another"), "{e}");
    let mut tool = node.topic::<[u8]>("/plan").unwrap().subscriber_of_any_type().unwrap();
    assert_eq!((tool.encoding(), tool.description()), (Encoding::MessagePack, None));
    assert!(tool.receive().unwrap().is_none());
}

#[test]
fn a_value_without_room_keeps_no_later_one_from_being_sent() {
    let dir = TempDir::new("msgpack-no-room");
    let node = node(&dir);
    let topic = || node.msgpack::<String>("/value").unwrap().memory_bytes_max(1 << 20);
    let publisher = topic().publisher().unwrap();
    publisher.publish_value(&"first".into()).unwrap();
    for length in [5, 5000] {
        let refused = publisher.publish_value(&"x".repeat(2 << 20)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
        publisher.publish_value(&"x".repeat(length)).unwrap();
    }
    // Within the bound, but not with room for a longer one.
    let publisher = topic().publisher().unwrap();
    publisher.publish_value(&"x".repeat(1_000_000)).unwrap();
}
