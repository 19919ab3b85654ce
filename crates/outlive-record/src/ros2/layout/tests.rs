use outlive::{Encoding, PayloadType, TypeDescription};
use testkit::Rng;

use super::Layout;
use crate::ros2::value::Value;
use crate::ros2::{Definitions, FromRos, Schema, ToRos, cdr};

fn stored(name: &str, encoding: Encoding, text: &str) -> PayloadType {
    let description = TypeDescription::parse(text.as_bytes()).unwrap();
    let form = match encoding {
        Encoding::Headed => description.fields().last().unwrap().offset(),
        _ => description.root().size(),
    };
    PayloadType::stored(encoding, name, (form, description.align()), text.as_bytes()).unwrap()
}

fn fixed(name: &str, text: &str) -> PayloadType {
    stored(name, Encoding::Fixed, text)
}

/// What fields may be, with padding, and behind a list.
fn all() -> Vec<PayloadType> {
    let mut all = vec![
        fixed("f64", "outlive-type 1 align 8\nf64\n"),
        fixed("demo::Matrix", "outlive-type 1 align 4\nf32[3][2]\n"),
        fixed(
            "robot/Gripper",
            "outlive-type 1 align 8\nstruct:72\n 0 u8 flag\n 8 f64[2][2] m\n 40 char[7] name\n \
             47 enum:i8{Back=-1,Idle=0} mode\n 48 char[2][4] twoTexts\n 56 char32 c\n \
             60 bool[3] on\n 64 u16 last\n",
        ),
        fixed(
            "a/b/Nested",
            "outlive-type 1 align 16\nstruct:128\n 0 u128 big\n 16 struct:16[2] pairs\n  \
             0 u32 a\n  8 f64 b\n 48 struct:16 one\n  0 u32 a\n  8 f64 b\n \
             64 struct:24 deep\n  0 u8 x\n  8 struct:16 in\n   0 char[9] t\n   9 u8 y\n \
             88 opaque:5 raw\n 93 struct:3 none\n 96 u32[4] n\n",
        ),
        // No field is where a compiler would put it.
        fixed("Packed", "outlive-type 1 align 1\nstruct:14\n 1 f64 a\n 9 u32 b\n"),
        stored("f64", Encoding::Slice, "outlive-type 1 align 8\nf64[]\n"),
        stored("robot/Name", Encoding::Slice, "outlive-type 1 align 1\nchar[][5]\n"),
        // Nothing but numbers: copied at once where CDR has them as they are.
        stored(
            "robot/Point",
            Encoding::Slice,
            "outlive-type 1 align 8\nstruct:16[]\n 0 f32 x\n 4 u16[2] n\n 8 f64 t\n",
        ),
        stored(
            "robot/Tight",
            Encoding::Slice,
            "outlive-type 1 align 4\nstruct:12[]\n 0 f64 t\n 8 u32 n\n",
        ),
        fixed(
            "robot/Points",
            "outlive-type 1 align 8\nstruct:56\n 0 u32 n\n 4 u8 k\n 5 u8[3] r\n \
             8 struct:16[3] p\n  0 u16[4] n\n  8 f64 t\n",
        ),
        stored("big", Encoding::Slice, "outlive-type 1 align 16\nu128[]\n"),
    ];
    let element = "struct:24\n%0 u32 a\n%8 f64 b\n%16 char[3] c\n%20 u16[2] d\n";
    let list = element.replace("24\n", "24[]\n").replace('%', " ");
    all.push(stored("robot/P", Encoding::Slice, &format!("outlive-type 1 align 8\n{list}")));
    let tail = element.replace("24\n", "24[] tail\n").replace('%', "  ");
    let headed = format!("outlive-type 1 align 8\nstruct:16\n 0 u64 n\n 8 u8 k\n 16 {tail}");
    all.push(stored("robot/H", Encoding::Headed, &headed));
    all
}

fn payload(of: &PayloadType, rng: &mut Rng, elements: usize) -> Vec<u8> {
    let len = match of.encoding() {
        Encoding::Fixed => of.size(),
        Encoding::Slice => of.size() * elements,
        _ => of.size() + 24 * elements,
    };
    // Zeros and ASCII are what texts and padding have in earnest; anything else must survive, too.
    let how = rng.next_u64() % 4;
    let byte = |n: u64| match how {
        0 => 0,
        1 => n as u8 % 2 * (b'a' + n as u8 % 16),
        2 => b'a' + (n >> 8) as u8 % 16,
        _ => n as u8,
    };
    (0..len).map(|_| byte(rng.next_u64() >> 20)).collect()
}

