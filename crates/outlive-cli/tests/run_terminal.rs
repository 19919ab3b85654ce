//! A supervisor on a terminal: SIGHUP is a request while the terminal is there.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use common::DONE;
use common::robot::{IDLE, Robot};

/// A terminal: the side of the window, and that of the program.
fn terminal() -> (File, OwnedFd) {
    // SAFETY: plain calls; each descriptor is owned from here on; `name` is as long as said.
    unsafe {
        let window = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(window >= 0 && libc::grantpt(window) == 0 && libc::unlockpt(window) == 0);
        let mut name = [0; 64];
        assert_eq!(libc::ptsname_r(window, name.as_mut_ptr(), name.len()), 0);
        let program = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(program >= 0);
        (File::from_raw_fd(window), OwnedFd::from_raw_fd(program))
    }
}

/// A robot whose file was once read again was stopped hours later, when its window was closed.
#[test]
fn a_terminal_that_goes_away_long_after_a_hangup_stops_nobody() {
    let robot = Robot::new("run-terminal-later", &format!("[process.old]\ncommand = {IDLE}\n"));
    let (window, program) = terminal();
    let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
    command.stdout(program);
    let mut running = robot.home.start_command(command);
    robot.until_ready(&["old"]);
    running.signal(libc::SIGHUP);
    robot.until_log("run", "the file is read again");
    sleep(Duration::from_secs(6));
    drop(window);
    // Many turns.
    sleep(Duration::from_secs(2));
    assert!(!running.is_over() && !robot.log("run").contains("its terminal went away"));
    robot.until_ready(&["old"]);
    // Now it is both.
    running.signal(libc::SIGHUP);
    robot.until_log("run", "stopping the robot: its terminal went away");
    running.end().expect(DONE);
    robot.expect_nothing_left();
}

/// It stopped the robot, whose file was to be read again.
#[test]
fn a_hangup_reads_the_file_again_while_there_is_a_terminal_and_stops_the_robot_when_it_is_gone() {
    let section = |name: &str| format!("[process.{name}]\ncommand = {IDLE}\n");
    for after in [false, true] {
        let robot = Robot::new("run-terminal", &section("old"));
        let (mut window, program) = terminal();
        let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
        command.stdout(program);
        let mut running = robot.home.start_command(command);
        robot.until_ready(&["old"]);
        let mut some = [0; 8];
        assert!(window.read(&mut some).unwrap() > 0, "it prints there");

        let mut hang_up = |times: usize| {
            running.signal(libc::SIGHUP);
            while robot.log("run").matches("the file is read again").count() < times {
                assert!(!running.is_over(), "{}", robot.log("run"));
                sleep(Duration::from_millis(10));
            }
        };
        robot.write(&(section("old") + &section("new")));
        hang_up(1);
        robot.until_ready(&["old", "new"]);

        // A shell that ends says so before the window is gone, the kernel afterwards.
        if !after {
            hang_up(2);
        }
        drop(window);
        if after {
            running.signal(libc::SIGHUP);
        }
        robot.until_log("run", "stopping the robot: its terminal went away");
        running.end().expect(DONE);
        robot.expect_nothing_left();
    }
}
