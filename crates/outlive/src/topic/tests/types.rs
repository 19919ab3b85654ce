//! What topics make of types: descriptions in `meta`, mismatches, headed payloads.

use std::path::Path;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::node::Node;
use crate::os::fixture::TempDir;

use crate::types::msg::{Bool, Text};
use crate::types::{Encoding, Headed, Message, TypeDescription};
use crate::{Domain, ErrorKind};

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn schema(dir: &Path) -> Vec<u8> {
    let domain = Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    domain.topics().unwrap().remove(0).schema
}

macro_rules! described {
    ($type:ident, $name:literal, $($field:ident: $of:ty = $at:literal),*) => {
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
        #[repr(C)]
        struct $type { $($field: $of),* }

        impl Message for $type {
            const TYPE_NAME: &'static str = $name;

            fn describe() -> TypeDescription {
                TypeDescription::of_struct::<Self>()
                    $(.field(stringify!($field), $at, <$of>::describe()))*
            }
        }
    };
}

described!(Pose, "robot/Pose", x: f64 = 0, y: f64 = 8, speed: f32 = 16, id: u32 = 20);
described!(NewPose, "robot/Pose", x: f64 = 0, z: f64 = 8, y: f64 = 16, speed: f64 = 24);

#[test]
fn a_mismatch_names_every_field_that_differs_on_both_sides_and_what_to_do() {
    let dir = TempDir::new("types-mismatch");
    let node = node(&dir);
    let _old = node.topic::<Pose>("/pose").unwrap().publisher().unwrap();
    let e = node.topic::<NewPose>("/pose").unwrap().subscriber().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert_eq!(
        e.to_string(),
        "opening topic /pose: type mismatch; the two differ:\n\
         \x20 size is 24, this program has 32\n\
         \x20 field y is at 8, this program has it at 16\n\
         \x20 field speed is f32 at 16, this program has f64 at 24\n\
         \x20 field id (u32 at 20) is missing in this program\n\
         \x20 field z (f64 at 8) is in this program only\n\
         use the same type in all programs, or another topic; a topic's type can change once all \
         its members have left or died; it has live members: test (node 1)"
    );
}

/// As `Pose`, by a program that describes nothing.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PlainPose([f64; 3]);

impl Message for PlainPose {
    const TYPE_NAME: &'static str = "robot/Pose";
}

#[test]
fn with_and_without_a_description_agree_when_name_and_size_do() {
    let dir = TempDir::new("types-plain");
    let node = node(&dir);
    {
        let _described = node.topic::<Pose>("/pose").unwrap().publisher().unwrap();
        node.topic::<PlainPose>("/pose").unwrap().subscriber().unwrap();
        assert_eq!(schema(dir.path()), Pose::describe().to_text().as_bytes());
    }
    let _plain = node.topic::<PlainPose>("/pose2").unwrap().publisher().unwrap();
    node.topic::<Pose>("/pose2").unwrap().subscriber().unwrap();
}

#[test]
fn tools_see_the_description_and_read_payloads_through_it() {
    let dir = TempDir::new("types-tools");
    let node = node(&dir);
    let publisher = node.topic::<[Pose]>("/poses").unwrap().publisher().unwrap();
    let mut tool = node.topic::<[u8]>("/poses").unwrap().subscriber_of_any_type().unwrap();
    publisher.publish(&[Pose { x: 1.0, y: 2.0, speed: 3.5, id: 4 }; 2]).unwrap();
    let described = tool.description().unwrap();
    let domain = Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    assert_eq!(domain.topics().unwrap()[0].description().as_ref(), Some(&described));
    assert_eq!((tool.encoding(), tool.type_name()), (Encoding::Slice, "robot/Pose"));
    let sample = tool.receive().unwrap().unwrap();
    let value = described.decode(&sample).unwrap();
    assert_eq!(value.at("[1].speed").unwrap().to_string(), "3.5");
}

