//! One device's memory in several processes, and streams that wait for peers; against a driver
//! whose device memory is a file in memory.

mod common;

use std::time::Duration;

use common::{configure, connect, library, pattern, stub, unconnected};
use outlive::Node;
use outlive::topic::Event;
use outlive_gpu::share::{DeviceFrame, DeviceSample, DeviceShare, DeviceSubscriber};
use outlive_gpu::{Cuda, ErrorKind, Gate, Look, Stream};
use testkit::actor::{Actor, await_cue, say};
use testkit::process::wait_until;
use testkit::role;
use testkit::temp::TempDomain;

const BYTES: usize = 100_000;
const LONG: Duration = Duration::from_secs(20);

fn content(cuda: &Cuda, sample: &DeviceSample) -> Vec<u8> {
    let copy = cuda.alloc(sample.bytes()).unwrap();
    // SAFETY: both live until the copy is done: `download` waits for the same stream.
    unsafe {
        cuda.copy_on_device(copy.ptr(), sample.ptr(), sample.bytes(), Stream::DEFAULT).unwrap();
    }
    copy.download().unwrap()
}

struct Member {
    cuda: Cuda,
    node: Node,
    share: DeviceShare,
}

fn member(dir: &str) -> Member {
    let cuda = Cuda::open_library(library(), 0).unwrap();
    let node = Node::builder().root(dir).open().unwrap();
    let share = DeviceShare::open(&cuda, &node).unwrap();
    Member { cuda, node, share }
}

fn subscriber(m: &Member, history: u64) -> DeviceSubscriber {
    let topic = m.node.topic::<DeviceFrame>("/device").unwrap().history(history);
    m.share.subscriber(topic).unwrap()
}

fn next(subscriber: &mut DeviceSubscriber) -> DeviceSample {
    let mut got = None;
    assert!(wait_until(LONG, || {
        got = subscriber.receive().unwrap();
        got.is_some()
    }));
    got.unwrap()
}

fn play() -> Option<()> {
    let role = role()?;
    configure("");
    let m = member(&role.args[0]);
    match role.name.as_str() {
        "maker" => {
            let topic = m.node.topic::<DeviceFrame>("/device").unwrap();
            let publisher = m.share.publisher(topic).unwrap();
            assert!(wait_until(LONG, || publisher.port().subscribers().unwrap() == 1));
            let count: u64 = role.args[1].parse().unwrap();
            for seed in 0..count {
                let data = pattern(seed, BYTES);
                let from = m.cuda.upload(&data).unwrap();
                let loan = publisher.loan(BYTES).unwrap();
                // SAFETY: buffer and stream live until the copy is done.
                unsafe {
                    m.cuda.copy_on_device(loan.ptr(), from.ptr(), BYTES, Stream::DEFAULT).unwrap();
                    loan.publish(Stream::DEFAULT, [seed, 0, 0, 0, 0, 0, 0, 0]).unwrap();
                }
                await_cue("next");
            }
            // A loan that is being written when we die.
            let loan = publisher.loan(BYTES).unwrap();
            say("writing");
            await_cue("never");
            drop(loan);
        }
        "one" => {
            let topic = m.node.topic::<DeviceFrame>("/device").unwrap();
            let publisher = m.share.publisher(topic).unwrap();
            assert!(wait_until(LONG, || publisher.port().subscribers().unwrap() == 1));
            let loan = publisher.loan(BYTES).unwrap();
            // SAFETY: nothing is on the stream.
            unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }.unwrap();
            say(&format!("node {}", m.node.id()));
            await_cue("never");
        }
        "late" => {
            let mut late = subscriber(&m, 1);
            let sample = next(&mut late);
            assert!(content(&m.cuda, &sample) == pattern(sample.tag()[0], BYTES));
            say("whole");
        }
        other => panic!("no role {other}"),
    }
    Some(())
}

#[test]
fn memory_is_handed_over_once_and_outlives_its_maker() {
    let test = "memory_is_handed_over_once_and_outlives_its_maker";
    if play().is_some() {
        return;
    }
    let _stub = stub("");
    let dir = TempDomain::new("gpu-share").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let m = member(&path);
    let mut reader = subscriber(&m, 0);
    let count = 30;
    let mut maker = Actor::start(test, "maker", &[&path, &count.to_string()]);
    let mut last = None;
    for seed in 0..count {
        let sample = next(&mut reader);
        assert_eq!((sample.meta().seq, sample.tag()[0]), (seed, seed));
        assert!(content(&m.cuda, &sample) == pattern(seed, BYTES), "message {seed}");
        last = Some(sample);
        maker.tell("next");
    }
    // As many as chunks were in use, not as messages.
    assert!(m.share.imported() <= 20, "{}", m.share.imported());
    maker.expect("writing");
    maker.kill();
    let last = last.unwrap();
    assert!(wait_until(LONG, || {
        assert!(reader.receive().unwrap().is_none(), "what was being written was never sent");
        let mut events = std::iter::from_fn(|| reader.port().next_event());
        events.any(|e| matches!(e, Event::PublisherDied { unfinished: false, .. }))
    }));
    assert!(content(&m.cuda, &last) == pattern(count - 1, BYTES));

    // A latecomer gets it of us.
    let mut late = Actor::start(test, "late", &[&path]);
    late.expect("whole");
    late.wait();

    // Read by a stream that takes its time: held until then.
    let to = m.cuda.alloc(BYTES).unwrap();
    let (gate, stream) = (Gate::new(&m.cuda).unwrap(), m.cuda.stream().unwrap());
    // SAFETY: buffer and stream live until the copy is done, here and below.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    // SAFETY: as above.
    let reading = unsafe {
        m.cuda.copy_on_device(to.ptr(), last.ptr(), BYTES, stream.stream()).unwrap();
        last.release_on(stream.stream()).unwrap()
    };
    assert!(!reading.is_done().unwrap());
    assert_eq!(reader.port().borrowed(), 1);
    gate.open(ticket);
    reading.finish().unwrap();
    assert_eq!(reader.port().borrowed(), 0);
    assert!(to.download().unwrap() == pattern(count - 1, BYTES));

    // Once the last who has it lets go, nobody can have it.
    drop((reader, m));
    let m = member(&path);
    let mut reader = subscriber(&m, 1);
    let mut answer = None;
    wait_until(Duration::from_secs(2), || {
        answer = reader.receive().transpose();
        answer.is_some()
    });
    // The ring of the dead may be gone by now; else its memory is.
    if let Some(answer) = answer {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::PeerDied);
    }
}

