//! What is handed out: the unit for systemd, against a socket of ours in its place, and the files
//! of the book.

mod common;

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

use common::robot::{IDLE, Robot, be_a_service, service_command};
use common::{DONE, Running, USAGE};

/// What a supervisor with the watchdog of these tests asks for.
const MORE: &str = "EXTEND_TIMEOUT_USEC=40000";

/// What a service manager hears, datagram by datagram.
fn hear(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 100];
    let n = manager.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

fn unit() -> String {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/outlive-robot@.service");
    fs::read_to_string(path).unwrap()
}

/// Only as a process of its own.
#[test]
fn a_service_of_the_robot() {
    be_a_service();
}

/// A robot whose second process is ready once the file `go` is there.
fn robot(label: &str) -> Robot {
    let (slow, env) = service_command("slow");
    Robot::new(
        label,
        &format!(
            "on_supervisor_death = 'kill'\n[process.a]\ncommand = {IDLE}\n\
             [process.slow]\nready.nodes = 'slow'\nenv = {{ {env} }}\n\
             command = ['sh', '-c', 'while [ ! -e go ]; do sleep 0.02; done; exec {slow}']\n"
        ),
    )
}

/// The command of the unit, for the robot `arm`, with what systemd would set.
fn start_unit(robot: &Robot, socket: &str, watchdog: &[(&str, &str)]) -> Running {
    let unit = unit();
    let line = unit.lines().find_map(|l| l.strip_prefix("ExecStart=")).unwrap();
    let line = line.strip_prefix("/usr/local/bin/outlive ").unwrap();
    let line = line.replace("/etc/outlive/%i.toml", &robot.file.display().to_string());
    let mut command = robot.home.outlive(&line);
    command.env("NOTIFY_SOCKET", socket).envs(watchdog.iter().copied());
    robot.home.start_command(command)
}

#[test]
fn the_unit_is_ready_when_all_processes_are_and_feeds_its_watchdog() {
    for setting in ["Type=notify", "WatchdogSec=", "ExecReload=/bin/kill -HUP $MAINPID"] {
        assert!(unit().contains(setting), "{setting}");
    }
    let robot = robot("run-unit");
    let path = robot.file.with_file_name("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let running = start_unit(&robot, path.to_str().unwrap(), &[("WATCHDOG_USEC", "40000")]);
    // While it starts it feeds the watchdog, and asks for more time than the unit gives.
    let until = |what: &str| while hear(&manager) != what {};
    until("STATUS=slow starting");
    for _ in 0..5 {
        let heard = [hear(&manager), hear(&manager)];
        assert_eq!(heard, ["WATCHDOG=1", MORE], "not ready before 'slow' is");
    }
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    until("READY=1");
    until("STATUS=all ready");
    // From then on the unit's times hold.
    for _ in 0..5 {
        assert_eq!(hear(&manager), "WATCHDOG=1");
    }
    // As ExecReload does: the robot runs on.
    running.signal(libc::SIGHUP);
    robot.until_log("run", "the file is read again");
    until("WATCHDOG=1");
    running.signal(libc::SIGTERM);
    until("STOPPING=1");
    assert_eq!(hear(&manager), "STATUS=stopping: a signal asked for it");
    assert_eq!([hear(&manager), hear(&manager)], ["WATCHDOG=1", MORE]);
    running.end().expect(DONE);
}

#[test]
fn an_abstract_socket_is_told_and_another_process_s_watchdog_is_not_fed() {
    let robot = robot("run-abstract");
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    let name = format!("outlive-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    let watchdog = [("WATCHDOG_USEC", "2000"), ("WATCHDOG_PID", "1")];
    let running = start_unit(&robot, &format!("@{name}"), &watchdog);
    for last in ["READY=1", "STOPPING=1"] {
        loop {
            let heard = hear(&manager);
            assert_ne!(heard, "WATCHDOG=1");
            if heard == last {
                break;
            }
        }
        running.signal(libc::SIGTERM);
    }
    running.end().expect(DONE);
    // Nobody listens: it runs all the same.
    drop(manager);
    let running = start_unit(&robot, &format!("@{name}"), &[]);
    while robot.log("run").matches("all ready").count() < 2 {
        sleep(Duration::from_millis(10));
    }
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
}

/// The file that systemd-tmpfiles reads makes the directory that the unit names.
#[test]
fn the_unit_and_the_tmpfiles_snippet_name_the_same_directory_and_user() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/outlive.tmpfiles.conf");
    let snippet = fs::read_to_string(path).unwrap();
    let unit = unit();
    let of = |key: &str| unit.lines().find_map(|l| l.strip_prefix(key)).unwrap().to_owned();
    let (dir, user) = (of("Environment=OUTLIVE_DIR="), of("User="));
    let dir = dir.strip_suffix("/%i").expect("each robot has a directory of its own");
    assert!(snippet.contains(&format!("\nd {dir} 0700 {user} {user} -")), "{snippet}");
    assert!(snippet.contains(&format!("\nx {dir}")), "{snippet}");
}

#[test]
fn the_files_of_the_book_are_right() {
    let page = include_str!("../../../docs/book/running.md");
    let robot = Robot::new("run-book", "");
    let check = |text: &str| {
        fs::write(&robot.file, text).unwrap();
        robot.home.run(&format!("run {} --check", robot.file.display()))
    };
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    for block in &blocks {
        let ran = check(block).expect(DONE);
        assert_eq!(ran.text(), "robot is valid: starts core, camera, dashboard\n");
    }
    // The page names every key: the parser lists what it takes.
    let unknown = format!("{}\nzzzzzzzzzzzz = 1\n", blocks[0]);
    let told = check(&unknown).expect(USAGE).err;
    let keys = told.split("it can have ").nth(1).unwrap().lines().next().unwrap();
    assert!(keys.split(", ").count() > 15, "{told}");
    for key in keys.split(", ") {
        assert!(page.contains(&format!("`{key}`")), "docs/book/running.md says nothing of '{key}'");
    }
}
