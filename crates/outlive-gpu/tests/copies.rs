//! Chunks filled and read by a device, against a driver of host memory.

mod common;

use std::time::Duration;

use common::{count, library, pattern, stub, topic};
use outlive::Node;
use outlive_gpu::{Cuda, ErrorKind, Gate, LoanExt, Rows, SampleExt, Stream};
use testkit::temp::TempDomain;

const BYTES: usize = 300_000;
const LONG: Duration = Duration::from_secs(20);

fn node() -> (TempDomain, Node) {
    let dir = TempDomain::new("gpu").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    (dir, node)
}

#[test]
fn without_driver_device_or_functions_the_error_says_which_and_what_to_do() {
    let _stub = stub("");
    let e = Cuda::open_library("libcuda-that-nobody-has.so.1", 0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NoDriver);
    assert!(e.remedy().contains("driver") && e.to_string().contains("nobody-has"), "{e}");

    let dir = TempDomain::new("gpu-old").unwrap();
    // Functions of other names: as in a driver from before they were there.
    let mut old = std::fs::read(library()).unwrap();
    for name in ["cuMemHostRegister_v2", "cuEventQuery"] {
        let bytes = name.as_bytes();
        let places: Vec<_> =
            old.windows(bytes.len()).enumerate().filter(|(_, w)| *w == bytes).collect();
        let at: Vec<_> = places.iter().map(|(at, _)| *at).collect();
        assert!(!at.is_empty());
        at.into_iter().for_each(|at| old[at + bytes.len() - 1] = b'X');
    }
    let path = dir.path().join("libold.so");
    std::fs::write(&path, old).unwrap();
    let e = Cuda::open_library(&path, 0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DriverTooOld);
    let text = e.to_string();
    assert!(text.contains("cuMemHostRegister_v2") && text.contains("cuEventQuery"), "{text}");
    assert!(!text.contains("cuInit"), "{text}");

    // Each of these opens the driver anew under a name of its own.
    for (i, (settings, kind)) in [
        ("devices=0", ErrorKind::NoDevice),
        ("init=100", ErrorKind::NoDevice),
        ("init=34", ErrorKind::Driver(34)),
        ("init=803", ErrorKind::Driver(803)),
        ("fail=cuDevicePrimaryCtxRetain:1:2", ErrorKind::Driver(2)),
    ]
    .into_iter()
    .enumerate()
    {
        common::configure(settings);
        let other = dir.path().join(format!("same{i}.so"));
        std::os::unix::fs::symlink(library(), &other).unwrap();
        let e = Cuda::open_library(&other, 0).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
    }
    common::configure("");
    let e = Cuda::open_library(library(), 3).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NoDevice);
}

#[test]
fn a_message_is_sent_when_the_device_is_done_and_not_before() {
    let stub = stub("");
    let (_dir, node) = node();
    let (publisher, mut subscriber) = topic(&node, "/image");
    let data = pattern(1, BYTES);
    let from = stub.cuda.upload(&data).unwrap();
    let (gate, stream) = (Gate::new(&stub.cuda).unwrap(), stub.cuda.stream().unwrap());
    // SAFETY: the stream lives until it has passed.
    let hold = || unsafe { gate.hold(stream.stream()) }.unwrap();

    let ticket = hold();
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffer and stream live until the copy is done.
    let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) }.unwrap();
    assert!(!fill.is_done().unwrap());
    assert_eq!(fill.wait(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::Timeout);
    assert!(subscriber.receive().unwrap().is_none());
    assert_eq!(stub.cuda.registered().copies, 1);
    gate.open(ticket);
    assert_eq!(fill.publish().unwrap(), 0);
    let sample = subscriber.receive().unwrap().unwrap();
    assert!(*sample == *data && sample.is_borrowed());

    // And back: borrowed until the device is done.
    let to = stub.cuda.alloc(BYTES).unwrap();
    let ticket = hold();
    // SAFETY: as above.
    let take = unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), stream.stream()) }.unwrap();
    assert!(!take.is_done().unwrap());
    assert_eq!(subscriber.borrowed(), 1);
    gate.open(ticket);
    take.finish().unwrap();
    assert_eq!(subscriber.borrowed(), 0);
    assert!(to.download().unwrap() == data);
    assert_eq!(stub.cuda.registered().copies, 0);
}

