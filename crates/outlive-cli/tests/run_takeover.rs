//! What the next supervisor takes over and what it ends: helpers that look like processes of the
//! file, and processes whose main thread has ended.

mod common;

use std::fs;
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use common::disk::on_a_disk_of;
use common::robot::{IDLE, Robot, be_a_service, kill, service};
use common::{DONE, Home, Running};
use testkit::TempDomain;

fn command_line(pid: i64) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

/// Has a helper with a session of its own.
fn camera(level: u32) -> String {
    format!(
        "[process.camera]\nenv = {{ LEVEL = {level} }}\n\
         command = ['sh', '-c', 'setsid sleep 9999 & while :; do sleep 0.05; done']\n"
    )
}

/// The next supervisor took it over as `camera`, and never started the camera.
#[test]
fn a_helper_with_a_session_of_its_own_is_not_taken_for_its_process() {
    let robot = Robot::new("takeover-helper", &camera(1));
    let mut running = robot.start();
    // The process is dead when the next supervisor comes; then it lives, and its section changed.
    for changed in [false, true] {
        robot.until_ready(&["camera"]);
        let old = robot.pid("camera");
        let helper = loop {
            let other = robot.marked().into_iter().find(|(_, pid)| i64::from(*pid) != old);
            match other {
                Some((_, pid)) if command_line(pid.into()).contains("9999") => break pid,
                _ => sleep(Duration::from_millis(5)),
            }
        };
        running.signal(libc::SIGKILL);
        drop(running);
        if changed {
            robot.write(&camera(2));
        } else {
            kill(old, libc::SIGKILL);
            while robot.marked().iter().any(|(_, pid)| i64::from(*pid) == old) {
                sleep(Duration::from_millis(5));
            }
        }
        running = robot.start();
        robot.until_ready(&["camera"]);
        let new = robot.pid("camera");
        assert!(command_line(new).starts_with("sh -c"), "camera is {:?}", command_line(new));
        assert!(new != old && new != i64::from(helper));
        let left = robot.marked();
        assert!(!left.iter().any(|(_, pid)| *pid == helper), "{helper} is left: {left:?}");
    }
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// The state went with the descriptor that was missing, and the helper was the next camera.
#[test]
fn a_state_that_cannot_be_written_for_want_of_a_descriptor_stays() {
    let robot = Robot::new("takeover-descriptors", &camera(1));
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let old = robot.pid("camera");
    while robot.marked().len() < 2 {
        sleep(Duration::from_millis(5));
    }
    running.limit_descriptors(3);
    kill(old, libc::SIGKILL);
    robot.until_log("run", "camera does not start");
    running.signal(libc::SIGKILL);
    drop(running);
    assert!(robot.home.root().join(".run-default/state.json").exists());
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let line = command_line(robot.pid("camera"));
    assert!(line.starts_with("sh -c"), "camera is {line:?}");
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// A changed process was adopted as if it were what the file says; so was somebody's helper.
#[test]
fn without_a_state_a_process_is_known_by_its_form_and_its_command() {
    let both = |level: u32| {
        let core = format!("[process.core]\nkind = 'core'\nenv = {{ LEVEL = {level} }}\n");
        camera(level) + &core + &format!("command = {IDLE}\n")
    };
    let robot = Robot::new("takeover-form", &both(1));
    let mut running = robot.start();
    for (level, dead) in [(1, false), (2, false), (2, true)] {
        robot.until_ready(&["camera", "core"]);
        let old = ["camera", "core"].map(|name| robot.pid(name));
        while robot.marked().iter().filter(|(name, _)| name == "camera").count() < 2 {
            sleep(Duration::from_millis(5));
        }
        running.signal(libc::SIGKILL);
        drop(running);
        fs::remove_file(robot.home.root().join(".run-default/state.json")).unwrap();
        robot.write(&both(level));
        if dead {
            kill(old[0], libc::SIGKILL);
            while robot.marked().iter().any(|(_, pid)| i64::from(*pid) == old[0]) {
                sleep(Duration::from_millis(5));
            }
        }
        running = robot.start();
        robot.until_ready(&["camera", "core"]);
        let new = ["camera", "core"].map(|name| robot.pid(name));
        let line = command_line(new[0]);
        assert!(line.starts_with("sh -c"), "camera is {line:?}");
        // Its form changes the first time that the level is 2, and it is dead the second time.
        assert_eq!((new[0] == old[0], new[1]), (level == 1, old[1]), "level {level}, {dead}");
    }
    robot.until_log("run", "its changed section holds from its next start");
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// The state of before named its dead predecessor: it was ended as somebody's helper.
#[test]
fn a_process_that_was_started_while_the_ram_disk_was_full_is_taken_over() {
    const TEST: &str = "a_process_that_was_started_while_the_ram_disk_was_full_is_taken_over";
    on_a_disk_of("2m", TEST, |disk| {
        let home = Home::with_root("takeover-full", disk.join("root"));
        // Its logs are elsewhere.
        let dir = TempDomain::new("takeover-full-file").unwrap();
        let robot = Robot { home, file: dir.path().join("robot.toml") };
        robot.write(&format!(
            "[process.camera]\ncommand = {IDLE}\n\
             backoff = {{ first = '1ms', max = '5ms', limit = 1000 }}\n"
        ));
        let running = robot.start();
        robot.until_ready(&["camera"]);
        let old = robot.pid("camera");
        let rest = disk.join("rest");
        let mut file = fs::File::create(&rest).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        drop(file);
        kill(old, libc::SIGKILL);
        let new = robot.until_another("camera", old)["pid"].as_i64().unwrap();
        running.signal(libc::SIGKILL);
        drop(running);
        fs::remove_file(&rest).unwrap();

        let running = robot.start();
        robot.until_ready(&["camera"]);
        assert_eq!(robot.pid("camera"), new, "{}", robot.log("run"));
        running.signal(libc::SIGTERM);
        running.end().expect(DONE);
        robot.expect_nothing_left();
    });
}

/// Ends the main thread and nothing else, as `pthread_exit` in `main` does.
fn end_main_thread() {
    extern "C" fn end(_: i32) {
        // SAFETY: ends the calling thread, the main one; nobody joins it, its stack stays.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    let pid = std::process::id() as i32;
    // SAFETY: the handler makes one system call; the signal goes to the main thread alone.
    unsafe {
        libc::signal(libc::SIGUSR1, end as *const () as usize);
        libc::syscall(libc::SYS_tgkill, pid, pid, libc::SIGUSR1);
    }
}

/// Only as a process of its own, without a main thread.
#[test]
fn a_service_of_the_robot() {
    if testkit::spawn::role().is_some() {
        let service = std::thread::spawn(be_a_service);
        end_main_thread();
        service.join().unwrap();
    }
}

/// `ps` said that it had ended, and the next supervisor started a second one beside it.
#[test]
fn a_process_whose_main_thread_has_ended_is_taken_over_and_ended_like_any_other() {
    let robot = Robot::new(
        "takeover-threads",
        &format!("[process.camera]\n{}ready.topics = '/camera'\n", service("camera")),
    );
    // By its nodes, not by `/proc`.
    let living = || {
        let nodes = robot.home.run("node list --json").json();
        let nodes = nodes.as_array().unwrap().iter();
        let alive = nodes.filter(|n| n["alive"] == true);
        alive.map(|n| n["pid"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let running = robot.start();
    robot.until_log("run", "camera ready after");
    let copies = living();
    let stat = fs::read_to_string(format!("/proc/{}/stat", copies[0])).unwrap();
    assert!(stat.contains(") Z "), "its main thread has ended: {stat}");
    let shown = robot.process("camera");
    assert_eq!((&shown["state"], shown["pid"].as_i64()), (&"ready".into(), Some(copies[0])));
    running.signal(libc::SIGKILL);
    drop(running);

    let running = robot.start();
    robot.until_log("run", "adopted camera");
    assert_eq!(living(), copies, "one copy, and the same");
    assert_eq!(robot.pid("camera"), copies[0]);
    running.signal(libc::SIGKILL);
    drop(running);

    // Found by its marks alone, as one whose start nobody lived to write down.
    fs::remove_file(robot.home.root().join(".run-default/state.json")).unwrap();
    let ran = robot.home.run("stop").expect(DONE);
    assert_eq!(ran.text(), format!("ended camera (pid {})\nstopped\n", copies[0]));
    assert!(living().is_empty(), "{:?} is left", living());
}

/// Says when it is asked to end, and does so once `go` is there; so does its helper.
fn slow_to_end(level: u32, more: &str) -> String {
    format!(
        "[process.camera]\nenv = {{ LEVEL = {level} }}\ngrace = '30s'\n{more}\
         command = ['sh', '-c', 'wait_for() {{ \
         trap \"echo $1 asked \\$(date +%s%N)\" TERM; echo $1 up; \
         while [ ! -e go ]; do sleep 0.02; done; }}; \
         wait_for helper & wait_for camera; wait; rm go; exit 0']\n"
    )
}

/// Waits until the log has a text so often.
fn until_said(robot: &Robot, log: &str, what: &str, times: usize) {
    while robot.log(log).matches(what).count() < times {
        sleep(Duration::from_millis(5));
    }
}

/// Signals within this time are one request (`outlive::Shutdown`). The kernel sends the signal of a
/// parent's death again for each thread of the parent that is still alive.
const SAME_REQUEST: Duration = Duration::from_millis(250);

/// Kills the supervisor, and starts another one, which has its way with what is left.
fn succeed(robot: &Robot, running: Running, says: &str) -> Running {
    running.signal(libc::SIGKILL);
    drop(running);
    // What it asks is a request of its own.
    sleep(2 * SAME_REQUEST);
    let before = robot.log("run").matches(says).count();
    let running = robot.start();
    until_said(robot, "run", says, before + 1);
    running
}

/// Waits until the process and its helper have been started so often.
fn until_up(robot: &Robot, times: usize) {
    ["camera up", "helper up"].iter().for_each(|what| until_said(robot, "camera", what, times));
    robot.until_ready(&["camera"]);
}

/// Fails unless the two were asked so often, and no more.
#[track_caller]
fn expect_asked(robot: &Robot, times: usize) {
    let all = ["camera asked", "helper asked"];
    all.iter().for_each(|what| until_said(robot, "camera", what, times));
    // Once more would come now.
    sleep(Duration::from_millis(300));
    let log = robot.log("camera");
    let requests = |what| {
        let at_ns = |line: &str| line.strip_prefix(what)?.trim().parse::<u64>().ok();
        let mut all: Vec<_> = log.lines().filter_map(at_ns).collect();
        all.dedup_by(|b, a| *b - *a < SAME_REQUEST.as_nanos() as u64);
        all.len()
    };
    assert_eq!(all.map(requests), [times; 2], "{log}");
}

fn let_end(robot: &Robot) {
    fs::write(robot.file.with_file_name("go"), "").unwrap();
}

/// The kernel asked it, and so did the next supervisor: that ended it in the midst of ending.
#[test]
fn one_that_ends_with_its_supervisor_is_asked_once_and_its_helper_too() {
    const LEFT: &str = "ending what an earlier supervisor left: camera";
    let robot = Robot::new("takeover-stop", &slow_to_end(1, "on_supervisor_death = 'stop'\n"));
    let mut running = robot.start();
    for nth in 1..=2 {
        until_up(&robot, nth);
        if nth == 2 {
            // Known by its marks alone.
            fs::remove_file(robot.home.root().join(".run-default/state.json")).unwrap();
        }
        running = succeed(&robot, running, LEFT);
        expect_asked(&robot, nth);
        let_end(&robot);
    }
    until_up(&robot, 3);
    drop(running);
    let_end(&robot);
    robot.expect_nothing_left();
}

/// It counted as one that starts: its end was a crash, or it was asked again.
#[test]
fn one_that_is_about_to_end_is_taken_over_as_such() {
    let robot = Robot::new("takeover-ending", &slow_to_end(1, ""));
    let mut running = robot.start();
    for (nth, how, then) in [
        (1, "stop camera --timeout 0", "camera ended; stopped"),
        (2, "restart camera --timeout 0", "camera ended; starting it again"),
        // The whole robot.
        (3, "stop --timeout 0", "camera ended; starting it again"),
    ] {
        until_up(&robot, nth);
        robot.home.run(how);
        expect_asked(&robot, nth);
        robot.until("camera", |p| p["state"] == "ending");
        running = succeed(&robot, running, "adopted camera");
        let now = robot.process("camera");
        assert_eq!(now["state"], "ending", "{how}: {now}");
        let_end(&robot);
        until_said(&robot, "run", then, nth.saturating_sub(1).max(1));
        expect_asked(&robot, nth);
        if nth == 1 {
            robot.until("camera", |p| p["state"] == "stopped");
            robot.home.run("restart camera --timeout 5").expect(DONE);
        }
    }
    // With another section it is ended, and was asked already.
    until_up(&robot, 4);
    robot.home.run("restart camera --timeout 0");
    expect_asked(&robot, 4);
    robot.until("camera", |p| p["state"] == "ending");
    robot.write(&slow_to_end(2, ""));
    running = succeed(&robot, running, "ending what an earlier supervisor left: camera");
    expect_asked(&robot, 4);
    let_end(&robot);
    until_up(&robot, 5);
    drop(running);
    let_end(&robot);
    robot.expect_nothing_left();
}

/// It ran again, beside the core that it had been for.
#[test]
fn what_is_done_or_stopped_stays_so_where_something_runs_on() {
    let once = |level: u32| {
        format!(
            "[process.core]\nkind = 'core'\ncommand = {IDLE}\n\
             [process.camera]\ncommand = {IDLE}\nafter = 'homing'\n\
             [process.homing]\nrestart = 'never'\nenv = {{ LEVEL = {level} }}\n\
             command = ['sh', '-c', 'echo homed']\n"
        )
    };
    let robot = Robot::new("takeover-done", &once(1));
    let homed = |times| {
        until_said(&robot, "homing", "homed", times);
        robot.until("homing", |p| p["state"] == "done");
    };
    let mut running = robot.start();
    homed(1);
    robot.until_ready(&["core", "camera"]);
    robot.home.run("stop camera").expect(DONE);
    let core = robot.pid("core");
    running = succeed(&robot, running, "adopted core");
    robot.until_ready(&["core"]);
    robot.until("homing", |p| p["state"] == "done");
    let states = ["core", "homing", "camera"].map(|name| robot.process(name)["state"].clone());
    assert_eq!(states, ["ready", "done", "stopped"], "{}", robot.log("run"));
    assert_eq!((robot.pid("core"), robot.log("homing").matches("homed").count()), (core, 1));
    robot.until_log("run", "all others ready");
    robot.home.run("restart camera").expect(DONE);
    // A changed section is another process.
    robot.write(&once(2));
    running = succeed(&robot, running, "adopted core");
    homed(2);
    robot.until_ready(&["core", "camera"]);
    // For another core, and where nothing runs on, it is done again.
    for (nth, ended) in [(3, &["core"][..]), (4, &["core", "camera"])] {
        let pids: Vec<_> = ended.iter().map(|name| robot.pid(name)).collect();
        running.signal(libc::SIGKILL);
        drop(running);
        pids.iter().for_each(|pid| kill(*pid, libc::SIGKILL));
        while robot.marked().len() + ended.len() > 2 {
            sleep(Duration::from_millis(5));
        }
        running = robot.start();
        homed(nth);
        robot.until_ready(&["core", "camera"]);
    }
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// It was ended at once, and the robot with it: its time to become ready had long been over.
#[test]
fn a_core_that_was_ready_is_taken_over_as_ready_though_its_topic_is_gone() {
    let outlive = env!("CARGO_BIN_EXE_outlive");
    let core = |timeout: &str| {
        format!(
            "[process.core]\nkind = 'core'\n\
             ready = {{ topics = '/homed', timeout = '{timeout}' }}\n\
             command = ['sh', '-c', '(printf 12; while [ ! -e go ]; do sleep 0.02; done) | \
             {outlive} topic pub /homed --from-stdin --frame-bytes 2; echo homed; \
             while :; do sleep 0.05; done']\n"
        )
    };
    let robot = Robot::new("takeover-homed", &core("1h"));
    let running = robot.start();
    robot.until_ready(&["core"]);
    let pid = robot.pid("core");
    let_end(&robot);
    robot.until_log("core", "homed");
    running.signal(libc::SIGKILL);
    drop(running);
    robot.write(&core("1ms"));
    let mut running = robot.start();
    while robot.log("run").matches("all ready").count() < 2 {
        assert!(!running.is_over(), "{}", robot.log("run"));
        sleep(Duration::from_millis(5));
    }
    assert_eq!(robot.pid("core"), pid, "{}", robot.log("run"));
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// The time without a supervisor counted.
#[test]
fn one_that_is_not_ready_when_it_is_taken_over_has_all_its_time_once_more() {
    let text = |timeout: &str| {
        format!(
            "[process.camera]\ncommand = {IDLE}\n\
             ready = {{ nodes = 'arm', timeout = '{timeout}' }}\n"
        )
    };
    let robot = Robot::new("takeover-late", &text("1h"));
    let running = robot.start();
    robot.until("camera", |p| p["state"] == "starting");
    sleep(Duration::from_millis(1100));
    robot.write(&text("1s"));
    let running = succeed(&robot, running, "adopted camera");
    let log = robot.until_log("run", "camera is not ready after 1000 ms: no node arm");
    let at = |what: &str| -> f64 {
        let line = log.lines().find(|line| line.contains(what)).unwrap();
        line.split_once(' ').unwrap().0.parse().unwrap()
    };
    assert!(at("camera is not ready") - at("adopted camera") > 0.9, "{log}");
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}
