//! A directory of its own for each test, and the command in it.
#![allow(dead_code)] // each test file uses a part of it

pub(crate) mod browser;
pub(crate) mod disk;
pub(crate) mod proto;
pub(crate) mod robot;

use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use testkit::spawn::spawn_program;
use testkit::{TempDomain, Watchdog};

/// Exit codes as documented; written out, so that a change of the enum is noticed.
pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const USAGE: i32 = 2;
pub(crate) const LOSS: i32 = 3;
pub(crate) const NOT_FOUND: i32 = 4;
pub(crate) const CORRUPT: i32 = 5;
pub(crate) const MISMATCH: i32 = 6;
pub(crate) const REFUSED: i32 = 7;
pub(crate) const NO_ROOM: i32 = 8;
pub(crate) const PARTIAL: i32 = 9;

/// Where the command of one test finds its domains.
pub(crate) struct Home {
    temp: TempDomain,
    root: PathBuf,
    _watchdog: Watchdog,
}

impl Home {
    /// `label` names the test.
    pub(crate) fn new(label: &str) -> Self {
        Self::lasting(label, Duration::from_secs(120))
    }

    /// For a test that a browser slows down, or that goes on for long.
    pub(crate) fn lasting(label: &str, time: Duration) -> Self {
        let temp = TempDomain::new(&format!("cli-{label}")).unwrap();
        let root = temp.path().join("root");
        Self { temp, root, _watchdog: Watchdog::start(label, time) }
    }

    /// With its domains in a directory of the test's own.
    pub(crate) fn with_root(label: &str, root: PathBuf) -> Self {
        let mut home = Self::new(label);
        home.root = root;
        home
    }

    /// On a disk with so much room, if the RAM disk has less.
    pub(crate) fn with_room_for(label: &str, bytes: u64) -> Self {
        let mut home = Self::new(label);
        let df = Command::new("df").args(["--output=avail", "-B1"]).arg(home.temp.path()).output();
        let text = String::from_utf8(df.unwrap().stdout).unwrap();
        if text.lines().last().unwrap().trim().parse::<u64>().unwrap() < bytes {
            let name = format!("{label}-{}", std::process::id());
            home.root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        }
        home
    }

    /// `OUTLIVE_DIR` of the command.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// Paths below the root.
    pub(crate) fn listing(&self) -> Vec<String> {
        testkit::temp::listing(&self.root())
    }

    /// The command, not started. Dies with the test.
    pub(crate) fn outlive(&self, args: &str) -> Command {
        let mut command = spawn_program(env!("CARGO_BIN_EXE_outlive"));
        command.args(args.split_whitespace()).env("OUTLIVE_DIR", self.root());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &str) -> Ran {
        Ran::from(self.outlive(args).output().unwrap())
    }

    /// Runs it with this standard input.
    pub(crate) fn feed(&self, args: &str, input: &[u8]) -> Ran {
        let mut child = self.outlive(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // It may end without having read everything.
            scope.spawn(move || drop(pipe.write_all(input)));
            Ran::from(child.wait_with_output().unwrap())
        })
    }

    /// Starts it with this standard input, which must fit into a pipe.
    pub(crate) fn start(&self, args: &str, input: &[u8]) -> Running {
        let mut child = self.outlive(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Running { child: Some(child) }
    }

    /// Starts a command that was made with [`Home::outlive`].
    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        Running { child: Some(command.spawn().unwrap()) }
    }

    /// Starts it with a standard input to which nothing ever comes.
    pub(crate) fn start_open(&self, args: &str) -> Running {
        let child = self.outlive(args).stdin(Stdio::piped()).spawn().unwrap();
        Running { child: Some(child) }
    }

    /// `topic list --json`.
    pub(crate) fn topics(&self) -> serde_json::Value {
        self.run("topic list --json").json()
    }

    /// Waits until the only topic has had so many messages.
    pub(crate) fn await_messages(&self, messages: u64) {
        while self.topics()[0]["messages"] != messages {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until so many nodes live.
    pub(crate) fn await_nodes(&self, nodes: usize) {
        while self.run("node list --json").json().as_array().unwrap().len() != nodes {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until somebody subscribes to the only topic.
    pub(crate) fn await_subscriber(&self) {
        self.await_subscribers(1);
    }

    /// Waits until so many live subscribers of the only topic are there.
    pub(crate) fn await_subscribers(&self, subscribers: usize) {
        let alive = |topics: serde_json::Value| {
            let all = topics[0]["subscribers"].as_array().cloned().unwrap_or_default();
            all.iter().filter(|s| s["alive"] == true).count()
        };
        while alive(self.topics()) != subscribers {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.root.starts_with(self.temp.path()) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), out: output.stdout, err }
    }
}

impl Ran {
    /// Fails unless it ended with `code`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "standard error: {}", self.err);
        self
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_slice(&self.expect(DONE).out).unwrap()
    }
}

/// A command that goes on; killed on drop.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: i32) {
        let pid = self.id() as i32;
        // SAFETY: the child is not reaped, so its id is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// From now on it may open no descriptor at or above `max`; what that was before.
    pub(crate) fn limit_descriptors(&self, max: u64) -> u64 {
        let pid = self.child.as_ref().unwrap().id() as i32;
        let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `old` is writable for the call; the child is not reaped, so its id is its own.
        let rc = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &mut old) };
        assert_eq!(rc, 0);
        let new = libc::rlimit { rlim_cur: max, ..old };
        // SAFETY: as above; `new` is read during the call.
        let rc = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &new, std::ptr::null_mut()) };
        assert_eq!(rc, 0);
        old.rlim_cur
    }

    /// Stops it and waits until it stands still.
    pub(crate) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.child.as_ref().unwrap().id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nobody reads what it prints any more.
    pub(crate) fn close_output(&mut self) {
        drop(self.take_output());
    }

    /// Waits for its end and reads nothing.
    pub(crate) fn end_unread(mut self) -> Option<i32> {
        self.child.as_mut().unwrap().wait().unwrap().code()
    }

    /// What it prints; [`Running::end`] then has none of it.
    pub(crate) fn take_output(&mut self) -> ChildStdout {
        self.child.as_mut().unwrap().stdout.take().unwrap()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for its end and for what it said.
    pub(crate) fn end(mut self) -> Ran {
        Ran::from(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sets a limit of another process, as far as that may have it.
pub(crate) fn limit(pid: u32, which: libc::__rlimit_resource_t, most: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is written by the first call and read by the second.
    let set = unsafe {
        libc::prlimit(pid as i32, which, std::ptr::null(), &mut limit);
        limit.rlim_cur = most.min(limit.rlim_max);
        libc::prlimit(pid as i32, which, &limit, std::ptr::null_mut())
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Bytes without a pattern, the same each time.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    testkit::Rng::new(7).fill(&mut noise);
    noise
}

/// Does it beside so many clients of a server that send a byte now and then and come again when
/// they are sent away.
pub(crate) fn beside_trickling(clients: u64, address: &str, what: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 0..clients {
            let over = &over;
            scope.spawn(move || {
                let slowly = Duration::from_millis(50 + n % 50);
                while !over.load(Relaxed) {
                    if let Ok(mut stream) = TcpStream::connect(address) {
                        while !over.load(Relaxed) && stream.write_all(b"G").is_ok() {
                            std::thread::sleep(slowly);
                        }
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        // Ended however it ends: a scope waits for its threads.
        let _over = Over(&over);
        std::thread::sleep(Duration::from_millis(500));
        what();
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
