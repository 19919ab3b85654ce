//! Hosts of a test: network namespaces with a domain and a bridge each. The test itself is on all
//! hosts at once, since shared memory knows no namespaces of networks.
#![allow(missing_docs, unreachable_pub, dead_code)]

use std::io::{PipeReader, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use outlive::{Domain, Node, NodeBuilder, Subscriber};
use serde_json::Value;

/// No test waits longer for an event.
const PATIENCE: Duration = Duration::from_secs(180);

static NETS: AtomicU32 = AtomicU32::new(0);

/// Runs a command; whether it succeeded.
pub fn ran(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let done = Command::new(program).args(words).stderr(Stdio::piped()).output();
    match done {
        Ok(out) if out.status.success() => true,
        Ok(out) => {
            eprintln!("{line}: {}", String::from_utf8_lossy(&out.stderr).trim());
            false
        }
        Err(e) => {
            eprintln!("{line}: {e}");
            false
        }
    }
}

/// Hosts in a row, each linked to the first; removed at the end.
pub struct Net {
    pub hosts: Vec<Host>,
}

pub struct Host {
    /// Of the namespace.
    space: String,
    dir: PathBuf,
    /// Environment of its bridges.
    env: Vec<(&'static str, String)>,
    child: Option<Child>,
    /// Where its bridges write what they say, instead of to the test's output.
    log: Option<PathBuf>,
    /// A full pipe, which nobody reads.
    unread: Option<(PipeReader, PipeWriter)>,
}

impl Net {
    /// None, with a notice, where the kernel or the rights for that are missing.
    pub fn new(count: usize) -> Option<Self> {
        let n = NETS.fetch_add(1, Relaxed);
        let mut net = Self { hosts: Vec::new() };
        for i in 0..count {
            let pid = std::process::id();
            let space = format!("olb-{pid}-{n}-{i}");
            // Whoever removes what the dead have left looks for the process that is last but one.
            let dir = PathBuf::from(format!("/dev/shm/outlive-test-olb-{i}-{pid}-{n}"));
            if !ran(&format!("ip netns add {space}")) {
                println!("skipped: no network namespaces here (root and iproute2 are needed)");
                return None;
            }
            let (env, child, log, unread) = (Vec::new(), None, None, None);
            net.hosts.push(Host { space, dir, env, child, log, unread });
            let host = &net.hosts[i];
            std::fs::create_dir(&host.dir).expect("a folder on the RAM disk");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&host.dir, mode).expect("its mode");
            ran(&format!("ip -n {} link set lo up", host.space));
            if i == 0 {
                continue;
            }
            let hub = &net.hosts[0].space;
            let space = &host.space;
            let fine =
                ran(&format!("ip -n {hub} link add eth{i} type veth peer name eth0 netns {space}"))
                    && ran(&format!("ip -n {hub} addr add 10.0.{i}.1/24 dev eth{i}"))
                    && ran(&format!("ip -n {space} addr add 10.0.{i}.2/24 dev eth0"))
                    && ran(&format!("ip -n {hub} link set eth{i} up"))
                    && ran(&format!("ip -n {space} link set eth0 up"));
            if !fine {
                println!("skipped: no pairs of virtual Ethernet here");
                return None;
            }
        }
        Some(net)
    }

    /// Cuts the link of host `i` to the first, or mends it.
    pub fn link(&self, i: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        assert!(ran(&format!("ip -n {} link set eth{i} {state}", self.hosts[0].space)));
    }

    /// Limits what the first host sends to host `i`; false where the kernel cannot.
    pub fn limit(&self, i: usize, rate: &str) -> bool {
        let space = &self.hosts[0].space;
        ran(&format!(
            "tc -n {space} qdisc add dev eth{i} root tbf rate {rate} burst 32kbit latency 50ms"
        ))
    }

    /// Bytes that the first host has received from host `i`, and sent to it.
    pub fn carried(&self, i: usize) -> (u64, u64) {
        let space = &self.hosts[0].space;
        let mut ip = Command::new("ip");
        ip.args(["-n", space, "-s", "-j", "link", "show", "dev", &format!("eth{i}")]);
        let told = ip.output().expect("the counters of a link").stdout;
        let told: Value = serde_json::from_slice(&told).expect("counters as JSON");
        let bytes = |way: &str| told[0]["stats64"][way]["bytes"].as_u64().expect("a counter");
        (bytes("rx"), bytes("tx"))
    }

    /// Loses so many of a hundred packets of TCP that the first host gets from host `i`, and of
    /// those that it sends there; false where the kernel or `nft` cannot.
    pub fn lose(&self, i: usize, percent: u32) -> bool {
        let rule = |hook: &str, side: &str| {
            format!(
                "add chain inet loss {hook} {{ type filter hook {hook} priority 0; }}\n\
                 add rule inet loss {hook} {side} \"eth{i}\" meta l4proto tcp \
                 numgen random mod 100 < {percent} counter drop\n"
            )
        };
        let rules = rule("input", "iifname") + &rule("output", "oifname");
        let file = self.hosts[0].dir.join("loss.nft");
        std::fs::write(&file, format!("add table inet loss\n{rules}")).expect("a file");
        ran(&format!("ip netns exec {} nft -f {}", self.hosts[0].space, file.display()))
    }

    /// Ends that; how many packets were lost.
    pub fn lose_none(&self) -> u64 {
        let space = &self.hosts[0].space;
        let list = ["netns", "exec", space, "nft", "-j", "list", "table", "inet", "loss"];
        let told = Command::new("ip").args(list).output().expect("the rules").stdout;
        let told: Value = serde_json::from_slice(&told).expect("rules as JSON");
        let rules = told["nftables"].as_array().into_iter().flatten();
        let parts = rules.filter_map(|r| r["rule"]["expr"].as_array()).flatten();
        let lost = parts.filter_map(|part| part["counter"]["packets"].as_u64()).sum();
        assert!(ran(&format!("ip netns exec {space} nft delete table inet loss")));
        lost
    }

    /// Starts a bridge on host `i`: the first listens, the others connect to it.
    pub fn bridge(&mut self, i: usize, rules: &str) {
        let reach = match i {
            0 => "listen = [\"tcp/0.0.0.0:7447\"]".to_owned(),
            _ => format!("connect = [\"tcp/10.0.{i}.1:7447\"]"),
        };
        self.bridge_by(i, &reach, rules);
    }

    /// The same, with keys that say how others are reached.
    pub fn bridge_by(&mut self, i: usize, reach: &str, rules: &str) {
        let host = &mut self.hosts[i];
        let file = host.dir.join("bridge.toml");
        let head = format!("namespace = \"fleet\"\nhost = \"h{i}\"\nstats_ms = 100\n{reach}\n");
        std::fs::write(&file, head + rules).expect("the bridge's file");
        host.start();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            host.kill();
            ran(&format!("ip netns del {}", host.space));
            let _ = std::fs::remove_dir_all(&host.dir);
        }
    }
}

