//! What the command prints, whole, as files in `tests/snapshots`: a session per subcommand, and
//! every `--help`.
//!
//! After a change that is meant, write the files anew and read what changed before it is committed:
//!
//! ```sh
//! UPDATE_EXPECT=1 cargo test -p outlive-cli --test snapshots
//! git diff crates/outlive-cli/tests/snapshots
//! ```
//!
//! In a session `$` is a command, `2>` standard error, `=` an exit code that is not 0. The root
//! directory is `$OUTLIVE_DIR`; process ids, times and what depends on the machine are `#`. Where
//! something is masked, columns are two blanks apart.

mod common;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use common::*;
use expect_test::expect_file;
use outlive::msg::{Pose, Vector3};
use outlive::zerocopy::FromZeros;
use outlive::{Node, Publisher, Subscriber};

fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    expect_file![PathBuf::from(&file)].assert_eq(text);
}

/// Commands, and what they said.
struct Session<'a> {
    home: &'a Home,
    text: String,
}

impl<'a> Session<'a> {
    fn new(home: &'a Home) -> Self {
        Self { home, text: String::new() }
    }

    fn run(&mut self, args: &str) -> &mut Self {
        let ran = self.home.run(args);
        self.note(args, &ran, ran.text())
    }

    fn feed(&mut self, args: &str, input: &str) -> &mut Self {
        let ran = self.home.feed(args, input.as_bytes());
        self.note(args, &ran, ran.text())
    }

    /// What comes out differs from run to run: `mask` hides that.
    fn masked(&mut self, args: &str, mask: impl Fn(&str) -> String) -> &mut Self {
        let ran = self.home.run(args);
        let out = mask(ran.text());
        self.note(args, &ran, &out)
    }

    fn note(&mut self, args: &str, ran: &Ran, out: &str) -> &mut Self {
        let root = self.home.root().display().to_string();
        let mut block = format!("$ outlive {args}\n{out}");
        for line in ran.err.lines() {
            let _ = writeln!(block, "{}", format!("2> {line}").trim_end());
        }
        if ran.code != Some(DONE) {
            let _ = writeln!(block, "= {}", ran.code.unwrap_or(-1));
        }
        self.text += block.replace(&root, "$OUTLIVE_DIR").as_str();
        self.text.push('\n');
        self
    }

    fn check(&self, name: &str) {
        check(name, &self.text);
    }
}

/// `#` for every word that `hides`, given with the one before; then two blanks for more.
fn mask(text: &str, hides: impl Fn(&str, &str) -> bool) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        let mut before = "";
        // Columns are two blanks apart, words of one column one.
        for column in line.split("  ").map(str::trim).filter(|column| !column.is_empty()) {
            let mut masked: Vec<&str> = Vec::new();
            for word in column.split(' ') {
                masked.push(if hides(before, word) { "#" } else { word });
                before = word;
            }
            words.push(masked.join(" "));
        }
        out += words.join("  ").as_str();
        out.push('\n');
    }
    out
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// Process ids and times: numbers of three digits and more, or with a point.
fn mask_large(text: &str) -> String {
    let large = |word: &str| {
        let word = word.trim_end_matches(',');
        is_number(word) && (word.len() > 2 || word.contains('.')) || is_time(word)
    };
    let unit = |before: &str, word: &str| is_number(before) && ["ms", "s"].contains(&word);
    mask(text, |before, word| large(word) || unit(before, word))
}

/// Local times.
fn mask_stamps(text: &str) -> String {
    mask(text, |_, word| is_time(word))
}

/// `14:03:05.123`
fn is_time(word: &str) -> bool {
    word.len() == 12 && word.matches(':').count() == 2
}

/// All numbers and the units behind them.
fn mask_figures(text: &str) -> String {
    let unit = |word: &str| word.len() <= 4 && !word.ends_with(',') && word != "min";
    mask(text, |before, word| is_number(word) || (is_number(before) && unit(word)))
}

