//! Segments larger than what is registered in one call; alone in its program, for its environment.

mod common;

use common::{count, pattern, stub};
use outlive::Node;
use outlive_gpu::{LoanExt, Rows, SampleExt, Stream};
use testkit::temp::TempDomain;

#[test]
fn copies_across_the_border_of_two_registrations_are_cut_there() {
    // SAFETY: no other thread of this program reads the environment yet.
    unsafe { std::env::set_var("OUTLIVE_GPU_PIECE_BYTES", "65536") };
    // The stub, as the driver, refuses larger pieces and copies across a border.
    let stub = stub("register_bytes_max=65536");
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
    assert!(count(0) > registered.segments * 10, "{registered:?}");
    drop((sample, publisher, subscriber));
    assert_eq!(count(0), 0);
}
