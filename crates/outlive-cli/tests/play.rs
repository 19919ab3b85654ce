//! `outlive play` by hand: keys at a terminal, and the clock that nodes follow.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::*;
use outlive::{Deadline, Node, Subscriber};
use outlive_record::{RecordOptions, Recorder, Recording, Selection};

/// Longest time for what must come; a watchdog ends the rest.
const LONG: Duration = Duration::from_secs(100);

fn node(home: &Home) -> Node {
    Node::builder().root(home.root()).open().unwrap()
}

/// A file with the numbers 0, 1, ... on topic /n, so far apart.
fn recorded(home: &Home, count: u32, apart: Duration) -> PathBuf {
    let path = home.root().with_extension("mcap");
    let node = node(home);
    let publisher = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let mut recorder =
        Recorder::start(&node, Selection::all(), &path, RecordOptions::default()).unwrap();
    for i in 0..count {
        publisher.publish(&i).unwrap();
        while recorder.progress().messages <= u64::from(i) {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
        if i + 1 < count {
            std::thread::sleep(apart);
        }
    }
    recorder.finish().unwrap();
    path
}

/// The next message; somebody who joins or leaves also ends a wait.
fn next<T: outlive::Message + Copy>(of: &mut Subscriber<T>) -> T {
    loop {
        if let Some(message) = of.receive_timeout(LONG).unwrap() {
            return *message;
        }
    }
}

fn times(path: &Path) -> Vec<u64> {
    let messages = Recording::open(path).unwrap().messages().unwrap();
    messages.map(|m| m.unwrap().publish_time).collect()
}

/// A terminal and the side of it that a person has.
fn terminal() -> (std::fs::File, OwnedFd) {
    // SAFETY: plain calls; each descriptor is owned from here on; `name` is as long as said.
    unsafe {
        let person = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(person >= 0 && libc::grantpt(person) == 0 && libc::unlockpt(person) == 0);
        let mut name = [0; 64];
        assert_eq!(libc::ptsname_r(person, name.as_mut_ptr(), name.len()), 0);
        let program = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(program >= 0);
        (std::fs::File::from_raw_fd(person), OwnedFd::from_raw_fd(program))
    }
}

/// A command at a terminal of its own, killed on drop.
struct AtTerminal {
    child: Child,
    keys: std::fs::File,
    /// Kept open, so that the state of the terminal can be looked at.
    terminal: OwnedFd,
    said: BufReader<std::process::ChildStderr>,
}

impl AtTerminal {
    fn start(mut command: Command) -> Self {
        let (keys, terminal) = terminal();
        command.stdin(Stdio::from(terminal.try_clone().unwrap()));
        // SAFETY: two system calls between fork and exec, without memory of the parent.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, keys, terminal, said }
    }

    /// Waits until it says so.
    fn await_said(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended before '{what}'");
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// Whether the terminal shows keys and hands out lines, as a shell expects it.
    fn is_as_before(&self) -> bool {
        // SAFETY: all zeroes is a valid termios; the call fills it in.
        let state = unsafe {
            let mut state: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.terminal.as_raw_fd(), &mut state), 0);
            state
        };
        state.c_lflag & (libc::ICANON | libc::ECHO) == libc::ICANON | libc::ECHO
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a command whose standard error is a terminal; what a person sees there.
fn shown_at_a_terminal(mut command: Command) -> (Child, std::fs::File) {
    let (person, terminal) = terminal();
    let child = command.stdin(Stdio::from(terminal.try_clone().unwrap())).stderr(terminal);
    (child.spawn().unwrap(), person)
}

/// Reads until `all` were seen.
fn await_seen(person: &mut std::fs::File, all: &[&str]) -> String {
    let (mut seen, mut bytes) = (String::new(), [0; 1000]);
    while !all.iter().all(|part| seen.contains(part)) {
        let n = person.read(&mut bytes).unwrap();
        seen += &String::from_utf8_lossy(&bytes[..n]);
    }
    seen
}

#[test]
fn a_line_at_a_terminal_says_how_far_it_is_and_goes() {
    let home = Home::new("status");
    let path = recorded(&home, 5, Duration::from_millis(1));
    let args = format!("play {} --control --paused", path.display());
    let (mut play, mut person) = shown_at_a_terminal(home.outlive(&args));
    await_seen(&mut person, &["\r\x1b[K[----", "]   0 %", "0 messages (0/s), paused"]);
    node_has_service(&home);
    ask(&home, "resume");
    let seen = await_seen(&mut person, &["played 5 messages"]);
    let (before, _) = seen.split_once("outlive: resumed").unwrap();
    assert!(before.ends_with("\r\x1b[K"), "no line is in front of a note: {before:?}");
    assert!(play.wait().unwrap().success());

    let node = node(&home);
    let publisher = node.topic::<u64>("/k").unwrap().publisher().unwrap();
    publisher.publish(&1).unwrap();
    let file = home.root().with_file_name("status.mcap");
    let args = format!("record -o {} /k --history 1 --count 2", file.display());
    let (mut record, mut person) = shown_at_a_terminal(home.outlive(&args));
    await_seen(&mut person, &["[##########----------]  50 %  1 message ("]);
    publisher.publish(&2).unwrap();
    let seen = await_seen(&mut person, &["recorded 2 messages"]);
    assert!(seen.contains("\r\x1b[Koutlive: recorded"), "{seen:?}");
    assert!(record.wait().unwrap().success());
}

/// The file goes into a pipe that nobody reads at first: the command lasts as long as the test.
#[test]
fn a_line_at_a_terminal_says_how_far_a_recovery_is() {
    let home = Home::new("recover-status");
    let node = node(&home);
    let publisher = node.topic::<[u8]>("/k").unwrap().publisher().unwrap();
    // More than the pipe and the 32 MiB that may wait for it.
    let noise = noise(4 << 20);
    for _ in 0..12 {
        publisher.publish(&noise).unwrap();
    }
    let file = home.root().with_file_name("recover.mcap");
    home.run(&format!("record -o {} /k --history 12 --count 12", file.display())).expect(DONE);
    let pipe = home.root().with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = format!("recover {} --overwrite --output {}", file.display(), pipe.display());
    let (mut recover, mut person) = shown_at_a_terminal(home.outlive(&args));
    let mut read = std::fs::File::open(&pipe).unwrap();
    // Longer than a line is left as it is.
    std::thread::sleep(Duration::from_millis(300));
    let all = std::thread::spawn(move || std::io::copy(&mut read, &mut std::io::sink()).unwrap());
    let seen = await_seen(&mut person, &[" of 12 messages (", "12 messages into"]);
    assert!(seen.contains("\r\x1b[K[##") && seen.contains("\r\x1b[Koutlive: 12 m"), "{seen:?}");
    assert!(recover.wait().unwrap().success());
    assert!(all.join().unwrap() > 48 << 20);
}

#[test]
fn keys_pause_go_on_and_play_one_message() {
    let home = Home::new("play-keys");
    let path = recorded(&home, 5, Duration::ZERO);
    let node = node(&home);
    let mut numbers = node.topic::<u32>("/n").unwrap().subscriber().unwrap();
    let args = format!("play {} --paused --wait-for-subscribers 1", path.display());
    let mut play = AtTerminal::start(home.outlive(&args));
    play.await_said("space pauses");
    assert!(!play.is_as_before());
    play.press(b"n");
    assert_eq!(next(&mut numbers), 0);
    play.press(b"x\x1b[C");
    assert_eq!(next(&mut numbers), 1);
    play.press(b" ");
    assert_eq!([next(&mut numbers), next(&mut numbers), next(&mut numbers)], [2, 3, 4]);
    play.await_said("resumed");
    play.await_said("played 5 messages");
    assert!(play.child.wait().unwrap().success() && play.is_as_before());
    assert!(numbers.receive().unwrap().is_none());
}

#[test]
fn a_key_pauses_what_plays_and_a_pause_delays_what_follows() {
    let home = Home::new("play-pause");
    // A thousand times as slowly: minutes, which nobody waits for.
    let path = recorded(&home, 3, Duration::from_millis(100));
    let node = node(&home);
    let mut numbers = node.topic::<u32>("/n").unwrap().subscriber().unwrap();
    let args = format!("play {} --rate 0.001 --wait-for-subscribers 1", path.display());
    let mut play = AtTerminal::start(home.outlive(&args));
    assert_eq!(next(&mut numbers), 0);
    // What plays takes no steps.
    play.press(b"n ");
    play.await_said("paused");
    play.press(b"n");
    assert_eq!(next(&mut numbers), 1);
    play.press(b"n");
    assert_eq!(next(&mut numbers), 2);
    play.await_said("played 3 messages");
    let wrong = home.run(&format!("play {} --paused", path.display())).expect(USAGE);
    assert!(wrong.err.contains("needs a terminal"), "{}", wrong.err);
}

#[test]
fn the_clock_has_the_time_of_the_recording() {
    let home = Home::new("play-clock");
    let path = recorded(&home, 2, Duration::from_millis(100));
    let times = times(&path);
    let node = node(&home);
    let mut clock = node.topic::<u64>("/clock").unwrap().subscriber().unwrap();
    let args = format!("play {} --rate 0.001 --clock 1000", path.display());
    let slow = home.start(&args, b"");
    let mut before = next(&mut clock);
    assert_eq!(before, times[0], "a message and its time");
    for _ in 0..20 {
        let now = next(&mut clock);
        assert!(now >= before && now < times[1], "{before} {now} {times:?}");
        before = now;
    }
    assert!(before > times[0]);
    drop(slow);
    drop(clock);

    let args =
        format!("play {} --rate 1000 --clock --clock-topic /time --linger inf", path.display());
    let _quick = home.start(&args, b"");
    let mut last = 0;
    while last != times[1] {
        // Joined anew each time, it finds what was published before.
        if let Ok(topic) = node.topic::<u64>("/time")
            && let Ok(mut clock) = topic.history(1).subscriber()
        {
            last = clock.receive_timeout(Duration::from_millis(20)).unwrap().map_or(0, |t| *t);
        }
    }
    let wrong = format!("play {} --clock --clock-topic /n", path.display());
    let wrong = home.run(&wrong).expect(USAGE);
    assert!(wrong.err.contains("a topic /n of its own"), "{}", wrong.err);
}

/// 370,000 messages in two seconds.
#[test]
fn one_message_again_and_again_is_no_flood() {
    let home = Home::new("play-one");
    let path = recorded(&home, 1, Duration::ZERO);
    let play = home.start(&format!("play {} --loop", path.display()), b"");
    std::thread::sleep(Duration::from_millis(1500));
    play.signal(libc::SIGTERM);
    let told = play.end().expect(DONE).err;
    let played: u64 =
        told.split("played ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((1..=20).contains(&played), "{told}");
}

fn ask(home: &Home, words: &str) -> Ran {
    let mut asked = home.outlive("service call /play --json --full");
    Ran::from(asked.arg(words).output().unwrap())
}

/// As the player of rosbag2 has it: from another process, in the middle of it.
#[test]
fn a_service_pauses_seeks_and_changes_the_rate() {
    let home = Home::new("play-control");
    // At the rate below minutes apart, which the watchdog does not give.
    let path = recorded(&home, 6, Duration::from_millis(300));
    let times = times(&path);
    let node = node(&home);
    let mut numbers = node.topic::<u32>("/n").unwrap().subscriber().unwrap();
    // Slower than anybody waits: nothing comes by itself.
    let args = "--rate 0.001 --paused --control --clock 1000 --wait-for-subscribers 1";
    let play = home.start(&format!("play {} {args}", path.display()), b"");
    while node.topic::<[u8]>("/clock").unwrap().subscriber_of_any_type().is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let state = |words: &str| ask(&home, words).expect(DONE).json()["value"].clone();
    let so = |words: &str| {
        let state = state(words);
        let number = |key: &str| state[key].as_f64().unwrap();
        (state["paused"].as_bool().unwrap(), number("rate"), number("at"), number("of"))
    };
    let of = (times[5] - times[0]) as f64 / 1e9;
    let (paused, rate, at, all) = so("state");
    assert!(paused && rate == 0.001 && at < 0.01 && (all - of).abs() < 0.05, "{at} {all} {of}");
    so("next");
    assert_eq!(next(&mut numbers), 0);
    // Forward and back: it goes on with what comes after that.
    let to = (times[3] - times[0]) as f64 / 1e9;
    assert_eq!(so(&format!("seek {:.6}", to - 0.01)).2, (to * 1e6 - 1e4).round() / 1e6);
    so("next");
    assert_eq!(next(&mut numbers), 3);
    so("seek 0");
    so("next");
    assert_eq!(next(&mut numbers), 0);
    let (paused, _, at, _) = so("resume");
    assert!(!paused && at < 0.1, "{at}");
    assert!(numbers.receive().unwrap().is_none(), "the next one takes minutes");
    assert_eq!((so("toggle").0, so("toggle").0), (true, false));
    for (words, why) in
        [("seek 1000", "seek 0 to"), ("rate 0", "0.001 to 1000"), ("dance", "pause, ")]
    {
        let told = ask(&home, words).err;
        assert!(told.contains(why), "{words}: {told}");
    }
    so("pause");
    assert_eq!(so("rate 1000").1, 1000.0);
    assert!(numbers.receive().unwrap().is_none(), "a pause stays one");
    so("resume");
    assert_eq!([(); 5].map(|()| next(&mut numbers)), [1, 2, 3, 4, 5]);
    let told = play.end().expect(DONE).err;
    assert!(told.contains("played 8 messages") && told.contains("paused"), "{told}");

    let args = "--rate 0.001 --control --linger inf";
    let play = home.start(&format!("play {} {args}", path.display()), b"");
    node_has_service(&home);
    so("stop");
    // It lingers, for those who come late.
    assert!(ask(&home, "pause").err.contains("nothing is played now"));
    so("stop");
    play.end().expect(DONE);
}

fn node_has_service(home: &Home) {
    while !home.run("service list").text().contains("/play") {
        std::thread::sleep(Duration::from_millis(20));
    }
}
