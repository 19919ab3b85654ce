//! Values that a type does not have, written by a program that knows only bytes: each way to
//! receive returns `Corrupt` with the field's name, and the next message comes as always.
#![cfg(all(not(loom), feature = "derive"))]
#![forbid(unsafe_code)]

use std::time::Duration;

use outlive::msg::{Optional, Text};
use outlive::zerocopy::IntoBytes;
use outlive::{ErrorKind, Headed, Message, Node, Payload, PayloadType, Result, doc_dir};

#[outlive::message]
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Mode {
    Idle,
    Driving,
    Fault = 200,
}

#[outlive::message("test/State")]
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    number: u32,
    key: char,
    modes: [Mode; 2],
    ready: bool,
    reserved: u8,
}

const GOOD: State =
    State { number: 7, key: 'ä', modes: [Mode::Driving, Mode::Fault], ready: true, reserved: 0 };

/// What is wrong, as bytes of a `State`, and what is said of it.
fn wrong() -> Vec<([u8; 12], &'static str)> {
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = [0; 12];
        bytes.copy_from_slice(GOOD.as_bytes());
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        bytes
    };
    vec![
        (
            with(&[(9, 7)]),
            "field `modes[1]` holds 7, which is not one of Idle 0, Driving 1, Fault 200",
        ),
        (with(&[(8, 199)]), "field `modes[0]` holds 199"),
        (with(&[(10, 2)]), "field `ready` holds 2, which is neither 0 (false) nor 1 (true)"),
        (with(&[(5, 0xd8), (4, 0)]), "field `key` holds 0xd800, which is not a Unicode character"),
    ]
}

/// The error is `Corrupt`, names the object, and says `says`.
#[track_caller]
fn is_wrong<T: std::fmt::Debug>(got: Result<T>, object: &str, says: &str) {
    let e = got.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert!(e.to_string().contains(object) && e.to_string().contains(says), "{e}");
}

/// Whoever sent it joined, and is read on.
#[track_caller]
fn nothing_else<E: std::fmt::Debug>(events: impl Iterator<Item = E>) {
    let events: Vec<_> = events.map(|event| format!("{event:?}")).collect();
    assert!(events.len() == 1 && events[0].contains("Joined"), "{events:?}");
}

fn node() -> (outlive::DocDir, Node) {
    let dir = doc_dir();
    let node = Node::builder().root(dir.path()).name("checked").open().unwrap();
    (dir, node)
}

#[test]
fn a_type_is_checked_exactly_if_it_has_such_a_field() {
    const fn checked<T: Payload + ?Sized>() -> bool {
        T::CHECKED
    }
    const {
        assert!(checked::<State>() && checked::<[State]>() && checked::<[bool; 2]>());
        assert!(checked::<Optional<Mode>>() && checked::<char>());
        assert!(checked::<Headed<State, u8>>() && checked::<Headed<u64, Mode>>());
        assert!(!checked::<[u8]>() && !checked::<[f64; 3]>() && !checked::<outlive::msg::Imu>());
        assert!(!checked::<Optional<f64>>() && !checked::<Text<9>>());
        assert!(!checked::<outlive::msg::Image>() && !checked::<outlive::MsgPack<String>>());
    }

    #[outlive::message]
    struct Plain {
        nested: [Optional<u16>; 2],
        text: Text<4>,
    }
    const { assert!(!checked::<Plain>() && Plain::VALIDITY.is_any()) };
    assert_eq!(
        (Plain::TYPE_NAME, Mode::TYPE_NAME, State::TYPE_NAME),
        ("Plain", "Mode", "test/State")
    );
}

#[test]
fn the_description_has_the_names_of_an_enum() {
    assert_eq!(
        State::describe().to_text(),
        "outlive-type 1 align 4\n\
         struct:12\n \
          0 u32 number\n \
          4 char32 key\n \
          8 enum:u8{Idle=0,Driving=1,Fault=200}[2] modes\n \
          10 bool ready\n \
          11 u8 reserved\n"
    );
    let shown = State::describe();
    let shown = shown.decode(GOOD.as_bytes()).unwrap().to_string();
    assert_eq!(shown, "{number: 7, key: \"ä\", modes: [Driving, Fault], ready: true, reserved: 0}");
}

