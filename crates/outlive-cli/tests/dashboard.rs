//! `outlive dashboard` as a program sees it: JSON of a domain, pictures, refusals.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::*;
use outlive::msg::{Header, Image, PixelFormat};
use outlive::{Node, NodeBuilder};
use serde_json::{Value, json};

/// A dashboard, and where it is. Ended in order, it must leave nothing.
struct Dashboard<'a> {
    home: &'a Home,
    child: std::process::Child,
    address: String,
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl<'a> Dashboard<'a> {
    fn start(home: &'a Home, args: &str) -> Self {
        let args = format!("dashboard --bind 127.0.0.1:0 --every 0.1 {args}");
        let mut child = home.outlive(&args).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("outlive: dashboard at http://").unwrap();
        let address = address.strip_suffix('/').unwrap().to_owned();
        Self { home, child, address }
    }

    /// Sends these bytes.
    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // Who is answered before all is read may find the connection closed.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: answer[end + 4..].to_vec() }
    }

    fn get(&self, target: &str) -> Answer {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    fn state(&self, query: &str) -> Value {
        let answer = self.get(&format!("/api/state{query}"));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Asks until it is so.
    fn until(&self, query: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let state = self.state(query);
            if is(&state) {
                return state;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) {
        // SAFETY: the child is not reaped, so its id is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) }, 0);
        assert!(self.child.wait().unwrap().success());
        let nodes = self.home.run("node list --json").json();
        let left = |n: &&Value| n["name"] == "dashboard";
        assert_eq!(nodes.as_array().unwrap().iter().find(left), None, "it leaves in order");
    }
}

impl Drop for Dashboard<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node(home: &Home, name: &str) -> Node {
    let builder: NodeBuilder = Node::builder();
    builder.root(home.root()).name(name).open().unwrap()
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

fn has_event(state: &Value, kind: &str, text: &str) -> bool {
    let is = |e: &Value| e["kind"] == kind && e["text"].as_str().unwrap().contains(text);
    state["events"].as_array().unwrap().iter().any(is)
}

#[test]
fn a_running_domain_is_shown_and_a_killed_node_as_died() {
    let home = Home::new("dashboard");
    let camera = node(&home, "camera");
    let publisher = camera.topic::<[u8]>("/frames").unwrap().publisher().unwrap();
    let viewer = node(&home, "viewer");
    let _subscriber = viewer.topic::<[u8]>("/frames").unwrap().subscriber().unwrap();
    let _consumer = viewer.queue::<[u8]>("/jobs").unwrap().consumer().unwrap();
    let mut producer = camera.queue::<[u8]>("/jobs").unwrap().producer().unwrap();
    producer.send(&[1]).unwrap();
    let _server = viewer.service::<u32, u32>("/ask").unwrap().server().unwrap();
    let mutex = viewer.mutex::<u32>("/map").unwrap();
    let _guard = mutex.lock().unwrap();
    publisher.publish(&[1; 100]).unwrap();
    let victim = home.start("topic pub /n --type f64 --json 1 --linger inf", b"");

    let dashboard = Dashboard::start(&home, "");
    // Nodes and topics are looked at one after the other: a node may come in between.
    let seen = |state: &Value| {
        let has =
            |list: &Value, test: fn(&Value) -> bool| list.as_array().unwrap().iter().any(test);
        has(&state["topics"], |t| t["name"] == "/n" && t["messages"] == 1)
            && has(&state["nodes"], |n| n["name"] == "topic-pub")
    };
    let state = dashboard.until("", seen);
    let topic = named(&state["topics"], "/frames");
    assert_eq!((&topic["messages"], &topic["image"]), (&json!(1), &json!(false)));
    assert_eq!(topic["publishers"][0]["name"], "camera");
    assert_eq!(topic["readers"][0]["name"], "viewer");
    assert_eq!(named(&state["queues"], "/jobs")["unread"], 1);
    assert!(named(&state["services"], "/ask")["server"].is_u64());
    let lock = named(&state["locks"], "/map");
    assert_eq!((&lock["state"], &lock["holder"][1]), (&json!("held"), &json!("viewer")));
    assert_eq!(named(&state["nodes"], "topic-pub")["life"], "alive");
    assert_eq!((&state["deaths"], &state["error"]), (&json!(0), &Value::Null));

    victim.signal(libc::SIGKILL);
    victim.end();
    let state = dashboard.until("", |state| has_event(state, "died", "topic-pub"));
    assert_eq!(state["deaths"], 1);
    // The next node removes its files; it is shown for a while nevertheless.
    let third = node(&home, "third");
    let state = dashboard.until("", |state| has_event(state, "joined", "third"));
    assert_eq!(named(&state["nodes"], "topic-pub")["life"], "dead");
    drop(third);
    let state = dashboard.until("", |state| has_event(state, "left", "third"));
    assert_eq!(state["deaths"], 1, "who leaves has not died");
    assert_eq!(home.run("node list --json").json().as_array().unwrap().len(), 2, "no node of its");
    dashboard.end();
}

#[test]
fn what_is_looked_at_is_subscribed_to_and_left_again() {
    let home = Home::new("dashboard-images");
    let camera = node(&home, "camera");
    let publisher = camera.topic::<Image>("/camera").unwrap().publisher().unwrap();
    let publish = || {
        let header = Header::now("optical");
        let mut image = publisher.loan_image(header, 640, 480, PixelFormat::MONO8).unwrap();
        image.tail_mut().fill(99);
        image.publish().unwrap();
    };
    publish();
    let dashboard = Dashboard::start(&home, "");
    let state = dashboard.until("", |state| !state["topics"].as_array().unwrap().is_empty());
    assert_eq!(named(&state["topics"], "/camera")["image"], true);
    assert_eq!(state["watched"], json!({}), "nobody has looked yet");
    assert_eq!(dashboard.get("/api/image?topic=/camera").status, 404);

    // The picture from before it looked, and no latency.
    let has_picture = |state: &Value| state["watched"]["/camera"]["picture"]["width"] == 640;
    let state = dashboard.until("?see=%2Fcamera", has_picture);
    assert_eq!(state["watched"]["/camera"]["picture"]["format"], "mono8");
    assert_eq!(state["watched"]["/camera"]["latency"], Value::Null);
    let picture = dashboard.get("/api/image?topic=/camera");
    assert_eq!(picture.status, 200);
    assert!(picture.head.contains("Content-Type: image/png\r\n"), "{}", picture.head);
    assert!(picture.body.starts_with(b"\x89PNG"));
    let subscribers = home.topics()[0]["subscribers"].clone();
    assert_eq!(subscribers.as_array().unwrap().len(), 1, "{subscribers}");

    let timed = |state: &Value| {
        publish();
        state["watched"]["/camera"]["latency"]["samples"].as_u64().is_some_and(|n| n >= 3)
    };
    let state = dashboard.until("?time=/camera", timed);
    let latency = &state["watched"]["/camera"]["latency"];
    let counted: u64 =
        latency["buckets"].as_array().unwrap().iter().map(|b| b[1].as_u64().unwrap()).sum();
    assert_eq!(latency["samples"], counted, "{latency}");
    assert!(latency["p50_ns"].as_u64() <= latency["max_ns"].as_u64());

    // A topic that is not there, a name that cannot be one.
    let told = |state: &Value| !state["watched"]["/none"]["error"].is_null();
    dashboard.until("?see=/none", told);
    dashboard.until("?see=no%20name", |state| !state["watched"]["no name"]["error"].is_null());

    // Nobody asks any more: the leases run out, and the node leaves.
    home.await_nodes(1);
    dashboard.until("", |state| state["watched"] == json!({}));
    dashboard.until("?see=/camera", has_picture);
    dashboard.end();
}

#[test]
fn without_subscribing_it_never_joins() {
    let home = Home::new("dashboard-aloof");
    let camera = node(&home, "camera");
    let _publisher = camera.topic::<[u8]>("/frames").unwrap().publisher().unwrap();
    let dashboard = Dashboard::start(&home, "--no-subscribe");
    let state = dashboard.until("?see=/frames", |s| !s["topics"].as_array().unwrap().is_empty());
    assert_eq!(state["watched"], Value::Null);
    assert_eq!(home.run("node list --json").json().as_array().unwrap().len(), 1);
    dashboard.end();
}

#[test]
fn strangers_and_bad_requests_are_refused() {
    let home = Home::new("dashboard-refuses");
    let dashboard = Dashboard::start(&home, "--allow-host robot.lan");
    let get = |target: &str, headers: &str| {
        dashboard.send(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n\r\n")).status
    };
    // A name of somebody else that leads here: DNS rebinding.
    for target in ["/", "/api/state", "/api/image?topic=/a"] {
        assert_eq!(get(target, "Host: evil.example"), 403, "{target}");
        assert_eq!(get(target, "Host: 127.0.0.1.evil.example:8420"), 403, "{target}");
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:8420", "ROBOT.lan:8420"] {
        assert_eq!(get("/api/state", &format!("Host: {host}")), 200, "{host}");
    }
    // Another site's page in the same browser.
    for site in ["cross-site", "same-site"] {
        let headers = format!("Host: localhost\r\nSec-Fetch-Site: {site}");
        assert_eq!(get("/api/state?see=/a", &headers), 403, "{site}");
        assert_eq!(get("/", &headers), 200, "a link");
    }
    assert_eq!(dashboard.state("")["watched"], json!({}), "a refused request begins nothing");

    for bad in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/9\r\nHost: a\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\0\0\0\r\n\r\n",
        "GET /",
        "",
    ] {
        assert_eq!(dashboard.send(bad).status, 400, "{bad:?}");
    }
    for bad in ["/api/image", "/api/image?topic=a&topic=b", "/api/state?x=1", "/api/state?see=%"] {
        assert_eq!(dashboard.get(bad).status, 400, "{bad}");
    }
    let many: String = (0..25).map(|i| format!("see=/t{i}&")).collect();
    assert_eq!(dashboard.get(&format!("/api/state?{many}")).status, 400);
    assert_eq!(dashboard.get(&format!("/api/state?see={}", "x".repeat(300))).status, 400);
    assert_eq!(dashboard.get(&format!("/{}", "x".repeat(9000))).status, 431);
    assert_eq!(dashboard.get("/etc/passwd").status, 404);
    let post = format!("POST / HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address);
    assert_eq!(dashboard.send(&post).status, 405);
    let page = dashboard.get("/");
    assert_eq!(page.status, 200);
    for header in ["Content-Security-Policy: default-src 'none'", "X-Frame-Options: DENY"] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    let text = String::from_utf8(page.body).unwrap();
    assert!(!text.contains("{{") && text.ends_with("</html>\n"));
    for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!text.contains(word), "{word} makes markup of names");
    }
    for word in ["src=\"", "href=", "url(", "@import", "https:"] {
        assert!(!text.contains(word), "{word}: fetched from elsewhere");
    }
    dashboard.end();
}

/// Part by part as `echo` shows it: described types, MessagePack, third-party encodings, and what
/// has no parts.
#[test]
fn the_messages_of_an_open_topic_are_shown() {
    let home = Home::new("dashboard-message");
    let robot = node(&home, "robot");
    let camera = robot.topic::<Image>("/camera").unwrap().publisher().unwrap();
    let mut loan = camera.loan_image(Header::now("lens"), 4, 3, PixelFormat::MONO8).unwrap();
    loan.tail_mut().fill(7);
    loan.publish().unwrap();
    let of = outlive::PayloadType::encoded(outlive::Encoding::Json, "robot/Goal", b"{}").unwrap();
    let goals = robot.topic::<[u8]>("/goal").unwrap().of_type(&of).publisher().unwrap();
    goals.publish(br#"{"goal": "dock <b>", "at": {"x": 1.5}}"#).unwrap();
    let large = robot.topic::<[u8]>("/large").unwrap().publisher().unwrap();
    large.publish(&vec![0; (1 << 20) + 1]).unwrap();
    let many: std::collections::BTreeMap<String, String> =
        (0..250).map(|i| (format!("k{i:03}"), "v".repeat(500))).collect();
    let plenty = robot.topic::<outlive::MsgPack<_>>("/plenty").unwrap().publisher().unwrap();
    plenty.publish_value(&many).unwrap();

    let dashboard = Dashboard::start(&home, "");
    let rows = |topic: &str| {
        let query = format!("?time={topic}");
        let state = dashboard.until(&query, |s| s["watched"][topic]["message"].is_object());
        let message = &state["watched"][topic]["message"];
        assert_eq!(message["node"], robot.id().get(), "{message}");
        message["rows"].as_array().unwrap().clone()
    };
    let image = rows("/camera");
    assert!(image.contains(&json!(["width", "4"])), "{image:?}");
    assert_eq!(rows("/goal"), [json!(["goal", "\"dock <b>\""]), json!(["at.x", "1.5"])]);
    assert!(rows("/large")[0][1].as_str().unwrap().contains("more than 1 MiB"));
    let plenty = rows("/plenty");
    assert_eq!((plenty.len(), &plenty[200]), (201, &json!(["", ".. 50 more"])));
    assert_eq!(plenty[0][1].as_str().unwrap().chars().count(), 403);
    dashboard.end();

    let off = Dashboard::start(&home, "--no-subscribe");
    assert_eq!(off.state("?time=/goal")["watched"], Value::Null);
    off.end();
}

/// Of its places none was left for anybody else.
#[test]
fn clients_that_trickle_keep_nobody_out() {
    let home = Home::new("dashboard-trickle");
    let _node = node(&home, "stays");
    let dashboard = Dashboard::start(&home, "");
    let request = format!("GET /api/state HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address);
    let (mut good, mut busy) = (0, 0);
    beside_trickling(200, &dashboard.address, || {
        for _ in 0..40 {
            let mut answer = String::new();
            let asked = TcpStream::connect(&dashboard.address).and_then(|mut stream| {
                stream.write_all(request.as_bytes())?;
                stream.read_to_string(&mut answer)
            });
            let whole = answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"stays\"");
            match asked.is_ok() && whole {
                true => good += 1,
                false => busy += 1,
            }
        }
    });
    println!("beside 200 clients that trickle {good} requests were answered, {busy} not");
    // One may be overtaken by two dozen others before its thread has read it.
    assert!(good >= 30, "{good} answered, {busy} not");
    dashboard.end();
}

#[test]
fn without_a_thread_it_says_so() {
    let home = Home::new("dashboard-thread");
    let _node = node(&home, "stays");
    let mut dashboard = home.outlive("dashboard --bind 127.0.0.1:0");
    // No thread has so large a stack.
    dashboard.env("RUST_MIN_STACK", (1u64 << 60).to_string());
    let told = home.start_command(dashboard).end().expect(FAILED).err;
    assert!(told.contains("start a thread"), "{told}");
}

#[test]
fn a_port_in_use_is_told() {
    let home = Home::new("dashboard-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for command in ["dashboard --bind", "metrics --listen"] {
        let ran = home.run(&format!("{command} {address}"));
        assert_eq!(ran.code, Some(FAILED));
        assert!(ran.err.contains("the port is in use; name another"), "{}", ran.err);
    }
}
