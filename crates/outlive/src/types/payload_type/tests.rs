//! Types made at run time against those of the compiler.
#![allow(unsafe_code)]

use super::*;
use crate::os::time::deadline::Deadline;
use crate::types::Headed;
use crate::types::describe::Scalar;

#[test]
fn a_type_made_at_run_time_equals_that_of_the_rust_type() {
    let f32s = TypeDescription::scalar(Scalar::F32);
    let row = f32s.clone().array(3);
    assert_eq!(PayloadType::fixed("f32", &row).unwrap(), PayloadType::of::<[f32; 3]>());
    assert_eq!(PayloadType::slice("f32", &f32s).unwrap(), PayloadType::of::<[f32]>());
    let bytes = TypeDescription::scalar(Scalar::U8);
    assert_eq!(PayloadType::slice("u8", &bytes).unwrap(), PayloadType::of::<[u8]>());
    let header = TypeDescription::scalar(Scalar::F64).array(2);
    let headed = PayloadType::headed("f64", &header, &f32s).unwrap();
    assert_eq!(headed, PayloadType::of::<Headed<[f64; 2], f32>>());
    assert!(headed.fits(16) && headed.fits(24) && !headed.fits(15) && !headed.fits(18));
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let f64s = TypeDescription::scalar(Scalar::F64);
    for bad in [
        PayloadType::fixed("", &f64s),
        PayloadType::fixed("x", &f64s.clone().slice()),
        PayloadType::fixed("x", &TypeDescription::struct_of(0, 1)),
        PayloadType::fixed("x", &TypeDescription::struct_of(12, 8)),
        PayloadType::headed("x", &TypeDescription::scalar(Scalar::F32), &f64s),
    ] {
        assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_number_has_its_name_its_size_and_its_alignment() {
    let described = |text: &str| TypeDescription::parse(text.as_bytes()).unwrap();
    let of =
        |align: usize, what: &str| described(&format!("outlive-type 1 align {align}\n{what}\n"));
    for (name, element, says) in [
        ("f32", of(8, "f64"), "describe f32 or give the type a name of its own"),
        ("f32", of(4, "u32"), "u32 of 4 bytes aligned to 4 is described"),
        ("f64", of(8, "struct:8\n 0 f64 x"), "struct:8 of 8 bytes"),
        ("u16", of(1, "opaque:3"), "opaque:3 of 3 bytes"),
        (
            "example/Big",
            of(4, "f64[2]"),
            "f64[2] is not aligned to 4 bytes: describe it with align 8",
        ),
        (
            "example/Bytes",
            of(64, "u8[64]"),
            "describe it with align 1, or as the field of a struct",
        ),
    ] {
        let made = [
            PayloadType::fixed(name, &element),
            PayloadType::slice(name, &element),
            PayloadType::headed(name, &element, &of(1, "u8")),
        ];
        for made in made {
            let e = made.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument);
            assert!(e.to_string().contains(says) && e.to_string().contains(name), "{e}");
        }
    }
    assert!(PayloadType::headed("x", &of(8, "struct:8"), &of(4, "f64")).is_err());
    // Third-party encodings and MessagePack have names of their own.
    assert!(PayloadType::msgpack("f64").is_ok());
    assert!(PayloadType::encoded(Encoding::Json, "f64", b"").is_ok());
    assert!(PayloadType::fixed("u8", &of(1, "enum:u8{Idle=0}[3]")).is_ok());
    assert!(PayloadType::fixed("u16", &of(2, "opaque:4")).is_ok());
    assert!(PayloadType::fixed("example/Two", &of(8, "f64[2]")).is_ok());
}

fn node() -> (crate::os::fixture::TempDir, crate::Node) {
    let dir = crate::os::fixture::TempDir::new("payload-type");
    let node = crate::Node::builder().root(dir.path()).name("t").open().unwrap();
    (dir, node)
}

#[test]
fn bytes_of_a_run_time_type_and_the_rust_type_share_topic_queue_service_and_lock() {
    let (_dir, node) = node();
    let number = PayloadType::of::<u64>();
    let seven = 7u64.to_le_bytes();

    let publisher = node.topic::<[u8]>("/t").unwrap().of_type(&number).publisher().unwrap();
    let mut subscriber = node.topic::<u64>("/t").unwrap().subscriber().unwrap();
    publisher.publish(&seven).unwrap();
    assert_eq!(*subscriber.receive().unwrap().unwrap(), 7);

    let mut consumer = node.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = node.queue::<[u8]>("/q").unwrap().of_type(&number).producer().unwrap();
    for _ in 0..20 {
        producer.send(&seven).unwrap();
    }
    assert_eq!(producer.send(&seven[1..]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!((0..20).map(|_| *consumer.receive().unwrap().unwrap()).sum::<u64>(), 140);
    drop(consumer);
    let mut consumer = node.queue::<[u8]>("/q").unwrap().of_type(&number).consumer().unwrap();
    let mut producer = node.queue::<u64>("/q").unwrap().producer().unwrap();
    producer.send_batch(&[7, 8, 9]).unwrap();
    for n in 7..10u64 {
        assert_eq!(*consumer.receive().unwrap().unwrap(), n.to_le_bytes());
    }

    let vector = PayloadType::of::<[f64; 2]>();
    let service = || node.service::<[u8], [u8]>("/s").unwrap().of_types(&vector, &number);
    let mut server = service().server().unwrap();
    let mut client = node.service::<[f64; 2], u64>("/s").unwrap().client().unwrap();
    let ticket = client.send(&[1.0, 2.0]).unwrap();
    let request = server.receive().unwrap().unwrap();
    assert!(vector.accepts(&request) && request[8..] == 2f64.to_le_bytes());
    server.respond(request, &seven).unwrap();
    let reply = client.receive_for(ticket, Deadline::NEVER).unwrap();
    assert_eq!(*reply.body().unwrap(), 7);
    drop(server);
    let mut server = node.service::<[f64; 2], u64>("/s").unwrap().server().unwrap();
    let mut client = service().client().unwrap();
    assert_eq!(client.send(&seven).unwrap_err().kind(), ErrorKind::InvalidArgument);
    client.send(&[0; 16]).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &9).unwrap();
    let reply = client.receive().unwrap().unwrap();
    assert_eq!(*reply.body().unwrap(), 9u64.to_le_bytes());

    let lock = crate::lock::RawRwLock::open_with(&node, "/l", &vector, None).unwrap();
    *node.rwlock::<[f64; 2]>("/l").unwrap().write().unwrap() = [0.5, 1.5];
    lock.read().unwrap();
    // SAFETY: 16 bytes aligned to 8; the lock is held.
    assert_eq!(unsafe { *lock.data().cast::<[f64; 2]>() }, [0.5, 1.5]);
    lock.unlock_read().unwrap();
    let of = PayloadType::bytes();
    let no_value = crate::lock::RawMutex::open_with(&node, "/m", &of, None);
    assert_eq!(no_value.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_type_made_from_what_a_topic_says_is_the_same_and_others_are_refused() {
    let (_dir, node) = node();
    let imu = PayloadType::of::<crate::types::msg::Imu>();
    let _publisher = node.topic::<[u8]>("/imu").unwrap().of_type(&imu).publisher().unwrap();
    let info = crate::Domain::of_node(&node).find_topic("/imu").unwrap().unwrap();
    assert_eq!(info.payload_type(), imu);

    let made = |name: &str, form, schema: &[u8]| {
        PayloadType::stored(Encoding::Fixed, name, form, schema).map_err(|e| e.kind())
    };
    assert_eq!(made(imu.name(), (imu.size(), imu.align()), imu.schema()), Ok(imu));
    let wrong = Err(ErrorKind::InvalidArgument);
    for form in [(0, 8), (8, 0), (8, 3), (8192, 8192), (usize::MAX, 1)] {
        assert_eq!(made("x", form, &[]), wrong, "{form:?}");
    }
    assert_eq!(made("", (8, 8), &[]), wrong);
    assert_eq!(made("x", (8, 8), &[b'x'; 65_537]), wrong);
}
