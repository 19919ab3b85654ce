//! `outlive run` and those that speak to it, with real processes.

mod common;

use std::thread::sleep;
use std::time::Duration;

use common::robot::{IDLE, Robot, kill, publisher};
use common::{DONE, FAILED, Home, NOT_FOUND, USAGE};
use serde_json::Value;
use testkit::Rng;

#[test]
fn processes_start_in_order_and_stop_in_reverse_and_nothing_is_left() {
    let (camera, viewer) = (publisher("/camera"), publisher("/view"));
    // The core's helper leaves the session: it is found all the same.
    let robot = Robot::new(
        "run-order",
        &format!(
            "[process.viewer]\ncommand = {viewer}\nafter = 'camera'\nready.topics = ['/view']\n\
             [process.camera]\ncommand = {camera}\nafter = 'core'\nready.topics = ['/camera']\n\
             [process.core]\nkind = 'core'\n\
             command = ['sh', '-c', 'setsid sleep 9999 & while :; do sleep 0.05; done']\n"
        ),
    );
    let running = robot.start();
    robot.until_ready(&["core", "camera", "viewer"]);
    let text = robot.home.run("ps").expect(DONE).text().to_owned();
    assert!(text.starts_with("NAME    KIND     STATE"), "{text}");
    // As timeout(1) sends one request.
    running.signal(libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(20));
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
    let log = robot.log("run");
    assert!(!log.contains("asked twice"), "{log}");
    let at = |what: &str| log.find(what).unwrap_or_else(|| panic!("{what} not in\n{log}"));
    assert!(at("core started") < at("camera started"));
    assert!(at("camera ready") < at("viewer started"));
    assert!(at("viewer was ended by") < at("camera was ended by"));
    assert!(at("camera was ended by") < at("core was ended by"));
    assert!(log.contains("nothing runs any more"));
    robot.home.run("ps").expect(NOT_FOUND);
}

/// It named neither where it looked nor where a robot runs.
#[test]
fn who_asks_a_domain_without_a_robot_is_told_of_those_with_one() {
    let robot = Robot::new("run-elsewhere", &format!("[process.camera]\ncommand = {IDLE}\n"));
    let root = robot.home.root().display().to_string();
    let told = |args: &str, there: &str| {
        let ran = robot.home.run(&format!("{args} --domain arm")).expect(NOT_FOUND);
        let said = format!("outlive: no robot runs in domain arm ({root}/arm){there}\n");
        assert_eq!(ran.err, said, "{args}");
    };
    told("ps", &format!(", nor in another of {root}: start one with 'outlive run robot.toml'"));
    let _running = robot.start();
    robot.until_ready(&["camera"]);
    for args in ["ps", "stop", "stop camera", "logs camera", "restart camera"] {
        told(args, "; domain default has one: give --domain default");
    }
}

#[test]
fn a_killed_service_restarts_and_a_crash_loop_ends_at_its_limit() {
    let robot = Robot::new(
        "run-restart",
        &format!(
            "[process.core]\nkind = 'core'\ncommand = {IDLE}\n\
             [process.camera]\ncommand = {IDLE}\nbackoff.first = '10ms'\n\
             [process.broken]\ncommand = 'sh -c \"exit 3\"'\nready.topics = '/never'\n\
             backoff = {{ first = '5ms', max = '20ms', limit = 4, within = '60s' }}\n\
             [process.missing]\ncommand = '/nonexistent/program'\nbackoff.limit = 0\n"
        ),
    );
    let _running = robot.start();
    robot.until_ready(&["core", "camera"]);
    let (core, camera) = (robot.pid("core"), robot.pid("camera"));
    kill(camera, libc::SIGKILL);
    let again = robot.until_another("camera", camera);
    assert_eq!(again["restarts"], 1);
    assert_eq!(again["last_end"], "was ended by SIGKILL");
    let broken = robot.until("broken", |p| p["state"] == "failed");
    assert_eq!(broken["restarts"], 4);
    let log = robot.until_log("run", "given up: 4 restarts within 60 s");
    assert!(log.contains("broken ended with code 3; restart 4 of 4 in "), "{log}");
    assert!(log.contains("cannot run /nonexistent/program: No such file"), "{log}");
    // By hand it begins anew.
    robot.home.run("restart broken --timeout 5").expect(FAILED);
    assert!(robot.process("broken")["restarts"].as_i64().unwrap() > 4);
    let told = robot.home.run("restart core");
    assert!(told.code == Some(USAGE) && told.err.contains("is a running core"), "{}", told.err);
    let told = robot.home.run("stop nobody").expect(USAGE).err;
    assert!(told.contains("there are core, camera, broken"), "{told}");
    let ran = robot.home.run("restart camera").expect(DONE);
    assert!(ran.text().starts_with("camera ready (pid "));
    robot.home.run("stop camera").expect(DONE);
    assert_eq!(robot.process("camera")["state"], "stopped");
    assert_eq!(robot.pid("core"), core, "nothing of this touches the core");
    assert!(robot.home.run("logs camera").expect(DONE).text().ends_with("up\n"));
}

