//! `outlive-view` before clients that do not finish what they begin, and with few descriptors.
#![allow(missing_docs)]

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlive::{Encoding, Node, PayloadType};

/// No test waits longer for an event.
const PATIENCE: Duration = Duration::from_secs(60);

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n";

struct View {
    child: Child,
    at: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
    dir: PathBuf,
}

fn folder(test: &str) -> PathBuf {
    let dir = format!("/dev/shm/outlive-test-view-{test}-{}", std::process::id());
    let dir = PathBuf::from(dir);
    std::fs::create_dir(&dir).expect("a folder on the RAM disk");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&dir, mode).expect("its mode");
    dir
}

impl View {
    /// Begins one that may have so many descriptors.
    fn start(test: &str, descriptors: u32) -> Self {
        let dir = folder(test);
        let program = env!("CARGO_BIN_EXE_outlive-view");
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -n {descriptors}; exec '{program}' --port 0")])
            .env("OUTLIVE_DIR", &dir)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a view");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let told = lines.next().expect("an address").expect("a line");
        let at = told.split_once("ws://").and_then(|(_, rest)| rest.split_whitespace().next());
        let at = at.and_then(|at| at.parse().ok()).expect("an address in the first line");
        let said = Arc::new(Mutex::new(vec![told]));
        let to = said.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| to.lock().expect("lines").push(line));
        });
        Self { child, at, said, dir }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).expect("a connection")
    }

    /// One that has been let in; `None` if it was not.
    fn look(&self) -> Option<TcpStream> {
        let mut stream = self.connect();
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(REQUEST.as_bytes()).ok()?;
        let mut told = [0; 12];
        stream.read_exact(&mut told).ok()?;
        (told == *b"HTTP/1.1 101").then_some(stream)
    }

    fn lives(&mut self) {
        let ended = self.child.try_wait().expect("its state");
        let said = self.said.lock().expect("lines");
        assert!(ended.is_none(), "the view ended with {ended:?}: {:?}", said.last());
    }

    fn descriptors(&self) -> usize {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        fds.expect("its descriptors").count()
    }

    fn sockets(&self) -> usize {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let links = fds.expect("its descriptors").flatten().map(|fd| fd.path().read_link());
        links.flatten().filter(|to| to.to_string_lossy().starts_with("socket:")).count()
    }

    fn said(&self, part: &str) -> usize {
        self.said.lock().expect("lines").iter().filter(|line| line.contains(part)).count()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < until, "never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn half_open_connections_end_no_view_and_keep_nobody_out() {
    let mut view = View::start("half", 1024);
    let before = view.descriptors();
    let mut half = Vec::new();
    for _ in 0..400 {
        half.push(view.connect());
        half.last_mut().expect("it").write_all(b"GET / HTTP/1.1\r\n").ok();
    }
    let _one = wait_for("a viewer's turn", || {
        view.lives();
        view.look()
    });
    let taken = wait_for("all to be seen", || {
        let taken = view.descriptors() - before;
        (view.said("turned away") > 0 || taken < 100).then_some(taken)
    });
    assert!(taken < 100, "{taken} descriptors for connections that ask nothing");
    view.lives();
}

