use outlive::msg::{
    Header, Image, ImageHeader, Imu, Joint, JointState, JointStateHeader, PixelFormat, PointCloud,
    PointCloudHeader, PointXyzi, Pose, Quaternion, Text, Twist, Vector3,
};
use outlive::msgpack;
use outlive::zerocopy::IntoBytes;
use outlive::{Payload, PayloadType};

use super::base::Base;
use super::definition::{Field, Kind, Many, Schema, embedded};
use super::value::{Value, fields};
use super::{FromRos, ToRos, cdr};

/// 2017: a stamp that stays what it is.
const STAMP_NS: u64 = 1_500_000_000_123_456_789;

/// There and back again; what came back.
fn round(of: &PayloadType, payload: &[u8]) -> (String, Vec<u8>) {
    // Payloads lie aligned in shared memory.
    let mut words = vec![0u64; payload.len().div_ceil(8)];
    words.as_mut_bytes()[..payload.len()].copy_from_slice(payload);
    let payload = &words.as_bytes()[..payload.len()];
    let to = ToRos::of(of, 1_000).unwrap();
    let (which, data) = to.message(payload).unwrap();
    let schema = to.schema(which);
    let (from, back) = FromRos::of(&schema.name, &schema.text, Some(of.clone())).unwrap();
    assert_eq!(back, *of);
    for len in 0..data.len() {
        // Up to three bytes behind a message are no harm, so that few ends look whole.
        let _ = from.payload(&data[..len]);
    }
    (schema.name.clone(), from.payload(&data).unwrap())
}

fn comes_back<T: Payload + ?Sized>(payload: &[u8], name: &str) {
    assert_eq!(round(&PayloadType::of::<T>(), payload), (name.into(), payload.into()));
}

#[test]
fn every_standard_type_becomes_a_message_and_comes_back() {
    let header = Header { stamp_ns: STAMP_NS, frame_id: Text::cut("base_link") };
    let vector = |x: f64| Vector3 { x, y: x + 0.5, z: -x };
    let orientation = Quaternion::from_yaw(0.5);
    let pose = Pose { header, position: vector(1.0), orientation };
    comes_back::<Pose>(pose.as_bytes(), "geometry_msgs/msg/PoseStamped");
    let twist = Twist { header, linear: vector(2.0), angular: vector(3.0) };
    comes_back::<Twist>(twist.as_bytes(), "geometry_msgs/msg/TwistStamped");
    let imu = Imu {
        header,
        orientation,
        angular_velocity: vector(4.0),
        linear_acceleration: vector(9.81),
        orientation_covariance: std::array::from_fn(|i| i as f64),
        angular_velocity_covariance: [-1.0; 9],
        linear_acceleration_covariance: [0.25; 9],
    };
    comes_back::<Imu>(imu.as_bytes(), "sensor_msgs/msg/Imu");

    let joint = |name, position| Joint {
        name: Text::cut(name),
        position,
        velocity: f64::NAN,
        effort: -position,
    };
    let joints = [joint("elbow", 0.1), joint("wrist", 0.2)];
    let joints = [JointStateHeader { header }.as_bytes(), joints.as_bytes()].concat();
    comes_back::<JointState>(&joints, "sensor_msgs/msg/JointState");

    let points = [PointXyzi { x: 1.0, y: -2.0, z: 0.5, intensity: 0.25 }; 6];
    let head = PointCloudHeader { header, width: 3, height: 2, reserved: [0; 4] };
    let cloud = [head.as_bytes(), points.as_bytes()].concat();
    comes_back::<PointCloud>(&cloud, "sensor_msgs/msg/PointCloud2");

    let image = |format, row_bytes, pixels: &[u8]| {
        let (width, height) = (2, 2);
        let head = ImageHeader { header, width, height, row_bytes, format, reserved: [0; 2] };
        [head.as_bytes(), pixels].concat()
    };
    for (format, _) in super::FORMATS {
        let bytes = image(PixelFormat(format), 8, &[7; 16]);
        comes_back::<Image>(&bytes, "sensor_msgs/msg/Image");
    }
    let of = PayloadType::of::<Image>();
    let (name, back) = round(&of, &image(PixelFormat::JPEG, 0, &[0xff, 0xd8, 1, 2, 3]));
    assert_eq!(name, "sensor_msgs/msg/CompressedImage");
    assert_eq!(back[64..], [0xff, 0xd8, 1, 2, 3]);
    let to = ToRos::of(&of, 0).unwrap();
    let mut words = [0u64; 9];
    let wrong = image(PixelFormat(77), 4, &[0; 8]);
    words.as_mut_bytes().copy_from_slice(&wrong);
    assert!(to.message(words.as_bytes()).unwrap_err().contains("format 77"));
}

