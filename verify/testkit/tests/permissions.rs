//! Other users: strangers can neither read, write, block nor delete; the members of a group work
//! together. Users are numbers here; each process takes its own, so these tests need root.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Domain, ErrorKind, Node, NodeBuilder};
use testkit::actor::{await_cue, say};
use testkit::process::wait_until;
use testkit::{Actor, TempDomain, Watchdog, role};

/// Users and a group that are nobody's on this machine.
const STRANGER: u32 = 61_801;
const ONE: u32 = 61_802;
const TWO: u32 = 61_803;
const GROUP: u32 = 61_810;
const LONG: Duration = Duration::from_secs(20);

fn is_root() -> bool {
    // SAFETY: reads a number.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("permissions: skipped, only root can become other users");
    }
    root
}

/// Makes this process one of user `uid` for good.
fn become_user(uid: u32, groups: &[u32]) {
    let gid = groups.first().copied().unwrap_or(uid);
    // SAFETY: plain calls; the list is as long as said.
    let done = unsafe {
        libc::setgroups(groups.len(), groups.as_ptr()) == 0
            && libc::setresgid(gid, gid, gid) == 0
            && libc::setresuid(uid, uid, uid) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}

fn all_paths(dir: &Path) -> Vec<std::path::PathBuf> {
    testkit::temp::listing(dir).iter().map(|path| dir.join(path)).collect()
}

/// What was there `before` is there, and a stranger made nothing. Members may have: without
/// `futex_waitv` one that falls asleep has a socket.
fn assert_nothing_of_stranger(dir: &Path, before: &[std::path::PathBuf]) {
    let after = all_paths(dir);
    assert!(before.iter().all(|path| after.contains(path)), "{before:?}, {after:?}");
    for path in after {
        let owner = fs::symlink_metadata(&path).map(|file| file.uid());
        assert!(owner.is_ok_and(|owner| owner != STRANGER), "{path:?}");
    }
}

/// Everything that could be done to a file of somebody else's.
fn attack(path: &Path) -> Vec<&'static str> {
    let mut done = Vec::new();
    let mut tried = |what, worked: bool| done.extend(worked.then_some(what));
    tried("read", fs::File::open(path).is_ok());
    tried("list", fs::read_dir(path).is_ok());
    tried("write", OpenOptions::new().write(true).open(path).is_ok());
    tried("truncate", OpenOptions::new().write(true).truncate(true).open(path).is_ok());
    tried("widen", fs::set_permissions(path, fs::Permissions::from_mode(0o777)).is_ok());
    tried("rename", fs::rename(path, path.with_extension("stolen")).is_ok());
    tried("delete", fs::remove_file(path).is_ok() || fs::remove_dir(path).is_ok());
    tried("add", fs::write(path.join("new"), "x").is_ok());
    done
}

/// What a stranger tries: by hand, and through the library.
fn stranger(root: &Path, builder: impl Fn() -> NodeBuilder, paths: &str) {
    for path in paths.split('\n').filter(|path| !path.is_empty()) {
        let done = attack(Path::new(path));
        assert!(done.is_empty(), "a stranger could {done:?} {path}");
    }
    let refused = |e: outlive::Error| {
        let kinds = [ErrorKind::NotOwned, ErrorKind::Permission];
        assert!(kinds.contains(&e.kind()), "{e}");
        assert!(!e.remedy().is_empty() && e.to_string().contains(root.to_str().unwrap()), "{e}");
    };
    refused(builder().open().unwrap_err());
    let domain = Domain::of(&builder()).unwrap();
    domain.topics().map(drop).unwrap_or_else(refused);
    domain.clean().map(drop).unwrap_or_else(refused);
}

#[test]
fn a_stranger_can_neither_read_write_block_nor_delete() {
    let test = "a_stranger_can_neither_read_write_block_nor_delete";
    if let Some(role) = role() {
        become_user(STRANGER, &[]);
        let root = Path::new(&role.args[0]).join("root");
        stranger(&root, || Node::builder().root(&root), &role.args[1]);
        return say("tried");
    }
    if !is_root() {
        return;
    }
    let _watchdog = Watchdog::start(test, Duration::from_secs(60));
    let dir = TempDomain::new("stranger").unwrap();
    let root = dir.path().join("root");
    let node = Node::builder().root(&root).name("owner").open().unwrap();
    let publisher = node.topic::<u64>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<u64>("/t").unwrap().subscriber().unwrap();
    let mut consumer = node.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = node.queue::<u64>("/q").unwrap().producer().unwrap();
    let mutex = node.mutex_with::<u64>("/m", &7).unwrap();
    publisher.publish(&1).unwrap();
    let before = all_paths(dir.path());
    assert!(before.len() > 8, "{before:?}");
    let names: Vec<_> = before.iter().map(|path| path.to_str().unwrap()).collect();
    let args = [dir.path().to_str().unwrap(), &names.join("\n")];
    Actor::start(test, "stranger", &args).expect("tried");

    assert_nothing_of_stranger(dir.path(), &before);
    publisher.publish(&2).unwrap();
    for n in [1, 2] {
        assert_eq!(*subscriber.receive_timeout(LONG).unwrap().unwrap(), n);
    }
    producer.send(&3).unwrap();
    assert_eq!(*consumer.receive_timeout(LONG).unwrap().unwrap(), 3);
    assert_eq!(*mutex.lock().unwrap(), 7);
    assert_eq!(Domain::of(&Node::builder().root(&root)).unwrap().audit().unwrap().faults, [""; 0]);
}