#[test]
fn every_payload_comes_back_byte_by_byte_and_is_what_the_definition_says() {
    let mut rng = Rng::new(11);
    for of in all() {
        let layout = Layout::generated(&of).unwrap();
        let schema = Schema::parse(&layout.name, &layout.text).unwrap();
        let mut out = vec![1; 9];
        for round in 0..200 {
            let payload = payload(&of, &mut rng, round % 5);
            layout.encode(&payload, &mut out).unwrap();
            assert_eq!(layout.decode(&out).unwrap(), payload, "{}", layout.text);
            // The other decoder knows nothing but the definition.
            let value = cdr::decode(&schema, &out).unwrap();
            assert_eq!(cdr::encode(&schema, &value).unwrap().len(), out.len(), "{}", layout.text);
            for len in 0..out.len().saturating_sub(4) {
                assert!(layout.decode(&out[..len]).is_err(), "{len} of {}", out.len());
            }
            let at = rng.next_u64() as usize % out.len();
            out[at] ^= rng.next_u64() as u8;
            if let Ok(other) = layout.decode(&out) {
                assert!(of.fits(other.len()), "{} bytes are not a {}", other.len(), of.name());
            }
        }
        assert!(layout.encode(&[0; 7], &mut out).is_err(), "{}", of.name());
    }
}

#[test]
fn a_definition_reads_as_if_a_person_had_written_it() {
    let layouts: Vec<_> = all().iter().map(|of| Layout::generated(of).unwrap()).collect();
    let by_name = |name: &str| &layouts.iter().find(|l| l.name == name).unwrap().text;
    assert_eq!(by_name("std_msgs/msg/Float64"), "float64 data\n");
    assert_eq!(by_name("outlive/msg/F64Array"), "float64[] data\n");
    assert_eq!(by_name("demo/msg/MatrixArray"), "float32[6] data\n");
    assert_eq!(
        by_name("robot/msg/Gripper"),
        "uint8 flag\nfloat64[4] m\nstring name\nint8 MODE_BACK=-1\nint8 MODE_IDLE=0\nint8 mode\n\
         string[2] two_texts\nuint32 c\nbool[3] on\nuint16 last\n\
         # Padding, and bytes behind the end of texts; empty if all are 0\nuint8[] outlive_rest\n"
    );
    let nested = by_name("a_b/msg/Nested");
    assert!(nested.starts_with("uint8[16] big\na_b/NestedPairs[2] pairs\na_b/NestedPairs one\n"));
    assert!(nested.contains("MSG: a_b/NestedDeep\nuint8 x\na_b/NestedDeepIn in\n"), "{nested}");
    let headed = by_name("robot/msg/HeadedH");
    assert!(headed.contains("robot/HeadedHTail[] tail\n"), "{headed}");
}

#[test]
fn a_name_of_ros_is_not_taken_for_another_definition() {
    let text = "outlive-type 1 align 8\nf64\n";
    let name = |name: &str| Layout::generated(&fixed(name, text)).unwrap().name;
    assert_eq!(name("my_msgs/msg/Pose"), "my_msgs_outlive/msg/Pose");
    assert_eq!(name("geometry_msgs/Pose"), "geometry_msgs_outlive/msg/Pose");
    assert_eq!(name("crate_a::sub::myPose<3>"), "crate_a_sub/msg/MyPoseX3");
    assert_eq!(name("Größe"), "outlive/msg/GrE");
    assert_eq!(name("7/7"), "f7/msg/X7");
    // Names that would be the same are not.
    let text = "outlive-type 1 align 1\nstruct:4\n 0 u8 frameId\n 1 u8 frame_id\n \
                2 enum:u8{A=0,a=1} x\n 3 u8 %20\n";
    assert_eq!(
        Layout::generated(&fixed("T", text)).unwrap().text,
        "uint8 frame_id\nuint8 frame_id2\nuint8 X_A=0\nuint8 X_A2=1\nuint8 x\nuint8 f\n"
    );
}

#[test]
fn what_nobody_described_or_its_size_belies_has_no_definition() {
    assert!(Layout::generated(&PayloadType::bytes()).is_none());
    assert!(Layout::generated(&PayloadType::msgpack("a/B").unwrap()).is_none());
    assert!(Layout::generated(&PayloadType::of::<outlive::msg::Image>()).is_none());
    assert!(Layout::generated(&PayloadType::of::<outlive::msg::Imu>()).is_some());
    let text = b"outlive-type 1 align 8\nf64\n";
    for (encoding, size) in [(Encoding::Fixed, 16), (Encoding::Slice, 8), (Encoding::Headed, 8)] {
        let of = PayloadType::stored(encoding, "a", (size, 8), text).unwrap();
        assert!(Layout::generated(&of).is_none(), "{encoding:?}");
    }
}

