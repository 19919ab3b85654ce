//! Values of third-party encodings over topics, queues and services.

use crate::os::fixture::TempDir;
use crate::types::{Encoding, PayloadType};
use crate::{Codec, Deadline, Encoded, ErrorKind, Node};

/// JSON text as it is; what begins with `!` cannot be sent.
struct Text<const N: usize>;

/// What each of them says of itself.
const SCHEMAS: [&str; 3] = ["{ \"type\": \"object\" }", "{\"type\":\"array\"}", "{"];

impl<const N: usize> Codec for Text<N> {
    type Value = String;
    const ENCODING: Encoding = Encoding::Json;

    fn type_name() -> String {
        "test/Text".into()
    }

    fn schema() -> Vec<u8> {
        SCHEMAS[N].into()
    }

    fn encode(
        value: &String,
        to: &mut [u8],
    ) -> std::result::Result<usize, Box<dyn std::error::Error + Send + Sync>> {
        if value.starts_with('!') {
            return Err("it begins with !".into());
        }
        if let Some(to) = to.get_mut(..value.len()) {
            to.copy_from_slice(value.as_bytes());
        }
        Ok(value.len())
    }

    fn decode(
        bytes: &[u8],
    ) -> std::result::Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Ok(std::str::from_utf8(bytes)?.into())
    }
}

/// Read in place at 64 bytes.
struct Table;

impl Codec for Table {
    type Value = Vec<u8>;
    const ENCODING: Encoding = Encoding::Arrow;

    fn type_name() -> String {
        "test/Table".into()
    }

    fn schema() -> Vec<u8> {
        Vec::new()
    }

    fn encode(
        value: &Vec<u8>,
        to: &mut [u8],
    ) -> std::result::Result<usize, Box<dyn std::error::Error + Send + Sync>> {
        if let Some(to) = to.get_mut(..value.len()) {
            to.copy_from_slice(value);
        }
        Ok(value.len())
    }

    fn decode(
        bytes: &[u8],
    ) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(bytes.into())
    }
}

fn node() -> (TempDir, Node) {
    let dir = TempDir::new("values");
    let node = Node::builder().root(dir.path()).name("t").open().unwrap();
    (dir, node)
}

#[test]
fn values_of_every_length_arrive_and_what_cannot_be_encoded_is_not_sent() {
    let (_dir, node) = node();
    let publisher = node.topic::<Encoded<Text<0>>>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Encoded<Text<0>>>("/t").unwrap().subscriber().unwrap();
    for length in [0, 1, 103, 104, 105, 5000, 104, 5000, 70_000, 3] {
        let text = "x".repeat(length);
        publisher.publish_value(&text).unwrap();
        let got = subscriber.receive_value().unwrap().unwrap();
        assert_eq!((got.meta().lost_before, got.into_inner()), (0, text));
    }
    let refused = publisher.publish_value(&"!".into()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("as json: it begins with !"), "{refused}");
    assert!(subscriber.receive_value().unwrap().is_none());
}

#[test]
fn small_values_are_sent_while_large_ones_take_all_memory() {
    let (_dir, node) = node();
    let topic = || node.topic::<Encoded<Text<0>>>("/t").unwrap().depth(16);
    let publisher = topic().memory_bytes_max(20_000_000).publisher().unwrap();
    let (large, small) = ("x".repeat(4_000_000), "x".repeat(50));
    let sent = (0..16).take_while(|_| publisher.publish_value(&large).is_ok()).count();
    assert!((3..5).contains(&sent), "{sent} of 4 MB in 20 MB");
    assert_eq!(publisher.publish_value(&large).unwrap_err().kind(), ErrorKind::OutOfMemory);
    for _ in sent..16 {
        publisher.publish_value(&small).unwrap();
    }
    // The first large one is overwritten: there is room for another.
    publisher.publish_value(&small).unwrap();
    publisher.publish_value(&large).unwrap();
}

#[test]
fn bytes_that_are_no_value_are_corrupt_and_the_next_message_arrives() {
    let (_dir, node) = node();
    let publisher = node.topic::<Encoded<Text<0>>>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Encoded<Text<0>>>("/t").unwrap().subscriber().unwrap();
    publisher.publish(Encoded::new(b"\xff")).unwrap();
    publisher.publish_value(&"next".into()).unwrap();
    let corrupt = subscriber.receive_value().unwrap_err();
    assert_eq!(corrupt.kind(), ErrorKind::Corrupt);
    assert!(corrupt.to_string().contains("/t (message 0 of publisher"), "{corrupt}");
    assert!(corrupt.to_string().contains("not a valid test/Text (json)"), "{corrupt}");
    assert_eq!(*subscriber.receive_value().unwrap().unwrap(), "next");
}