impl Host {
    pub fn root(&self) -> &Path {
        &self.dir
    }

    /// Starts the bridge with the file it had before.
    pub fn start(&mut self) {
        self.child = Some(self.spawn(&self.dir.join("bridge.toml")));
    }

    /// Another bridge on this host, killed at the end.
    pub fn another(&self, namespace: &str, reach: &str, rules: &str) -> Another {
        let file = self.dir.join(format!("{namespace}-{}.toml", NETS.fetch_add(1, Relaxed)));
        let text = format!("namespace = \"{namespace}\"\nhost = \"other\"\n{reach}\n{rules}");
        std::fs::write(&file, text).expect("the bridge's file");
        Another(self.spawn(&file))
    }

    /// The wall clock of bridges started from now on is `ahead_s` seconds ahead of ours. False,
    /// with a notice, where there is no C compiler.
    pub fn set_clock(&mut self, ahead_s: i64) -> bool {
        let library = self.dir.join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/net/clock.c");
        if !ran(&format!("cc -shared -fPIC -o {} {source}", library.display())) {
            println!("skipped: no C compiler here for a clock of a process's own");
            return false;
        }
        self.env = vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("CLOCK_AHEAD_S", ahead_s.to_string()),
        ];
        let shown = |env: &[(&'static str, String)]| -> i64 {
            let out = Command::new("date").arg("+%s").envs(env.iter().cloned()).output();
            let text = String::from_utf8(out.expect("date").stdout).expect("a number");
            text.trim().parse().expect("a number")
        };
        let off_s = shown(&self.env) - shown(&[]);
        assert!((off_s - ahead_s).abs() < 60, "the clock is {off_s} s ahead");
        true
    }