#[test]
fn a_few_bytes_do_not_become_gigabytes() {
    let of = stored("t", Encoding::Slice, "outlive-type 1 align 1\nchar[][1000000]\n");
    let layout = Layout::generated(&of).unwrap();
    // 4000 empty texts; nothing behind them.
    let mut data = vec![0, 1, 0, 0, 0xa0, 0x0f, 0, 0];
    data.extend([1, 0, 0, 0, 0, 0, 0, 0].repeat(4000));
    data.extend([0; 4]);
    assert!(layout.decode(&data).unwrap_err().contains("claims 4000"), "4 GB");
    // Those that a publisher sent come back.
    let (payload, mut out) = (vec![0; 100_000_000], Vec::new());
    layout.encode(&payload, &mut out).unwrap();
    assert!(layout.decode(&out).unwrap() == payload);
}

fn own() -> Definitions {
    let mut own = Definitions::default();
    own.insert(
        "my_msgs/msg/Plan",
        "uint8 MAX=3\nbuiltin_interfaces/Time stamp\nstring<=8 name\nPart[<=3] parts\n\
         float64[2] ab\nstring<=4[<=2] tags\nbool on\n",
    );
    own.insert("my_msgs/msg/Part", "float32 x\nint16[<=2] n\n");
    own
}

const PLAN: &str = "outlive-type 1 align 8\nstruct:104\n 0 struct:8 stamp\n  0 i32 sec\n  \
    4 u32 nanosec\n 8 char[8] name\n 16 struct:12[3] parts\n  0 f32 x\n  4 i16[2] n\n  \
    8 u32 n_count\n 52 u32 parts_count\n 56 f64[2] ab\n 72 char[2][4] tags\n \
    80 u32 tags_count\n 84 bool on\n 85 u8[19] reserved\n";

#[test]
fn an_imported_type_becomes_the_message_of_its_file_and_comes_back() {
    let schema = own().schema("my_msgs/msg/Plan").unwrap().unwrap();
    let of = fixed("my_msgs/msg/Plan", PLAN);
    let layout = Layout::bound(&schema, &of).unwrap();
    assert!(!layout.is_generated && layout.text.contains("string<=8 name"));
    let mut payload = vec![0; 104];
    payload[..4].copy_from_slice(&(-5i32).to_le_bytes());
    payload[8..12].copy_from_slice(b"away");
    payload[16..20].copy_from_slice(&1.5f32.to_le_bytes());
    payload[20..22].copy_from_slice(&7i16.to_le_bytes());
    (payload[24], payload[52], payload[80], payload[84]) = (1, 2, 1, 1);
    payload[72..76].copy_from_slice(b"tag1");
    let mut out = Vec::new();
    layout.encode(&payload, &mut out).unwrap();
    assert_eq!(layout.decode(&out).unwrap(), payload);
    let value = cdr::decode(&schema, &out).unwrap();
    let parts = value.get("parts").unwrap().items();
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].get("x"), Some(&Value::F32(1.5)));
    assert_eq!(parts[0].get("n").unwrap().items().len(), 1);
    assert_eq!(value.get("name").and_then(Value::as_text), Some("away"));
    assert_eq!(value.get("tags").unwrap().items()[0].as_text(), Some("tag1"));
    payload[52] = 4;
    let why = layout.encode(&payload, &mut out).unwrap_err();
    assert_eq!(why, "a list of 4 elements has room for 3");
}

#[test]
fn a_type_that_is_not_that_of_the_file_says_which_field_differs() {
    let schema = own().schema("my_msgs/msg/Plan").unwrap().unwrap();
    let why = |from: &str, to: &str| {
        let of = fixed("my_msgs/msg/Plan", &PLAN.replacen(from, to, 1));
        Layout::bound(&schema, &of).unwrap_err()
    };
    assert_eq!(why("f32 x", "u32 x"), "parts.x: it is u32, not F32");
    assert_eq!(why("nanosec", "ns"), "stamp: it has no field nanosec");
    assert_eq!(why("u32 tags_count", "f32 tags_count"), "tags: tags_count is f32, not u32");
    assert_eq!(why("f64[2] ab", "f64[1][2] ab"), "ab: it has another number of elements");
    assert_eq!(why("reserved", "speed"), "the message has no field speed");
    assert_eq!(why("char[8] name", "u64 name"), "name: it is u64, not text");
    let tags = " 72 char[2][4] tags\n 80 u32 tags_count\n 84 bool on\n 85 u8[19] reserved\n";
    let larger = |tags: &str| {
        format!(" 72 {tags} tags\n 84 u32 tags_count\n 88 bool on\n 89 u8[15] reserved\n")
    };
    let room = "tags: it has room for 3 elements, the message for 2";
    assert_eq!(why(tags, &larger("char[3][4]")), room);
    let room = "tags: it has room for texts of 5 bytes, the message of 4";
    assert_eq!(why(tags, &larger("char[2][5]")), room);
    assert!(own().schema("my_msgs/msg/Nothing").unwrap().is_none());
    let mut broken = Definitions::default();
    broken.insert("a/msg/A", "B b\n");
    assert!(broken.schema("a/msg/A").unwrap_err().contains("a/msg/B is not defined"));
}

