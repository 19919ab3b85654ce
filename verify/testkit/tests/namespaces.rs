//! Nodes in PID and mount namespaces of their own, as in containers, that share the directory and
//! may write nowhere else: they work together, and each knows of the other's death at once.
//!
//! Where making a namespace is not allowed the tests say so and end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlive::lock::LockError;
use outlive::topic::Event;
use outlive::{Domain, Node, NodeBuilder, NodeId};
use testkit::actor::{await_cue, say};
use testkit::process::{sleeps, thread_id, wait_until};
use testkit::spawn::{Role, spawn_program, spawn_test};
use testkit::{Actor, TempDomain, Watchdog, role};

/// Longer than any test: who waits that long has lost a wake, and the watchdog says so.
const LONG: Duration = Duration::from_secs(3600);
/// Users and a group that are nobody's on this machine.
const ONE: u32 = 61_822;
const TWO: u32 = 61_823;
const GROUP: u32 = 61_830;

fn is_root() -> bool {
    // SAFETY: reads a number.
    unsafe { libc::geteuid() == 0 }
}

/// Runs its arguments where all but RAM disks is read-only, if that may be made so.
const ON_READ_ONLY: &str = "if mount --make-rprivate / && mount -o remount,bind,ro /; then \
     ! touch /read-only-test 2>/dev/null || exit 1; \
     else echo 'namespaces: the root stays writable here' >&2; fi; exec \"$0\" \"$@\"";

/// `unshare` with the namespaces and the root of a container. Killing it kills what runs inside.
fn container() -> Vec<&'static str> {
    let spaces = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"];
    let mine: &[_] = if is_root() { &[] } else { &["--user", "-r"] };
    [&["unshare"], mine, &spaces, &["sh", "-c", ON_READ_ONLY]].concat()
}

fn may_unshare() -> bool {
    let prefix = container();
    let run = Command::new(prefix[0]).args(&prefix[1..]).arg("true").stderr(Stdio::null()).status();
    let may = run.is_ok_and(|status| status.success());
    if !may {
        println!("namespaces: skipped, not allowed here: {}", prefix.join(" "));
    }
    may
}

/// Makes this process one of user `uid` and of the group for good.
fn become_member_of_group(uid: u32) {
    // SAFETY: plain calls; the list is as long as said.
    let done = unsafe {
        libc::setgroups(1, &GROUP) == 0
            && libc::setresgid(GROUP, GROUP, GROUP) == 0
            && libc::setresuid(uid, uid, uid) == 0
            // Both are lost with the user: a look at one's own /proc, and dying with the parent.
            && libc::prctl(libc::PR_SET_DUMPABLE, 1) == 0
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

fn settings(dir: &Path, uid: u32) -> NodeBuilder {
    let builder = Node::builder().root(dir.join("root"));
    if uid == 0 { builder } else { builder.group(GROUP) }
}

/// A member: talks to the other one, then is killed, or is told of the other's death.
fn member(role: &Role) {
    outlive::internals::set_slice_ns_max(LONG.as_nanos() as u64);
    let (dir, uid) = (Path::new(&role.args[0]), role.args[1].parse().unwrap());
    if uid != 0 {
        become_member_of_group(uid);
    }
    let node = settings(dir, uid).name(&role.name).open().unwrap();
    let topic = || node.topic::<u64>("/t").unwrap().history(1);
    let publisher = topic().publisher().unwrap();
    let mut subscriber = topic().subscriber().unwrap();
    let mutex = node.mutex_with::<u64>("/m", &0).unwrap();
    publisher.publish(&node.id().get()).unwrap();
    say(&format!("pid {}", std::process::id()));
    say(&format!("node {}", node.id()));

    await_cue("hear");
    let other = loop {
        let Some(sample) = subscriber.receive_timeout(LONG).unwrap() else { continue };
        if sample.publisher() != publisher.id() {
            break NodeId::from_raw(*sample);
        }
    };
    let watch = node.watch(other).unwrap();
    assert!(watch.is_alive() && watch.seems_alive());
    say(&format!("heard {other}"));

    if role.name == "dying" {
        let mut held = mutex.lock().unwrap();
        *held = 7;
        say("holds");
        // Not until its input ends: who kills it may close that first.
        std::thread::sleep(LONG);
        unreachable!("it is killed");
    }
    await_cue("watch");
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = scope.spawn(move || {
            tell.send(thread_id()).unwrap();
            watch.wait(LONG)
        });
        let thread = told.recv().unwrap();
        assert!(wait_until(LONG, || sleeps(thread)));
        say("sleeps");
        assert!(sleeper.join().unwrap());
    });
    say("told");
    match mutex.lock() {
        Err(LockError::OwnerDied(left)) => assert_eq!(*left.mark_consistent(), 7),
        other => panic!("not inherited: {other:?}"),
    }
    let died = |e| matches!(e, Event::PublisherDied { .. });
    assert!(wait_until(LONG, || {
        // Its own message may still be there.
        drop(subscriber.receive().unwrap());
        std::iter::from_fn(|| subscriber.next_event()).any(died)
    }));
    drop((subscriber, publisher, mutex, node));
    let domain = Domain::of(&settings(dir, uid)).unwrap();
    domain.clean().unwrap();
    assert_eq!(domain.nodes().unwrap().len(), 0);
    say("cleaned");
}