/// It said "ready", without a pid, until the supervisor had seen the end.
#[test]
fn ps_calls_nobody_ready_who_has_ended() {
    let robot = Robot::new(
        "run-ps",
        &format!("[process.camera]\ncommand = {IDLE}\nbackoff.first = '10ms'\n"),
    );
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let mut pid = robot.pid("camera");
    // A supervisor that stands still sees nothing.
    running.stop();
    kill(pid, libc::SIGKILL);
    let told = robot.until("camera", |p| p["pid"].is_null());
    assert_eq!(told["state"], "ended", "{told}");
    let ran = robot.home.run("ps").expect(DONE);
    assert!(ran.text().contains(" ended "), "{}", ran.text());
    assert!(ran.err.contains("does not answer; this is its last report"), "{}", ran.err);
    running.signal(libc::SIGCONT);
    for _ in 0..5 {
        let now = robot.until("camera", |p| {
            assert!(p["state"] != "ready" || p["pid"].is_i64(), "{p}");
            p["state"] == "ready" && p["pid"] != pid
        });
        pid = now["pid"].as_i64().unwrap();
        kill(pid, libc::SIGKILL);
    }
}

/// They waited for 5 or 10 s whatever --timeout said, ended with 1, and did not say whose fault it
/// was.
#[test]
fn a_supervisor_that_stands_still_is_not_waited_for_longer_than_asked() {
    let robot = Robot::new("run-silent", &format!("[process.camera]\ncommand = {IDLE}\n"));
    let running = robot.start();
    robot.until_ready(&["camera"]);
    robot.until_log("camera", "up");
    let camera = robot.pid("camera");
    running.stop();
    let expect = |args: &str, says: &str| {
        let told = robot.home.run(args).expect(NOT_FOUND).err;
        let pid = running.id();
        assert!(told.contains(&format!("the supervisor (pid {pid}) does not answer")), "{told}");
        assert!(told.contains(&format!("'kill -CONT {pid}'")), "{told}");
        assert!(told.contains(says) && told.lines().count() == 1, "{told}");
    };
    expect("restart camera --timeout 0", "camera was not restarted");
    expect("restart camera --timeout 1.5", "camera was not restarted");
    expect("stop camera --timeout 0", "it may still do what it was asked");
    expect("stop --timeout 0", "it may still do what it was asked");
    // It does not have to answer for that.
    let logs = robot.home.run("logs camera").expect(DONE);
    assert_eq!((logs.text(), logs.err.as_str()), ("up\n", ""));
    assert_eq!(robot.home.run("logs nobody").expect(USAGE).text(), "");
    assert_eq!(robot.pid("camera"), camera, "nothing was done all the while");
    running.signal(libc::SIGCONT);
    running.end().expect(DONE);
    let log = robot.log("run");
    assert!(
        !log.contains("to be started again") && log.contains("camera is asked to end"),
        "{log}"
    );
}

#[test]
fn the_end_of_a_core_stops_the_robot() {
    let robot = Robot::new(
        "run-core",
        &format!(
            "[process.core]\nkind = 'core'\ncommand = {IDLE}\n\
             [process.camera]\ncommand = {IDLE}\nafter = 'core'\n"
        ),
    );
    let running = robot.start();
    robot.until_ready(&["core", "camera"]);
    kill(robot.pid("core"), libc::SIGKILL);
    let ran = running.end().expect(FAILED);
    assert!(ran.text().contains("stopping the robot: core core was ended by SIGKILL"));
    assert!(ran.text().contains("camera | up"));
    robot.expect_nothing_left();
}