#[test]
fn every_call_of_a_subscriber_refuses_the_value_and_receives_the_next() {
    let (_dir, node) = node();
    let raw = PayloadType::of::<State>();
    let publisher = node.topic::<[u8]>("/state").unwrap().of_type(&raw).publisher().unwrap();
    let mut subscriber = node.topic::<State>("/state").unwrap().subscriber().unwrap();
    for (bytes, says) in wrong() {
        let send = |bytes: &[u8]| assert!(publisher.publish(bytes).is_ok());
        send(&bytes);
        send(GOOD.as_bytes());
        is_wrong(subscriber.receive(), "/state", says);
        assert_eq!(*subscriber.receive().unwrap().unwrap(), GOOD);
        send(&bytes);
        is_wrong(subscriber.receive_timeout(Duration::from_secs(9)), "/state", says);
        send(&bytes);
        is_wrong(subscriber.latest(), "/state", says);
        send(&bytes);
        is_wrong(subscriber.receive_in_order(), "/state", says);
        let mut copy = GOOD;
        send(&bytes);
        is_wrong(subscriber.copy_to(&mut copy), "/state", says);
        assert_eq!(copy, GOOD, "not touched");
        send(State { number: 8, ..GOOD }.as_bytes());
        subscriber.copy_to(&mut copy).unwrap().unwrap();
        assert_eq!(copy.number, 8);
    }
    assert_eq!((subscriber.lost(), subscriber.borrowed()), (0, 0));
    assert!(subscriber.receive().unwrap().is_none());
    nothing_else(std::iter::from_fn(|| subscriber.next_event()));
}

#[test]
fn samples_in_place_slices_and_headed_payloads_are_checked_throughout() {
    let (_dir, node) = node();
    let many = [GOOD; 100];
    let (bad, says) = wrong().remove(0);
    let mut bytes = many.as_bytes().to_vec();
    bytes[99 * 12..].copy_from_slice(&bad);

    let raw = PayloadType::of::<[State]>();
    let publisher = node.topic::<[u8]>("/many").unwrap().of_type(&raw).publisher().unwrap();
    let mut subscriber = node.topic::<[State]>("/many").unwrap().borrows(1).subscriber().unwrap();
    for _ in 0..20 {
        publisher.publish(&bytes).unwrap();
        publisher.publish(many.as_bytes()).unwrap();
        is_wrong(subscriber.receive(), "/many", &says.replace("modes", "[99].modes"));
        let sample = subscriber.receive().unwrap().unwrap();
        assert!(sample.is_borrowed() && *sample == many);
    }

    type Log = Headed<State, Mode>;
    let raw = PayloadType::of::<Log>();
    let publisher = node.topic::<[u8]>("/log").unwrap().of_type(&raw).publisher().unwrap();
    let mut subscriber = node.topic::<Log>("/log").unwrap().subscriber().unwrap();
    publisher.publish(&[&bad[..], &[1, 1]].concat()).unwrap();
    publisher.publish(&[GOOD.as_bytes(), &[1, 9]].concat()).unwrap();
    publisher.publish(&[GOOD.as_bytes(), &[1, 200]].concat()).unwrap();
    is_wrong(subscriber.receive(), "/log", says);
    is_wrong(subscriber.receive(), "/log", "field `tail[1]` holds 9");
    assert_eq!(subscriber.receive().unwrap().unwrap().tail(), [Mode::Driving, Mode::Fault]);

    #[repr(align(4))]
    struct Aligned([u8; 12]);
    assert!(Headed::<State, Mode>::parse(&Aligned(bad).0).is_none());
    assert!(Headed::<State, Mode>::parse_mut(&mut Aligned(bad).0).is_none());
    assert!(!*node.topic::<bool>("/on").unwrap().publisher().unwrap().loan().unwrap());
}

#[test]
fn a_queue_skips_the_value_alone_and_in_the_middle_of_a_batch() {
    let (_dir, node) = node();
    let raw = PayloadType::of::<State>();
    let mut consumer = node.queue::<State>("/jobs").unwrap().consumer().unwrap();
    let mut producer = node.queue::<[u8]>("/jobs").unwrap().of_type(&raw).producer().unwrap();
    let good = GOOD.as_bytes();
    for (bytes, says) in wrong() {
        producer.send(&bytes).unwrap();
        producer.send(good).unwrap();
        is_wrong(consumer.receive(), "/jobs", says);
        assert_eq!(*consumer.receive().unwrap().unwrap(), GOOD);
        producer.send(&bytes).unwrap();
        is_wrong(consumer.wait_for_message(outlive::Deadline::NEVER), "/jobs", says);
        let mut copy = GOOD;
        producer.send(&bytes).unwrap();
        producer.send(good).unwrap();
        is_wrong(consumer.copy_to(&mut copy), "/jobs", says);
        assert!(consumer.copy_to(&mut copy).unwrap() && copy == GOOD);

        let batch = [good, good, &bytes, good].concat();
        producer.send_batch_bytes(&batch, outlive::Deadline::NEVER).unwrap();
        assert_eq!(consumer.receive_slice().unwrap().unwrap().len(), 2, "up to it");
        is_wrong(consumer.receive_slice(), "/jobs", says);
        assert_eq!(consumer.receive_slice().unwrap().unwrap().len(), 1);
        producer.send_batch_bytes(&batch, outlive::Deadline::NEVER).unwrap();
        let mut all = Vec::new();
        is_wrong(consumer.receive_batch(&mut all, 10), "/jobs", says);
        assert_eq!(consumer.receive_batch(&mut all, 10).unwrap(), 1);
        assert_eq!(all, [GOOD; 3]);
    }
    assert!(consumer.receive().unwrap().is_none());
    nothing_else(std::iter::from_fn(|| consumer.next_event()));
}