#[test]
fn numbers_and_messagepack_become_messages_and_come_back() {
    comes_back::<f64>(&2.5f64.to_le_bytes(), "std_msgs/msg/Float64");
    comes_back::<outlive::msg::Bool>(&[1], "std_msgs/msg/Bool");
    comes_back::<[i16]>(&[1, 2, 3, 4], "std_msgs/msg/Int16MultiArray");
    comes_back::<[u8]>(b"bytes", "std_msgs/msg/UInt8MultiArray");
    comes_back::<[f64]>(&[], "std_msgs/msg/Float64MultiArray");
    assert!(ToRos::of(&PayloadType::of::<[u128]>(), 0).is_none());
    assert!(ToRos::of(&PayloadType::msgpack("robot/Plan").unwrap(), 0).is_none());

    let of = PayloadType::msgpack("tf2_msgs/msg/TFMessage").unwrap();
    let stamp = fields([("sec", Value::Unsigned(7)), ("nanosec", Value::Unsigned(8))]);
    let header = fields([("stamp", stamp), ("frame_id", Value::text("map"))]);
    let transform = fields([("header", header), ("child_frame_id", Value::text("base"))]);
    let given = fields([("transforms", Value::List(vec![transform]))]);
    let (name, back) = round(&of, &msgpack::encode(&given).unwrap());
    assert_eq!(name, "tf2_msgs/msg/TFMessage");
    let back = outlive::MsgPack::<()>::new(&back);
    let back: Value<'_> = back.decode_as().unwrap();
    let items = back.get("transforms").unwrap().items();
    assert_eq!(items[0].get("child_frame_id"), Some(&Value::text("base")));
    let rotation = items[0].get("transform").and_then(|t| t.get("rotation"));
    assert_eq!(rotation.and_then(|r| r.get("w")), Some(&Value::F64(0.0)), "missing is zero");

    let wrong = |value: Value<'_>| {
        let to = ToRos::of(&of, 0).unwrap();
        to.message(&msgpack::encode(&value).unwrap()).unwrap_err()
    };
    let why = wrong(fields([("transform", Value::Nothing)]));
    assert!(why.contains("no field transform"), "{why}");
    assert!(wrong(Value::Unsigned(1)).contains("1 instead of a message"));
    let text = fields([("child_frame_id", Value::F64(0.5))]);
    let why = wrong(fields([("transforms", Value::List(vec![text]))]));
    assert_eq!(why, "transforms.child_frame_id: 0.5 instead of text");
}

#[test]
fn stamps_since_the_start_of_the_machine_become_stamps_since_1970() {
    let seconds = |stamp_ns: u64| {
        let pose = Pose { header: Header { stamp_ns, ..Header::default() }, ..Pose::default() };
        let to = ToRos::of(&PayloadType::of::<Pose>(), 1_700_000_000_000_000_000).unwrap();
        let (_, data) = to.message(pose.as_bytes()).unwrap();
        let schema = to.schema(0);
        let value = cdr::decode(schema, &data).unwrap();
        value.get("header").unwrap().get("stamp").unwrap().get("sec").unwrap().whole().unwrap()
    };
    assert_eq!(seconds(5_000_000_000), 1_700_000_005);
    assert_eq!(seconds(0), 0, "unknown stays unknown");
    assert_eq!(seconds(1_650_000_000_000_000_000), 1_650_000_000, "it was one already");
}