#[test]
fn a_service_that_hangs_is_killed_and_restarted() {
    let camera = publisher("/camera");
    let robot = Robot::new(
        "run-heartbeat",
        &format!(
            "[process.camera]\ncommand = {camera}\nready.topics = '/camera'\n\
             backoff.first = '10ms'\nheartbeat = {{ topics = '/camera', timeout = '300ms' }}\n\
             [process.late]\ncommand = {IDLE}\nready = {{ nodes = 'never', timeout = '50ms' }}\n\
             backoff.limit = 1\n"
        ),
    );
    let _running = robot.start();
    // It publishes once and then no more.
    robot.until("camera", |p| p["restarts"].as_i64() > Some(0));
    robot.until_log("run", "camera hangs (nothing on /camera for 300 ms): killed");
    robot.until("late", |p| p["state"] == "failed");
    robot.until_log("run", "late is not ready after 50 ms: no node never");
}

#[test]
fn a_changed_file_starts_stops_and_restarts() {
    let text = |more: &str| format!("[process.core]\nkind='core'\ncommand={IDLE}\n{more}");
    let service = |name: &str, env: &str| {
        format!("[process.{name}]\ncommand = {IDLE}\nenv = {{ LEVEL = '{env}' }}\n")
    };
    let old = text(&(service("kept", "1") + &service("gone", "1") + &service("other", "1")));
    let robot = Robot::new("run-reload", &old);
    let running = robot.start();
    robot.until_ready(&["core", "kept", "gone", "other"]);
    let (core, kept, other) = (robot.pid("core"), robot.pid("kept"), robot.pid("other"));
    robot.write("[process.core]\ncomand = 'x'\n");
    running.signal(libc::SIGHUP);
    robot.until_log("run", "unknown key 'comand'");
    assert_eq!(robot.pid("kept"), kept, "a wrong file changes nothing");
    robot.write(&text(&(service("kept", "1") + &service("other", "2") + &service("new", "1"))));
    running.signal(libc::SIGHUP);
    robot.until_ready(&["new"]);
    robot.until_another("other", other);
    robot.until("gone", Value::is_null);
    assert_eq!((robot.pid("core"), robot.pid("kept")), (core, kept));
}

#[test]
fn a_wrong_file_is_told_with_line_and_column() {
    let robot = Robot::new("run-config", "[process.a]\ncommand = 'true'\nkind = 'sevice'\n");
    let file = robot.file.display();
    let ran = robot.home.run(&format!("run {file} --check")).expect(USAGE);
    let expect = format!("{file}:6:8: 'kind' in [process.a] is unknown: did you mean \"service\"?");
    assert!(ran.err.contains(&expect), "{}", ran.err);
    robot.write("[process.a]\ncommand = 'true'\n");
    let ran = robot.home.run(&format!("run {file} --check")).expect(DONE);
    assert_eq!(ran.text(), "robot is valid: starts a\n");
    robot.home.run("ps").expect(NOT_FOUND);
    robot.home.run("stop").expect(NOT_FOUND);
    robot.home.run("run /nonexistent.toml").expect(USAGE);
}

#[test]
fn a_second_supervisor_is_refused() {
    let robot = Robot::new("run-second", &format!("[process.a]\ncommand = {IDLE}\n"));
    let _running = robot.start();
    robot.until_ready(&["a"]);
    let ran = robot.start().end().expect(FAILED);
    assert!(ran.err.contains("another 'outlive run' has"), "{}", ran.err);
    robot.until_ready(&["a"]);
}

#[test]
fn a_relative_directory_is_the_same_for_all_of_the_robot() {
    let camera = publisher("/camera");
    let robot = Robot::new(
        "run-relative",
        &format!(
            "[process.camera]\ncommand = {camera}\nready.topics = '/camera'\ndir = '/'\n\
             [process.core]\nkind = 'core'\ncommand = {IDLE}\n"
        ),
    );
    let file = robot.file.display().to_string();
    let mut command = robot.home.outlive(&format!("run {file} --root ./root"));
    let mut child = command.current_dir(robot.file.parent().unwrap()).spawn().unwrap();
    robot.until_ready(&["camera", "core"]);
    assert_eq!(robot.marked().len(), 2, "the marks name the directory by its whole path");
    child.kill().unwrap();
    child.wait().unwrap();
    robot.home.run("stop").expect(DONE);
    robot.expect_nothing_left();
}