/// Starts a member, in namespaces of its own or not.
fn start(test: &str, name: &str, dir: &TempDomain, uid: u32, contained: bool) -> Actor {
    let uid = uid.to_string();
    let plain = spawn_test(test, name, &[dir.path().to_str().unwrap(), &uid]);
    if !contained {
        return Actor::start_command(plain, name);
    }
    let prefix = container();
    let mut command = spawn_program(prefix[0]);
    command.args(&prefix[1..]).arg(plain.get_program()).args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Actor::start_command(command, name)
}

/// One dies, one survives; which of them is in namespaces of its own.
const PAIRS: [(bool, bool); 3] = [(true, true), (true, false), (false, true)];

fn pairs(test: &str, users: [u32; 2]) {
    if !may_unshare() {
        return;
    }
    let _watchdog = Watchdog::start(test, Duration::from_secs(240));
    for (dies_inside, survives_inside) in PAIRS {
        let dir = TempDomain::new("spaces").unwrap();
        if users != [0, 0] {
            chown(dir.path(), Some(users[0]), Some(GROUP)).unwrap();
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2770)).unwrap();
        }
        let mut dying = start(test, "dying", &dir, users[0], dies_inside);
        let mut survivor = start(test, "survivor", &dir, users[1], survives_inside);
        let pids = [dying.expect_number("pid"), survivor.expect_number("pid")];
        // Both are the first of their namespace: the number says nothing.
        assert_eq!(pids[0] == pids[1], dies_inside && survives_inside, "{pids:?}");
        let nodes = [dying.expect_number("node"), survivor.expect_number("node")];
        dying.tell("hear");
        survivor.tell("hear");
        assert_eq!(dying.expect_number("heard"), nodes[1]);
        assert_eq!(survivor.expect_number("heard"), nodes[0]);
        dying.expect("holds");
        survivor.tell("watch");
        survivor.expect("sleeps");
        dying.kill();
        survivor.expect("told");
        survivor.expect("cleaned");
        assert!(survivor.wait().success());
    }
}

#[test]
fn members_in_other_namespaces_work_together_and_know_of_deaths_both_ways() {
    let test = "members_in_other_namespaces_work_together_and_know_of_deaths_both_ways";
    match role() {
        Some(role) => member(&role),
        None => pairs(test, [0, 0]),
    }
}

#[test]
fn members_of_a_group_in_other_namespaces_do_so_too() {
    let test = "members_of_a_group_in_other_namespaces_do_so_too";
    match role() {
        Some(role) => member(&role),
        None if is_root() => pairs(test, [ONE, TWO]),
        None => println!("namespaces: skipped, only root can become other users"),
    }
}
