//! A robot file and the robot that `outlive run` makes of it.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use outlive::Node;
use serde_json::Value;

use super::{DONE, Home, Running};

/// A directory with a robot file; what still runs at the end is ended.
pub(crate) struct Robot {
    pub(crate) home: Home,
    pub(crate) file: PathBuf,
}

/// A process that joins as a node, and publishes once on a topic of its own.
pub(crate) fn publisher(topic: &str) -> String {
    let outlive = env!("CARGO_BIN_EXE_outlive");
    format!(
        "['sh', '-c', 'echo up; (echo 12; sleep 9999) | exec {outlive} topic pub {topic} \
         --from-stdin --frame-bytes 2 --linger inf']"
    )
}

/// The test, in each file that has services, which is only [`be_a_service`].
const SERVICE: &str = "a_service_of_the_robot";

/// The command of node `name`, this program in another role: `camera` publishes `/camera`, of
/// which `detector` makes `/objects`, of which `tracker` makes `/tracks`; others are as `camera`.
pub(crate) fn service_command(name: &str) -> (String, String) {
    let program = std::env::current_exe().unwrap();
    let program = program.display();
    let args = format!("{program} {SERVICE} --exact --nocapture --test-threads=1");
    (args, format!("TESTKIT_ROLE = '{name}'"))
}

/// The same as keys of a section.
pub(crate) fn service(name: &str) -> String {
    let (command, env) = service_command(name);
    format!("command = '{command}'\nenv = {{ {env} }}\n")
}

/// What a service does, if this process is one.
pub(crate) fn be_a_service() {
    let Some(role) = testkit::spawn::role() else { return };
    let node = Node::builder().name(&role.name).open().unwrap();
    let relay = |from: &str, to: &str| {
        let mut from = node.topic::<u64>(from).unwrap().subscriber().unwrap();
        let to = node.topic::<u64>(to).unwrap().publisher().unwrap();
        loop {
            if let Some(sample) = from.receive_timeout(Duration::from_millis(200)).unwrap() {
                to.publish(&sample).unwrap();
            }
        }
    };
    match role.name.as_str() {
        "detector" => relay("/camera", "/objects"),
        "tracker" => relay("/objects", "/tracks"),
        _ => {}
    }
    let publisher = node.topic::<u64>("/camera").unwrap().publisher().unwrap();
    for n in 0.. {
        publisher.publish(&n).unwrap();
        sleep(Duration::from_millis(33));
    }
}

pub(crate) const IDLE: &str = "['sh', '-c', 'echo up; while :; do sleep 0.05; done']";

impl Robot {
    pub(crate) fn new(label: &str, text: &str) -> Self {
        Self::at(Home::new(label), text)
    }

    pub(crate) fn at(home: Home, text: &str) -> Self {
        let dir = home.root().parent().unwrap().to_path_buf();
        let robot = Self { home, file: dir.join("robot.toml") };
        robot.write(text);
        robot
    }

    pub(crate) fn write(&self, text: &str) {
        let head = "[robot]\nlogs = 'logs'\ngrace = '2s'\n";
        fs::write(&self.file, format!("{head}{text}")).unwrap();
    }

    pub(crate) fn start(&self) -> Running {
        self.home.start(&format!("run {}", self.file.display()), b"")
    }

    /// `outlive ps --json`, once there is a supervisor.
    pub(crate) fn ps(&self) -> Value {
        loop {
            let ran = self.home.run("ps --json");
            if ran.code == Some(DONE) {
                return ran.json();
            }
            sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn process(&self, name: &str) -> Value {
        let all = self.ps();
        let list = all["processes"].as_array().unwrap();
        list.iter().find(|p| p["name"] == name).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn pid(&self, name: &str) -> i64 {
        self.process(name)["pid"].as_i64().unwrap()
    }

    /// Waits until `is` holds for a process.
    pub(crate) fn until(&self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let now = self.process(name);
            if is(&now) {
                return now;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it is ready and has another process. A dead one has no pid.
    pub(crate) fn until_another(&self, name: &str, pid: i64) -> Value {
        let another = |p: &Value| p["pid"].as_i64().is_some_and(|now| now != pid);
        self.until(name, |p| p["state"] == "ready" && another(p))
    }

    pub(crate) fn until_ready(&self, names: &[&str]) {
        for name in names {
            self.until(name, |p| p["state"] == "ready");
        }
    }

    pub(crate) fn log(&self, name: &str) -> String {
        let file = self.file.with_file_name("logs").join(format!("{name}.log"));
        fs::read_to_string(file).unwrap_or_default()
    }

    pub(crate) fn until_log(&self, name: &str, text: &str) -> String {
        loop {
            let log = self.log(name);
            if log.contains(text) {
                return log;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Live processes that bear the marks of this robot's supervisors, with their names; of each
    /// process of the file the first, without helpers.
    pub(crate) fn marked(&self) -> Vec<(String, i32)> {
        self.marks(true)
    }

    pub(crate) fn marks(&self, leaders: bool) -> Vec<(String, i32)> {
        let dir = format!("OUTLIVE_RUN_DIR={}", self.home.root().join(".run-default").display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let text = String::from_utf8_lossy(&environment).into_owned();
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let fields: Vec<&str> =
                stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let leads = fields.get(3).is_some_and(|session| *session == pid.to_string());
            let zombie = fields.first().is_none_or(|state| *state == "Z");
            if text.split('\0').any(|v| v == dir) && !zombie && (leads || !leaders) {
                let name = text.split('\0').find_map(|v| v.strip_prefix("OUTLIVE_RUN_NAME="));
                found.push((name.unwrap_or_default().to_owned(), pid));
            }
        }
        found.sort();
        found
    }

    #[track_caller]
    pub(crate) fn expect_nothing_left(&self) {
        for _ in 0..200 {
            if self.marks(false).is_empty() {
                return;
            }
            sleep(Duration::from_millis(10)); // killed, and not gone yet
        }
        panic!("left: {:?}", self.marks(false));
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.home.run("stop");
    }
}

pub(crate) fn kill(pid: i64, signal: i32) {
    // SAFETY: integers only; the pid is of a process that `ps` has just shown.
    unsafe { libc::kill(pid as i32, signal) };
}
