//! The helpers for tests with several processes.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::crash::{self, Aim};
use testkit::process::{Exit, wait_until};
use testkit::startup::kill_at_startup;
use testkit::temp::listing;
use testkit::{Rng, TempDomain, Watchdog, fork_child, role, spawn_test};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn the_random_numbers_are_splitmix64() {
    let mut rng = Rng::new(1234567);
    assert_eq!(rng.next_u64(), 6457827717110365317);
    assert_eq!(rng.next_u64(), 3203168211198807973);
    assert!((0..1000).all(|_| rng.below(7) < 7));
    assert_eq!(rng.below(0), 0);
}

#[test]
fn a_temp_domain_is_unique_and_goes_away() {
    let (a, b) = (TempDomain::new("x").unwrap(), TempDomain::new("x").unwrap());
    assert_ne!(a.path(), b.path());
    let path = a.path().to_path_buf();
    std::fs::create_dir(path.join("dir")).unwrap();
    std::fs::write(path.join("dir/file"), "x").unwrap();
    assert_eq!(a.listing(), ["dir", "dir/file"]);
    // A forked child that drops its copy does not remove it.
    let mut child = fork_child(|| {
        drop(a);
        0
    });
    assert!(child.as_mut().unwrap().wait().success());
}

#[test]
fn a_temp_domain_can_insist_on_emptiness() {
    let left = std::panic::catch_unwind(|| {
        let domain = TempDomain::new("full").unwrap().expect_empty();
        std::fs::write(domain.path().join("leftover"), "").unwrap();
        let path = domain.path().to_path_buf();
        std::panic::set_hook(Box::new(|_| {}));
        (drop(domain), path)
    });
    let _ = std::panic::take_hook();
    let text = *left.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("leftover"), "{text}");
    drop(TempDomain::new("empty").unwrap().expect_empty());
}

#[test]
fn a_child_is_killed_when_dropped() {
    let mut child = fork_child(|| {
        loop {
            std::thread::sleep(LONG);
        }
    })
    .unwrap();
    assert!(child.is_running());
    assert_eq!(child.wait_timeout(Duration::from_millis(5)), None);
    let pid = child.pid();
    drop(child);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(fork_child(|| 3).unwrap().wait(), Exit::Code(3));
}

#[test]
fn a_child_dies_with_its_parent() {
    let domain = TempDomain::new("orphan").unwrap();
    let file = domain.path().join("pid");
    let mut parent = fork_child(|| {
        let child = fork_child(|| {
            loop {
                std::thread::sleep(LONG);
            }
        })
        .unwrap();
        std::fs::write(&file, child.pid().to_string()).unwrap();
        loop {
            std::thread::sleep(LONG);
        }
    })
    .unwrap();
    let pid = || std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty());
    assert!(wait_until(LONG, || pid().is_some()));
    assert_eq!(parent.kill(), Exit::Signal(libc::SIGKILL));
    let stat = PathBuf::from(format!("/proc/{}/stat", pid().unwrap()));
    let gone = || !std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
    assert!(wait_until(LONG, gone));
}

#[test]
fn this_program_can_play_another_role() {
    if let Some(role) = role() {
        assert_eq!((role.name.as_str(), role.args.len()), ("answer", 2));
        std::process::exit(role.args.iter().map(|n| n.parse::<i32>().unwrap()).sum());
    }
    let test = "this_program_can_play_another_role";
    let status = spawn_test(test, "answer", &["40", "2"]).status().unwrap();
    assert_eq!(status.code(), Some(42));
}

#[test]
fn a_watchdog_ends_a_hang() {
    if role().is_some() {
        drop(Watchdog::start("a quick one", Duration::from_millis(1)));
        std::thread::sleep(Duration::from_millis(20));
        let _dog = Watchdog::start("a slow one", Duration::from_millis(1));
        std::thread::sleep(LONG);
    }
    let mut command = spawn_test("a_watchdog_ends_a_hang", "hang", &[]);
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("a slow one") && !text.contains("a quick one"), "{text}");
}

#[test]
fn start_up_kills_come_early_and_are_checked() {
    if role().is_some() {
        std::thread::sleep(LONG);
    }
    let test = "start_up_kills_come_early_and_are_checked";
    let command = |_| {
        let mut command = spawn_test(test, "sleeper", &[]);
        command.stdout(std::process::Stdio::null());
        command
    };
    let mut seen = Vec::new();
    let window = Duration::from_millis(20);
    let report = kill_at_startup(7, 20, window, command, |n, after| {
        seen.push(after);
        if n == 5 { Err("unhappy".into()) } else { Ok(()) }
    });
    println!("{}", report.summary("sleeper"));
    assert_eq!((report.starts, report.kills, report.early_ends), (20, 20, 0));
    assert_eq!(report.failures.len(), 1);
    assert!(seen.iter().all(|&after| after < window) && seen[0] != seen[1]);
}

#[test]
fn a_crash_point_kills_at_its_hit() {
    if let Some(role) = role() {
        crash::aim(Aim::At("point".into(), 3));
        for n in 1..10 {
            std::fs::write(&role.args[0], n.to_string()).unwrap();
            crash::hook("other");
            crash::hook("point");
        }
        return;
    }
    let domain = TempDomain::new("crash").unwrap();
    let log = domain.path().join("log");
    let test = "a_crash_point_kills_at_its_hit";
    let status = spawn_test(test, "victim", &[log.to_str().unwrap()]).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "3");
    crash::aim(Aim::Nothing);
    crash::hook("point");
}

#[test]
fn crash_points_are_found_in_sources() {
    let domain = TempDomain::new("names").unwrap();
    let text =
        "fn f() {\n crash_point!(\"a.b\"); crash_point!(\"c\");\n // crash_point!(\"no\")\n}";
    std::fs::create_dir(domain.path().join("os")).unwrap();
    std::fs::write(domain.path().join("os/x.rs"), text).unwrap();
    std::fs::write(domain.path().join("x.txt"), "crash_point!(\"no\")").unwrap();
    let names = crash::names_in_sources(domain.path()).unwrap();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a.b", "c"]);
    assert_eq!(listing(domain.path()), ["os", "os/x.rs", "x.txt"]);
}
