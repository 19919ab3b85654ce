//! When processes start, restart and end: readiness, heartbeats, limits, graces, a watched file.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::thread::sleep;
use std::time::Duration;

use common::robot::{IDLE, Robot, be_a_service, kill, publisher, service};
use common::{DONE, FAILED, NO_ROOM};
use serde_json::Value;

#[test]
fn who_comes_after_another_waits_until_that_ones_own_topic_is_there() {
    let outlive = env!("CARGO_BIN_EXE_outlive");
    let robot = Robot::new(
        "run-ready",
        &format!(
            "[process.viewer]\ncommand = {IDLE}\nafter = 'camera'\n\
             [process.camera]\nready.topics = '/camera'\n\
             command = ['sh', '-c', 'while [ ! -e go ]; do sleep 0.02; done; (echo 12; sleep 9999) \
             | exec {outlive} topic pub /camera --from-stdin --frame-bytes 2 --linger inf']\n"
        ),
    );
    let publish = "topic pub /camera --from-stdin --frame-bytes 2 --linger inf";
    let _stranger = robot.home.start(publish, b"12");
    let _running = robot.start();
    robot.until("camera", |p| p["state"] == "starting");
    // A topic of somebody else's makes nobody ready.
    while !robot.home.run("topic list").text().contains("/camera") {
        sleep(Duration::from_millis(10));
    }
    for _ in 0..5 {
        assert_eq!(robot.process("camera")["state"], "starting");
        let viewer = robot.process("viewer");
        assert!(viewer["state"] == "waiting" && viewer["pid"].is_null(), "{viewer}");
    }
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    robot.until_ready(&["camera", "viewer"]);
    // The log may come later than the state.
    let log = robot.until_log("run", "viewer started");
    let ready = log.find("camera ready after");
    assert!(ready.is_some() && ready < log.find("viewer started"), "{log}");
}

/// Only as a process of its own.
#[test]
fn a_service_of_the_robot() {
    be_a_service();
}

#[test]
fn a_service_that_is_stopped_or_has_no_node_misses_its_heartbeat() {
    let camera = service("camera");
    let robot = Robot::new(
        "run-pulse",
        &format!(
            "[process.camera]\n{camera}\
             ready.topics = '/camera'\nbackoff = {{ first = '10ms', limit = 1000 }}\n\
             heartbeat = {{ topics = '/camera', timeout = '2s' }}\n\
             [process.idle]\ncommand = {IDLE}\nheartbeat = {{ timeout = '300ms' }}\n\
             backoff = {{ first = '1ms', limit = 1 }}\n"
        ),
    );
    let _running = robot.start();
    robot.until_ready(&["camera"]);
    let pid = robot.pid("camera");
    kill(pid, libc::SIGSTOP);
    let again = robot.until_another("camera", pid);
    assert_eq!(again["last_end"], "was ended by SIGKILL, nothing on /camera for 2000 ms");
    robot.until("idle", |p| p["state"] == "failed");
    robot.until_log("run", "idle hangs (no live node for 300 ms): killed");
}

/// It counted as silence: every service with a heartbeat was killed.
#[test]
fn a_supervisor_that_cannot_look_takes_nobody_for_one_that_hangs() {
    let robot = Robot::new(
        "run-blind",
        &format!(
            "[process.camera]\n{}ready.topics = '/camera'\n\
             heartbeat = {{ topics = '/camera', timeout = '2s' }}\n",
            service("camera")
        ),
    );
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let pid = robot.pid("camera");
    let before = running.limit_descriptors(3);
    sleep(Duration::from_secs(5));
    running.limit_descriptors(before);
    let now = robot.process("camera");
    assert_eq!((&now["state"], now["pid"].as_i64()), (&"ready".into(), Some(pid)), "{now}");
    let log = robot.log("run");
    assert!(!log.contains("hangs"), "{log}");
    assert_eq!(log.matches("cannot read camera's state").count(), 1, "{log}");
    // One that hangs is noticed all the same.
    kill(pid, libc::SIGSTOP);
    let again = robot.until_another("camera", pid);
    assert_eq!(again["last_end"], "was ended by SIGKILL, nothing on /camera for 2000 ms");
}