#[test]
fn cdr_is_laid_out_as_its_specification_says() {
    let text = "bool a\nfloat64 b\nstring c\nint16[] d\nint8 e\nint32[2] f\n";
    let schema = Schema::parse("t/T", text).unwrap();
    let value = fields([
        ("a", Value::Bool(true)),
        ("b", Value::F64(1.0)),
        ("c", Value::text("hi")),
        ("d", Value::List(vec![Value::Signed(-1), Value::Unsigned(2)])),
        ("e", Value::Signed(-2)),
        ("f", Value::List(vec![Value::Unsigned(3), Value::Unsigned(4)])),
    ]);
    let little = [
        &[0, 1, 0, 0][..],             // little-endian
        &[1, 0, 0, 0, 0, 0, 0, 0],     // a, to a multiple of 8
        &[0, 0, 0, 0, 0, 0, 0xf0, 63], // b
        &[3, 0, 0, 0, b'h', b'i', 0],  // c
        &[0, 2, 0, 0, 0, 255, 255, 2, 0, 0xfe],
        &[0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0],
    ]
    .concat();
    assert_eq!(cdr::encode(&schema, &value).unwrap(), little);
    let big = [
        &[0, 0, 0, 0][..],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[63, 0xf0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 3, b'h', b'i', 0],
        &[0, 0, 0, 0, 2, 255, 255, 0, 2, 0xfe],
        &[0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4],
    ]
    .concat();
    let (little, big) = (cdr::decode(&schema, &little), cdr::decode(&schema, &big));
    assert_eq!(little.as_ref().unwrap().get("e"), Some(&Value::Signed(-2)));
    assert_eq!(little, big);
    assert!(cdr::decode(&schema, &[0, 7, 0, 0]).unwrap_err().contains("form 7"));
    let many = [0, 1, 0, 0, 255, 255, 255, 255];
    let huge = Schema::parse("t/T", "string[] a").unwrap();
    assert!(cdr::decode(&huge, &many).unwrap_err().contains("ends before"));
}

/// Readers that hold a message to its type refused what was written.
#[test]
fn no_more_is_written_than_the_bounds_of_a_message_allow() {
    let text = "int16[<=2] a\nstring<=3 b\nstring<=2[<=1] c\nPart[<=1] d\nstring e\nuint8[] f\n\
                ================\nMSG: t/Part\nuint8[<=2] x\n";
    let schema = Schema::parse("t/T", text).unwrap();
    let of = |field, value| cdr::encode(&schema, &fields([(field, value)]));
    let list = Value::List;
    let (text, empty) = (Value::text, || Value::Fields(Vec::new()));
    let part = |bytes| list(vec![fields([("x", Value::bytes(bytes))])]);
    for (field, most, more, why) in [
        (
            "a",
            Value::Numbers(Base::I16, [1, 0, 2, 0][..].into()),
            Value::Numbers(Base::I16, [1, 0, 2, 0, 3, 0][..].into()),
            "a: 3 elements instead of at most 2",
        ),
        ("b", text("äx"), text("äöx"), "b: a text of 5 bytes instead of at most 3"),
        (
            "c",
            list(vec![text("ab")]),
            list(vec![text("ab"), text("")]),
            "c: 2 elements instead of at most 1",
        ),
        ("c", list(vec![]), list(vec![text("abc")]), "c: a text of 3 bytes instead of at most 2"),
        (
            "d",
            list(vec![empty()]),
            list(vec![empty(), empty()]),
            "d: 2 elements instead of at most 1",
        ),
        ("d", part(&[1, 2]), part(&[1, 2, 3]), "d.x: 3 elements instead of at most 2"),
    ] {
        assert!(of(field, most).is_ok(), "{field}");
        assert_eq!(of(field, more), Err(why.into()));
    }
    assert!(of("e", text("without end")).is_ok() && of("f", Value::bytes(&[0; 99])).is_ok());
}