/// The supervisor is killed at random instants, from the first one on. `OUTLIVE_RUN_KILLS` says
/// how often.
#[test]
fn whatever_a_killed_supervisor_left_the_next_one_finds() {
    let kills = std::env::var("OUTLIVE_RUN_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    // A kill and a start take a second, on an emulated machine ten or twenty.
    let robot = Robot::at(
        Home::lasting("run-killed", Duration::from_secs(60 + 30 * kills)),
        &format!(
            "[process.core]\nkind = 'core'\ncommand = {IDLE}\n\
             [process.camera]\ncommand = {IDLE}\nafter = 'core'\n\
             [process.tied]\ncommand = {IDLE}\non_supervisor_death = 'kill'\n\
             [process.polite]\ncommand = {IDLE}\non_supervisor_death = 'stop'\n\
             [process.drives]\nkind = 'core'\non_supervisor_death = 'stop'\n\
             command = ['sh', '-c', 'trap \"echo safe; exit 0\" TERM; echo moving; while :; \
             do sleep 0.02; done']\n\
             [process.churn]\ncommand = 'sleep 0.01'\n\
             backoff = {{ first = '1ms', max = '1ms', limit = 1000000 }}\n"
        ),
    );
    let seed = testkit::Rng::new(u64::from(std::process::id())).next_u64();
    let mut rng = Rng::new(seed);
    let (mut adopted, mut early, mut stopped) = (0, 0, 0);
    for n in 0..kills {
        let running = robot.start();
        sleep(Duration::from_micros(rng.next_u64() % 60_000));
        running.signal(libc::SIGKILL);
        drop(running);
        // Those that are tied to it go by themselves.
        let is_tied =
            |(name, _): &(String, i32)| ["tied", "polite", "drives"].contains(&name.as_str());
        while robot.marked().iter().any(is_tied) {
            sleep(Duration::from_millis(1));
        }
        // A core that is to stop with its supervisor reaches its safe state, if it ever moved.
        let mut drives = robot.log("drives");
        let count = |text: &str, what| text.matches(what).count();
        for _ in 0..500 {
            // Its last word is on its way to the disk.
            if count(&drives, "moving") == count(&drives, "safe") {
                break;
            }
            sleep(Duration::from_millis(10));
            drives = robot.log("drives");
        }
        let (moved, safe) = (count(&drives, "moving"), count(&drives, "safe"));
        assert_eq!(moved, safe, "seed {seed}, kill {n}: {drives}");
        stopped = safe;
        let left = robot.marked();
        let cores: Vec<_> = left.iter().filter(|(name, _)| name == "core").collect();
        assert!(cores.len() <= 1, "seed {seed}, kill {n}: {left:?}");
        // `ps` never says that nothing runs while something does.
        if left.iter().any(|(name, _)| name == "core") {
            let told = robot.home.run("ps");
            assert_ne!(told.code, Some(DONE), "seed {seed}, kill {n}: {left:?}");
        }

        let next = robot.start();
        robot.until_ready(&["core", "camera", "tied", "polite", "drives"]);
        let now: Vec<_> = robot.marked().into_iter().filter(|(name, _)| name != "churn").collect();
        let mut shown: Vec<_> = ["camera", "core", "drives", "polite", "tied"]
            .map(|name| (name.to_owned(), robot.pid(name) as i32))
            .into();
        shown.sort();
        assert_eq!(now, shown, "seed {seed}, kill {n}: each runs once, and is known");
        for name in ["core", "camera"] {
            match left.iter().find(|(of, _)| of == name) {
                Some(left) => {
                    adopted += 1;
                    assert!(now.contains(left), "seed {seed}, kill {n}: {name} is adopted");
                }
                None => early += 1,
            }
        }
        if rng.next_u64() % 3 == 0 {
            next.signal(libc::SIGTERM);
            next.end().expect(DONE);
            robot.expect_nothing_left();
        }
        // Else it dies here with its handle, and leaves all that to the next.
    }
    println!(
        "supervisor kills: {kills} (seed {seed}): {adopted} adopted, {early} too early, \
         a core stopped safely {stopped} times"
    );
    robot.home.run("stop");
    robot.expect_nothing_left();
}
