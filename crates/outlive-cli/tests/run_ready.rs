//! Who never becomes ready, or late, or dies before: it is told and handled as the file says, and
//! those that come after it wait. And a watched file that is not simply written.

mod common;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::thread::sleep;
use std::time::Duration;

use common::robot::{IDLE, Robot, kill};
use common::{DONE, FAILED, Running};

/// A process that publishes once the file `fine` is there when it starts.
fn picky() -> String {
    let outlive = env!("CARGO_BIN_EXE_outlive");
    format!(
        "['sh', '-c', 'if [ -e fine ]; then (echo 12; sleep 9999) | exec {outlive} topic pub \
         /camera --from-stdin --frame-bytes 2 --linger inf; fi; while :; do sleep 0.05; done']"
    )
}

/// With a service manager that hears it.
fn with_manager(robot: &Robot) -> (Running, UnixDatagram) {
    let path = robot.file.with_file_name("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
    command.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", "20000");
    (robot.home.start_command(command), manager)
}

fn hear(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 100];
    let n = manager.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

#[test]
fn a_service_that_is_never_ready_is_given_up_and_nobody_after_it_starts_until_it_is_mended() {
    let text = |ready: &str| {
        format!(
            "reload = 'watch'\n[process.camera]\ncommand = {}\nready = {{ topics = '/camera', \
             {ready} }}\nbackoff = {{ first = '1ms', max = '5ms', limit = 2 }}\n\
             [process.viewer]\ncommand = {IDLE}\nafter = 'camera'\n\
             [process.other]\ncommand = {IDLE}\n",
            picky()
        )
    };
    let robot = Robot::new("run-never", &text("timeout = '50ms'"));
    let (_running, manager) = with_manager(&robot);
    let camera = robot.until("camera", |p| p["state"] == "failed");
    assert_eq!(camera["restarts"], 2);
    let late = "not ready after 50 ms: no topic /camera";
    let end = camera["last_end"].as_str().unwrap();
    assert!(end.ends_with(late), "{end}");
    let log = robot.until_log("run", "given up: 2 restarts within 60 s");
    assert_eq!(log.matches(&format!("camera is {late}")).count(), 3, "{log}");
    robot.until_ready(&["other"]);
    let viewer = robot.process("viewer");
    assert!(viewer["state"] == "waiting" && viewer["pid"].is_null(), "{viewer}");
    assert!(!log.contains("viewer started"), "{log}");
    // What was heard so far: not that all is ready.
    let status = "STATUS=camera failed, viewer waiting";
    let mut heard = String::new();
    while heard != status {
        heard = hear(&manager);
        assert_ne!(heard, "READY=1");
    }
    // And the next turns: who is ready is not to be stopped for it, so more time is asked for.
    for text in ["WATCHDOG=1", "EXTEND_TIMEOUT_USEC=20000"].repeat(3) {
        while heard != text {
            heard = hear(&manager);
            assert_ne!(heard, "READY=1", "camera is not ready");
        }
    }

    // What it lacked is there, and the file gives it more time: it begins anew.
    fs::write(robot.file.with_file_name("fine"), "").unwrap();
    let (other, text) = (robot.pid("other"), text("timeout = '1h'"));
    robot.write(&text);
    robot.until_ready(&["camera", "viewer"]);
    while hear(&manager) != "READY=1" {}
    assert_eq!(robot.pid("other"), other);
    let log = robot.log("run");
    assert!(log.find("camera ready after") < log.find("viewer started"), "{log}");
}

#[test]
fn one_that_is_late_or_dies_is_tried_again_and_those_after_it_wait_for_the_one_that_is_ready() {
    // The first one dies, the second hangs, the third publishes.
    let outlive = env!("CARGO_BIN_EXE_outlive");
    let robot = Robot::new(
        "run-third",
        &format!(
            "[process.camera]\nready = {{ topics = '/camera', timeout = '3s' }}\n\
             backoff = {{ first = '1ms', max = '5ms', limit = 1000 }}\n\
             command = ['sh', '-c', 'echo >> tries; case $(wc -l < tries) in 1) exit 7;; \
             2) while :; do sleep 0.05; done;; *) (echo 12; sleep 9999) | exec {outlive} \
             topic pub /camera --from-stdin --frame-bytes 2 --linger inf;; esac']\n\
             [process.viewer]\ncommand = {IDLE}\nafter = 'camera'\n"
        ),
    );
    let _running = robot.start();
    robot.until_ready(&["camera", "viewer"]);
    let log = robot.log("run");
    let at = |what: &str| log.find(what).unwrap_or_else(|| panic!("{what} not in\n{log}"));
    let first = at("camera ended with code 7; restart 1 of 1000 in ");
    let second = at("camera is not ready after 3000 ms: no topic /camera");
    assert!(first < second && second < at("camera ready after"), "{log}");
    assert!(at("camera ready after") < at("viewer started"), "{log}");
    assert_eq!(log.matches("viewer started").count(), 1);
    // Who comes after it goes on when it dies later.
    let (camera, viewer) = (robot.pid("camera"), robot.pid("viewer"));
    kill(camera, libc::SIGKILL);
    robot.until_another("camera", camera);
    assert_eq!(robot.pid("viewer"), viewer);
}

#[test]
fn one_that_is_not_ready_and_does_not_listen_is_killed_after_its_grace() {
    let robot = Robot::new(
        "run-deaf",
        "[process.camera]\ngrace = '100ms'\nready = { services = '/shoot', timeout = '300ms' }\n\
         backoff = { first = '1ms', max = '5ms', limit = 1000 }\n\
         command = ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.05; done']\n",
    );
    let _running = robot.start();
    robot.until_log("run", "camera is not ready after 300 ms: no service /shoot");
    robot.until_log("run", "camera did not end within 100 ms: killed");
    let end = "was ended by SIGKILL, not ready after 300 ms: no service /shoot";
    robot.until("camera", |p| p["last_end"] == end);
}

#[test]
fn who_ends_well_when_it_is_ended_for_never_being_ready_has_failed_all_the_same() {
    let polite = "command = ['sh', '-c', 'trap \"exit 0\" TERM; while :; do sleep 0.02; done']\n\
                  ready = { nodes = 'arm', timeout = '300ms' }\n";
    let text = format!(
        "[process.first]\nrestart = 'on-failure'\n{polite}\
         backoff = {{ first = '1ms', max = '5ms', limit = 1 }}\n\
         [process.viewer]\ncommand = {IDLE}\nafter = 'first'\n"
    );
    let robot = Robot::new("run-polite", &text);
    let _running = robot.start();
    let first = robot.until("first", |p| p["state"] == "failed");
    assert_eq!(first["restarts"], 1);
    assert_eq!(robot.process("viewer")["state"], "waiting");

    let robot = Robot::new("run-polite-core", &format!("[process.first]\nkind = 'core'\n{polite}"));
    robot.start().end().expect(FAILED);
}

#[test]
fn a_core_that_is_never_ready_stops_the_robot_and_a_service_does_where_it_is_to() {
    for (label, section, told) in [
        (
            "run-core-late",
            "kind = 'core'\n",
            "core first was ended by SIGTERM, not ready after 50 ms: no node arm",
        ),
        (
            "run-service-late",
            "on_end = 'stop-robot'\nbackoff.limit = 0\n",
            "first reached its limit",
        ),
    ] {
        let robot = Robot::new(
            label,
            &format!(
                "[process.first]\ncommand = {IDLE}\n{section}\
                 ready = {{ nodes = 'arm', timeout = '50ms' }}\n\
                 [process.viewer]\ncommand = {IDLE}\nafter = 'first'\n"
            ),
        );
        let ran = robot.start().end().expect(FAILED);
        let text = ran.text();
        assert!(text.contains("first is not ready after 50 ms: no node arm"), "{text}");
        assert!(text.contains(&format!("stopping the robot: {told}")), "{text}");
        assert!(!text.contains("viewer started"), "{text}");
        robot.expect_nothing_left();
    }
}

#[test]
fn a_watched_file_may_be_replaced_or_away_for_a_while_and_may_end_the_watch() {
    let service = |name: &str, level: u32| {
        format!("[process.{name}]\ncommand = {IDLE}\nenv = {{ LEVEL = {level} }}\n")
    };
    let head = "[robot]\nlogs = 'logs'\ngrace = '2s'\nreload = 'watch'\n";
    let robot = Robot::new("run-replaced", "");
    let text = |services: &str| format!("{head}{services}");
    fs::write(&robot.file, text(&(service("kept", 1) + &service("other", 1)))).unwrap();
    let _running = robot.start();
    robot.until_ready(&["kept", "other"]);
    let (kept, mut other) = (robot.pid("kept"), robot.pid("other"));

    // As editors do: another file takes its name.
    let next = robot.file.with_file_name("next.toml");
    fs::write(&next, text(&(service("kept", 1) + &service("other", 2)))).unwrap();
    fs::rename(&next, &robot.file).unwrap();
    other = robot.until_another("other", other)["pid"].as_i64().unwrap();

    // Gone for a while: all runs on. Back with another process: that one is started.
    fs::remove_file(&robot.file).unwrap();
    let asked = robot.log("run").matches("the file is read again").count();
    for _ in 0..30 {
        sleep(Duration::from_millis(10));
        assert_eq!((robot.pid("kept"), robot.pid("other")), (kept, other));
    }
    assert_eq!(robot.log("run").matches("the file is read again").count(), asked);
    let whole = text(&(service("kept", 1) + &service("other", 2) + &service("new", 1)));
    fs::write(&robot.file, whole).unwrap();
    robot.until_ready(&["new"]);
    assert_eq!((robot.pid("kept"), robot.pid("other")), (kept, other));

    // The watch itself can be ended by the file, and then only a signal reads it.
    let quiet = |services: &str| {
        format!("[robot]\nlogs = 'logs'\ngrace = '2s'\nreload = 'signal'\n{services}")
    };
    fs::write(&robot.file, quiet(&service("kept", 1))).unwrap();
    for gone in ["new", "other"] {
        robot.until(gone, serde_json::Value::is_null);
    }
    let asked = || robot.log("run").matches(" file is ").count();
    let before = asked();
    fs::write(&robot.file, quiet("[process.kept]\ncomand = 1\n")).unwrap();
    for _ in 0..60 {
        sleep(Duration::from_millis(10));
        assert_eq!(robot.pid("kept"), kept);
    }
    assert_eq!(asked(), before, "nobody asked for it: {}", robot.log("run"));
    robot.home.run("stop").expect(DONE);
}

/// It ended, and was gone.
#[test]
fn a_section_that_comes_back_while_its_process_ends_is_started_again() {
    let other = format!("[process.other]\ncommand = {IDLE}\n");
    let slow = "[process.slow]\ngrace = '1h'\ncommand = ['sh', '-c', 'trap \"while [ ! -e go ]; do \
                sleep 0.02; done; exit 0\" TERM; echo up; while :; do sleep 0.05; done']\n";
    let robot = Robot::new("run-back", &format!("{other}{slow}"));
    let running = robot.start();
    robot.until_log("slow", "up\n"); // the trap is set
    let pid = robot.pid("slow");
    let reload = |nth: usize, text: &str| {
        robot.write(text);
        running.signal(libc::SIGHUP);
        while robot.log("run").matches("the file is read again").count() < nth {
            sleep(Duration::from_millis(10));
        }
    };
    reload(1, &other);
    robot.until("slow", |p| p["state"] == "ending");
    reload(2, &format!("{other}{slow}"));
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    robot.until("slow", |p| {
        assert!(!p.is_null(), "it is gone: {}", robot.log("run"));
        p["state"] == "ready" && p["pid"].as_i64() != Some(pid)
    });
}

/// A change of the domain was passed over in silence.
#[test]
fn what_a_changed_file_cannot_change_at_once_is_said() {
    let section = format!("[process.camera]\ncommand = {IDLE}\n");
    let robot = Robot::new("run-later", &section);
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let pid = robot.pid("camera");
    robot.write(&format!("domain = 'another'\n{section}"));
    running.signal(libc::SIGHUP);
    let log = robot.until_log("run", "the file is read again");
    assert!(!log.contains("another directory of logs"), "{log}");
    robot.until_log("run", "another domain is used from the next start on");
    fs::write(&robot.file, format!("[robot]\nlogs = 'elsewhere'\n{section}")).unwrap();
    running.signal(libc::SIGHUP);
    robot.until_log("run", "another directory of logs is used from the next start on");
    assert_eq!(robot.pid("camera"), pid);
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
}