#[test]
fn each_segment_is_registered_once_and_let_go_before_it_is_unmapped() {
    let stub = stub("");
    let (_dir, node) = node();
    let before = count(0);
    {
        let (publisher, mut subscriber) = topic(&node, "/grows");
        // The second size does not fit the chunks of the first: another segment.
        for (seed, bytes) in [(1, 10_000), (2, 10_000), (3, BYTES), (4, 9_000), (5, BYTES)] {
            let data = pattern(seed, bytes);
            let from = stub.cuda.upload(&data).unwrap();
            let loan = publisher.loan_slice(bytes).unwrap();
            // SAFETY: the buffer lives until the copy is done.
            let fill =
                unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }.unwrap();
            fill.publish().unwrap();
            let sample = subscriber.receive().unwrap().unwrap();
            assert!(*sample == *data);
            // SAFETY: as above.
            let take =
                unsafe { sample.copy_to_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }.unwrap();
            take.finish().unwrap();
        }
        assert_eq!(count(0) - before, 4, "two segments, mapped twice each");
        let registered = stub.cuda.registered();
        assert_eq!((registered.segments, registered.refused), (4, 0));
        // Small ones travel inline: the sample lies in memory of the process.
        publisher.publish(&[5; 40]).unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        let to = stub.cuda.alloc(40).unwrap();
        // SAFETY: as above.
        unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), Stream::DEFAULT) }
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(to.download().unwrap(), [5; 40]);
    }
    // The stub aborts when memory is unregistered after it was unmapped.
    assert_eq!(count(0), before);
}

#[test]
fn where_the_driver_refuses_to_register_copies_are_right_all_the_same() {
    for (settings, refused) in [("refuse_register=1", 2), ("no_read_only=1", 1)] {
        // What a device can do is asked when it is opened: another name, another device.
        let _stub = stub(settings);
        let dir = TempDomain::new("gpu-refused").unwrap();
        let path = dir.path().join("refuses.so");
        std::os::unix::fs::symlink(library(), &path).unwrap();
        let cuda = Cuda::open_library(&path, 0).unwrap();
        let (_dir, node) = node();
        let (publisher, mut subscriber) = topic(&node, "/plain");
        let data = pattern(9, BYTES);
        let from = cuda.upload(&data).unwrap();
        let loan = publisher.loan_slice(BYTES).unwrap();
        // SAFETY: the buffer lives until the copy is done.
        let fill = unsafe { loan.fill_from_device(&cuda, from.ptr(), Stream::DEFAULT) }.unwrap();
        fill.publish().unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        let to = cuda.alloc(BYTES).unwrap();
        // SAFETY: as above.
        let take = unsafe { sample.copy_to_device(&cuda, to.ptr(), Stream::DEFAULT) }.unwrap();
        take.finish().unwrap();
        assert!(to.download().unwrap() == data);
        assert_eq!(cuda.registered().refused, refused, "{settings}");
    }
}

#[test]
fn rows_of_an_image_go_both_ways_at_any_pitch() {
    let stub = stub("");
    let (_dir, node) = node();
    let (publisher, mut subscriber) = topic(&node, "/rows");
    let (width, count, device_pitch, host_pitch, offset) = (150, 40, 256, 160, 64);
    let image = pattern(4, device_pitch * count);
    let from = stub.cuda.upload(&image).unwrap();
    let rows = Rows { offset, width, count, host_pitch, device_pitch };
    let mut loan = publisher.loan_slice(offset + host_pitch * count).unwrap();
    loan.fill(0xee);
    // SAFETY: the buffers live until the copies are done.
    unsafe { loan.fill_rows_from_device(&stub.cuda, from.ptr(), rows, Stream::DEFAULT) }
        .unwrap()
        .publish()
        .unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    assert!(sample[..offset].iter().all(|b| *b == 0xee));
    for row in 0..count {
        let at = offset + row * host_pitch;
        assert_eq!(sample[at..at + width], image[row * device_pitch..][..width]);
        assert!(sample[at + width..at + host_pitch].iter().all(|b| *b == 0xee));
    }
    let to = stub.cuda.upload(&vec![0x11; device_pitch * count]).unwrap();
    // SAFETY: as above.
    unsafe { sample.copy_rows_to_device(&stub.cuda, to.ptr(), rows, Stream::DEFAULT) }
        .unwrap()
        .finish()
        .unwrap();
    for (got, want) in to.download().unwrap().chunks(device_pitch).zip(image.chunks(device_pitch)) {
        assert_eq!(got[..width], want[..width]);
        assert!(got[width..].iter().all(|b| *b == 0x11));
    }

    for bad in [
        Rows { count: count + 1, ..rows },
        Rows { offset: offset + 11, ..rows },
        Rows { width: usize::MAX, ..rows },
        Rows { host_pitch: 100, ..rows },
        Rows { device_pitch: 149, ..rows },
    ] {
        let loan = publisher.loan_slice(offset + host_pitch * count).unwrap();
        // SAFETY: nothing is begun.
        let e = unsafe { loan.fill_rows_from_device(&stub.cuda, from.ptr(), bad, Stream::DEFAULT) };
        assert_eq!(e.unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
    }
}

#[test]
fn a_slot_given_up_in_mid_copy_is_not_handed_out_while_the_device_may_write_it() {
    let stub = stub("");
    let (_dir, node) = node();
    let (publisher, subscriber) = topic(&node, "/given-up");
    let from = stub.cuda.alloc(BYTES).unwrap();
    let before = stub.cuda.registered().quarantined;
    let (gate, stream) = (Gate::new(&stub.cuda).unwrap(), stub.cuda.stream().unwrap());
    // SAFETY: the stream lives until it has passed.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    let loan = publisher.loan_slice(BYTES).unwrap();
    let address = loan.as_ptr();
    // SAFETY: the buffer lives until the copy is done (freeing it waits).
    drop(unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) }.unwrap());
    assert_eq!(stub.cuda.registered().quarantined, before + 1);
    let mut held = Vec::new();
    for _ in 0..40 {
        let loan = publisher.loan_slice(BYTES).unwrap();
        assert_ne!(loan.as_ptr(), address);
        held.push(loan);
    }
    drop(held);
    // Waits for the device: the segment is not unmapped under its copy.
    let segment = outlive::topic::segments::segment_at(address.addr()).unwrap();
    let opens_after = |ticket, ms| {
        let gate = &gate;
        move || {
            std::thread::sleep(Duration::from_millis(ms));
            gate.open(ticket);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(opens_after(ticket, 500));
        drop((publisher, subscriber));
    });
    assert_eq!(count(3), 0);
    assert_eq!(outlive::topic::segments::segment_at(segment.start()), None);

    // In time it is free again.
    let (publisher, _subscriber) = topic(&node, "/in-time");
    let loan = publisher.loan_slice(BYTES).unwrap();
    let address = loan.as_ptr();
    // SAFETY: as above.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    std::thread::scope(|scope| {
        // SAFETY: as above.
        let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) };
        scope.spawn(opens_after(ticket, 20));
        drop(fill.unwrap());
    });
    assert_eq!(publisher.loan_slice(BYTES).unwrap().as_ptr(), address);
}

