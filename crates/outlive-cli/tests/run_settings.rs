//! What a section asks for, as the kernel shows it of the process; and what is said where it is
//! refused.

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::thread::sleep;
use std::time::Duration;

use common::robot::{IDLE, Robot};
use common::{DONE, FAILED, USAGE};

/// A value of `/proc/<pid>/status`.
fn status(pid: i64, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(key)).unwrap();
    line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Niceness, real-time priority and scheduling policy, from `/proc/<pid>/stat`.
fn scheduling(pid: i64) -> (i64, i64, i64) {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let number = |at: usize| fields[at].parse().unwrap();
    (number(16), number(37), number(38))
}

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Whether processes of this user may have SCHED_FIFO.
fn may_fifo() -> bool {
    let tried = std::thread::spawn(|| {
        let param = libc::sched_param { sched_priority: 1 };
        // SAFETY: 0 is this thread; `param` is read during the call.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &param) == 0 }
    });
    tried.join().unwrap()
}

/// The first CPU that this test may use.
fn first_cpu() -> String {
    let allowed = status(i64::from(std::process::id()), "Cpus_allowed_list");
    allowed.split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn a_process_gets_its_cores_niceness_environment_and_directory() {
    let cpu = first_cpu();
    let words = "$ROBOT $LEVEL $OUTLIVE_DIR $OUTLIVE_DOMAIN";
    let say = &format!("['sh', '-c', 'echo in $PWD: {words}; (sleep 9999)& wait']");
    let robot = Robot::new(
        "run-settings",
        &format!(
            "dir = 'work'\n[env]\nROBOT = 'arm'\nLEVEL = 1\n\
             [process.pinned]\ncommand = {say}\ncores = [{cpu}]\nnice = 7\n\
             dir = 'here'\nenv = {{ LEVEL = 'two words', OUTLIVE_DOMAIN = 'own' }}\n\
             [process.plain]\ncommand = {say}\n\
             [process.nowhere]\ncommand = {say}\ndir = 'missing'\nbackoff.limit = 0\n"
        ),
    );
    let work = robot.file.with_file_name("work");
    fs::create_dir_all(work.join("here")).unwrap();
    let _running = robot.start();
    robot.until_ready(&["pinned", "plain"]);
    let pid = robot.pid("pinned");
    let root = robot.home.root().canonicalize().unwrap();
    let (work, root) = (work.canonicalize().unwrap(), root.display());
    let log = robot.until_log("pinned", "in ");
    assert_eq!(log, format!("in {}: arm two words {root} own\n", work.join("here").display()));
    let log = robot.until_log("plain", "in ");
    assert_eq!(log, format!("in {}: arm 1 {root} default\n", work.display()));
    assert_eq!(status(pid, "Cpus_allowed_list"), cpu);
    assert_eq!(scheduling(pid).0, 7);
    assert_eq!(scheduling(robot.pid("plain")).0, scheduling(i64::from(std::process::id())).0);
    let nowhere = robot.until("nowhere", |p| p["state"] == "failed");
    let end = nowhere["last_end"].as_str().unwrap();
    assert!(end.starts_with("cannot enter /"), "{end}");
    assert!(end.contains("/missing: No such file"), "{end}");
}

#[test]
fn cores_that_the_machine_has_not_are_a_fault_of_the_file() {
    let robot = Robot::new("run-cores", "[process.a]\ncommand = 'true'\ncores = [1023]\n");
    let file = robot.file.display();
    let ran = robot.home.run(&format!("run {file} --check")).expect(USAGE);
    assert!(ran.err.contains(&format!("{file}:6:9: this machine has none of")), "{}", ran.err);
}

#[test]
fn a_process_becomes_its_user_where_root_starts_it() {
    if !is_root() {
        println!("skipped: only root can start processes of another user");
        return;
    }
    // Numbers need no entry in /etc/passwd.
    let robot = Robot::new(
        "run-user",
        "[process.other]\nuser = '61234:61235'\n\
         command = ['sh', '-c', 'id -u; id -g; id -G; (sleep 9999)& wait']\n",
    );
    let _running = robot.start();
    robot.until_ready(&["other"]);
    let log = robot.until_log("other", "61235\n61235\n");
    assert_eq!(log, "61234\n61235\n61235\n", "no group of root's is left");
    let pid = robot.pid("other");
    assert_eq!(status(pid, "Uid"), "61234 61234 61234 61234");
    assert_eq!(status(pid, "Gid"), "61235 61235 61235 61235");
    robot.write("[process.other]\ncommand = 'true'\nuser = 'nobody-of-this-name'\n");
    let ran = robot.home.run(&format!("run {} --check", robot.file.display())).expect(USAGE);
    assert!(ran.err.contains(":6:8: no user 'nobody-of-this-name' in /etc/passwd"), "{}", ran.err);
}

#[test]
fn a_real_time_priority_is_given_where_the_user_may() {
    if !may_fifo() {
        println!("skipped: this user may not use SCHED_FIFO (limit rtprio, CAP_SYS_NICE)");
        return;
    }
    let robot = Robot::new("run-fifo", &format!("[process.core]\ncommand = {IDLE}\nfifo = 11\n"));
    let _running = robot.start();
    robot.until_ready(&["core"]);
    let (_, priority, policy) = scheduling(robot.pid("core"));
    assert_eq!((priority, policy), (11, i64::from(libc::SCHED_FIFO)));
}

/// A supervisor without rights, also under root.
#[test]
fn what_the_kernel_refuses_is_named_and_the_process_does_not_start() {
    let robot = Robot::new(
        "run-refused",
        &format!(
            "[process.fast]\ncommand = {IDLE}\nfifo = 11\nbackoff.limit = 0\n\
             [process.rude]\ncommand = {IDLE}\nnice = -5\nbackoff.limit = 0\n\
             [process.other]\ncommand = {IDLE}\nuser = '61234:61235'\nbackoff.limit = 0\n"
        ),
    );
    let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
    let rights: [libc::c_ulong; 3] = [6, 7, 23]; // CAP_SETGID, CAP_SETUID, CAP_SYS_NICE
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: system calls with integers, and a limit that is read during the call.
    unsafe {
        command.pre_exec(move || {
            for right in rights {
                libc::prctl(libc::PR_CAPBSET_DROP, right, 0, 0, 0);
            }
            libc::setrlimit(libc::RLIMIT_RTPRIO, &none);
            libc::setrlimit(libc::RLIMIT_NICE, &none);
            Ok(())
        });
    }
    let ran = robot.home.start_command(command).end().expect(FAILED);
    let told = |what: &str| assert!(ran.text().contains(what), "no '{what}' in\n{}", ran.text());
    told("fast does not start: cannot give it SCHED_FIFO (raise the limit rtprio, or grant CAP_");
    told("rude does not start: cannot set its niceness");
    told("other does not start: cannot become its user (only root can): Operation not permitted");
    told("stopping the robot: all ended");
}

/// It blamed the directory.
#[test]
fn a_start_that_fails_for_want_of_descriptors_says_so_whichever_is_the_missing_one() {
    let robot = Robot::new(
        "run-descriptors",
        "[process.camera]\ncommand = 'true'\n\
         backoff = { first = '1ms', max = '1ms', limit = 1000000 }\n",
    );
    let running = robot.start();
    robot.until_log("run", "camera started");
    running.limit_descriptors(4);
    let failed = "camera does not start";
    let mut log = robot.until_log("run", failed);
    let mut seen = log.find(failed).unwrap();
    for max in 5.. {
        running.limit_descriptors(max);
        // Lines of before the change are on their way.
        while log[seen..].matches(failed).count() < 4 && !log[seen..].contains("started") {
            sleep(Duration::from_millis(5));
            log = robot.log("run");
        }
        if log[seen..].contains("started") {
            break;
        }
        seen = log.len();
    }
    let reason = "cannot start a process (raise ulimit -u, ulimit -n or pids.max): Too many open";
    let first = log.find(failed).unwrap();
    for line in log[first..].lines().filter(|line| line.contains(failed)) {
        assert!(line.contains(reason), "{line}");
    }
}

/// The kernel refuses the allocation; what the program does then is its own.
#[test]
fn memory_beyond_the_bound_is_refused_and_the_end_is_reported() {
    // 32 MiB of text, by doubling.
    let hoard = "['sh', '-c', 'x=0123456789abcdef; n=0; while [ $n -lt 21 ]; \
                 do x=$x$x; n=$((n+1)); done; echo has ${#x}']";
    let bounded = |name: &str, bound: &str| {
        format!("[process.{name}]\ncommand = {hoard}\nrestart = 'never'\n{bound}\n")
    };
    let robot = Robot::new(
        "run-memory",
        &[
            bounded("free", ""),
            bounded("private", "memory = '16MiB'"),
            bounded("addresses", "address_space = '24MiB'"),
        ]
        .concat(),
    );
    let running = robot.start();
    let ran = running.end().expect(FAILED);
    assert_eq!(robot.log("free"), "has 33554432\n");
    for name in ["private", "addresses"] {
        let log = robot.log(name);
        assert!(!log.contains("has "), "{name}: {log}");
        let told = |how: &str| ran.text().contains(&format!("| {name} {how}"));
        let failed = told("ended with code") && !told("ended with code 0");
        assert!(failed || told("was ended by SIG"), "{}", ran.text());
    }
}

#[test]
fn logs_are_rotated_and_old_ones_removed() {
    let robot = Robot::new(
        "run-rotate",
        "log_bytes = 4096\nlog_files = 2\n[process.camera]\n\
         command = ['sh', '-c', 'n=0; p=$(printf %0300d 0); \
         while :; do n=$((n+1)); echo $n $p; sleep 0.005; done']\n",
    );
    let _running = robot.start();
    let number = |line: &str| line.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    let logs = robot.file.with_file_name("logs");
    let read = |name: &str| fs::read_to_string(logs.join(name)).unwrap_or_default();
    let last = |name: &str| read(name).lines().rev().find_map(number);
    // The oldest file is of the third rotation or a later one.
    while last("camera.log.2").unwrap_or(0) < 40 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    robot.home.run("stop camera").expect(DONE);
    let mut names: Vec<String> = fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("camera"))
        .collect();
    names.sort();
    assert_eq!(names, ["camera.log", "camera.log.1", "camera.log.2"]);
    let text = ["camera.log.2", "camera.log.1", "camera.log"].map(read).concat();
    let numbers: Vec<u64> = text.lines().filter_map(number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, none twice: {numbers:?}");
    let told = robot.home.run("logs camera --lines 1").expect(DONE);
    assert_eq!(number(told.text()), last("camera.log"), "nothing right after a rotation");
}

/// It kept root's HOME, and what root's environment says in confidence.
#[test]
fn another_user_gets_an_environment_of_its_own() {
    if !is_root() {
        println!("skipped: only root can start processes of another user");
        return;
    }
    let robot = Robot::new(
        "run-clean",
        "[env]\nROBOT = 'arm'\n\
         [process.other]\nuser = '61234:61235'\n\
         command = ['sh', '-c', 'env; echo end; sleep 9999']\n\
         [process.named]\nuser = '61234:61235'\ninherit_env = ['WANTED']\n\
         env = { HOME = '/here' }\n\
         command = ['sh', '-c', 'env; echo end; sleep 9999']\n\
         [process.all]\nuser = '61234:61235'\ninherit_env = true\n\
         command = ['sh', '-c', 'env; echo end; sleep 9999']\n\
         [process.own]\ncommand = ['sh', '-c', 'env; echo end; sleep 9999']\n",
    );
    let mut command = robot.home.outlive(&format!("run {}", robot.file.display()));
    command.env("SECRET", "of root").env("WANTED", "yes").env("HOME", "/root");
    let path = std::env::var("PATH").unwrap() + ":/of/this/user";
    command.env("PATH", &path);
    let _running = robot.home.start_command(command);
    let has = |name: &str, line: &str| {
        let log = robot.until_log(name, "\nend\n");
        log.lines().any(|l| l == line)
    };
    for line in ["HOME=/", "USER=61234", "LOGNAME=61234", "ROBOT=arm"] {
        assert!(has("other", line), "{line}: {}", robot.log("other"));
    }
    let (secret, wanted) = ("SECRET=of root", "WANTED=yes");
    assert!(!has("other", secret) && !has("other", wanted), "{}", robot.log("other"));
    assert!(!has("named", secret) && has("named", wanted) && has("named", "HOME=/here"));
    assert!(has("all", secret) && has("all", "HOME=/"), "{}", robot.log("all"));
    assert!(has("own", secret) && has("own", "HOME=/root"));
    let (clean, path) = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", path);
    assert!(has("other", clean) && has("named", clean), "{}", robot.log("other"));
    assert!(has("own", &format!("PATH={path}")), "{}", robot.log("own"));
}

/// A process that is being dumped is told dead only after the dump.
#[test]
fn no_core_is_dumped_unless_that_is_asked_for() {
    let robot = Robot::new(
        "run-cores-dumped",
        &format!(
            "[process.plain]\ncommand = {IDLE}\n\
             [process.dumps]\ncommand = {IDLE}\ncore_dumps = true\n"
        ),
    );
    let _running = robot.start();
    robot.until_ready(&["plain", "dumps"]);
    let limit = |name: &str| {
        let text = fs::read_to_string(format!("/proc/{}/limits", robot.pid(name))).unwrap();
        let line = text.lines().find(|l| l.starts_with("Max core file size")).unwrap().to_owned();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        (words[4].clone(), words[5].clone())
    };
    let (soft, hard) = limit("plain");
    assert!(soft == "1" || hard == "0", "{soft} {hard}");
    let (soft, hard) = limit("dumps");
    assert_eq!(soft, hard);
}
