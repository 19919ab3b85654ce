//! What containers do to a process: namespaces of its own, a small RAM disk, another user.
//!
//! Where making a namespace is not allowed the tests say so and end.

mod common;

use std::process::{Command, Stdio};

use common::robot::{IDLE, Robot};
use common::*;

/// `unshare` with the namespaces of a container. Killing it kills what runs inside.
fn container() -> Vec<&'static str> {
    let spaces = ["--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child=SIGKILL"];
    // SAFETY: reads a number.
    let mine: &[_] = if unsafe { libc::geteuid() } == 0 { &[] } else { &["--user", "-r"] };
    [&["unshare"], mine, &spaces].concat()
}

fn allowed(prefix: &[&str]) -> bool {
    let run = Command::new(prefix[0]).args(&prefix[1..]).arg("true").stderr(Stdio::null()).status();
    let allowed = run.is_ok_and(|status| status.success());
    if !allowed {
        println!("not allowed here: {}", prefix.join(" "));
    }
    allowed
}

/// `outlive args` behind `prefix`.
fn inside(home: &Home, prefix: &[&str], args: &str) -> Command {
    let plain = home.outlive(args);
    let mut command = testkit::spawn::spawn_program(prefix[0]);
    command.args(&prefix[1..]).arg(plain.get_program()).args(plain.get_args());
    command.env("OUTLIVE_DIR", home.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn two_containers_that_share_the_directory_talk_and_know_of_deaths() {
    let unshare = container();
    if !allowed(&unshare) {
        return;
    }
    let home = Home::new("containers");
    let publish = "topic pub /n --type u64 --json 7 --linger inf";
    let mut publisher = inside(&home, &unshare, publish).spawn().unwrap();
    home.await_messages(1);
    let echo = "topic echo /n --history 1 --until-left";
    let subscriber = inside(&home, &unshare, echo).spawn().unwrap();
    home.await_subscriber();

    // Both may have the same process id: nobody asks for it.
    let nodes = home.run("node list --json").json();
    assert!(nodes.as_array().unwrap().iter().all(|node| node["alive"] == true), "{nodes}");
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    let got = Ran::from(subscriber.wait_with_output().unwrap()).expect(DONE);
    assert!(got.text().trim_end().ends_with(" 7"), "{}", got.text());
    assert!(got.err.contains("died"), "{}", got.err);
}

/// Its pids were looked up among the container's own: it was told dead.
#[test]
fn a_robot_in_another_container_is_shown_as_its_supervisor_says() {
    let unshare = container();
    if !allowed(&unshare) {
        return;
    }
    let robot = Robot::new("containers-ps", &format!("[process.camera]\ncommand = {IDLE}\n"));
    let running = robot.start();
    robot.until_ready(&["camera"]);
    let (outside, camera) = (robot.ps(), robot.process("camera"));
    let ran = Ran::from(inside(&robot.home, &unshare, "ps --json").output().unwrap());
    assert_eq!(ran.err, "");
    let told = ran.json();
    assert_eq!(told["supervisor"], outside["supervisor"]);
    for key in ["state", "pid", "restarts"] {
        assert_eq!(told["processes"][0][key], camera[key], "{key}: {told}");
    }
    assert!(told["processes"][0]["up_s"].is_f64(), "{told}");
    running.signal(libc::SIGTERM);
    running.end().expect(DONE);
}

#[test]
fn a_container_with_a_small_ram_disk_gets_no_space_and_no_fault() {
    let unshare = container();
    if !allowed(&unshare) {
        return;
    }
    let home = Home::new("small");
    let root = home.root();
    let (root, bin) = (root.display(), env!("CARGO_BIN_EXE_outlive"));
    let script = format!(
        "mkdir -p {root} && mount -t tmpfs -o size=1m,mode=700 none {root} && \
         head -c 5000000 /dev/zero | {bin} topic pub /big --from-stdin --frame-bytes 1000000"
    );
    let mut run = Command::new(unshare[0]);
    run.args(&unshare[1..]).args(["sh", "-c", &script]).env("OUTLIVE_DIR", home.root());
    let ran = Ran::from(run.output().unwrap()).expect(8);
    assert!(ran.err.contains("no space"), "{}", ran.err);
}

#[test]
fn another_user_is_refused() {
    let other = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"];
    // SAFETY: reads a number.
    if unsafe { libc::geteuid() } == 1000 || !allowed(&other) {
        return;
    }
    let home = Home::new("stranger");
    let _publisher = home.start("topic pub /n --type u64 --json 7 --linger inf", b"");
    home.await_messages(1);
    for args in ["topic list", "clean", "topic echo /n --timeout 1"] {
        let ran = Ran::from(inside(&home, &other, args).output().unwrap());
        if ran.err.contains("cannot execute") || ran.err.contains("failed to execute") {
            return println!("not allowed here: the other user cannot run the command");
        }
        ran.expect(REFUSED);
    }
    assert_eq!(home.topics()[0]["publishers"][0]["state"], "alive");
}