/// In JSON of a line per field, or of a line per object.
fn mask_json(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = ["\"pid\":", "_ns\":", "\"time\":"]
        .iter()
        .filter_map(|key| Some(rest.find(key)? + key.len()))
        .min()
    {
        out += &rest[..at];
        rest = rest[at..].trim_start_matches([' ', '.']).trim_start_matches(char::is_numeric);
        rest = rest.trim_start_matches('.').trim_start_matches(char::is_numeric);
        out += " #";
    }
    out + rest
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Goal {
    name: String,
    position: [f64; 2],
}

/// A camera that sends and a viewer that reads: the same nodes and numbers each time.
struct World {
    home: Home,
    camera: Node,
    viewer: Node,
    frames: Publisher<[u8]>,
    _poses: Publisher<Pose>,
    reader: Subscriber<Pose>,
    _goals: Publisher<outlive::MsgPack<Goal>>,
}

impl World {
    fn new(label: &str) -> Self {
        let home = Home::new(label);
        let open = |name: &str| Node::builder().root(home.root()).name(name).open().unwrap();
        let (camera, viewer) = (open("camera"), open("viewer"));
        let frames = camera.topic::<[u8]>("/camera/front").unwrap().depth(4).publisher().unwrap();
        let poses = camera.topic::<Pose>("/pose").unwrap().depth(4);
        let poses = poses.attribute("frame", "map").attribute("source", "lidar odometry");
        let poses = poses.publisher().unwrap();
        let goals = camera.msgpack::<Goal>("/arm/goal").unwrap().publisher().unwrap();
        let reader = viewer.topic::<Pose>("/pose").unwrap().borrows(3).reliable(true);
        let reader = reader.subscriber().unwrap();
        for i in 0..6 {
            frames.publish(&noise(5000 + i)).unwrap();
        }
        for i in 1..=2 {
            let mut pose = Pose::new_zeroed();
            pose.position = Vector3 { x: f64::from(i), y: 0.5, z: -2.0 };
            poses.publish(&pose).unwrap();
        }
        goals.publish_value(&Goal { name: "pick".into(), position: [0.25, 1.0] }).unwrap();
        Self { home, camera, viewer, frames, _poses: poses, reader, _goals: goals }
    }
}

#[test]
fn topics_and_nodes() {
    let mut world = World::new("snap-topics");
    let held = world.reader.receive().unwrap().unwrap();
    let home = &world.home;
    Session::new(home)
        .run("topic list")
        .run("topic list --json")
        .run("--domain other topic list")
        .check("topic-list.txt");
    Session::new(home)
        .run("topic info /pose")
        .run("topic info camera/front")
        .run("topic info /arm/goal --json")
        .run("topic info /nothing")
        .run("topic info a//b")
        .run("topic find pose")
        .run("topic find image")
        .check("topic-info.txt");
    Session::new(home)
        .masked("node list", mask_large)
        .masked("node list --json", mask_json)
        .run("--domain other node list")
        .masked("node info camera", mask_large)
        .run("node info camra")
        .check("node-list.txt");
    drop(held);
}

#[test]
fn echo() {
    let world = World::new("snap-echo");
    let now = "--history 4 --timeout 0";
    Session::new(&world.home)
        .masked(&format!("topic echo /camera/front {now}"), mask_stamps)
        .masked(&format!("topic echo /pose {now}"), mask_stamps)
        .masked(&format!("topic echo /pose {now} --json"), mask_json)
        .masked(&format!("topic echo /arm/goal {now}"), mask_stamps)
        .masked(&format!("topic echo /arm/goal {now} --json --count 1"), mask_json)
        .masked(&format!("topic echo /pose {now} --field position.y --count 1"), mask_stamps)
        .run(&format!("topic echo /pose {now} --field nose"))
        .run("topic echo /nothing --timeout 0")
        .run("topic echo /pose --raw --json")
        .check("topic-echo.txt");
}

#[test]
fn publish() {
    let world = World::new("snap-pub");
    let _stays = world.viewer.topic::<[u8]>("/blob").unwrap().subscriber().unwrap();
    Session::new(&world.home)
        .feed("topic pub /blob --from-stdin --frame-bytes 4", "abcdefgh")
        .feed("topic pub /blob --from-stdin --frame-bytes 4", "abcdef")
        .feed("topic pub /blob --from-stdin --frame-bytes 4 --allow-partial", "abcdef")
        .run("topic pub /arm/goal {\"name\":\"place\",\"position\":[0,1]}")
        .run("topic pub /pose {\"position\":{\"x\":1}}")
        .run("topic pub /pose nonsense")
        .run("topic pub /pos 1")
        .run("topic pub /nothing 1")
        .run("topic pub /camera/front one")
        .run("topic pub /pose --from-stdin --frame-bytes 4")
        .run("topic pub /blob")
        .run("topic pub /blob --from-stdin --frame-bytes 4 --wait-for-subscribers 9 --timeout 0")
        .check("topic-pub.txt");
}

#[test]
fn rates() {
    let world = World::new("snap-rates");
    let (home, frames) = (&world.home, &world.frames);
    Session::new(home)
        .run("topic hz /camera/front --for 0.05 --window 0.05")
        .run("topic hz /camera/front --for 0.05 --window 0.05 --json")
        .run("topic hz /nothing")
        .check("topic-hz.txt");
    Session::new(home)
        .run("topic bw /camera/front --for 0.05 --window 0.05")
        .run("topic bw /camera/front --for 0.05 --window 0.05 --json")
        .check("topic-bw.txt");
    let args = "topic delay /camera/front --count 3";
    let mut delay = home.start(args, b"");
    // Who has just been counted as a subscriber may still begin after the next messages.
    while !delay.is_over() {
        frames.publish(&[1; 5000]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ran = delay.end();
    let out = mask_figures(ran.text());
    Session::new(home)
        .note(args, &ran, &out)
        .run("topic delay /camera/front --for 0.05")
        .run("topic delay /nothing --for 0")
        .check("topic-delay.txt");
}

#[test]
fn queues_and_locks() {
    let world = World::new("snap-queues");
    let home = &world.home;
    let _consumer = world.viewer.queue::<[u8]>("/commands").unwrap().consumer().unwrap();
    let _numbers = world.viewer.queue::<f64>("/levels").unwrap().stamped().consumer().unwrap();
    Session::new(home)
        .run("queue send /commands go")
        .run("queue send /levels 1.5")
        .run("queue send /levels x")
        .run("queue send /nothing go")
        .check("queue-send.txt");
    Session::new(home)
        .run("queue echo /commands")
        .run("queue echo /levels --json --count 0")
        .run("queue echo /level")
        .check("queue-echo.txt");
    Session::new(home).run("queue list").run("queue list --json").check("queue-list.txt");
    let mutex = world.camera.mutex_with::<u64>("/calibration", &3).unwrap();
    let _rwlock = world.viewer.rwlock::<[f64; 3]>("/pose").unwrap();
    let guard = mutex.lock().unwrap();
    Session::new(home).run("lock list").run("lock list --json").check("lock-list.txt");
    drop(guard);
}

/// Checks of the machine have different answers on another one.
fn mask_doctor(text: &str) -> String {
    const OF_THE_DOMAIN: [&str; 3] = ["dead-nodes", "dead-topics", "audit"];
    let mut out = String::new();
    let mut remedies = true;
    for line in text.lines() {
        let id = line.split_whitespace().nth(1).unwrap_or_default();
        if line.starts_with(' ') {
            out += if remedies { line } else { continue };
        } else if OF_THE_DOMAIN.contains(&id) {
            remedies = true;
            out += line;
        } else {
            remedies = false;
            out += &format!("#     {id:<12}  #");
        }
        out.push('\n');
    }
    out
}

#[test]
fn doctor_and_clean() {
    let world = World::new("snap-doctor");
    let home = &world.home;
    let mut killed = home.start("topic pub /gone --from-stdin --frame-bytes 2 --linger inf", b"ab");
    home.await_nodes(3);
    while home.run("topic info /gone --json").code != Some(DONE)
        || home.run("topic info /gone --json").json()["publishers"][0]["messages"] != 1
    {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    killed.signal(libc::SIGKILL);
    killed.close_output();
    killed.end_unread();
    Session::new(home).masked("doctor", mask_doctor).check("doctor.txt");
    Session::new(home)
        .masked("node list", mask_large)
        .run("topic list")
        .masked("clean", mask_large)
        .run("clean --json")
        .run("--domain other clean")
        .run("topic list")
        .check("clean.txt");
}

/// The commands that a help page lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty());
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(name)
        .collect()
}

#[test]
fn help() {
    let home = Home::new("snap-help");
    let mut todo = vec![String::new()];
    let mut pages = 0;
    while let Some(command) = todo.pop() {
        let ran = home.run(&format!("{command} --help")).expect(DONE);
        let lines: Vec<_> = ran.text().lines().map(str::trim_end).collect();
        let name = if command.is_empty() { "outlive".into() } else { command.replace(' ', "-") };
        check(&format!("help/{name}.txt"), &(lines.join("\n") + "\n"));
        let more = commands(ran.text()).into_iter().filter(|c| c != "help");
        todo.extend(more.map(|c| format!("{command} {c}").trim().to_owned()));
        pages += 1;
    }
    assert!(pages > 15, "only {pages} pages");
}
