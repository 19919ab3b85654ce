//! What ports promise: reliability, durability, depth; each way.

use std::thread;
use std::time::Duration;

use outlive::{Domain, MsgPack, Node, Publisher};
use serde_json::{Value, json};

use crate::net::{Counters, count, wait_for};
use crate::place::Place;

const STRING: &str = "std_msgs/msg/String";

fn publisher(node: &Node, name: &str, depth: u64) -> Publisher<MsgPack<Value>> {
    let topic = node.msgpack::<Value>(name).expect("a name").type_name(STRING);
    topic.depth(depth).publisher().expect("a publisher")
}

fn publish(to: &Publisher<MsgPack<Value>>, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        to.publish_value(&json!({ "data": n.to_string() })).expect("published");
    }
}

/// What a port of the bridge promises, as the package reads it.
fn promised(place: &mut Place, kind: &str, topic: &str) -> (String, Value) {
    let (token, _) = place.token(kind, topic);
    let qos = place.peer.hear("token", |told| {
        let key = told["token"].as_str()?;
        key.ends_with(&token).then(|| told["qos"].clone())
    });
    let text = token.rsplit('/').next().unwrap_or("").to_owned();
    (text, qos)
}

/// The messages that `who` has heard, and their numbers.
fn heard(place: &mut Place, who: &str) -> (Vec<u64>, Vec<u64>) {
    let all = place.peer.told().iter().filter(|told| told["heard"] == who);
    let of = |told: &Value| {
        let data: Option<u64> = told["value"]["data"].as_str().and_then(|data| data.parse().ok());
        (data.expect("a number"), told["seq"].as_u64().expect("a number"))
    };
    all.map(of).unzip()
}

fn listen(place: &mut Place, topic: &str, who: &str, depth: Option<u64>) {
    let what =
        json!({ "do": "listen", "topic": topic, "type": STRING, "who": who, "depth": depth });
    place.peer.tell(&what);
    place.peer.hear("listens", |told| (told["listens"] == *who).then_some(()));
}

#[test]
fn what_is_published_here_is_kept_for_those_that_come_later_in_ros() {
    let rules = "[[ros2.topic]]\npattern = \"/kept\"\ndurability = \"transient_local\"\n\
                 [[ros2.topic]]\npattern = \"/later\"\ndurability = \"transient_local\"\n\
                 depth = 2\nreliable = true\n\
                 [[ros2.topic]]\npattern = \"/plain\"\n";
    let Some(mut place) = Place::new("client", rules) else { return };
    let node = place.node("robot");
    // The bridge finds 5 to 12 in the topic: what was there before is history, too.
    let kept = publisher(&node, "/kept", 8);
    publish(&kept, 1..=12);
    let qos = promised(&mut place, "MP", "/kept");
    let expected = json!(["BEST_EFFORT", "TRANSIENT_LOCAL", "KEEP_LAST", 8]);
    assert_eq!(qos, ("2:1:,8:,:,:,,".into(), expected));
    listen(&mut place, "/kept", "three", Some(3));
    let three = wait_for("what was kept", || {
        let (came, seqs) = heard(&mut place, "three");
        (came.len() == 3).then_some((came, seqs))
    });
    assert_eq!(three.0, [10, 11, 12]);
    assert_eq!(three.1.windows(2).filter(|w| w[1] == w[0] + 1).count(), 2, "{:?}", three.1);
    listen(&mut place, "/kept", "all", Some(100));
    let all = wait_for("all that was kept", || {
        let (came, _) = heard(&mut place, "all");
        (came.len() == 8).then_some(came)
    });
    assert_eq!(all, Vec::from_iter(5..=12));
    listen(&mut place, "/kept", "plain", None);
    // New ones reach each of them once, and the oldest that was kept goes.
    wait_for("a new one", || {
        let sent = heard(&mut place, "plain").0.last().copied();
        match sent {
            Some(_) => Some(()),
            None => {
                publish(&kept, 13..=13);
                thread::sleep(Duration::from_millis(20));
                None
            }
        }
    });
    publish(&kept, 14..=15);
    for who in ["three", "all", "plain"] {
        wait_for(who, || heard(&mut place, who).0.ends_with(&[13, 14, 15]).then_some(()));
        let (_, seqs) = heard(&mut place, who);
        assert!(seqs.is_sorted_by(|a, b| a < b), "{who}: each once, in order: {seqs:?}");
    }
    assert_eq!(heard(&mut place, "plain").0.first(), Some(&13), "nothing from before");
    let mut counters = Counters::of(&node);
    counters.until("what nobody heard", |told| count(told, "out", "ros2:/kept", "unheard") >= 8);

    // A subscription that was there before the publisher finds what the bridge missed.
    listen(&mut place, "/later", "early", Some(10));
    let later = publisher(&node, "/later", 8);
    publish(&later, 1..=4);
    let qos = promised(&mut place, "MP", "/later");
    let expected = json!(["RELIABLE", "TRANSIENT_LOCAL", "KEEP_LAST", 2]);
    assert_eq!(qos, (":1:,2:,:,:,,".into(), expected));
    wait_for("the last of before", || {
        heard(&mut place, "early").0.ends_with(&[3, 4]).then_some(())
    });
    publish(&later, 5..=5);
    wait_for("a new one", || heard(&mut place, "early").0.ends_with(&[3, 4, 5]).then_some(()));
    let (_, seqs) = heard(&mut place, "early");
    assert!(seqs.is_sorted_by(|a, b| a < b), "each once, in order: {seqs:?}");

    // And without it nothing is kept.
    let plain = publisher(&node, "/plain", 16);
    publish(&plain, 1..=3);
    let qos = promised(&mut place, "MP", "/plain");
    let expected = json!(["BEST_EFFORT", "VOLATILE", "KEEP_LAST", 16]);
    assert_eq!(qos, ("2::,16:,:,:,,".into(), expected));
    listen(&mut place, "/plain", "none", Some(10));
    wait_for("a new one", || {
        publish(&plain, 4..=4);
        thread::sleep(Duration::from_millis(20));
        heard(&mut place, "none").0.last().copied()
    });
    assert!(heard(&mut place, "none").0.iter().all(|n| *n == 4));
    println!("ros2 qos out: 8, 3 and 2 messages kept for those that came later");
}