/// What a client sends: a short frame, masked with zeros.
fn frame(code: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 126, "a short one");
    [&[0x80 | code, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

/// The thread that sends waited for it, and kept its socket, for as long as it was there.
#[test]
fn who_says_goodbye_and_reads_nothing_is_let_go() {
    let mut view = View::start("bye", 1024);
    let node = Node::builder().domain("default").root(&view.dir).name("talker");
    let node = node.open().expect("a node");
    let of = PayloadType::encoded(Encoding::Cdr, "x/Blob", b"uint8[] data").expect("a type");
    let blobs = node.topic::<[u8]>("/blobs").expect("a name").of_type(&of);
    let blobs = blobs.publisher().expect("a port");
    let mut one = view.look().expect("a viewer's turn");
    let mut all = Vec::new();
    wait_for("the topic", || {
        let mut piece = [0; 4096];
        let n = one.read(&mut piece).expect("what there is");
        all.extend_from_slice(&piece[..n]);
        String::from_utf8_lossy(&all).contains("/blobs").then_some(())
    });
    let asked = br#"{"op":"subscribe","subscriptions":[{"id":1,"channelId":1}]}"#;
    one.write_all(&frame(1, asked)).expect("a request");
    // More than the kernel takes of one message: the rest waits for who reads.
    let mut blob = vec![0; 32 << 20];
    // Plain CDR; how many numbers follow.
    blob[1] = 1;
    let count = blob.len() as u32 - 8;
    blob[4..8].copy_from_slice(&count.to_le_bytes());
    wait_for("its beginning", || {
        blobs.publish(&blob).expect("published");
        (one.peek(&mut [0; 4096]).expect("what there is") == 4096).then_some(())
    });
    assert_eq!(view.sockets(), 2);
    one.write_all(&frame(8, b"")).expect("a goodbye");
    // That where it listens stays.
    wait_for("the end of its socket", || {
        view.lives();
        (view.sockets() == 1).then_some(())
    });
}

#[test]
fn a_handshake_in_trickles_has_one_deadline() {
    let mut view = View::start("trickle", 1024);
    let mut one = view.connect();
    one.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").expect("a beginning");
    one.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    // Fewer pieces than the library takes for an attack, by itself.
    for piece in 0.. {
        view.lives();
        if one.write_all(b"a").is_err() {
            return;
        }
        match one.read(&mut [0; 64]) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
        assert!(piece < 50, "still open after 50 pieces");
    }
}

#[test]
fn without_descriptors_the_view_waits_and_goes_on() {
    let mut view = View::start("few", 48);
    let mut there = Vec::new();
    // More than there are descriptors; those who are not taken yet wait in the kernel.
    for _ in 0..60 {
        there.push(view.connect());
        let stream = there.last_mut().expect("it");
        stream.write_all(REQUEST.as_bytes()).expect("a request");
    }
    // A topic that appears meanwhile takes descriptors to be seen.
    let mut builder = Node::builder().domain("default").name("talker");
    builder = builder.root(&view.dir);
    let node = builder.open().expect("a node");
    let publisher = node.topic::<u64>("/late").expect("a name").publisher().expect("a port");
    publisher.publish(&1).expect("published");
    wait_for("want of descriptors", || {
        view.lives();
        (view.said("descriptors") > 0).then_some(())
    });
    drop(there);
    let mut one = wait_for("a viewer's turn", || {
        view.lives();
        view.look()
    });
    let mut all = Vec::new();
    wait_for("the late topic", || {
        let mut piece = [0; 4096];
        let n = one.read(&mut piece).expect("what there is");
        all.extend_from_slice(&piece[..n]);
        String::from_utf8_lossy(&all).contains("/late").then_some(())
    });
    assert!(view.said("descriptors") < 10, "said too often");
}

/// A pipe that nobody reads and that takes nothing more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (from, mut to) = std::io::pipe().expect("a pipe");
    // As much as it holds.
    to.write_all(&[b'.'; 64 << 10]).expect("room");
    (from, to)
}

/// The thread that looks for signals waited for the reader.
#[test]
fn a_view_whose_output_nobody_reads_goes_on_and_ends() {
    let ((_unread, out), (_nor_this, err)) = (full_pipe(), full_pipe());
    let dir = folder("unread");
    let mut child = Command::new(env!("CARGO_BIN_EXE_outlive-view"))
        .args(["--port", "0", "--stats"])
        .env("OUTLIVE_DIR", &dir)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .expect("a view");
    // Figures come every second.
    std::thread::sleep(Duration::from_secs(3));
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
    assert!(killed.success(), "it runs");
    let until = Instant::now() + PATIENCE;
    let code = loop {
        match child.try_wait().expect("its state") {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::fs::remove_dir_all(&dir);
    assert_eq!(code.expect("its end").code(), Some(0));
}