#[test]
fn a_service_refuses_the_request_and_a_client_the_reply() {
    let (_dir, node) = node();
    let (state, number) = (PayloadType::of::<State>(), PayloadType::of::<u64>());
    let (bad, says) = wrong().remove(0);
    let mut server = node.service::<State, u64>("/ask").unwrap().server().unwrap();
    let client = node.service::<[u8], [u8]>("/ask").unwrap().of_types(&state, &number);
    let mut client = client.client().unwrap();
    let (lost, kept) = (client.send(&bad).unwrap(), client.send(GOOD.as_bytes()).unwrap());
    let request = server.receive().unwrap().unwrap();
    assert_eq!(*request, GOOD);
    server.respond(request, &3).unwrap();
    assert_eq!(
        *client.receive_for(kept, outlive::Deadline::NEVER).unwrap().body().unwrap(),
        3u64.to_le_bytes()
    );
    // By the call that met it: this server may work on the good one for long.
    let refused = client.receive_for(lost, outlive::Deadline::AT_ONCE);
    let refused = refused.unwrap().into_response().unwrap_err();
    assert!(server.receive().unwrap().is_none());
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains(says), "{refused}");
    drop(client);
    drop(server);

    let server = node.service::<[u8], [u8]>("/tell").unwrap().of_types(&number, &state);
    let mut server = server.server().unwrap();
    let mut client = node.service::<u64, State>("/tell").unwrap().client().unwrap();
    for answer in [&bad[..], GOOD.as_bytes()] {
        let ticket = client.send(&1).unwrap();
        let request = server.receive().unwrap().unwrap();
        server.respond(request, answer).unwrap();
        let reply = client.receive_for(ticket, outlive::Deadline::NEVER).unwrap();
        match answer == bad {
            true => is_wrong(reply.into_response(), "/tell", says),
            false => assert_eq!(*reply.body().unwrap(), GOOD),
        }
    }
}

#[test]
fn what_is_lent_to_be_filled_holds_a_value_also_where_bytes_were_before() {
    let (_dir, node) = node();
    let bytes = PayloadType::of::<[u8; 4096]>();
    let publisher = node.topic::<[u8]>("/old").unwrap().of_type(&bytes).publisher().unwrap();
    publisher.publish(&[0xff; 4096]).unwrap();
    drop(publisher);

    let publisher = node.topic::<[Mode; 4096]>("/new").unwrap().publisher().unwrap();
    for _ in 0..40 {
        let mut loan = publisher.loan().unwrap();
        assert!(loan.iter().all(|mode| *mode == Mode::Idle), "zeros are lent");
        loan.fill(Mode::Fault);
        loan.publish().unwrap();
    }
    let mut consumer = node.queue::<Mode>("/q").unwrap().consumer().unwrap();
    let mut producer = node.queue::<Mode>("/q").unwrap().producer().unwrap();
    for _ in 0..3000 {
        let mut slot = producer.reserve().unwrap();
        assert_eq!(*slot, Mode::Idle);
        *slot = Mode::Fault;
        slot.commit();
        assert_eq!(*consumer.receive().unwrap().unwrap(), Mode::Fault);
    }
    let logs = node.topic::<Headed<bool, u8>>("/tail").unwrap().publisher().unwrap();
    let mut log = logs.loan_headed(true, 3).unwrap();
    log.tail_mut().fill(9);
    assert_eq!((*log.header(), log.tail()), (true, &[9; 3][..]));
}

/// A program in a language without enums, or with other habits of naming, joins all the same.
#[test]
fn an_enum_agrees_with_its_number_and_with_names_of_another_style() {
    let describe = |text: &str| outlive::TypeDescription::parse(text.as_bytes()).unwrap();
    let head = "outlive-type 1 align 1\n";
    for (ty, agrees) in [
        ("u8", true),
        ("enum:u8{IDLE=0,DRIVING=1,FAULT=200}", true),
        ("enum:u8{Idle=0,Driving=1}", false),
        ("enum:u8{Idle=0,Moving=1,Fault=200}", false),
        ("i8", false),
        ("bool", false),
    ] {
        let (ours, other) = (Mode::describe(), describe(&format!("{head}{ty}\n")));
        assert_eq!(ours.differences(&other).is_empty(), agrees, "{ty}");
        assert_eq!(other.differences(&ours).is_empty(), agrees, "{ty}");
    }
}