/// They were asked for once, by a route that had failed by then.
#[test]
fn what_is_kept_in_ros_comes_to_a_topic_that_could_not_be_carried_at_first() {
    let rules = "[[ros2.topic]]\npattern = \"/map\"\n";
    let Some(mut place) = Place::new("client", rules) else { return };
    let node = place.node("robot");
    let strange = node.topic::<u64>("/map").expect("a name").publisher().expect("a publisher");
    place.peer.tell(&json!({ "do": "advertise", "topic": "/map", "type": STRING }));
    place.peer.tell(&json!({ "do": "keep", "topic": "/map", "type": STRING, "count": 3 }));
    place.peer.hear("keeps", |_| Some(()));
    let line = "topic /map of ROS 2 is not published as /map";
    wait_for(line, || place.said().contains(line).then_some(()));
    // All were told by now.
    thread::sleep(Duration::from_secs(1));
    drop(strange);
    let mut kept = wait_for("the topic", || {
        let topic = node.msgpack::<Value>("/map").expect("a name").type_name(STRING);
        topic.depth(16).history(16).subscriber().ok()
    });
    let came: Vec<_> = (0..3)
        .map(|_| wait_for("what was kept", || kept.receive().expect("a sample")))
        .map(|sample| sample.decode().expect("a message")["data"].to_string())
        .collect();
    assert_eq!(came, ["\"kept 4\"", "\"kept 5\"", "\"kept 6\""]);
}

#[test]
fn publishers_in_ros_say_what_a_topic_here_and_its_subscription_are() {
    let rules = "[[ros2.topic]]\npattern = \"/in/deep\"\ndepth = 20\n\
                 [[ros2.topic]]\npattern = \"/in/*\"\n";
    let Some(mut place) = Place::new("client", rules) else { return };
    let domain = Domain::of(&place.settings()).expect("a domain");
    for (short, theirs, depth, ours, read) in [
        ("best", "2::,3:,:,:,,", 3, "2::,3:,:,:,,", ["BEST_EFFORT", "VOLATILE"]),
        ("kept", ":1:,7:,:,:,,", 7, ":1:,7:,:,:,,", ["RELIABLE", "TRANSIENT_LOCAL"]),
        ("all", "::2,:,:,:,,", 256, "::,256:,:,:,,", ["RELIABLE", "VOLATILE"]),
        ("much", "::,5000:,:,:,,", 256, "::,256:,:,:,,", ["RELIABLE", "VOLATILE"]),
        ("none", "::,:,:,:,,", 42, "::,42:,:,:,,", ["RELIABLE", "VOLATILE"]),
        ("deep", "2:1:,3:,:,:,,", 20, "2:1:,20:,:,:,,", ["BEST_EFFORT", "TRANSIENT_LOCAL"]),
    ] {
        let name = format!("/in/{short}");
        let what = json!({ "do": "advertise", "topic": name, "type": STRING, "qos": theirs });
        place.peer.tell(&what);
        let (text, qos) = promised(&mut place, "MS", &name);
        let [reliability, durability] = read;
        assert_eq!(text, ours, "{short}");
        assert_eq!(qos, json!([reliability, durability, "KEEP_LAST", depth]), "{short}");
        let info = wait_for(&name, || domain.find_topic(&name).expect("topics"));
        // Depths here are powers of two.
        assert_eq!(info.depth, u64::next_power_of_two(depth), "{short}");
    }
    println!("ros2 qos in: 6 publishers that promise different things");
}
