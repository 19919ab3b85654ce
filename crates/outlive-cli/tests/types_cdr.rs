//! Messages that `outlive types import --cdr` wrote: their bytes are those of ROS 2.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use outlive::{Codec, Encoded, Encoding, ErrorKind, Node, PayloadType};
use outlive_record::ros2::RosMessage;

#[path = "types/golden_cdr/mod.rs"]
mod messages;

use messages::plan_msgs::{Goal, Nothing, Plan};
use messages::route_msgs::{FindRequest, FindResponse, Leg, Route};

/// The system's, and the largest piece that anybody asked for.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, of: Layout) -> *mut u8 {
        LARGEST.fetch_max(of.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(of) }
    }

    unsafe fn dealloc(&self, at: *mut u8, of: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, of) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

/// Ends what hangs.
const LONG: Duration = Duration::from_secs(60);

type Any<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn route() -> Route {
    let mut route = Route::default();
    route.header.stamp.sec = -7;
    route.header.frame_id = "yard".into();
    let goal = Goal { name: "dock".into(), covariance: vec![0.25; 36], ..Goal::default() };
    route.plan.goals = vec![goal, Goal::default()];
    route.plan.tags = vec![String::new(), "abc".into()];
    route.plan.digest = vec![1, 2, 255];
    route.plan.times[1].nanosec = 9;
    let signs = vec!["halt".into(), "ä".into()];
    route.legs = vec![Leg::default(), Leg { side: Leg::LEFT, metres: 2.5, signs }];
    route.words = vec!["x".into(), String::new()];
    route.flags = vec![true, false, true];
    route.shorts = vec![-1];
    route.numbers = vec![1.5, f64::INFINITY];
    route.key[39] = 4;
    route.data = (0..=255).collect();
    route.r#match[2] = -0.5;
    route.nothings = vec![Nothing::default(); 2];
    route
}

fn encoded<C: Codec>(value: &C::Value) -> Any<Vec<u8>> {
    let mut bytes = vec![0; C::encode(value, &mut [])?];
    assert_eq!(C::encode(value, &mut bytes)?, bytes.len());
    Ok(bytes)
}

fn of_ros<C: Codec>() -> RosMessage {
    RosMessage::of(&C::type_name(), std::str::from_utf8(&C::schema()).unwrap()).unwrap()
}

#[test]
fn bytes_are_those_of_ros_and_are_read_back() {
    fn same<C: Codec<Value = C> + serde::Serialize + PartialEq + std::fmt::Debug>(value: C) {
        let bytes = encoded::<C>(&value).unwrap();
        let map = outlive::msgpack::encode(&value).unwrap();
        assert_eq!(bytes, of_ros::<C>().cdr(&map).unwrap(), "{}", C::type_name());
        assert_eq!(C::decode(&bytes).unwrap(), value);
        // Some writers fill up to a multiple of 4.
        assert_eq!(C::decode(&[&bytes[..], &[0; 3]].concat()).unwrap(), value);
        assert!(C::decode(&[&bytes[..], &[0; 4]].concat()).is_err());
        for end in 0..bytes.len() {
            assert!(C::decode(&bytes[..end]).is_err(), "{} of {} bytes", end, bytes.len());
        }
    }
    same(route());
    same(Route::default());
    same(Plan::default());
    same(Nothing::default());
    same(FindRequest::default());
    same(FindResponse { route: route() });
    assert_eq!(encoded::<Nothing>(&Nothing::default()).unwrap(), [0, 1, 0, 0, 0]);
    assert_eq!(Route::default().label, "yard");
}

#[test]
fn big_endian_is_read_and_other_forms_are_refused() {
    let mut nothing = encoded::<Leg>(&Leg { side: 1, metres: 2.5, signs: vec![] }).unwrap();
    nothing[1] = 0;
    nothing[12..20].reverse();
    assert_eq!(Leg::decode(&nothing).unwrap().metres, 2.5);
    nothing[1] = 6;
    let why = Leg::decode(&nothing).unwrap_err().to_string();
    assert_eq!(why, "it is of form 6, which is not plain CDR");
}

#[test]
fn text_without_a_zero_behind_it_is_whole() {
    let mut bytes = encoded::<FindRequest>(&FindRequest::default()).unwrap();
    assert_eq!(bytes[4..9], [1, 0, 0, 0, 0]);
    bytes[8] = b'x';
    assert_eq!(FindRequest::decode(&bytes).unwrap().to.name, "x");
    bytes[8] = 0xff;
    let why = FindRequest::decode(&bytes).unwrap_err().to_string();
    assert!(why.contains("utf-8"), "{why}");
}

