//! Where this process can open no file for a while.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::os::fixture::limit_descriptors;

const NAME: &str = "queue::tests::failures::few_descriptors::\
                    a_producers_end_is_told_where_no_descriptor_is_left";
const PRODUCES: &str = "OUTLIVE_TEST_FEW_DESCRIPTORS_PRODUCER";

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
    let test = "a_producers_end_is_told_where_no_descriptor_is_left";
    if !in_a_child(module_path!(), test) {
        return;
    }
    let dir = TempDir::new("queue-few-descriptors");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", NAME]).env(PRODUCES, dir.join("root"));
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
    let was = limit_descriptors(3);
    drop(victim);
    let e = consumer.receive().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    limit_descriptors(was);
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