#[test]
fn raw_bytes_and_schemas_of_the_users_own_are_left_alone() {
    let dir = TempDir::new("types-raw");
    let node = node(&dir);
    let raw = node.topic::<[u8]>("/raw").unwrap().publisher().unwrap();
    assert!(schema(dir.path()).is_empty());
    drop(raw);
    let own = |schema: &str| node.topic::<Pose>("/own").unwrap().schema(schema);
    let _own = own("mine").publisher().unwrap();
    own("mine").subscriber().unwrap();
    let e = own("yours").subscriber().unwrap_err();
    assert!(e.to_string().contains("type mismatch; the schema differs: use"), "{e}");
    let e = node.topic::<Pose>("/own").unwrap().subscriber().unwrap_err();
    assert!(e.to_string().contains("the schema differs"), "{e}");
}

#[test]
fn headed_payloads_arrive_whole_inline_and_as_chunks() {
    type Scan = Headed<Pose, u16>;
    let dir = TempDir::new("types-headed");
    let node = node(&dir);
    let publisher = node.topic::<Scan>("/scan").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Scan>("/scan").unwrap().subscriber().unwrap();
    let header = Pose { x: 1.0, y: 2.0, speed: 3.0, id: 4 };
    for len in [0u16, 1, 7, 1000] {
        let tail: Vec<u16> = (0..len).collect();
        publisher.publish_headed(header, &tail).unwrap();
        let got = subscriber.receive().unwrap().unwrap();
        assert_eq!((got.header().id, got.tail()), (4, &tail[..]));
        // The same once more by value: small ones travel inside the entry.
        publisher.publish(&got).unwrap();
        drop(got);
        let got = subscriber.receive().unwrap().unwrap();
        assert_eq!((got.header().x, got.tail(), got.is_borrowed()), (1.0, &tail[..], len > 40));
    }
    let e = node.topic::<Headed<Pose, u32>>("/scan").unwrap().subscriber().unwrap_err();
    let says = "field tail is u16[] at 24, this program has u32[] at 24";
    assert!(e.to_string().contains(says), "{e}");
}

#[test]
fn a_payload_that_is_no_header_and_elements_is_refused() {
    let dir = TempDir::new("types-short");
    let node = node(&dir);
    let publisher = node.topic::<Headed<[u64; 2], u32>>("/h").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Headed<[u64; 2], u32>>("/h").unwrap().subscriber().unwrap();
    let short = publisher.loan_bytes(20).unwrap();
    short.publish().unwrap();
    assert!(subscriber.receive().unwrap().is_some_and(|s| s.tail().len() == 1));
    assert!(publisher.loan_slice(usize::MAX).is_err());
}

#[cfg(feature = "derive")]
#[test]
fn derived_descriptions_have_the_offsets_that_one_computes_by_hand() {
    #[outlive::message("test/Leg")]
    struct Leg {
        joints: [[f32; 2]; 3],
        r#type: u16,
        name: Text<5>,
        down: Bool,
    }

    #[outlive::message("test/Robot", crate = "crate")]
    #[repr(C, align(16))]
    struct Robot {
        stamp: u64,
        legs: [Leg; 4],
        plain: PlainPose,
        none: [u64; 0],
        pair: Pair,
    }

    #[outlive::message("test/Pair")]
    struct Pair(u32, [i32; 3]);

    assert_eq!(
        Robot::describe().to_text(),
        "outlive-type 1 align 16\n\
         struct:176\n \
          0 u64 stamp\n \
          8 struct:32[4] legs\n  \
           0 f32[3][2] joints\n  \
           24 u16 type\n  \
           26 char[5] name\n  \
           31 bool down\n \
          136 opaque:24 plain\n \
          160 struct:16 pair\n  \
           0 u32 0\n  \
           4 i32[3] 1\n"
    );
    assert_eq!(Robot::TYPE_NAME, "test/Robot");
}

#[test]
fn text_and_truth_are_described_as_what_they_are() {
    assert_eq!(Text::<4>::describe().to_text(), "outlive-type 1 align 1\nchar[4]\n");
    assert_eq!(<[Bool; 2]>::describe().to_text(), "outlive-type 1 align 1\nbool[2]\n");
}