/// One such look ended the detection of hangs for all processes, for good.
#[test]
fn one_that_hangs_is_noticed_beside_a_node_with_any_name_and_on_a_damaged_topic() {
    let robot = Robot::new(
        "run-sight",
        &format!(
            "[process.camera]\n{}ready.topics = '/camera'\n\
             heartbeat = {{ topics = '/camera', timeout = '2s' }}\n",
            service("camera")
        ),
    );
    let _running = robot.start();
    robot.until_ready(&["camera"]);
    // A process whose name is no text is a node, too.
    let program = robot.file.with_file_name(OsStr::from_bytes(b"\xff"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_outlive"), &program).unwrap();
    let mut stranger = testkit::spawn::spawn_program(&program);
    stranger.args(["topic", "pub", "/other", "--type", "u64", "7", "--linger", "inf"]);
    stranger.env("OUTLIVE_DIR", robot.home.root()).stdout(std::process::Stdio::null());
    let _stranger = robot.home.start_command(stranger);
    while !robot.home.run("topic list").text().contains("/other") {
        sleep(Duration::from_millis(10));
    }
    for nth in 1..=2 {
        robot.until_ready(&["camera"]);
        let pid = robot.pid("camera");
        if nth == 2 {
            let meta = robot.home.root().join("default/topics/camera/meta");
            fs::OpenOptions::new().write(true).open(meta).unwrap().set_len(0).unwrap();
        }
        kill(pid, libc::SIGSTOP);
        let hangs = "camera hangs (nothing on /camera for 2000 ms): killed";
        while robot.log("run").matches(hangs).count() < nth {
            let log = robot.log("run");
            assert!(!log.contains("cannot see"), "{log}");
            sleep(Duration::from_millis(10));
        }
        robot.until("camera", |p| p["pid"].as_i64() != Some(pid));
    }
}

/// Signals that it could not send were lost: what was to end ran on for ever, or its helpers did.
#[test]
fn a_supervisor_without_a_free_descriptor_ends_its_processes_all_the_same() {
    let robot = Robot::new(
        "run-full",
        &format!(
            "[process.polite]\ncommand = {IDLE}\n[process.deaf]\ngrace = '300ms'\n\
             command = ['sh', '-c', 'trap \"\" TERM; sleep 9999 & echo up; wait']\n\
             [process.pair]\ngrace = '1h'\n\
             command = ['sh', '-c', '(sleep 9999; :) & trap \"wait; exit\" TERM; echo up; wait']\n"
        ),
    );
    let running = robot.start();
    for name in ["deaf", "pair"] {
        robot.until_log(name, "up\n"); // the trap is set
    }
    robot.until_ready(&["polite", "deaf", "pair"]);
    let before = running.limit_descriptors(3);
    running.signal(libc::SIGTERM);
    while !robot.marked().is_empty() {
        sleep(Duration::from_millis(10));
    }
    robot.expect_nothing_left();
    running.limit_descriptors(before);
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// It was looked at from the next start on.
#[test]
fn a_heartbeat_that_a_changed_file_asks_for_is_looked_at_at_once() {
    let camera = service("camera");
    let old = format!("[process.camera]\n{camera}ready.topics = '/camera'\n");
    let robot = Robot::new("run-pulse-new", &old);
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let pid = robot.pid("camera");
    // A rule, then one more topic in it.
    let reload = |nth: usize, heartbeat: &str| {
        robot.write(&(old.clone() + heartbeat));
        running.signal(libc::SIGHUP);
        while robot.log("run").matches("the file is read again").count() < nth {
            sleep(Duration::from_millis(10));
        }
    };
    reload(1, "heartbeat = { timeout = '1s' }\n");
    reload(2, "heartbeat = { topics = '/camera', timeout = '1s' }\n");
    assert_eq!(robot.pid("camera"), pid);
    kill(pid, libc::SIGSTOP);
    let again = robot.until_another("camera", pid);
    assert_eq!(again["last_end"], "was ended by SIGKILL, nothing on /camera for 1000 ms");
}

#[test]
fn a_service_at_its_limit_stops_the_robot_where_it_is_to() {
    let robot = Robot::new(
        "run-limit",
        &format!(
            "[process.camera]\ncommand = {IDLE}\n\
             [process.planner]\ncommand = 'sh -c \"exit 3\"'\non_end = 'stop-robot'\n\
             backoff = {{ first = '1ms', max = '5ms', limit = 2 }}\n"
        ),
    );
    let ran = robot.start().end().expect(FAILED);
    let text = ran.text();
    assert!(text.contains("planner ended with code 3; given up: 2 restarts within 60 s"), "{text}");
    assert!(text.contains("stopping the robot: planner reached its limit"), "{text}");
    assert!(ran.err.contains("a core ended, or a service reached its limit"), "{}", ran.err);
    robot.expect_nothing_left();
}

#[test]
fn each_is_asked_with_its_own_signal_and_killed_after_its_grace() {
    let robot = Robot::new(
        "run-grace",
        "[process.polite]\nstop_signal = 'SIGUSR1'\ngrace = '1h'\ncommand = ['sh', '-c', \
         'trap \"echo asked; exit 0\" USR1; echo up; while :; do sleep 0.05; done']\n\
         [process.deaf]\ngrace = '300ms'\ncommand = ['sh', '-c', \
         'trap \"\" TERM; echo up; while :; do sleep 0.05; done']\n",
    );
    let running = robot.start();
    for name in ["polite", "deaf"] {
        robot.until_log(name, "up\n"); // the trap is set
    }
    running.signal(libc::SIGTERM);
    let ran = running.end().expect(DONE);
    assert!(robot.log("polite").ends_with("asked\n"));
    let text = ran.text();
    assert!(text.contains("polite ended with code 0"), "{text}");
    assert!(text.contains("deaf did not end within 300 ms: killed"), "{text}");
    robot.expect_nothing_left();
}

#[test]
fn a_watched_file_is_read_when_it_changes_and_a_wrong_one_changes_nothing() {
    let service = |name: &str, level: u32| {
        format!("[process.{name}]\ncommand = {IDLE}\nenv = {{ LEVEL = {level} }}\n")
    };
    let text = |services: &str| {
        format!("reload = 'watch'\n[process.core]\nkind = 'core'\ncommand = {IDLE}\n{services}")
    };
    let old = text(&(service("kept", 1) + &service("gone", 1) + &service("other", 1)));
    let robot = Robot::new("run-watch", &old);
    let _running = robot.start();
    robot.until_ready(&["core", "kept", "gone", "other"]);
    let pids = || ["core", "kept", "gone", "other"].map(|name| robot.pid(name));
    let before = pids();
    robot.write("reload = 'watch'\n[process.core]\ncomand = 'x'\n");
    let file = robot.file.display();
    robot.until_log("run", &format!("{file}:6:1: unknown key 'comand' in [process.core]: did you"));
    robot.until_log("run", "the changed file is wrong, nothing is changed");
    assert_eq!(pids(), before, "the old robot runs on");
    robot.write(&text(&(service("kept", 1) + &service("other", 2) + &service("new", 1))));
    robot.until_ready(&["new"]);
    robot.until_another("other", before[3]);
    robot.until("gone", Value::is_null);
    assert_eq!([robot.pid("core"), robot.pid("kept")], before[..2]);
    // Once more: the watch goes on.
    robot.write(&text(&publisher_of("seen")));
    robot.until_ready(&["seen"]);
    robot.until("new", Value::is_null);
    assert_eq!(robot.pid("core"), before[0]);
}

/// A section of a process that is ready when its topic is there.
fn publisher_of(name: &str) -> String {
    format!(
        "[process.{name}]\ncommand = {}\nready.topics = '/{name}'\n",
        publisher(&format!("/{name}"))
    )
}

/// They piled up with each restart.
#[test]
fn what_a_process_started_ends_with_it_also_outside_of_its_session() {
    let robot = Robot::new(
        "run-strays",
        "[process.parent]\nbackoff = { first = '1ms', max = '1ms', limit = 1000 }\n\
         command = ['sh', '-c', 'setsid sleep 7777 & setsid env -i sleep 7778 & echo up; \
         while :; do sleep 0.05; done']\n",
    );
    // Of this robot: their working directory is that of the file.
    let dir = robot.file.parent().unwrap().canonicalize().unwrap();
    let strays = |what: &str| {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let is = |path: std::path::PathBuf| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            line == format!("sleep\0{what}\0").into_bytes()
                && fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == dir)
        };
        all.filter(|entry| is(entry.path())).count()
    };
    let running = robot.start();
    robot.until_ready(&["parent"]);
    for _ in 0..5 {
        while strays("7777") < 1 || strays("7778") < 1 {
            sleep(Duration::from_millis(5));
        }
        let pid = robot.pid("parent");
        kill(pid, libc::SIGKILL);
        robot.until_another("parent", pid);
        assert!(strays("7777") <= 1, "{} helpers", strays("7777"));
    }
    // Without marks it is found where there are cgroups.
    let group = fs::read_to_string(format!("/proc/{}/cgroup", robot.pid("parent"))).unwrap();
    let in_group = group.contains("/outlive-run.");
    println!("cgroups of its own: {in_group}; helpers without marks: {}", strays("7778"));
    assert!(!in_group || strays("7778") <= 1, "{} helpers without marks", strays("7778"));
    running.signal(libc::SIGTERM);
    running.end().expect(common::DONE);
    assert_eq!(strays("7777"), 0);
    assert!(!in_group || strays("7778") == 0);
    // Where there are none, the test ends them itself.
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i64>() else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line == b"sleep\x007778\0"
            && fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir)
        {
            kill(pid, libc::SIGKILL);
        }
    }
}

