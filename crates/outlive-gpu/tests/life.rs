//! What lives as long as the process, and what is refused rather than done wrongly.

mod common;

use std::time::Duration;

use common::{alone, count, library, pattern, stub, topic};
use outlive::Node;
use outlive_gpu::share::{DeviceFrame, DeviceShare};
use outlive_gpu::{Cuda, ErrorKind, Gate, LoanExt, SampleExt, Stream};
use testkit::temp::TempDomain;

const BYTES: usize = 100_000;

fn node() -> (TempDomain, Node) {
    let dir = TempDomain::new("gpu-life").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    (dir, node)
}

/// As Python does: 1 to 1001 events before, and segments that were unmapped while registered.
#[test]
fn a_device_that_is_opened_and_dropped_at_every_call_is_the_same_one() {
    let _alone = alone("");
    let (_dir, node) = node();
    let data = pattern(3, BYTES);
    let mut first = None;
    for round in 0..200 {
        let (publisher, mut subscriber) = topic(&node, "/image");
        let cuda = Cuda::open_library(library(), 0).unwrap();
        let from = cuda.upload(&data).unwrap();
        let loan = publisher.loan_slice(BYTES).unwrap();
        // SAFETY: buffers live until the copies are done.
        unsafe { loan.fill_from_device(&cuda, from.ptr(), Stream::DEFAULT) }
            .unwrap()
            .publish()
            .unwrap();
        drop((from, cuda));
        let sample = subscriber.receive().unwrap().unwrap();
        assert!(*sample == *data);
        drop((sample, publisher, subscriber));
        assert_eq!(count(4), 0, "round {round}: unmapped while registered");
        let now = (count(0), count(1));
        assert_eq!(*first.get_or_insert(now), now, "round {round}: ranges and events");
    }
}

#[test]
fn a_segment_stays_registered_while_any_device_copies_there() {
    let stub = stub("devices=2 delay_us=100000");
    let other = Cuda::open_library(library(), 1).unwrap();
    let (_dir, node) = node();
    let data = pattern(4, BYTES);
    let from = stub.cuda.upload(&data).unwrap();
    let (publisher, mut subscriber) = topic(&node, "/image");
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffers live until the copies are done, here and below.
    unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }
        .unwrap()
        .publish()
        .unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    let to = other.alloc(BYTES).unwrap();
    // SAFETY: as above.
    let take = unsafe { sample.copy_to_device(&other, to.ptr(), Stream::DEFAULT) }.unwrap();
    // One registration of the segment for both.
    assert_eq!(stub.cuda.registered(), other.registered());
    assert_eq!(other.registered().copies, 1);
    take.finish().unwrap();
    assert!(to.download().unwrap() == data);
}

#[test]
fn a_stream_that_is_captured_is_refused_with_a_sentence() {
    let stub = stub("");
    let (_dir, node) = node();
    let from = stub.cuda.upload(&pattern(5, BYTES)).unwrap();
    let (publisher, mut subscriber) = topic(&node, "/image");
    let gate = Gate::new(&stub.cuda).unwrap();
    publisher.publish(&pattern(6, BYTES)).unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    common::configure("capturing=1");
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffers and streams live until copies would be done, here and below.
    let e = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.remedy().contains("end the capture first"), "{e}");
    // SAFETY: as above.
    let e = unsafe { sample.copy_to_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    // SAFETY: as above.
    let e = unsafe { gate.hold(Stream::DEFAULT) }.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    common::configure("");
    // Nothing was begun, and nothing stays reserved.
    assert_eq!((count(3), stub.cuda.registered().quarantined), (0, 0));
}

#[test]
fn parts_of_one_device_are_told_apart() {
    let _stub = stub("devices=2 parts=1");
    let one = Cuda::open_library(library(), 0).unwrap();
    let other = Cuda::open_library(library(), 1).unwrap();
    assert_ne!(one.info().device.uuid, other.info().device.uuid);
}

#[test]
fn a_forked_child_is_refused_and_harms_nobody() {
    let stub = stub("");
    let gate = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    // SAFETY: the stream lives until it has passed.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    let pinned = stub.cuda.pinned(4096).unwrap();
    // SAFETY: the page is ours.
    unsafe { pinned.as_ptr().write(1) };
    let child = testkit::fork_child(|| {
        let refused = stub.cuda.alloc(1).is_err_and(|e| e.kind() == ErrorKind::Unsupported)
            && stub.cuda.stream().is_err()
            && stub.cuda.synchronize().is_err()
            && stub.cuda.synchronize_timeout(Duration::from_secs(1)).is_err();
        gate.open(ticket);
        // SAFETY: the child's own copies, dropped once; the parent drops its own.
        unsafe {
            drop(std::ptr::read(&raw const gate));
            drop(std::ptr::read(&raw const pinned));
        }
        i32::from(!refused)
    });
    assert!(child.unwrap().wait().success());
    // The child opened nothing, and our word is still the device's.
    let waits = stub.cuda.synchronize_timeout(Duration::from_millis(20));
    assert_eq!(waits.unwrap_err().kind(), ErrorKind::Timeout);
    gate.open(ticket);
    stub.cuda.synchronize_timeout(Duration::from_secs(20)).unwrap();
}

#[test]
fn what_is_dropped_waits_for_a_stuck_device_for_a_second_and_no_longer() {
    let stub = stub("");
    let (_dir, node) = node();
    let share = DeviceShare::open(&stub.cuda, &node).unwrap();
    let publisher = share.publisher(node.topic::<DeviceFrame>("/device").unwrap()).unwrap();
    let gate = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    // SAFETY: the stream lives until it has passed.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    let e = stub.cuda.synchronize_timeout(Duration::from_millis(20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    // A hang would be ended by the test's watchdog.
    drop(publisher.loan(1000).unwrap());
    assert_eq!(stub.cuda.registered().quarantined, 1);
    gate.open(ticket);
    stub.cuda.synchronize_timeout(Duration::from_secs(20)).unwrap();
}