#[test]
fn what_ros_writes_in_other_ways_is_read() {
    let cloud = |bytes: &[u8], step: u64, big| {
        let field = |name, offset, datatype: u64| {
            let (offset, datatype) = (Value::Unsigned(offset), Value::Unsigned(datatype));
            let name = ("name", Value::text(name));
            fields([
                name,
                ("offset", offset),
                ("datatype", datatype),
                ("count", Value::Unsigned(1)),
            ])
        };
        let columns = vec![field("z", 0, 8), field("x", 8, 4), field("ring", 10, 2)];
        let value = fields([
            ("height", Value::Unsigned(1)),
            ("width", Value::Unsigned(1)),
            ("fields", Value::List(columns)),
            ("is_bigendian", Value::Bool(big)),
            ("point_step", Value::Unsigned(step)),
            ("row_step", Value::Unsigned(step)),
            ("data", Value::bytes(bytes)),
        ]);
        let schema = Schema::embedded("sensor_msgs/msg/PointCloud2").unwrap();
        let data = cdr::encode(&schema, &value).unwrap();
        let (from, _) = FromRos::of(&schema.name, "", None).unwrap();
        from.payload(&data).map(|payload| payload[64..].to_vec())
    };
    let little = [&2.5f64.to_le_bytes()[..], &7u16.to_le_bytes(), &[9]].concat();
    let big = [&2.5f64.to_be_bytes()[..], &7u16.to_be_bytes(), &[9]].concat();
    let point = PointXyzi { x: 7.0, y: 0.0, z: 2.5, intensity: 0.0 };
    assert_eq!(cloud(&little, 11, false).unwrap(), point.as_bytes());
    assert_eq!(cloud(&big, 11, true).unwrap(), point.as_bytes());
    assert!(cloud(&little, 12, false).is_err() && cloud(&little, 0, false).is_err());
    assert!(cloud(&little, 9, false).is_err(), "a number beyond its point");
}

#[test]
fn an_array_whose_length_is_only_claimed_takes_no_memory() {
    for text in ["float64[1000000000000] a\n", "string[1000000000000] a\n"] {
        let schema = Schema::parse("t/T", text).unwrap();
        let why = cdr::encode(&schema, &Value::Fields(Vec::new())).unwrap_err();
        assert_eq!(why, "a: it is larger than 1 GiB");
    }
}

/// A value in which every number is another.
fn sample(schema: &Schema, of: &[Field], next: &mut u64) -> Value<'static> {
    let mut one = |kind: &Kind| {
        *next += 1;
        match kind {
            Kind::Base(Base::Bool) => Value::Bool(*next % 2 == 1),
            Kind::Base(base) => {
                let mut bytes = [0; 8];
                bytes[0] = *next as u8;
                bytes[base.size() - 1] |= 64;
                base.read(&bytes[..base.size()])
            }
            Kind::Text => Value::Text("x".repeat(*next as usize % 5).into()),
            Kind::Message(index) => sample(schema, &schema.types[*index], next),
        }
    };
    let field = |field: &Field| {
        let len = match field.many {
            Many::One => return (field.name.clone().into(), one(&field.kind)),
            Many::Fixed(len) => len,
            Many::Any => 3,
        };
        let all: Vec<_> = (0..len).map(|_| one(&field.kind)).collect();
        (field.name.clone().into(), Value::List(all))
    };
    Value::Fields(of.iter().map(field).collect())
}

/// Arrays of scalars as lists.
fn plain(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Fields(all) => {
            Value::Fields(all.iter().map(|(k, v)| (k.to_string().into(), plain(v))).collect())
        }
        Value::List(_) | Value::Numbers(..) | Value::Bytes(_) => {
            Value::List(value.items().iter().map(|v| plain(v)).collect())
        }
        Value::Text(text) => Value::Text(text.to_string().into()),
        Value::Bool(v) => Value::Bool(*v),
        Value::Unsigned(v) => Value::Unsigned(*v),
        Value::Signed(v) => Value::Signed(*v),
        Value::F32(v) => Value::F32(*v),
        Value::F64(v) => Value::F64(*v),
        Value::Nothing => Value::Nothing,
    }
}

#[test]
fn every_message_in_the_program_comes_back_from_cdr_and_any_part_of_it_is_no_panic() {
    for name in embedded() {
        let schema = Schema::embedded(name).unwrap();
        let value = sample(&schema, schema.root(), &mut 0);
        let data = cdr::encode(&schema, &value).unwrap();
        assert_eq!(plain(&cdr::decode(&schema, &data).unwrap()), value, "{name}");
        for len in 0..data.len().saturating_sub(4) {
            assert!(cdr::decode(&schema, &data[..len]).is_err(), "{name}: {len}");
        }
        let (from, of) = FromRos::of(name, "", None).unwrap();
        let mut spoiled = data.clone();
        for at in 4..data.len() {
            spoiled[at] ^= 0x95;
            let payload = from.payload(&spoiled);
            assert!(payload.is_err() || of.fits(payload.unwrap().len()), "{name}: {at}");
            spoiled[at] = data[at];
        }
    }
}