/// Ends once `go` is there, however often it is asked.
fn slow_to_end(name: &str, level: u32, grace: &str) -> String {
    format!(
        "[process.{name}]\nenv = {{ LEVEL = {level} }}\ngrace = '{grace}'\ncommand = ['sh', '-c', \
         'trap \"echo asked\" TERM; echo up; while [ ! -e go ]; do sleep 0.02; done; exit 0']\n"
    )
}

/// A changed section started it again.
#[test]
fn one_that_is_being_stopped_stays_down_though_its_section_changes() {
    let robot = Robot::new("run-stopping", &slow_to_end("camera", 1, "1h"));
    let running = robot.start();
    robot.until_log("camera", "up\n");
    robot.home.run("stop camera --timeout 0").expect(DONE);
    robot.until_log("camera", "asked\n");
    robot.home.run("stop camera --timeout 0").expect(DONE);
    robot.write(&slow_to_end("camera", 2, "1h"));
    running.signal(libc::SIGHUP);
    robot.until_log("run", "the file is read again");
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    let log = robot.until_log("run", "camera ended with code 0; ");
    assert!(log.contains("camera ended with code 0; stopped"), "{log}");
    robot.until("camera", |p| p["state"] == "stopped");
    let log = robot.log("camera");
    assert_eq!(log.matches("asked").count(), 1, "{log}");
    // The wish that came last holds.
    fs::remove_file(robot.file.with_file_name("go")).unwrap();
    robot.home.run("restart camera").expect(DONE);
    while robot.log("camera").matches("up\n").count() < 2 {
        sleep(Duration::from_millis(5));
    }
    let old = robot.pid("camera");
    robot.home.run("stop camera --timeout 0").expect(DONE);
    robot.home.run("restart camera --timeout 0").expect(DONE);
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    robot.until_log("run", "camera ended with code 0; starting it again");
    robot.until("camera", |p| p["pid"].as_i64() != Some(old));
}