#[test]
fn when_the_driver_fails_nothing_is_sent_and_no_slot_is_reused_in_doubt() {
    let stub = stub("");
    let (_dir, node) = node();
    let (publisher, mut subscriber) = topic(&node, "/fails");
    let from = stub.cuda.alloc(BYTES).unwrap();
    let mut try_once = |settings: &str| {
        common::configure(settings);
        let loan = publisher.loan_slice(BYTES).unwrap();
        let address = loan.as_ptr();
        // SAFETY: the buffer lives until the copy is done.
        let filled = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) };
        let e = filled.and_then(|fill| fill.publish()).unwrap_err();
        assert!(subscriber.receive().unwrap().is_none());
        let again = publisher.loan_slice(BYTES).unwrap().as_ptr() == address;
        (e.kind(), again)
    };
    let answers = [
        try_once("fail=cuMemcpyDtoHAsync_v2:1:2"),
        try_once("fail=cuEventRecord:1:700"),
        try_once("delay_us=50000 fail=cuEventQuery:1:700 fail=cuEventQuery:2:700"),
    ];
    common::configure("");
    assert_eq!(answers[0], (ErrorKind::Driver(2), true), "nothing was begun");
    assert_eq!(answers[1], (ErrorKind::Timeout, false), "begun, and nobody knows when it ends");
    assert_eq!(answers[2], (ErrorKind::Driver(700), false), "the context is beyond use");
    publisher.publish(&pattern(1, BYTES)).unwrap();
    assert!(*subscriber.receive().unwrap().unwrap() == *pattern(1, BYTES));
    stub.cuda.synchronize().unwrap();
}

#[test]
fn copies_of_many_threads_do_not_mix() {
    let stub = stub("delay_us=200");
    let (_dir, node) = node();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cuda, node) = (&stub.cuda, &node);
            scope.spawn(move || {
                let (publisher, mut subscriber) = topic(node, &format!("/t{thread}"));
                let stream = cuda.stream().unwrap();
                for round in 0..30 {
                    let data = pattern(thread * 1000 + round, 70_000);
                    let from = cuda.upload(&data).unwrap();
                    let loan = publisher.loan_slice(data.len()).unwrap();
                    // SAFETY: buffers and stream live until the copies are done.
                    unsafe { loan.fill_from_device(cuda, from.ptr(), stream.stream()) }
                        .unwrap()
                        .publish()
                        .unwrap();
                    let sample = subscriber.receive_timeout(LONG).unwrap().unwrap();
                    let to = cuda.alloc(data.len()).unwrap();
                    // SAFETY: as above.
                    unsafe { sample.copy_to_device(cuda, to.ptr(), stream.stream()) }
                        .unwrap()
                        .finish()
                        .unwrap();
                    assert!(to.download().unwrap() == data);
                }
            });
        }
    });
}
