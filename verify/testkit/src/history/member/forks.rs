//! Forks of a member: what the child does with its parent's handles and with a node of its own, and
//! what must come of it.

use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use outlive::ErrorKind;

use super::fails::Fails;
use super::messages::{content, look_at};
use super::shared::Shared;
use super::things::{Own, Thing};
use crate::history::reply::Reply;
use crate::history::step::{FIXED_WORDS, Handle, Step};

/// A child that does not end by then hangs.
const HANG: Duration = Duration::from_secs(5);
/// So long one lives that outlives its parent.
const LINGERS: Duration = Duration::from_secs(2);

/// What the child does, by number.
pub(in crate::history) const WAYS: u64 = 7;

/// Forks, and waits for the child, but for one that stays.
pub(super) fn fork(
    shared: &Shared,
    own: &mut std::collections::BTreeMap<Handle, Own>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let how = step.arg("how");
    let mut ends = [0; 2];
    // SAFETY: the pointer is to two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: both were made just now, and have no other owner.
    let [mut from, mut to] = ends.map(|fd| unsafe { std::fs::File::from_raw_fd(fd) });
    // Else the child might find it locked by a thread that it does not have.
    let mut things = shared.things.lock().unwrap();
    // SAFETY: the child does as other threads' locks allow: it uses what it holds, and ends.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => return Err(std::io::Error::last_os_error().into()),
        0 => {
            let done = catch_unwind(AssertUnwindSafe(|| {
                drop(from);
                let wrong = child(how, shared, &mut things, own);
                let _ = to.write_all(wrong.join("; ").as_bytes());
                drop(to);
                if how == 5 {
                    for fd in 0..3 {
                        // SAFETY: nobody reads or writes there any more.
                        let _ = unsafe { libc::close(fd) };
                    }
                    std::thread::sleep(LINGERS);
                }
            }));
            // SAFETY: nothing of the parent's is to be dropped.
            unsafe { libc::_exit(if done.is_ok() { 0 } else { 3 }) }
        }
        _ => {}
    }
    drop((things, to));
    let mut wrong = String::new();
    let mut status = 0;
    if how == 5 {
        from.read_to_string(&mut wrong)?;
    } else {
        // SAFETY: the pointer is to a local.
        let mut ended = || unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == pid;
        if !crate::process::wait_until(HANG, &mut ended) {
            // SAFETY: the child is not reaped yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            return Err("a forked child hangs".into());
        }
        from.read_to_string(&mut wrong)?;
    }
    reply.value = u64::from(status as u32);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// What was wrong.
fn child(
    how: u64,
    shared: &Shared,
    things: &mut std::collections::BTreeMap<Handle, Thing>,
    own: &mut std::collections::BTreeMap<Handle, Own>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    match how {
        1 => {
            let argv = [c"/bin/true".as_ptr(), std::ptr::null()];
            // SAFETY: the array ends with a null.
            unsafe { libc::execv(argv[0], argv.as_ptr()) };
            wrong.push("execv fails".into());
        }
        2 | 3 => {
            for (handle, thing) in things.iter_mut() {
                let refused = uses(*handle, thing);
                if let Some(kind) = refused.filter(|kind| kind != "ForkedChild") {
                    wrong.push(format!("in a forked child {handle} gives {kind}"));
                }
            }
        }
        6 => wrong.extend(lives(shared).err().map(|e| format!("a child's own node: {e}"))),
        _ => {}
    }
    if how == 3 || how == 4 {
        own.clear();
        // In the order that safe code has: what borrows goes first.
        things.retain(|_, thing| !matches!(thing, Thing::Received { .. }));
        things.retain(|_, thing| matches!(thing, Thing::Sample(..)));
        check(things, &mut wrong);
        things.clear();
    }
    wrong
}

/// A life of its own, with a node and one of each: nothing of it waits for a thread of the parent.
fn lives(shared: &Shared) -> Result<(), Box<dyn std::error::Error>> {
    use outlive::ErrorKind::{Io, NoSpace, OutOfMemory};
    let name = format!("/child/{}", std::process::id());
    let live = || -> outlive::Result<()> {
        let node = shared.settings().name("child").open()?;
        let lock = node.mutex::<u64>(&name)?;
        let held = lock.lock();
        let publisher = node.topic::<u64>(&name)?.publisher()?;
        let mut subscriber = node.topic::<u64>(&name)?.subscriber()?;
        publisher.publish(&7)?;
        let mut consumer = node.queue::<u64>(&name)?.consumer()?;
        node.queue::<u64>(&name)?.producer()?.send(&8)?;
        let _end = outlive::rt::LatestWriter::<u64>::open(&node, &name)?;
        let got = (subscriber.receive()?.map(|m| *m), consumer.receive()?.map(|m| *m));
        assert!(held.is_ok() && got == (Some(7), Some(8)), "{held:?} {got:?}");
        drop(held);
        drop(lock);
        node.remove_lock(&name).map(drop)
    };
    match live() {
        // As its parent, it may lack something.
        Err(e) if matches!(e.kind(), Io | NoSpace | OutOfMemory) => Ok(()),
        lived => Ok(lived?),
    }
}

fn check(things: &std::collections::BTreeMap<Handle, Thing>, wrong: &mut Vec<String>) {
    for (handle, thing) in things {
        if let Thing::Sample(sample, seen) = thing
            && look_at(sample) != *seen
        {
            wrong.push(format!("sample {handle} has changed in a forked child"));
        }
    }
}

/// How an inherited handle answers, as far as it must refuse.
fn uses(handle: Handle, thing: &mut Thing) -> Option<String> {
    let body = content(handle, 0, FIXED_WORDS[0]);
    // One whose messages have another size.
    let large = content(handle, 0, FIXED_WORDS[1]);
    let misfit = |said: &outlive::Result<()>| {
        said.as_ref().is_err_and(|e| e.kind() == ErrorKind::InvalidArgument)
    };
    let kind = |e: ErrorKind| format!("{e:?}");
    let said = match thing {
        Thing::Node(node) => node.watch(node.id()).map(drop),
        Thing::Publisher(publisher) => match publisher.publish(&body).map(drop) {
            said if misfit(&said) => publisher.publish(&large).map(drop),
            said => said,
        },
        Thing::Subscriber(subscriber) => subscriber.receive().map(drop),
        Thing::Values(values) => super::batches::refused(values),
        Thing::Producer(producer) => match producer.try_send(&body).map_err(outlive::Error::from) {
            said if misfit(&said) => producer.try_send(&large).map_err(outlive::Error::from),
            said => said,
        },
        Thing::Consumer(consumer) => consumer.get().receive().map(drop),
        Thing::Client(client) => client.send(&body).map(drop),
        Thing::Server(server) => server.receive().map(drop),
        Thing::Lock(lock) => return Some(super::locks::refuses(lock)),
        // Wakes nobody: those who wait are the parent's.
        Thing::Condvar(it) => {
            it.notify_all();
            return None;
        }
        Thing::Set(it) => return Some(super::sets::refuses(it)),
        Thing::Semaphore(it) => return Some(super::semaphores::refuses(it)),
        Thing::End(end) => return super::rt::refuses(end),
        Thing::Segment(it) => return Some(super::segments::refuses(it)),
        Thing::Interrupt(it) => return super::timers::misbehaves(it),
        // The parent's goes on as it was.
        Thing::Timer(it) => {
            it.fired();
            it.stop();
            return None;
        }
        _ => return None,
    };
    Some(said.map_or_else(|e| kind(e.kind()), |()| "ok".into()))
}