/// As root, who may give directories away: a live domain went over to the group that came last.
#[test]
fn a_domain_keeps_its_group() {
    if !is_root() {
        return;
    }
    let dir = TempDomain::new("keeps-group").unwrap();
    let root = dir.path().join("root");
    let open = |domain: &str, gid: Option<u32>| {
        let builder = Node::builder().root(&root).domain(domain);
        gid.map_or_else(|| builder.clone(), |gid| builder.clone().group(gid)).open()
    };
    let owner = |domain: &str| {
        let meta = fs::metadata(root.join(domain)).unwrap();
        (meta.gid(), meta.permissions().mode() & 0o7777)
    };
    let _shared = open("shared", Some(GROUP)).unwrap();
    let _private = open("private", None).unwrap();
    let before = (owner("shared"), owner("private"));
    for (domain, gid, says) in [
        ("shared", GROUP + 1, format!("it belongs to group {GROUP}, not to group {}", GROUP + 1)),
        ("private", GROUP, "it is private to user 0".into()),
    ] {
        let refused = open(domain, Some(gid)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotOwned);
        assert!(refused.to_string().contains(&says), "{refused}");
    }
    assert_eq!((owner("shared"), owner("private")), before);
    open("shared", Some(GROUP)).unwrap();
}

#[test]
fn members_of_a_group_work_together_and_strangers_are_refused() {
    let test = "members_of_a_group_work_together_and_strangers_are_refused";
    let of = |root: &Path| Node::builder().root(root).group(GROUP);
    if let Some(role) = role() {
        let root = Path::new(&role.args[0]).join("root");
        match role.name.as_str() {
            "talker" => {
                become_user(ONE, &[GROUP]);
                let node = of(&root).name("talker").open().unwrap();
                let publisher = node.topic::<u64>("/t").unwrap().publisher().unwrap();
                let mutex = node.mutex_with::<u64>("/m", &0).unwrap();
                say("ready");
                await_cue("publish");
                publisher.publish(&42).unwrap();
                let _held = mutex.lock().unwrap();
                say("holds");
                await_cue("never");
            }
            "listener" => {
                become_user(TWO, &[GROUP]);
                let node = of(&root).name("listener").open().unwrap();
                let mut subscriber = node.topic::<u64>("/t").unwrap().subscriber().unwrap();
                let mutex = node.mutex_with::<u64>("/m", &0).unwrap();
                assert!(wait_until(LONG, || {
                    assert!(subscriber.receive().unwrap().is_none());
                    !subscriber.publishers().is_empty()
                }));
                say("ready");
                let got = loop {
                    if let Some(sample) = subscriber.receive_timeout(LONG).unwrap() {
                        break *sample;
                    }
                };
                assert_eq!(got, 42);
                say("got");
                await_cue("inherit");
                assert!(mutex.lock().is_err(), "told that its owner died");
                let died = wait_until(LONG, || {
                    assert!(subscriber.receive().unwrap().is_none());
                    let dead = |e| matches!(e, Event::PublisherDied { .. });
                    std::iter::from_fn(|| subscriber.next_event()).any(dead)
                });
                assert!(died);
                drop((subscriber, mutex, node));
                Domain::of(&of(&root)).unwrap().clean().unwrap();
                say("cleaned");
            }
            _ => {
                become_user(STRANGER, &[]);
                stranger(&root, || of(&root), &role.args[1]);
                say("tried");
            }
        }
        return;
    }
    if !is_root() {
        return;
    }
    let _watchdog = Watchdog::start(test, Duration::from_secs(90));
    let dir = TempDomain::new("group").unwrap();
    chown(dir.path(), Some(ONE), Some(GROUP)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2770)).unwrap();
    let path = dir.path().to_str().unwrap();
    let mut talker = Actor::start(test, "talker", &[path]);
    talker.expect("ready");
    let mut listener = Actor::start(test, "listener", &[path]);
    listener.expect("ready");
    let before = all_paths(dir.path());
    let names: Vec<_> = before.iter().map(|path| path.to_str().unwrap()).collect();
    Actor::start(test, "stranger", &[path, &names.join("\n")]).expect("tried");
    assert_nothing_of_stranger(dir.path(), &before);
    talker.tell("publish");
    talker.expect("holds");
    listener.expect("got");
    talker.kill();
    listener.tell("inherit");
    listener.expect("cleaned");
}
