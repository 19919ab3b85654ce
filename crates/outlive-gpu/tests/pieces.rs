//! Segments larger than what is registered in one call; alone in its program, for its environment.

mod common;

use std::sync::Once;
use std::time::Duration;

use common::{count, pattern, stub};
use outlive::Node;
use outlive_gpu::{Gate, LoanExt, Rows, SampleExt, Stream};
use testkit::temp::TempDomain;

/// Each test begins so.
fn small_pieces() {
    static SET: Once = Once::new();
    // SAFETY: no other thread of this program reads the environment yet.
    SET.call_once(|| unsafe { std::env::set_var("OUTLIVE_GPU_PIECE_BYTES", "65536") });
}

#[test]
fn copies_across_the_border_of_two_registrations_are_cut_there() {
    small_pieces();
    // The stub, as the driver, refuses larger pieces and copies across a border.
    let stub = stub("register_bytes_max=65536");
    // The memory of an upload, which the other test lets the driver pin whole.
    let pinned = count(0);
    let dir = TempDomain::new("gpu-pieces").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    let (publisher, mut subscriber) = common::topic(&node, "/large");
    for (seed, bytes) in [(1, 500_000), (2, 500_000), (3, 65_536), (4, 1)] {
        let data = pattern(seed, bytes);
        let from = stub.cuda.upload(&data).unwrap();
        let loan = publisher.loan_slice(bytes).unwrap();
        // SAFETY: buffers live until the copies are done.
        unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }
            .unwrap()
            .publish()
            .unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        assert!(*sample == *data);
        let to = stub.cuda.alloc(bytes).unwrap();
        // SAFETY: as above.
        unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), Stream::DEFAULT) }
            .unwrap()
            .finish()
            .unwrap();
        assert!(to.download().unwrap() == data);
    }
    // Rows too, with gaps between them.
    let (width, rows, pitch) = (3000, 100, 4096);
    let image = pattern(7, width * rows);
    let from = stub.cuda.upload(&image).unwrap();
    let at = Rows { offset: 0, width, count: rows, host_pitch: pitch, device_pitch: 0 };
    let loan = publisher.loan_slice(pitch * rows).unwrap();
    // SAFETY: as above.
    unsafe { loan.fill_rows_from_device(&stub.cuda, from.ptr(), at, Stream::DEFAULT) }
        .unwrap()
        .publish()
        .unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    for (got, want) in sample.chunks(pitch).zip(image.chunks(width)) {
        assert_eq!(got[..width], *want);
    }
    let registered = stub.cuda.registered();
    assert_eq!(registered.refused, 0);
    assert!(count(0) > registered.segments * 10 || !common::is_stub(), "{registered:?}");
    drop((sample, publisher, subscriber));
    assert_eq!(count(0), pinned);
}

/// They were unregistered at once, by who copied: for that the driver waits for the whole device.
#[test]
fn the_pieces_that_were_registered_of_a_refused_segment_go_with_it() {
    const BYTES: usize = 500_000;
    small_pieces();
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("refused in part", Duration::from_secs(100));
    let dir = TempDomain::new("gpu-refused").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    let (publisher, mut subscriber) = common::topic(&node, "/large");
    let data = pattern(8, BYTES);
    let from = stub.cuda.upload(&data).unwrap();
    let (ranges, refused) = (count(0), stub.cuda.registered().refused);
    let gate = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    // SAFETY: buffers and the stream live until all is done, here and below.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    common::configure("fail=cuMemHostRegister_v2:3:2");
    let loan = publisher.loan_slice(BYTES).unwrap();
    // The watchdog ends a hang: nobody else lets the stream pass.
    // SAFETY: as above.
    let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) };
    fill.unwrap().publish().unwrap();
    assert!(*subscriber.receive().unwrap().unwrap() == *data);
    assert_eq!(stub.cuda.registered().refused, refused + 1);
    assert_eq!(count(0), ranges + 3, "two pieces, and the page of the gate");
    gate.open(ticket);
    drop((gate, publisher, subscriber));
    assert_eq!((count(0), count(4)), (ranges, 0));
    assert_eq!(stub.cuda.registered().refused, refused);
}