/// They were written under names that ROS does not have.
#[test]
fn parts_of_an_action_are_messages_of_its_file() {
    let dir = testkit::TempDomain::new("layout-action").unwrap();
    let file = dir.path().join("my_msgs/action/Turn.action");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "float64 angle\n---\nfloat64 turned\n---\nfloat64 left\n").unwrap();
    let own = Definitions::read(&[dir.path().into()]).unwrap();
    assert_eq!(own.names().count(), 0, "an action is not a topic's message");
    let fixed = |name: &str, field| {
        fixed(name, &format!("outlive-type 1 align 8\nstruct:8\n 0 f64 {field}\n"))
    };
    for (part, field) in [("Goal", "angle"), ("Result", "turned"), ("Feedback", "left")] {
        let name = format!("my_msgs/action/Turn_{part}");
        for of in [fixed(&name, field), PayloadType::msgpack(&name).unwrap()] {
            let to = ToRos::among(&of, 0, &own).unwrap().expect("it is defined");
            assert_eq!(to.name(0), Some(name.as_str()));
            assert_eq!(to.definition(0), Some(format!("float64 {field}\n").as_str()));
        }
        let why = ToRos::among(&fixed(&name, "other"), 0, &own).unwrap_err();
        assert_eq!(why, format!("it is not laid out as {name}: it has no field {field}"));
    }
    let why = ToRos::among(&fixed("my_msgs/action/Go_Goal", "x"), 0, &own).unwrap_err();
    assert!(why.contains("my_msgs/action/Go_Goal is not defined"), "{why}");
}

#[test]
fn own_types_and_cdr_are_messages_whichever_form_a_topic_has() {
    let (own, name) = (own(), "my_msgs/msg/Part");
    let part = "outlive-type 1 align 4\nstruct:12\n 0 f32 x\n 4 i16[2] n\n 8 u32 n_count\n";
    let cdr = own.payload_type(name).unwrap().unwrap();
    let forms = [fixed(name, part), cdr.clone(), PayloadType::msgpack(name).unwrap()];
    // x = 1.5, n = [7]
    let message = [0, 1, 0, 0, 0, 0, 0xc0, 0x3f, 1, 0, 0, 0, 7, 0];
    for of in forms {
        let (from, becomes) = FromRos::among(name, &own, Some(&of)).unwrap();
        assert_eq!(becomes, of);
        let payload = from.payload(&message).unwrap();
        let to = ToRos::among(&of, 0, &own).unwrap().unwrap();
        assert_eq!(to.message(&payload), Ok((0, message.to_vec())));
        assert_eq!(to.name(0), Some(name));
        assert_eq!(to.type_description(0), own.type_description(name).unwrap());
        for len in 0..message.len() {
            assert!(from.payload(&message[..len]).is_err(), "{len} bytes of {of:?}");
        }
    }
    // Nothing here says what it is to be.
    for here in [None, Some(&PayloadType::bytes())] {
        assert_eq!(
            FromRos::among(name, &own, here).unwrap().1,
            PayloadType::msgpack(name).unwrap()
        );
    }
    let why = |of: &PayloadType| FromRos::among(name, &own, Some(of)).unwrap_err();
    assert!(why(&fixed(name, &part.replace("f32 x", "u32 x"))).contains("x: it is u32, not F32"));
    let other = PayloadType::encoded(Encoding::Cdr, name, b"float64 x\n").unwrap();
    assert!(why(&other).contains("has another definition"));
    // One that the program knows anyway.
    let twist = PayloadType::encoded(Encoding::Cdr, "geometry_msgs/msg/Twist", b"").unwrap();
    let (_, becomes) = FromRos::among("geometry_msgs/msg/Twist", &own, Some(&twist)).unwrap();
    assert_eq!(becomes, twist);
    let lost = PayloadType::encoded(Encoding::Cdr, "a/msg/Lost", b"").unwrap();
    assert!(ToRos::among(&lost, 0, &own).unwrap_err().contains("give its .msg file"));
}