/// Each reload asked it again, and its grace began anew: it was never killed.
#[test]
fn one_that_is_ending_is_killed_after_its_grace_however_often_the_file_is_read() {
    let other = format!("[process.other]\ncommand = {IDLE}\n");
    let robot = Robot::new("run-reloads", &(slow_to_end("deaf", 1, "700ms") + &other));
    let running = robot.start();
    robot.until_log("deaf", "up\n");
    robot.until_ready(&["other"]);
    robot.write(&other);
    while !robot.log("run").contains("deaf did not end within 700 ms: killed") {
        running.signal(libc::SIGHUP);
        sleep(Duration::from_millis(50));
    }
    robot.until_log("run", "it is no longer in the file");
    let log = robot.log("deaf");
    assert_eq!(log.matches("asked").count(), 1, "{log}");
}

/// It had begun and ended between two looks: that it was done counted as the end before.
#[test]
fn one_that_ends_at_once_is_restarted_by_hand() {
    let robot = Robot::new(
        "run-short",
        &format!(
            "[process.other]\ncommand = {IDLE}\n\
             [process.once]\ncommand = 'true'\nrestart = 'never'\n"
        ),
    );
    let _running = robot.start();
    for _ in 0..5 {
        robot.until("once", |p| p["state"] == "done");
        let told = robot.home.run("restart once --timeout inf").expect(DONE);
        assert!(told.text().starts_with("once "), "{}", told.text());
    }
}