#[test]
fn another_schema_is_refused_by_name_and_one_that_is_none_never_opens() {
    let (_dir, node) = node();
    let _publisher = node.topic::<Encoded<Text<0>>>("/t").unwrap().publisher().unwrap();
    let refused = node.topic::<Encoded<Text<1>>>("/t").unwrap().subscriber().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    let text = refused.to_string();
    assert!(text.contains("{\"type\":\"object\"}") && text.contains("{\"type\":\"array\"}"));
    // The same schema, written otherwise; no schema at all; another encoding.
    let of = |encoding, schema: &str| PayloadType::encoded(encoding, "test/Text", schema.as_ref());
    let open = |of: &PayloadType| {
        let builder = node.topic::<[u8]>("/t").unwrap().of_type(of);
        builder.subscriber().map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(open(&of(Encoding::Json, "{\"type\"\n:\"object\"}").unwrap()), Ok(()));
    assert_eq!(open(&of(Encoding::Json, "").unwrap()), Ok(()));
    let other = open(&of(Encoding::Cdr, "int32 x").unwrap()).unwrap_err();
    assert!(other.contains("encoding is json, this program has cdr"), "{other}");
    let none = node.topic::<Encoded<Text<2>>>("/new").unwrap().publisher().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument);
    assert!(none.to_string().contains("its json schema cannot be used"), "{none}");
    assert_eq!(crate::Domain::of_node(&node).find_topic("/new").unwrap().map(|t| t.name), None);
    let ours = PayloadType::encoded(Encoding::Slice, "f64", &[]).unwrap_err();
    assert!(ours.to_string().contains("slice is not a third-party encoding"), "{ours}");
}

#[test]
fn tables_are_aligned_for_reading_in_place_in_topics_and_queues() {
    let (_dir, node) = node();
    let publisher = node.topic::<Encoded<Table>>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Encoded<Table>>("/t").unwrap().subscriber().unwrap();
    let mut consumer = node.queue::<Encoded<Table>>("/q").unwrap().consumer().unwrap();
    let mut producer = node.queue::<Encoded<Table>>("/q").unwrap().producer().unwrap();
    for length in [1, 64, 1000] {
        let table = vec![length as u8; length];
        publisher.publish_value(&table).unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        assert_eq!((sample.as_bytes(), sample.as_bytes().as_ptr().addr() % 64), (&table[..], 0));
        producer.send(Encoded::new(&table)).unwrap();
        let received = consumer.receive().unwrap().unwrap();
        assert_eq!(
            (received.as_bytes(), received.as_bytes().as_ptr().addr() % 64),
            (&table[..], 0)
        );
    }
}

#[test]
fn queues_and_services_carry_them_and_compare_schemas_too() {
    let (_dir, node) = node();
    let _consumer = node.queue::<Encoded<Text<0>>>("/q").unwrap().consumer().unwrap();
    let refused = node.queue::<Encoded<Text<1>>>("/q").unwrap().producer().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    let none = node.queue::<Encoded<Text<2>>>("/q2").unwrap().producer().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument);

    type Asked = Encoded<Text<0>>;
    let mut server = node.service::<Asked, Asked>("/s").unwrap().server().unwrap();
    let mut client = node.service::<Asked, Asked>("/s").unwrap().client().unwrap();
    let ticket = client.send(Encoded::new(b"a")).unwrap();
    let request = server.receive().unwrap().unwrap();
    assert_eq!(request.decode().unwrap(), "a");
    server.respond(request, Encoded::new(b"b")).unwrap();
    let reply = client.receive_for(ticket, Deadline::NEVER).unwrap();
    assert_eq!(reply.body().unwrap().decode().unwrap(), "b");
    for refused in [
        node.service::<Encoded<Text<1>>, Asked>("/s").unwrap().client().map(drop),
        node.service::<Asked, Encoded<Text<1>>>("/s").unwrap().client().map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TypeMismatch);
    }
    let none = node.service::<Asked, Encoded<Text<2>>>("/s2").unwrap().client().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument);
}
