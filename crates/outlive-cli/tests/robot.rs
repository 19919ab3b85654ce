//! `outlive chaos` on robots of real processes, `outlive top` in a real terminal.

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::robot::{be_a_service, service};
use common::{DONE, FAILED, Home, NOT_FOUND, USAGE};

/// Three services under `outlive run`; `more` goes into the section of the tracker.
struct Robot {
    home: Home,
    _running: common::Running,
}

impl Robot {
    fn start(label: &str, more: &str) -> Self {
        let home = Home::new(label);
        let file = home.root().with_file_name("robot.toml");
        let mut text = String::from("[robot]\nlogs = 'logs'\ngrace = '1s'\n");
        for name in ["camera", "detector", "tracker"] {
            text += &format!("[process.{name}]\n{}ready.nodes = '{name}'\n", service(name));
            text += if name == "tracker" { more } else { "backoff.first = '20ms'\n" };
        }
        fs::write(&file, text).unwrap();
        let running = home.start(&format!("run {}", file.display()), b"");
        let robot = Self { home, _running: running };
        for _ in 0..1000 {
            let topics = robot.home.run("topic list");
            if ["/camera", "/objects", "/tracks"].iter().all(|t| topics.text().contains(t)) {
                sleep(Duration::from_millis(300)); // until all speak
                return robot;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("the robot does not start: {}", robot.home.run("logs run").text());
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.home.run("stop");
    }
}

/// Only as a process of its own.
#[test]
fn a_service_of_the_robot() {
    be_a_service();
}

#[test]
fn chaos_touches_only_who_is_named_and_everybody_comes_back() {
    let robot = Robot::start("chaos-well", "backoff.first = '20ms'\n");
    let run = |args: &str| robot.home.run(args);
    for all in ["*", "?*,camera"] {
        let ran = run(&format!("chaos --nodes {all} --for 1s")).expect(USAGE);
        assert!(ran.err.contains("add --all"), "{}", ran.err);
    }
    run("chaos --nodes nobody --for 1s").expect(NOT_FOUND);
    run("chaos --nodes , --for 1s").expect(USAGE);
    let plan = "chaos --nodes detector,track* --for 4s --every 0.5s --seed 7";
    let planned = run(&format!("{plan} --plan")).expect(DONE).text().to_owned();
    assert_eq!(planned, run(&format!("{plan} --plan")).text());
    assert!(!planned.contains("camera") && planned.contains("kill detector"), "{planned}");

    let camera = |home: &Home| {
        let nodes = home.run("node list --json").json();
        let nodes = nodes.as_array().unwrap().clone();
        nodes.into_iter().find(|n| n["name"] == "camera").unwrap()["pid"].clone()
    };
    let before = camera(&robot.home);
    let report = run(&format!("{plan} --json")).json();
    assert_eq!(report["broke"].as_array().unwrap().len(), 0, "{report:#}");
    assert!(report["kills"].as_u64() > Some(0) && report["stops"].as_u64() > Some(0));
    let victims: Vec<_> = report["victims"].as_array().unwrap().iter().collect();
    assert!(victims.iter().all(|v| v["blows"] == v["back"]), "{report:#}");
    assert_eq!(camera(&robot.home), before, "who is not named is not touched");
}

#[test]
fn chaos_names_a_planted_fault() {
    // Nobody restarts the tracker.
    let robot = Robot::start("chaos-fault", "restart = 'never'\n");
    let args = "chaos --nodes tracker --for 2s --every 1s --kill --patience 0.5s";
    let ran = robot.home.run(args).expect(FAILED);
    let text = ran.text();
    assert!(text.contains("broke: node tracker did not come back after a kill"), "{text}");
    assert!(!text.contains("broke: node detector"), "{text}");
}

/// A tmux server of its own; ended with the test.
struct Tmux(String);

impl Tmux {
    fn run(&self, args: &[&str]) -> String {
        let out = Command::new("tmux").args(["-L", &self.0]).args(args).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn top_works_in_a_terminal() {
    let has_tmux = Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !has_tmux {
        println!("skipped: there is no tmux here");
        return;
    }
    let robot = Robot::start("top", "");
    robot.home.run("top").expect(USAGE);
    for (width, height) in [("80", "24"), ("200", "50")] {
        let tmux = Tmux(format!("outlive-test-{}-{width}", std::process::id()));
        let top = format!(
            "OUTLIVE_DIR='{}' {} top --every 0.2; sleep 9",
            robot.home.root().display(),
            env!("CARGO_BIN_EXE_outlive")
        );
        tmux.run(&["new-session", "-d", "-x", width, "-y", height, &top]);
        let until = |what: &str| {
            for _ in 0..1000 {
                let screen = tmux.run(&["capture-pane", "-p"]);
                if screen.contains(what) {
                    return screen;
                }
                sleep(Duration::from_millis(20));
            }
            panic!("no '{what}' in\n{}", tmux.run(&["capture-pane", "-p"]));
        };
        let screen = until("/camera");
        assert!(screen.lines().all(|line| line.chars().count() <= width.parse().unwrap()));
        assert!(screen.contains("TOPIC") && screen.contains("q quit"), "{screen}");
        tmux.run(&["send-keys", "2"]);
        until(" detector");
        tmux.run(&["send-keys", "1", "Enter"]);
        until("publisher ");
        tmux.run(&["send-keys", "q"]);
        // It has left: the terminal is as it was.
        for _ in 0..1000 {
            if !tmux.run(&["capture-pane", "-p"]).contains("q quit") {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        assert!(!tmux.run(&["capture-pane", "-p"]).contains("q quit"));
    }
}