    fn spawn(&self, file: &Path) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space, env!("CARGO_BIN_EXE_outlive-bridge")]);
        command.arg(file).env("OUTLIVE_DIR", &self.dir).envs(self.env.iter().cloned());
        if let Some(log) = &self.log {
            command.stderr(std::fs::File::create(log).expect("a file"));
        }
        if let Some((_, to)) = &self.unread {
            command.stderr(to.try_clone().expect("the pipe"));
        }
        command.spawn().expect("the bridge")
    }

    /// What bridges started from now on say is kept for [`Host::said`].
    pub fn listen_in(&mut self) {
        self.log = Some(self.dir.join("said.log"));
    }

    /// What bridges started from now on say, nobody reads, and nothing of it can be written.
    pub fn listen_to_nothing(&mut self) {
        let (from, mut to) = std::io::pipe().expect("a pipe");
        // As much as it holds.
        to.write_all(&[b'.'; 64 << 10]).expect("room");
        self.unread = Some((from, to));
    }

    /// Lines that the bridge has said so far.
    pub fn said(&self) -> Vec<String> {
        let text = self.log.as_ref().and_then(|log| std::fs::read_to_string(log).ok());
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// SIGKILL: `ip netns exec` has become the bridge.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and the end: how long it took. A bridge that does not end fails the test.
    pub fn end(&mut self) -> Duration {
        let mut child = self.child.take().expect("a running bridge");
        assert!(ran(&format!("kill -TERM {}", child.id())));
        let begun = Instant::now();
        while child.try_wait().expect("its state").is_none() {
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the bridge of {} has not ended", self.space);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    }

    /// Whether the bridge that was started last has not ended.
    pub fn runs(&self) -> bool {
        let pid = self.child.as_ref().map_or(0, Child::id);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that has ended stays as a zombie until it is waited for.
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    }

    /// Lets the bridge have so many descriptors, or those that it has and no more; how many it
    /// might have before.
    pub fn open_files(&self, most: Option<u64>) -> u64 {
        let pid = self.child.as_ref().map_or(0, Child::id);
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("a process");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let before = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        // The limit is one of their numbers: none below is free.
        let is_open = |fd: &u64| Path::new(&format!("/proc/{pid}/fd/{fd}")).is_symlink();
        let most = most.unwrap_or_else(|| (0..).find(|fd| !is_open(fd)).expect("a number"));
        assert!(ran(&format!("prlimit --pid {pid} --nofile={most}:")));
        before.expect("a number")
    }

    /// SIGSTOP, or SIGCONT.
    pub fn pause(&self, paused: bool) {
        let signal = if paused { "STOP" } else { "CONT" };
        let pid = self.child.as_ref().map_or(0, Child::id);
        assert!(ran(&format!("kill -{signal} {pid}")));
    }

    /// A line of the bridge's `/proc/PID/status`.
    pub fn status(&self, key: &str) -> u64 {
        let pid = self.child.as_ref().map_or(0, Child::id);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.expect("a number")
    }

    /// The network namespace.
    pub fn space(&self) -> &str {
        &self.space
    }

    /// Processor time of the bridge.
    pub fn cpu(&self) -> Duration {
        let pid = self.child.as_ref().map_or(0, Child::id);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running bridge");
        let words: Vec<_> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        // utime and stime, in hundredths of a second.
        let ticks = |i: usize| words[i].parse::<u64>().expect("a number");
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }

    pub fn settings(&self) -> NodeBuilder {
        Node::builder().root(&self.dir)
    }

    pub fn node(&self, name: &str) -> Node {
        self.settings().name(name).open().expect("a node")
    }

    pub fn domain(&self) -> Domain {
        Domain::of(&self.settings()).expect("a domain")
    }
}

/// A bridge beside that of its host.
pub struct Another(Child);

impl Another {
    /// How it ended.
    pub fn code(&mut self) -> Option<i32> {
        wait_for("its end", || self.0.try_wait().expect("its state")).code()
    }
}

impl Drop for Another {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks again until there is an answer; a test that waits in vain fails and says for what.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The counters of a host's bridge.
pub struct Counters(Subscriber<outlive::MsgPack<Value>>);

impl Counters {
    pub fn of(node: &Node) -> Self {
        let topic = || node.msgpack::<Value>("/outlive-bridge/fleet/stats");
        let topic = topic().expect("a name").type_name("outlive/BridgeStats");
        Self(topic.history(1).subscriber().expect("the counters"))
    }

    /// The newest, as soon as there are new ones.
    pub fn newest(&mut self) -> Value {
        wait_for("counters", || {
            self.0.latest().expect("a sample").map(|s| s.decode().expect("counters"))
        })
    }

    /// The newest that `fit`.
    pub fn until(&mut self, what: &str, mut fit: impl FnMut(&Value) -> bool) -> Value {
        wait_for(what, || Some(self.newest()).filter(&mut fit))
    }
}

/// A counter of a topic; 0 while there is none.
pub fn count(of: &Value, side: &str, topic: &str, counter: &str) -> u64 {
    of[side][topic][counter].as_u64().unwrap_or(0)
}