#[test]
fn a_length_that_is_a_lie_is_an_error_and_costs_no_memory() {
    let good = encoded::<Route>(&route()).unwrap();
    LARGEST.store(0, Ordering::Relaxed);
    let mut refused = 0;
    for at in (4..good.len() - 4).step_by(4) {
        let mut bytes = good.clone();
        bytes[at..at + 4].fill(0xff);
        refused += usize::from(Route::decode(&bytes).is_err());
    }
    // Those of its texts and lists; numbers may be anything.
    assert!(refused > 20, "{refused}");
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 1 << 20, "{largest} bytes at once");
}

#[test]
fn a_bound_that_is_exceeded_is_an_error_that_names_the_field() {
    type Change = fn(&mut Route);
    let cases: [(&str, Change); 5] = [
        ("legs: 4 elements instead of at most 3", |r| r.legs = vec![Leg::default(); 4]),
        ("shorts: 5 elements instead of at most 4", |r| r.shorts = vec![0; 5]),
        ("label: a text of 9 bytes instead of at most 8", |r| r.label = "x".repeat(9)),
        ("plan.tags: 5 elements instead of at most 4", |r| r.plan.tags = vec!["".into(); 5]),
        ("plan.tags[1]: a text of 21 bytes instead of at most 20", |r| {
            r.plan.tags = vec!["".into(), "x".repeat(21)];
        }),
    ];
    let text = String::from_utf8(Route::schema()).unwrap();
    let unbounded = ["<=3", "<=4", "<=8", "<=20"].iter().fold(text, |t, of| t.replace(of, ""));
    let unbounded = RosMessage::of("route_msgs/msg/A", &unbounded).unwrap();
    for (why, change) in cases {
        let mut route = route();
        change(&mut route);
        assert_eq!(encoded::<Route>(&route).unwrap_err().to_string(), why);
        let bytes = unbounded.cdr(&outlive::msgpack::encode(&route).unwrap()).unwrap();
        assert_eq!(Route::decode(&bytes).unwrap_err().to_string(), why);
    }
    let sent: [(&str, Change); 2] = [
        ("plan.goals[1].covariance: 35 elements instead of 36", |r| {
            r.plan.goals[1].covariance.pop();
        }),
        ("legs[1].signs[0]: text with a zero in it", |r| r.legs[1].signs[0] = "a\0b".into()),
    ];
    for (why, change) in sent {
        let mut route = route();
        change(&mut route);
        assert_eq!(encoded::<Route>(&route).unwrap_err().to_string(), why);
    }
}

#[test]
fn routes_travel_are_shown_and_bad_ones_cost_no_other() {
    let home = Home::new("types-cdr");
    let node = Node::builder().root(home.root()).open().unwrap();
    let topic = || node.topic::<Encoded<Route>>("/route").unwrap();
    let (publisher, mut subscriber) = (topic().publisher().unwrap(), topic().subscriber().unwrap());
    let raw = PayloadType::encoded(Encoding::Cdr, "route_msgs/msg/Route", b"").unwrap();
    let raw = node.topic::<[u8]>("/route").unwrap().of_type(&raw).publisher().unwrap();
    raw.publish(&[0, 1, 0, 0, 1, 2, 3]).unwrap();
    let sent = route();
    publisher.publish_value(&sent).unwrap();
    // Order between publishers is not guaranteed.
    let got = [(); 2].map(|()| subscriber.receive_value_timeout(LONG));
    let (bad, good): (Vec<_>, Vec<_>) = got.into_iter().partition(Result::is_err);
    assert_eq!(**good[0].as_ref().unwrap().as_ref().unwrap(), sent);
    let bad = bad[0].as_ref().map(|_| ()).unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::Corrupt);
    let why = "7 bytes are not a valid route_msgs/msg/Route (cdr): ";
    assert!(bad.to_string().contains(why), "{bad}");
    let echo = "topic echo /route --history 1 --count 1 --timeout 60 --field";
    let said = home.run(&format!("{echo} plan.goals[0].name")).expect(DONE);
    assert!(said.text().contains("dock"), "{}", said.text());
    let said = home.run(&format!("{echo} nothings[1]")).expect(DONE);
    assert!(said.text().contains("structure_needs_at_least_one_member"), "{}", said.text());
    let mut wrong = route();
    wrong.label = "x".repeat(9);
    let why = publisher.publish_value(&wrong).unwrap_err();
    assert!(why.to_string().contains("label: a text of 9 bytes"), "{why}");

    let find = || node.service::<Encoded<FindRequest>, Encoded<FindResponse>>("/find").unwrap();
    let (mut server, mut client) = (find().server().unwrap(), find().client().unwrap());
    let asking =
        std::thread::spawn(move || client.call_value(&FindRequest::default(), LONG).unwrap());
    let request = server.receive_timeout(LONG).unwrap().unwrap();
    assert_eq!(request.decode().unwrap(), FindRequest::default());
    server.respond_value(request, &FindResponse { route: sent.clone() }).unwrap();
    assert_eq!(asking.join().unwrap().route, sent);
}
