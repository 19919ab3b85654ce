//! `demo-robot` as a process: its story, and its own death.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use testkit::Watchdog;
use testkit::spawn::spawn_program;

/// The exit code that says so.
const HELD_UP: i32 = 10;

/// The demo, not started. Dies with the test.
fn demo(args: &str) -> Command {
    let mut command = spawn_program(env!("CARGO_BIN_EXE_demo-robot"));
    command.args(args.split_whitespace()).stdin(Stdio::null());
    command
}

#[test]
fn the_demo_robot_tells_a_true_story() {
    let _watchdog = Watchdog::start("demo-robot", Duration::from_secs(300));
    // A busy machine keeps no millisecond: this is about the story, not the speed.
    let args = "--kills 4 --rounds 2 --window-ms 400 --period-us 4000";
    let ran = demo(args).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    // The demo says so only where a bare sleeper beside the core was held up, too.
    if ran.status.code() == Some(HELD_UP) {
        assert!(err.contains("the machine stood still"), "{err}");
        println!("skipped: {err}");
        return;
    }
    assert_eq!(ran.status.code(), Some(0), "standard error: {err}");
    for part in ["4 services; each came back", "and the drives brake", "the drives stopped."] {
        assert!(out.contains(part), "no '{part}' in\n{out}\n{err}");
    }
}

/// The processes that `parent` has started and that have not ended.
fn children(parent: u32) -> Vec<u32> {
    let of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut rest = stat.rsplit_once(") ")?.1.split(' ');
        let alive = rest.next()? != "Z";
        (alive && rest.next()? == parent.to_string()).then_some(pid)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

#[test]
fn a_killed_demo_leaves_no_robot_running() {
    let _watchdog = Watchdog::start("demo-killed", Duration::from_secs(120));
    let mut demo = demo("--period-us 20000 --fifo 0");
    let mut demo = demo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let patience = |what: &str, done: &dyn Fn() -> bool| {
        let waited = (0..3000).find(|_| {
            sleep(Duration::from_millis(20));
            done()
        });
        assert!(waited.is_some(), "{what}");
    };
    let supervisor = || children(demo.id()).first().copied();
    patience("the robot starts", &|| supervisor().is_some_and(|pid| children(pid).len() >= 9));
    let supervisor = supervisor().unwrap();
    let robot = children(supervisor);
    let dir = format!("/dev/shm/outlive-demo-robot-{}-0", demo.id());
    demo.kill().unwrap();
    demo.wait().unwrap();
    let lives = |pid: &u32| fs::exists(format!("/proc/{pid}")).unwrap();
    patience("the supervisor ends", &|| !lives(&supervisor));
    patience("its processes end", &|| !robot.iter().any(lives));
    let _ = fs::remove_dir_all(dir);
}
