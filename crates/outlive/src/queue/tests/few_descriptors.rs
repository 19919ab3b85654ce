//! Where this process can open no file for a while.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;

const NAME: &str = "queue::tests::few_descriptors::\
                    a_producers_end_is_told_where_no_descriptor_is_left";
const LIMITED: &str = "OUTLIVE_TEST_FEW_DESCRIPTORS";
const PRODUCES: &str = "OUTLIVE_TEST_FEW_DESCRIPTORS_PRODUCER";

/// This test in a process of its own.
fn again(role: &str, value: &std::ffi::OsStr) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME]).env(role, value);
    command
}

/// Lets this process have descriptors below `number` only; returns what it was.
fn limit(number: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a struct that lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let was = std::mem::replace(&mut limit.rlim_cur, number);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
        was
    }
}

/// Sends one message and is there until somebody kills it.
fn produce_until_killed(root: &std::path::Path) {
    let n = Node::builder().root(root).name("victim").open().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    producer.send(&7).unwrap();
    loop {
        std::thread::park();
    }
}

/// A child that ends with its test.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The limit is of the process, so in one of its own.
#[test]
fn a_producers_end_is_told_where_no_descriptor_is_left() {
    if let Some(root) = std::env::var_os(PRODUCES) {
        return produce_until_killed(root.as_ref());
    }
    if std::env::var_os(LIMITED).is_none() {
        let done = again(LIMITED, "1".as_ref()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let dir = TempDir::new("queue-few-descriptors");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut victim = again(PRODUCES, dir.join("root").as_os_str());
    // SAFETY: one system call.
    unsafe {
        victim.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let victim = Victim(victim.stdout(Stdio::null()).spawn().unwrap());
    assert_eq!(*wait(&mut consumer), 7);
    while consumer.next_event().is_some() || consumer.receive().unwrap().is_some() {}
    // Those that are open stay so.
    let was = limit(3);
    drop(victim);
    let e = consumer.receive().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    limit(was);
    let until = Deadline::in_ns(20_000_000_000);
    let mut events = Vec::new();
    while events.is_empty() && !until.has_passed() {
        assert!(consumer.receive_timeout(Duration::from_millis(10)).unwrap().is_none());
        events.extend(std::iter::from_fn(|| consumer.next_event()));
    }
    assert!(matches!(events[..], [Event::ProducerDied(_)]), "{events:?}");
    assert!(consumer.receive().unwrap().is_none());
    assert_eq!((consumer.next_event(), lanes(&dir)), (None, 0));
}
