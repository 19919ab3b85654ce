//! The page of `outlive dashboard` in a browser, of a robot whose nodes are processes of their own:
//! what it shows, a death, names that are markup. Screenshots are left in the test's directory for
//! people to look at.

mod common;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use common::browser::Page;
use common::*;
use outlive::msg::{Header, Image, PixelFormat};
use outlive::{Node, PayloadType, Publisher};
use testkit::browser::{chromium, png_size};
use testkit::spawn::{role, spawn_test};

/// Name, what it publishes with rate and bytes, what it reads.
type Spec = (&'static str, &'static [(&'static str, f64, usize)], &'static [&'static str]);

/// `/camera...` are images, and what `slow` reads it reads seldom.
const ROBOT: [Spec; 9] = [
    ("camera_driver", &[("/camera/front", 20.0, 0), ("/camera/depth", 10.0, 0)], &[]),
    ("lidar", &[("/scan", 40.0, 11_520)], &[]),
    ("gps", &[("/gps/fix", 10.0, 96)], &[]),
    ("imu", &[("/imu", 400.0, 64)], &[]),
    ("localization", &[("/pose", 100.0, 80)], &["/gps/fix", "/imu", "/scan"]),
    ("detector", &[("/detections", 30.0, 640)], &["/camera/front", "/camera/depth"]),
    ("planner", &[("/plan", 20.0, 2048)], &["/pose", "/detections", "/scan"]),
    ("controller", &[("/joint_targets", 500.0, 56)], &["/plan", "/pose"]),
    ("slow_logger", &[], &["/joint_targets", "/imu", "/camera/front"]),
];

/// A node of [`ROBOT`]; only as a process of its own.
#[test]
fn node_of_the_robot() {
    let Some(role) = role() else { return };
    let root = PathBuf::from(&role.args[0]);
    let (_, publishes, reads) = ROBOT.iter().find(|(name, ..)| *name == role.name).unwrap();
    let node = Node::builder().root(root).name(&role.name).open().unwrap();
    let slow = role.name == "slow_logger";
    let period = |hz: f64| Duration::from_secs_f64(1.0 / hz);
    let images: Vec<(Publisher<Image>, f64)> = publishes
        .iter()
        .filter(|(_, _, bytes)| *bytes == 0)
        .map(|(topic, hz, _)| (node.topic::<Image>(topic).unwrap().publisher().unwrap(), *hz))
        .collect();
    let plain: Vec<(Publisher<[u8]>, f64, usize)> = publishes
        .iter()
        .filter(|(_, _, bytes)| *bytes > 0)
        .map(|(topic, hz, bytes)| {
            (node.topic::<[u8]>(topic).unwrap().publisher().unwrap(), *hz, *bytes)
        })
        .collect();
    let mut readers = Vec::new();
    for topic in *reads {
        let subscriber = loop {
            match node.topic::<[u8]>(topic).unwrap().subscriber_of_any_type() {
                Ok(subscriber) => break subscriber,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        readers.push(subscriber);
    }
    let lock = node.mutex::<u64>("/map").unwrap();
    let _held = (role.name == "planner").then(|| lock.lock().unwrap());
    let jobs = node.queue::<[u8]>("/jobs").unwrap();
    let mut consumer = None;
    let mut producer = None;
    match role.name.as_str() {
        "controller" => consumer = Some(jobs.consumer().unwrap()),
        "planner" => producer = Some(jobs.producer().unwrap()),
        _ => {}
    }
    let service = || node.service::<u32, u32>("/localization/reset").unwrap();
    let _server = (role.name == "localization").then(|| service().server().unwrap());
    let _client = (role.name == "planner").then(|| service().client().unwrap());
    let began = Instant::now();
    let mut due: Vec<Duration> = vec![Duration::ZERO; images.len() + plain.len()];
    let mut next_read = Duration::ZERO;
    loop {
        let now = began.elapsed();
        for (i, (publisher, hz)) in images.iter().enumerate() {
            if now >= due[i] {
                due[i] += period(*hz);
                publish_image(publisher, now.as_secs_f64());
            }
        }
        for (i, (publisher, hz, bytes)) in plain.iter().enumerate() {
            let due = &mut due[images.len() + i];
            if now >= *due {
                *due += period(*hz);
                publisher.publish(&vec![7; *bytes]).unwrap();
            }
        }
        if now >= next_read {
            next_read = now + Duration::from_millis(if slow { 600 } else { 1 });
            for reader in &mut readers {
                while reader.receive().unwrap().is_some() {}
                while reader.next_event().is_some() {}
            }
            if let Some(producer) = &mut producer {
                let _ = producer.send(&[1; 32]);
            }
            if let Some(consumer) = &mut consumer {
                while consumer.receive().unwrap().is_some() {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Something that moves: colours, or a plane with a ball before it.
fn publish_image(publisher: &Publisher<Image>, time_s: f64) {
    let (width, height) = (320u32, 240u32);
    let depth = publisher.topic().ends_with("depth");
    let format = if depth { PixelFormat::DEPTH_MM16 } else { PixelFormat::RGB8 };
    let mut image = publisher.loan_image(Header::now("optical"), width, height, format).unwrap();
    let (ball_x, ball_y) = (160.0 + 90.0 * (time_s * 1.3).cos(), 120.0 + 50.0 * time_s.sin());
    let pixels = image.tail_mut();
    for y in 0..height {
        for x in 0..width {
            let at = (y * width + x) as usize;
            let far = (f64::from(x) - ball_x).hypot(f64::from(y) - ball_y);
            if depth {
                let mm = if far < 45.0 { 900.0 + far * 4.0 } else { 4000.0 - f64::from(y) * 10.0 };
                pixels[at * 2..at * 2 + 2].copy_from_slice(&(mm as u16).to_le_bytes());
            } else {
                let tile = if (x / 32 + y / 32) % 2 == 0 { 40 } else { 0 };
                let back = [60 + (y / 4) as u8 + tile, 90 + tile, 170 - (y / 3) as u8];
                let ball = [(255.0 - far * 2.0) as u8, (140.0 - far) as u8, 30];
                let colour = if far < 45.0 { ball } else { back };
                pixels[at * 3..at * 3 + 3].copy_from_slice(&colour);
            }
        }
    }
    image.publish().unwrap();
}

struct Robot {
    nodes: Vec<(&'static str, Child)>,
}

impl Robot {
    fn start(home: &Home) -> Self {
        Self { nodes: ROBOT.iter().map(|(name, ..)| (*name, Self::node(home, name))).collect() }
    }

    fn node(home: &Home, name: &str) -> Child {
        let root = home.root().display().to_string();
        let mut command = spawn_test("node_of_the_robot", name, &[&root]);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    }

    /// After its death.
    fn restart(&mut self, home: &Home, name: &str) {
        let (_, child) = self.nodes.iter_mut().find(|(n, _)| *n == name).unwrap();
        *child = Self::node(home, name);
    }

    /// As `kill -9` does, or any other signal.
    fn signal(&mut self, name: &str, signal: i32) {
        let (_, child) = self.nodes.iter_mut().find(|(n, _)| *n == name).unwrap();
        // SAFETY: the child is not reaped, so its id is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        if signal == libc::SIGKILL {
            child.wait().unwrap();
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        for (_, child) in &mut self.nodes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command's dashboard, and its address.
fn dashboard(home: &Home) -> (Child, String) {
    let mut child = home.outlive("dashboard --bind 127.0.0.1:0 --every 0.2").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("outlive: dashboard at ").unwrap();
    (child, address.to_owned())
}

const IMAGES: &str =
    "[...document.querySelectorAll('#images img')].filter(i => i.naturalWidth).length === 2";

/// Boxes of the graph that lie on another, text beyond its box, what is wider than the page.
const PROBE: &str = r##"(() => {
  const found = [], box = e => e.getBoundingClientRect();
  const rects = [...document.querySelectorAll("#graph .box rect")];
  rects.forEach((rect, i) => {
    const a = box(rect);
    for (const other of rects.slice(i + 1)) {
      const b = box(other);
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        found.push(`${rect.parentNode.textContent} lies on ${other.parentNode.textContent}`);
    }
    for (const text of rect.parentNode.querySelectorAll("text")) {
      if (box(text).right > a.right + 1) found.push(`${text.textContent} is too wide`);
    }
  });
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is too wide");
  return found.join("; ");
})()"##;

/// Makes every text of the state markup, keys that name things too, and shows it.
const HOSTILE: &str = r#"(async () => {
  page.paused = true;
  const bad = `<img src=x onerror="window.pwned = 1"><script>window.pwned = 1<\/script>`;
  const spoil = value => typeof value === "string" ? bad + value
    : Array.isArray(value) ? value.map(spoil)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, spoil(v)])) : value;
  const state = await (await fetch("/api/state")).json();
  const watched = state.watched;
  const hostile = spoil(state);
  for (const topic of hostile.topics) {
    hostile.watched[topic.name] = { error: bad, picture_error: bad, picture: null, latency: null,
      message: { node: 1, port: 1, seq: 1, bytes: 1, rows: [[bad, bad]] } };
  }
  const before = document.querySelectorAll("script, iframe, object, embed").length;
  page.chosen = hostile.topics[0].name;
  show(hostile);
  await new Promise(done => setTimeout(done, 300));
  const wrong = [...document.querySelectorAll("img")].filter(img =>
    !new URL(img.src).pathname.startsWith("/api/image"));
  const after = document.querySelectorAll("script, iframe, object, embed").length;
  const shown = document.body.textContent.includes("onerror=");
  return window.pwned === undefined && !wrong.length && before === after && shown;
})()"#;

#[test]
fn the_page_shows_a_robot_a_death_and_no_markup_from_names() {
    let Some(program) = chromium() else { return };
    let home = Home::lasting("dashboard-page", Duration::from_secs(500));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    std::fs::create_dir_all(&dir).unwrap();
    let mut robot = Robot::start(&home);
    home.await_nodes(ROBOT.len());
    // A type may have any name.
    let guest = Node::builder().root(home.root()).name("guest").open().unwrap();
    let hostile = "<img src=x onerror=\"window.pwned = 1\">";
    let topic = guest
        .topic::<[u8]>("/guest/WITH_A_NAME_TOO_WIDE_FOR_ITS_BOX")
        .unwrap()
        .of_type(&PayloadType::msgpack(hostile).unwrap());
    let publisher = topic.publisher().unwrap();

    let (mut dashboard, address) = dashboard(&home);
    let mut page = Page::open(&program, &dir.join("profile"), 1400, 1500);
    page.go(&address);
    page.wait_for("document.querySelectorAll('#graph .topic').length === 10");
    page.wait_for("document.querySelectorAll('#graph .node').length === 10");
    // Both images are drawn, small.
    page.wait_for(IMAGES);
    page.run("choose('/imu')");
    page.wait_for("document.querySelectorAll('#latency rect').length > 0");
    page.wait_for("document.querySelector('#detail .message td:last-child') !== null");
    page.wait_for("page.shown.watched['/imu'].latency.samples > 60");
    page.wait_for("page.shown.topics.find(t => t.name === '/joint_targets').lost > 0");
    page.wait_for("document.querySelector('#log .loss') !== null");
    assert_eq!(page.run("document.querySelectorAll('#topics tbody tr').length"), 10);
    assert_eq!(
        page.run("document.getElementById('topics').textContent.includes('<img src=x')"),
        true
    );
    assert_eq!(page.run(PROBE), "");

    // Who leaves is not dead.
    drop(publisher);
    drop(guest);
    page.wait_for("document.querySelector('#log .left') !== null");
    page.wait_for("document.querySelectorAll('#graph .topic').length === 9");
    // Something to see in the lines of rates.
    page.wait_for("page.rates.get('/imu').length === 60");
    robot.signal("gps", libc::SIGKILL);
    robot.signal("lidar", libc::SIGSTOP);
    page.wait_for("document.querySelector('#log .died') !== null");
    page.wait_for("document.querySelector('#log .stopped') !== null");
    page.wait_for("document.querySelectorAll('#graph .node.dead').length === 1");
    page.wait_for("document.querySelectorAll('#graph .node.stopped').length === 1");
    page.wait_for("document.querySelectorAll('#graph path.bad').length > 0");
    page.wait_for("page.shown.topics.find(t => t.name === '/gps/fix').hz === 0");
    assert_eq!(page.run("document.querySelector('#log .died').textContent.includes('gps')"), true);
    assert_eq!(page.run(PROBE), "");
    let shot = page.screenshot();
    assert_eq!(png_size(&shot), Some((1400, 1500)));
    let path = dir.join("dashboard.png");
    std::fs::write(&path, &shot).unwrap();
    println!("screenshot: {}", path.display());

    // Only what fits the filter, with its neighbours.
    page.run("document.getElementById('filter').value = 'plan'; show(page.shown)");
    assert_eq!(page.run("document.querySelectorAll('#topics tbody tr').length"), 1);
    assert_eq!(page.run("document.querySelectorAll('#graph .topic.box').length >= 4"), true);
    page.run("document.getElementById('filter').value = ''; show(page.shown)");
    assert!(page.faults.is_empty(), "{:#?}", page.faults);
    assert_eq!(page.run(HOSTILE), true);
    assert_eq!(page.run("window.pwned === undefined"), true);
    page.run("page.chosen = null; page.paused = false");

    // The server ends: the page says so.
    let _ = dashboard.kill();
    let _ = dashboard.wait();
    page.wait_for("!document.getElementById('alarm').hidden");
    let told = "document.getElementById('alarm').textContent.startsWith('no answer')";
    assert_eq!(page.run(told), true);
}

/// The frames of README's moving picture, into FILM: gps is killed and started again.
#[test]
#[ignore = "no test: scripts/film runs it"]
fn film() {
    let program = chromium().expect("a browser");
    let dir = PathBuf::from(std::env::var_os("FILM").expect("FILM names a directory"));
    let home = Home::lasting("film", Duration::from_secs(300));
    let mut robot = Robot::start(&home);
    home.await_nodes(ROBOT.len());
    let (mut dashboard, address) = dashboard(&home);
    let mut page = Page::open(&program, &dir.join("profile"), 1400, 585);
    page.go(&address);
    page.wait_for(IMAGES);
    page.wait_for("page.shown.topics.find(t => t.name === '/joint_targets').lost > 0");
    let began = Instant::now();
    for i in 0..48 {
        match i {
            10 => robot.signal("gps", libc::SIGKILL),
            32 => robot.restart(&home, "gps"),
            _ => {}
        }
        let due = Duration::from_millis(250) * i;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        std::fs::write(dir.join(format!("{i:03}.png")), page.screenshot()).unwrap();
    }
    let _ = dashboard.kill();
    let _ = dashboard.wait();
}
