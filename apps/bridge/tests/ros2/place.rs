//! A domain with a bridge, beside a ROS 2 that is made of packages of PyPI.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use outlive::{Node, NodeBuilder};
use serde_json::Value;

use crate::net::wait_for;

/// The domain of ROS 2 in these tests.
const ROS_DOMAIN: u32 = 7;

/// A process in Python that is told and tells.
pub(crate) struct Peer {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    told: Vec<Value>,
}

impl Peer {
    pub(crate) fn start(args: &[&str]) -> Option<Self> {
        let Some(python) = std::env::var_os("OUTLIVE_ROS2_PYTHON") else {
            println!("skipped: no zenoh-ros2-sdk here (apps/bridge/test installs it)");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2/peer.py");
        let mut command = Command::new(python);
        command.arg(script).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python");
        let to = child.stdin.take().expect("its input");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let (tell, from) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let told = serde_json::from_str(&line).unwrap_or_else(|_| panic!("'{line}'"));
                if tell.send(told).is_err() {
                    break;
                }
            }
        });
        Some(Self { child, to, from, told: Vec::new() })
    }

    pub(crate) fn tell(&mut self, what: &Value) {
        writeln!(self.to, "{what}").expect("the peer lives");
    }

    /// All that it has told so far.
    pub(crate) fn told(&mut self) -> &[Value] {
        self.told.extend(self.from.try_iter());
        &self.told
    }

    /// What it tells that has the key `key`, as soon as it does.
    pub(crate) fn hear<T>(&mut self, key: &str, mut fit: impl FnMut(&Value) -> Option<T>) -> T {
        wait_for(key, || self.told().iter().filter(|told| !told[key].is_null()).find_map(&mut fit))
    }

    pub(crate) fn count(&mut self, key: &str, of: &str) -> usize {
        self.told().iter().filter(|told| told[key] == of).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A domain with a bridge, beside a ROS 2 with a router.
pub(crate) struct Place {
    dir: PathBuf,
    bridge: Option<Child>,
    _router: Peer,
    pub(crate) peer: Peer,
    /// The session of the peer.
    pub(crate) session: String,
}

impl Place {
    pub(crate) fn new(mode: &str, rules: &str) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
        let port = free.expect("a free port").port().to_string();
        let mut router = Peer::start(&["router", &port])?;
        router.hear("ready", |_| Some(()));
        let name = format!("outlive-test-olb-ros-{}-{port}", std::process::id());
        let dir = Path::new("/dev/shm").join(name);
        std::fs::create_dir(&dir).expect("a folder on the RAM disk");
        let mode_bits = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&dir, mode_bits).expect("its mode");
        let file = format!(
            "namespace = \"fleet\"\nstats_ms = 100\nmode = \"{mode}\"\n\
             connect = [\"tcp/127.0.0.1:{port}\"]\n[ros2]\ndomain = {ROS_DOMAIN}\n\
             node = \"outlive\"\nnamespace = \"/robot1\"\n{rules}"
        );
        std::fs::write(dir.join("bridge.toml"), file).expect("the bridge's file");
        let messages = dir.join("messages");
        let args = ["node", &port, &messages.display().to_string(), &ROS_DOMAIN.to_string()];
        let mut peer = Peer::start(&args)?;
        let session = peer.hear("session", |t| t["session"].as_str().map(str::to_owned));
        let mut place = Self { dir, bridge: None, _router: router, peer, session };
        place.start();
        Some(place)
    }

    pub(crate) fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive-bridge"));
        command.arg(self.dir.join("bridge.toml")).env("OUTLIVE_DIR", &self.dir);
        let errors = std::fs::File::create(self.dir.join("said")).expect("a file");
        self.bridge = Some(command.stderr(errors).spawn().expect("the bridge"));
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.bridge.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Threads of the bridge.
    pub(crate) fn threads(&self) -> usize {
        let pid = self.bridge.as_ref().map_or(0, Child::id);
        std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process").count()
    }

    /// What the bridge has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.dir.join("said")).unwrap_or_default()
    }

    pub(crate) fn settings(&self) -> NodeBuilder {
        Node::builder().root(&self.dir)
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        self.settings().name(name).open().expect("a node")
    }

    /// The token of a port or node of the bridge, and the id that comes of it.
    pub(crate) fn token(&mut self, kind: &str, topic: &str) -> (String, String) {
        let part = format!("/{kind}/%/%robot1/outlive");
        let topic = topic.replace('/', "%");
        self.peer.hear("token", |told| {
            let key = told["token"].as_str()?;
            let (_, rest) = key.split_once(&part)?;
            let fits = told["there"] == true && rest.split('/').nth(1).unwrap_or("") == topic;
            fits.then(|| (key.to_owned(), told["gid"].as_str().unwrap_or("").to_owned()))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("the bridge said:\n{}", self.said());
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
