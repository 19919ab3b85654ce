//! Logs of processes that print without measure, on disks that are full, beside supervisors and
//! keepers that are killed.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::disk::on_a_disk_of;
use common::robot::{IDLE, Robot, be_a_service, kill, service};
use common::{DONE, Home};

/// Five that print as fast as they can. Lines of 16 bytes: killed while it waits for its pipe, one
/// has written whole pages, so whole lines.
fn chatty() -> String {
    (0..5).map(|n| format!("[process.chatty{n}]\ncommand = 'yes chatty {n} really'\n")).collect()
}

/// Only as a process of its own.
#[test]
fn a_service_of_the_robot() {
    be_a_service();
}

/// One whose heartbeat is looked at all the while.
fn beating() -> String {
    format!(
        "[process.beats]\n{}ready.topics = '/camera'\n\
         heartbeat = {{ topics = '/camera', timeout = '1500ms' }}\n",
        service("camera")
    )
}

/// It was not taken for one that hangs, and one that does is noticed.
fn expect_undisturbed(robot: &Robot, beats: i64) {
    assert_eq!(robot.pid("beats"), beats, "{}", robot.log("run"));
    kill(beats, libc::SIGSTOP);
    robot.until_another("beats", beats);
}

/// Bytes of all files of a directory.
fn bytes_in(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Asks `outlive ps` so often; the median of the answers' times in ms.
fn median_ms(robot: &Robot, times: usize) -> f64 {
    let mut all: Vec<f64> = (0..times)
        .map(|_| {
            let begun = Instant::now();
            let ran = robot.home.run("ps --json").expect(DONE);
            assert!(!ran.err.contains("does not answer"), "{}", ran.err);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[times / 2]
}

/// The pid of who writes the robot's logs.
fn keeper(home: &Home) -> i64 {
    let path = home.root().join(".run-default/logs.lock");
    loop {
        let text = fs::read_to_string(&path).unwrap_or_default();
        match text.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            Some(pid) => return pid,
            None => sleep(Duration::from_millis(5)),
        }
    }
}

fn is_alive(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// It wrote 6.7 GB with a bound of 1 MB, and `ps` had no answer.
#[test]
fn a_burst_stays_within_its_bound_and_what_was_cut_is_said() {
    let robot = Robot::new(
        "logs-burst",
        &format!("log_bytes = '1MB'\nlog_files = 1\n{}{}", chatty(), beating()),
    );
    let running = robot.start();
    robot.until_ready(&["chatty0", "chatty4", "beats"]);
    let beats = robot.pid("beats");
    let logs = robot.file.with_file_name("logs");
    let (begun, mut most) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(2) {
        most = most.max(bytes_in(&logs));
        sleep(Duration::from_millis(10));
    }
    let ms = median_ms(&robot, 11);
    println!("five chatty processes: {most} bytes of logs at most, ps in {ms:.1} ms (median)");
    // Two files for each of five, and the supervisor's own.
    assert!(most <= 5 * 2 * 1_000_000 + 100_000, "{most} bytes of logs");
    robot.home.run("stop chatty4").expect(DONE);
    expect_undisturbed(&robot, beats);
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    robot.expect_nothing_left();
    let text = robot.log("chatty0");
    let told = text.lines().find(|line| line.starts_with("outlive: ")).unwrap_or_default();
    assert!(told.contains("lines (") && told.contains("not kept"), "{told}");
    let whole = |line: &&str| *line == "chatty 0 really" || line.starts_with("outlive: ");
    assert_eq!(text.lines().find(|line| !whole(line)), None, "only whole lines are cut");
}

#[test]
fn on_a_full_disk_ps_answers_and_good_old_logs_stay() {
    on_a_disk_of("4m", "on_a_full_disk_ps_answers_and_good_old_logs_stay", |disk| {
        let logs = disk.join("logs");
        fs::create_dir(&logs).unwrap();
        for n in 1..=2 {
            fs::write(logs.join(format!("chatty0.log.{n}")), format!("good and old {n}\n"))
                .unwrap();
        }
        fs::write(logs.join("chatty0.log"), "good\n".repeat(10_000)).unwrap();
        let robot = Robot::new("logs-full", "");
        // Less room than they may take.
        let text = format!(
            "[robot]\nlogs = '{}'\nlog_bytes = '40kB'\nlog_files = 3\n{}{}",
            logs.display(),
            chatty(),
            beating()
        );
        fs::write(&robot.file, text).unwrap();
        let filler = disk.join("filler");
        fs::write(&filler, vec![1; 3 << 20]).unwrap();
        let _ = fs::write(disk.join("filler2"), vec![1; 2 << 20]); // up to the last byte
        let running = robot.start();
        robot.until_ready(&["chatty0", "chatty4", "beats"]);
        let beats = robot.pid("beats");
        sleep(Duration::from_secs(2));
        let ms = median_ms(&robot, 11);
        println!("five chatty processes on a full disk: ps in {ms:.1} ms (median)");
        robot.home.run("stop chatty4").expect(DONE);
        expect_undisturbed(&robot, beats);
        let old: String = (1..=3)
            .filter_map(|n| fs::read_to_string(logs.join(format!("chatty0.log.{n}"))).ok())
            .collect();
        for what in ["good and old 1\n", "good\ngood\n"] {
            let now = fs::read_to_string(logs.join("chatty0.log")).unwrap_or_default();
            assert!(old.contains(what) || now.contains(what), "{what:?} is gone");
        }
        // Once there is room it goes on, and says what is missing.
        fs::remove_file(&filler).unwrap();
        let path = logs.join("chatty0.log");
        let said = |path: &Path| {
            let all = (0..4).map(|n| match n {
                0 => path.to_path_buf(),
                n => path.with_extension(format!("log.{n}")),
            });
            all.filter_map(|path| fs::read_to_string(path).ok())
                .any(|text| text.contains("not kept: No space left on device"))
        };
        // Said once, and rotated away before long: then the disk is filled once more.
        let appears = || {
            (0..400).any(|_| {
                sleep(Duration::from_millis(5));
                said(&path)
            })
        };
        while !appears() {
            let _ = fs::write(&filler, vec![1; 3 << 20]);
            sleep(Duration::from_secs(1));
            fs::remove_file(&filler).unwrap();
        }
        running.signal(libc::SIGTERM);
        running.end().expect(DONE);
        robot.expect_nothing_left();
    });
}

/// The supervisor itself looked at them at every turn: no `ps`, no `stop`, and nobody looked at
/// heartbeats.
#[test]
fn a_disk_of_logs_that_hangs_does_not_hold_up_the_supervisor() {
    for quiet in ["", "--quiet"] {
        let idle = format!("[process.idle]\ncommand = {IDLE}\n");
        let robot = Robot::new("logs-hang", &format!("{idle}{}", beating()));
        let file = robot.file.display();
        let running = robot.home.start(&format!("run {file} {quiet}"), b"");
        robot.until_ready(&["idle", "beats"]);
        let beats = robot.pid("beats");
        // Who opens a pipe that nobody writes waits, as for a disk that hangs.
        let log = robot.file.with_file_name("logs").join("idle.log");
        let pipe = log.with_extension("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::rename(pipe, log).unwrap();
        sleep(Duration::from_millis(500));
        median_ms(&robot, 3);
        expect_undisturbed(&robot, beats);
        running.signal(libc::SIGTERM);
        running.end().expect(DONE);
        robot.expect_nothing_left();
    }
}

/// Counts up, so that a gap shows; says in a file of its own how far it is.
const COUNTS: &str = "[process.counts]\ncommand = ['sh', '-c', 'n=0; while :; do n=$((n+1)); \
                      echo line $n; echo $n >count; sleep 0.001; done']\n";

/// Of the last line that was printed.
fn count(robot: &Robot) -> u64 {
    let path = robot.file.with_file_name("count");
    loop {
        // Written in two steps: it can be seen empty.
        match fs::read_to_string(&path).unwrap_or_default().trim().parse() {
            Ok(count) => return count,
            Err(_) => sleep(Duration::from_millis(1)),
        }
    }
}

fn until_count_grows(robot: &Robot, by: u64) {
    let from = count(robot);
    while count(robot) < from + by {
        sleep(Duration::from_millis(5));
    }
}

fn expect_no_gap(robot: &Robot) {
    let text = robot.log("counts");
    let seen: Vec<u64> =
        text.lines().map(|line| line.strip_prefix("line ").unwrap().parse().unwrap()).collect();
    assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{text}");
}

#[test]
fn a_process_writes_on_and_loses_no_line_when_its_supervisor_is_killed() {
    let robot = Robot::new("logs-killed", COUNTS);
    let running = robot.start();
    robot.until_ready(&["counts"]);
    let pid = robot.pid("counts");
    until_count_grows(&robot, 20);
    for _ in 0..3 {
        let running = if is_alive(pid) { None } else { Some(robot.start()) };
        assert!(running.is_none(), "it ended");
        until_count_grows(&robot, 20);
    }
    running.signal(libc::SIGKILL);
    drop(running);
    until_count_grows(&robot, 50);
    robot.until_log("counts", &format!("line {}\n", count(&robot)));
    let running = robot.start();
    robot.until_log("run", "adopted counts");
    assert_eq!(robot.pid("counts"), pid);
    until_count_grows(&robot, 20);
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    expect_no_gap(&robot);
}

/// From the first rotation on it said nothing more.
#[test]
fn who_follows_a_log_sees_every_line_over_rotations() {
    let text = "[process.counts]\ncommand = ['sh', '-c', 'n=0; while :; do n=$((n+1)); \
                echo line $n: so long that a file is soon full, and is rotated, again and again; \
                sleep 0.001; done']\n";
    // So many that none is dropped before it is read.
    let robot = Robot::new("logs-follow", &format!("log_bytes = 4096\nlog_files = 100\n{text}"));
    let _running = robot.start();
    robot.until_ready(&["counts"]);
    let mut follow = robot.home.start("logs counts -n 10000 -f", b"");
    let mut lines = BufReader::new(follow.take_output()).lines();
    let mut next = || -> u64 {
        let line = lines.next().unwrap().unwrap();
        let number = line.strip_prefix("line ").and_then(|line| line.split_once(':'));
        number.unwrap_or_else(|| panic!("{line}")).0.parse().unwrap()
    };
    let begun = next();
    let logs = robot.file.with_file_name("logs");
    let rotations = || (1..=100).take_while(|n| logs.join(format!("counts.log.{n}")).exists());
    let before = rotations().count();
    let mut last = begun;
    while rotations().count() < before + 4 || last < begun + 200 {
        let now = next();
        assert_eq!(now, last + 1, "begun at {begun}");
        last = now;
    }
    println!("{} lines over {} rotations", last - begun, rotations().count() - before);
    follow.signal(libc::SIGINT);
    follow.end().expect(DONE);
}

/// There is no file before the first byte: "No such file or directory".
#[test]
fn who_has_printed_nothing_has_an_empty_log_that_can_be_followed() {
    let text = "[process.quiet]\ncommand = ['sh', '-c', 'while [ ! -e go ]; do sleep 0.02; done; \
                echo said; sleep 9999']\n";
    let robot = Robot::new("logs-quiet", text);
    let _running = robot.start();
    robot.until_ready(&["quiet"]);
    assert_eq!(robot.home.run("logs quiet").expect(DONE).text(), "");
    let mut follow = robot.home.start("logs quiet -f", b"");
    sleep(Duration::from_millis(200));
    assert!(!follow.is_over(), "it waits for the file");
    fs::write(robot.file.with_file_name("go"), "").unwrap();
    let mut lines = BufReader::new(follow.take_output()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "said");
    follow.signal(libc::SIGINT);
    follow.end().expect(DONE);
    // The newest file may be missing for an instant, or be removed by somebody.
    let log = robot.file.with_file_name("logs").join("quiet.log");
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    assert_eq!(robot.home.run("logs quiet").expect(DONE).text(), "said\n");
    // Only the newest file was read. A number may be missing.
    fs::rename(log.with_extension("log.1"), log.with_extension("log.3")).unwrap();
    fs::write(log.with_extension("log.1"), "more\nand more\n").unwrap();
    fs::write(&log, "new\n").unwrap();
    for (n, text) in [(9, "said\nmore\nand more\nnew\n"), (2, "and more\nnew\n"), (1, "new\n")] {
        assert_eq!(robot.home.run(&format!("logs quiet -n {n}")).expect(DONE).text(), text);
    }
}

#[test]
fn a_killed_keeper_is_replaced_and_nobody_ends_by_it() {
    let robot = Robot::new("logs-keeper", COUNTS);
    let running = robot.start();
    robot.until_ready(&["counts"]);
    let pid = robot.pid("counts");
    for _ in 0..5 {
        until_count_grows(&robot, 10);
        let old = keeper(&robot.home);
        kill(old, libc::SIGKILL);
        while is_alive(old) || keeper(&robot.home) == old {
            sleep(Duration::from_millis(2));
        }
        until_count_grows(&robot, 10);
        assert_eq!(robot.pid("counts"), pid);
        robot.until_log("counts", &format!("line {}\n", count(&robot)));
    }
    robot.until_log("run", "the log keeper ended");
    let last = keeper(&robot.home);
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
    assert!(!is_alive(last), "it ends with the robot");
    robot.expect_nothing_left();
}

/// Both at once: until somebody reads again it may write as much as a pipe holds, and is not
/// killed by SIGPIPE.
#[test]
fn without_supervisor_and_keeper_a_process_lives_on() {
    let robot = Robot::new("logs-both", COUNTS);
    let running = robot.start();
    robot.until_ready(&["counts"]);
    let pid = robot.pid("counts");
    let old = keeper(&robot.home);
    running.signal(libc::SIGSTOP);
    kill(old, libc::SIGKILL);
    running.signal(libc::SIGKILL);
    drop(running);
    until_count_grows(&robot, 50);
    assert!(is_alive(pid));
    let before = count(&robot);
    let _running = robot.start();
    robot.until_log("counts", &format!("line {before}\n"));
    assert_eq!(robot.pid("counts"), pid);
}

/// One whose robot is over is not left behind.
#[test]
fn a_keeper_ends_when_supervisor_and_processes_are_gone() {
    let robot = Robot::new(
        "logs-alone",
        "[process.tied]\ncommand = 'sleep 9999'\non_supervisor_death = 'kill'\n",
    );
    let running = robot.start();
    robot.until_ready(&["tied"]);
    let keeper = keeper(&robot.home);
    running.signal(libc::SIGKILL);
    drop(running);
    while is_alive(keeper) {
        sleep(Duration::from_millis(10));
    }
}