/// It panicked; then its code was that of a robot that people have to look at.
#[test]
fn without_a_thread_it_says_so_and_starts_nothing() {
    let robot = Robot::new("run-thread", &format!("[process.camera]\ncommand = {IDLE}\n"));
    let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
    // No such stack fits into the addresses of a process.
    command.env("RUST_MIN_STACK", (1u64 << 50).to_string());
    let told = robot.home.start_command(command).end().expect(NO_ROOM).err;
    assert!(told.contains("start a thread: "), "{told}");
    robot.expect_nothing_left();
}

/// It was left out for good, and those after it went ahead.
#[test]
fn a_new_process_starts_once_there_is_a_descriptor_for_its_log() {
    let idle = |name: &str, more: &str| format!("[process.{name}]\ncommand = {IDLE}\n{more}");
    let text = |more: &str| format!("reload = 'watch'\n{}{more}", idle("old", ""));
    let robot = Robot::new("run-logs-new", &text(""));
    let running = robot.start();
    robot.until_ready(&["old"]);
    robot.until_log("run", "all ready");
    sleep(Duration::from_millis(300)); // whoever asked is gone
    let open = fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().flatten();
    let open: Vec<u64> = open.map(|fd| fd.file_name().to_string_lossy().parse().unwrap()).collect();
    // One is left, for the file and the first log.
    let second = (0..).filter(|fd| !open.contains(fd)).nth(1).unwrap();
    let before = running.limit_descriptors(second);
    let all = [idle("one", ""), idle("two", ""), idle("three", "after = 'two'\n")];
    robot.write(&text(&all.concat()));
    let log = robot.until_log("run", "cannot open the log of two: Too many open files");
    assert!(!log.contains("is read again") && !log.contains("is new"), "{log}");
    running.limit_descriptors(before);
    robot.until_ready(&["one", "two", "three"]);
    let log = robot.until_log("run", "three started");
    assert!(log.find("two started") < log.find("three started"), "{log}");
}