#[test]
fn a_stream_that_waits_is_let_through_when_its_peer_dies() {
    let test = "a_stream_that_waits_is_let_through_when_its_peer_dies";
    if play().is_some() {
        return;
    }
    let stub = stub("");
    let dir = TempDomain::new("gpu-gate").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let m = member(&path);
    let mut reader = subscriber(&m, 0);
    let gate = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    let from = stub.cuda.upload(&pattern(1, BYTES)).unwrap();
    let to = stub.cuda.alloc(BYTES).unwrap();
    // SAFETY: buffers and stream live until the copies are done, here and below.
    let hold = || unsafe {
        let ticket = gate.hold(stream.stream()).unwrap();
        stub.cuda.copy_on_device(to.ptr(), from.ptr(), BYTES, stream.stream()).unwrap();
        ticket
    };

    // Ready: after the message, not before.
    let mut maker = Actor::start(test, "maker", &[&path, "1"]);
    let ticket = hold();
    std::thread::sleep(Duration::from_millis(30));
    assert!(to.download().unwrap() != pattern(1, BYTES), "it waits");
    let mut got = None;
    gate.open_when(ticket, LONG, || {
        got = reader.receive().unwrap();
        if got.is_some() { Look::Ready } else { Look::NotYet }
    })
    .unwrap();
    stream.synchronize().unwrap();
    assert!(to.download().unwrap() == pattern(1, BYTES));
    maker.tell("next");
    maker.expect("writing");

    // Dead: the stream goes on, and we are told.
    let maker_node = got.as_ref().unwrap().meta().publisher.node;
    let watch = m.node.watch(maker_node).unwrap();
    let ticket = hold();
    maker.kill();
    let look = || if watch.is_alive() { Look::NotYet } else { Look::Dead };
    let e = gate.open_when(ticket, LONG, look).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PeerDied);
    stream.synchronize().unwrap();

    // Too late, or a look that panics: it goes on as well.
    let ticket = hold();
    let e = gate.open_when(ticket, Duration::from_millis(5), || Look::NotYet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    stream.synchronize().unwrap();
    let ticket = hold();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gate.open_when(ticket, LONG, || panic!("a look that fails"))
    }));
    assert!(panicked.is_err());
    stream.synchronize().unwrap();
    // Nobody opens: dropping the gate does.
    hold();
    drop(gate);
    stream.synchronize().unwrap();
}

#[test]
fn devices_that_cannot_share_or_wait_say_so() {
    let stub = stub("no_vmm=1");
    let dir = TempDomain::new("gpu-cannot").unwrap();
    let other = dir.path().join("cannot.so");
    std::os::unix::fs::symlink(library(), &other).unwrap();
    let cuda = Cuda::open_library(&other, 0).unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    let e = DeviceShare::open(&cuda, &node).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    drop(stub);
}

/// Its queue of connections is full, so that one more would wait for ever.
#[test]
fn a_stopped_peer_keeps_nobody_waiting_who_needs_its_memory() {
    let test = "a_stopped_peer_keeps_nobody_waiting_who_needs_its_memory";
    if play().is_some() {
        return;
    }
    let _stub = stub("");
    let dir = TempDomain::new("gpu-stopped").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let m = member(&path);
    let mut reader = subscriber(&m, 0);
    let mut maker = Actor::start(test, "one", &[&path]);
    // It has sent before it is stopped: the message waits in the topic.
    let node = outlive::NodeId::from_raw(maker.expect_number("node"));
    maker.signal(libc::SIGSTOP);
    let _queue = fill_queue(&m, node);
    let e = reader.receive().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PeerDied, "{e}");
    maker.kill();
}

/// Connects to the socket of `node` until its queue is full.
fn fill_queue(m: &Member, node: outlive::NodeId) -> Vec<std::os::fd::OwnedFd> {
    let mut all = Vec::new();
    loop {
        let socket = unconnected();
        if !connect(&socket, &m.node, node) {
            return all;
        }
        all.push(socket);
        assert!(all.len() < 10_000, "it is not stopped");
    }
}
