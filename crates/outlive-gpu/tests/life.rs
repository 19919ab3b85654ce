//! What lives as long as the process, and what is refused rather than done wrongly.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{alone, count, library, pattern, stub, topic};
use outlive::Node;
use outlive_gpu::share::{
    DeviceFrame, DeviceLoan, DevicePublisher, DeviceSample, DeviceShare, DeviceSubscriber,
};
use outlive_gpu::{Cuda, Error, ErrorKind, Gate, LoanExt, SampleExt, Stream, copy_sample};
use testkit::temp::TempDomain;

const BYTES: usize = 100_000;

fn node() -> (TempDomain, Node) {
    let dir = TempDomain::new("gpu-life").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    (dir, node)
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
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
    let before = stub.cuda.registered().quarantined;
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
    assert_eq!((count(3), stub.cuda.registered().quarantined), (0, before));
}

/// A graph of torch was spoilt by whatever else the process did with the device meanwhile.
#[test]
fn calls_here_do_not_spoil_the_capture_of_somebody_elses_stream() {
    let stub = stub("");
    let (_dir, node) = node();
    let stream = stub.cuda.stream().unwrap();
    let data = pattern(7, BYTES);
    let from = stub.cuda.upload(&data).unwrap();
    common::configure("capture_elsewhere=1");
    let to = stub.cuda.alloc(BYTES).unwrap();
    {
        let gate = Gate::new(&stub.cuda).unwrap();
        let (publisher, mut subscriber) = topic(&node, "/image");
        let loan = publisher.loan_slice(BYTES).unwrap();
        // SAFETY: buffers and the stream live until the copies are done, here and below.
        let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) };
        fill.unwrap().publish().unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        // SAFETY: as above.
        let take = unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), stream.stream()) };
        take.unwrap().finish().unwrap();
        // SAFETY: as above.
        let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
        gate.open(ticket);
        // The default stream waits for all others, that one included: only it is refused.
        let loan = publisher.loan_slice(BYTES).unwrap();
        // SAFETY: as above.
        let refused = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    }
    drop(stub.cuda.alloc(BYTES).unwrap());
    assert_eq!(count(5), 0, "captures that were spoilt");
    common::configure("");
    assert!(to.download().unwrap() == data);
}

/// A large segment takes long, and everybody waited for its lock.
#[test]
fn who_registers_a_segment_keeps_nobody_waiting_who_copies_elsewhere() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("registers", Duration::from_secs(100));
    let (_dir, node) = node();
    let data = pattern(8, BYTES);
    let from = stub.cuda.upload(&data).unwrap();
    let to = stub.cuda.alloc(BYTES).unwrap();
    let (publisher, mut subscriber) = topic(&node, "/one");
    let (stub, from) = (&stub, &from);
    let (other, _other) = topic(&node, "/two");
    let mut round = || {
        let loan = publisher.loan_slice(BYTES).unwrap();
        // SAFETY: buffers live until the copies are done, here and below.
        unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }
            .unwrap()
            .publish()
            .unwrap();
        let sample = subscriber.receive().unwrap().unwrap();
        // SAFETY: as above.
        let take = unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), Stream::DEFAULT) };
        take.unwrap().finish().unwrap();
    };
    round();
    common::configure("hold_register=1");
    std::thread::scope(|scope| {
        let held = scope.spawn(move || {
            let loan = other.loan_slice(BYTES).unwrap();
            // SAFETY: as above.
            let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) };
            fill.unwrap().publish().unwrap();
        });
        while count(6) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        round();
        assert!(stub.cuda.registered().segments >= 2);
        assert!(!held.is_finished() && count(6) == 1);
        common::configure("");
        held.join().unwrap();
    });
}

/// It stayed registered where something else was mapped next, and a device wrote the old pages.
#[test]
fn a_segment_that_goes_while_all_are_being_registered_is_unregistered_or_left_alone() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("registers and goes", Duration::from_secs(100));
    let (_dir, node) = node();
    let before = stub.cuda.register_segments().unwrap();
    let (first, second) = (topic(&node, "/first"), topic(&node, "/second"));
    let start = |of: &outlive::Publisher<[u8]>| of.loan_slice(BYTES).unwrap().as_ptr().addr();
    let (first_start, _) = (start(&first.0), start(&second.0));
    common::configure("hold_register=1");
    std::thread::scope(|scope| {
        let registers = scope.spawn(|| stub.cuda.register_segments().unwrap());
        while count(6) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its turn would come.
        drop(second);
        let goes = scope.spawn(move || drop(first));
        while outlive::topic::segments::segment_at(first_start).is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It is not listed any more; some time to unmap it.
        std::thread::sleep(Duration::from_millis(100));
        let unmapped = count(4);
        common::configure("");
        registers.join().unwrap();
        goes.join().unwrap();
        assert_eq!(unmapped, 0, "ranges that were unmapped while registered");
    });
    let after = stub.cuda.registered();
    assert_eq!((after.segments, after.refused), (before.segments, before.refused));
}

/// Its entry was taken for that of a segment which nobody had registered.
#[test]
fn a_registered_segment_that_goes_while_all_are_being_registered_is_unregistered_first() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("registered, and goes", Duration::from_secs(100));
    let (_dir, node) = node();
    let before = stub.cuda.register_segments().unwrap();
    let from = stub.cuda.upload(&pattern(11, BYTES)).unwrap();
    let (first, second) = (topic(&node, "/first"), topic(&node, "/second"));
    // Listed before the other one.
    drop(first.0.loan_slice(BYTES).unwrap());
    common::configure("delay_us=2500000");
    let loan = second.0.loan_slice(BYTES).unwrap();
    let start = loan.as_ptr().addr();
    // Given up in mid-copy: the end of its segment waits for the copy.
    // SAFETY: the buffer lives until the copy is done.
    drop(unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }.unwrap());
    common::configure("hold_register=1");
    std::thread::scope(|scope| {
        let registers = scope.spawn(|| stub.cuda.register_segments().unwrap());
        while count(6) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let goes = scope.spawn(move || drop(second));
        while outlive::topic::segments::segment_at(start).is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
        common::configure("");
        registers.join().unwrap();
        goes.join().unwrap();
    });
    assert_eq!(count(4), 0, "ranges that were unmapped while registered");
    drop(first);
    let after = stub.cuda.registered();
    assert_eq!((after.segments, after.refused), (before.segments, before.refused));
}

/// Its last user waited for as long as the other thread was in the driver.
#[test]
fn who_lets_a_segment_go_does_not_wait_for_a_registration_that_never_ends() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("registers for ever", Duration::from_secs(60));
    let (_dir, node) = node();
    let ranges = count(0);
    let (publisher, subscriber) = topic(&node, "/image");
    drop(publisher.loan_slice(BYTES).unwrap());
    common::configure("hold_register=1");
    std::thread::scope(|scope| {
        let registers = scope.spawn(|| stub.cuda.register_segments().unwrap());
        while count(6) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The watchdog ends a hang: the registration goes on only after this.
        drop((publisher, subscriber));
        assert_eq!((count(4), registers.is_finished()), (0, false));
        common::configure("");
        registers.join().unwrap();
    });
    // Nobody will ask for it again: who has registered it undoes that.
    assert_eq!((count(0), count(4)), (ranges, 0));
}

/// Each device had unregistered by itself what all of them copy through.
#[test]
fn a_segment_is_not_let_go_while_another_device_still_writes_there() {
    let stub = stub("devices=2");
    let other = Cuda::open_library(library(), 1).unwrap();
    let (_dir, node) = node();
    let from = stub.cuda.upload(&pattern(9, BYTES)).unwrap();
    let (publisher, subscriber) = topic(&node, "/image");
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffers live until the copies are done, here and below.
    unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) }
        .unwrap()
        .publish()
        .unwrap();
    common::configure("devices=2 delay_us=2500000");
    let loan = publisher.loan_slice(BYTES).unwrap();
    let segment = outlive::topic::segments::segment_at(loan.as_ptr().addr()).unwrap();
    // Given up in mid-copy: the other device writes on. The stub ends the program where a range is
    // unregistered or unmapped under a copy.
    // SAFETY: as above.
    drop(unsafe { loan.fill_from_device(&other, from.ptr(), Stream::DEFAULT) }.unwrap());
    assert_eq!(count(3), 1, "it is under way");
    drop((publisher, subscriber));
    assert_eq!((count(3), count(4)), (0, 0));
    assert_eq!(outlive::topic::segments::segment_at(segment.start()), None);
}

/// A program that was started meanwhile kept device memory of the robot's for ever.
#[test]
fn what_is_exported_is_closed_on_exec() {
    let stub = stub("");
    let (_dir, node) = node();
    let share = DeviceShare::open(&stub.cuda, &node).unwrap();
    let publisher = share.publisher(node.topic::<DeviceFrame>("/device").unwrap()).unwrap();
    let open = || {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        fds.filter_map(|fd| Some((std::fs::read_link(fd.path()).ok()?, fd.file_name())))
            .collect::<Vec<_>>()
    };
    let before = open();
    let loan = publisher.loan(1000).unwrap();
    let flags: Vec<u32> = open()
        .iter()
        .filter(|fd| !before.contains(fd))
        .filter_map(|(_, fd)| {
            let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(fd)).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            Some(u32::from_str_radix(flags.trim(), 8).unwrap())
        })
        .collect();
    assert!(!flags.is_empty(), "the memory's");
    assert!(flags.iter().all(|flags| flags & libc::O_CLOEXEC as u32 != 0), "{flags:?}");
    drop(loan);
}

/// The copy was begun, and nobody could say when it would be done.
#[test]
fn a_stream_of_another_device_is_refused_before_anything_is_begun() {
    let stub = stub("devices=2");
    let other = Cuda::open_library(library(), 1).unwrap();
    let stream = other.stream().unwrap();
    let (_dir, node) = node();
    let from = stub.cuda.upload(&pattern(5, BYTES)).unwrap();
    let (publisher, mut subscriber) = topic(&node, "/image");
    let before = stub.cuda.registered().quarantined;
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffers and streams live until copies would be done, here and below.
    let e = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) }.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    publisher.publish(&pattern(6, BYTES)).unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    // SAFETY: as above.
    let e = unsafe { sample.copy_to_device(&stub.cuda, from.ptr(), stream.stream()) }.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    assert_eq!((count(3), stub.cuda.registered().quarantined), (0, before));
}

/// Its sample is a copy in memory that is not pinned: the driver waited for the stream.
#[test]
fn a_latecomers_sample_does_not_wait_for_a_stream_that_stands_still() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("a latecomer", Duration::from_secs(100));
    let (_dir, node) = node();
    let publisher = node.topic::<[u8]>("/image").unwrap().publisher().unwrap();
    let data = pattern(13, BYTES);
    publisher.publish(&data).unwrap();
    // It has not looked since.
    let mut late = node.topic::<[u8]>("/image").unwrap().history(1).subscriber().unwrap();
    let sample = late.receive().unwrap().unwrap();
    assert!(!sample.is_borrowed());
    let to = stub.cuda.alloc(BYTES).unwrap();
    // Refused, it leaves no copy behind.
    let ranges = count(0);
    common::configure("capturing=1");
    // SAFETY: nothing is begun.
    let e = unsafe { copy_sample(&sample, &stub.cuda, to.ptr(), Stream::DEFAULT) }.unwrap_err();
    common::configure("");
    assert_eq!((e.kind(), count(0)), (ErrorKind::Unsupported, ranges));
    let (gate, stream) = (Gate::new(&stub.cuda).unwrap(), stub.cuda.stream().unwrap());
    // SAFETY: buffers and the stream live until the copies are done, here and below.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    // The watchdog ends a hang: the stream is let go only after this.
    // SAFETY: as above.
    let take = unsafe { sample.copy_to_device(&stub.cuda, to.ptr(), stream.stream()) }.unwrap();
    assert!(!take.is_done().unwrap());
    gate.open(ticket);
    take.finish().unwrap();
    assert!(to.download().unwrap() == data);
}

/// One message of device memory that is held, and a loan beside it.
struct Lent<'p> {
    sample: DeviceSample,
    loan: DeviceLoan<'p>,
}

fn lend<'p>(publisher: &'p DevicePublisher, subscriber: &mut DeviceSubscriber) -> Lent<'p> {
    let loan = publisher.loan(BYTES).unwrap();
    // SAFETY: nothing is on the stream.
    unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }.unwrap();
    let sample = subscriber.receive().unwrap().unwrap();
    Lent { sample, loan: publisher.loan(BYTES).unwrap() }
}

fn shared_topic(cuda: &Cuda, node: &Node) -> (DevicePublisher, DeviceSubscriber) {
    let share = DeviceShare::open(cuda, node).unwrap();
    let device = || node.topic::<DeviceFrame>("/device").unwrap();
    let publisher = share.publisher(device()).unwrap();
    let subscriber = share.subscriber(device()).unwrap();
    assert_eq!(publisher.port().subscribers().unwrap(), 1);
    (publisher, subscriber)
}

/// What was refused was dropped, and waited for the device: no capture survives that.
#[test]
fn a_refused_loan_or_sample_of_device_memory_leaves_the_capture_alone() {
    let mut stub = stub("");
    stub.alone.leaves_memory = true;
    let (_dir, node) = node();
    let (publisher, mut subscriber) = shared_topic(&stub.cuda, &node);
    let before = stub.cuda.registered().quarantined;
    let Lent { sample, loan } = lend(&publisher, &mut subscriber);
    let at = loan.ptr();
    common::configure("capturing=1");
    // SAFETY: nothing is on the stream, here and below.
    let sent = unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }.map_err(Error::from);
    // SAFETY: as above.
    let released = unsafe { sample.release_on(Stream::DEFAULT) }.map(drop).map_err(Error::from);
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(released.unwrap_err().kind(), ErrorKind::Unsupported);
    common::configure("");
    assert_eq!(count(5), 0, "captures that were spoilt");
    // Nobody knows when the device is done with them.
    assert_eq!(
        (subscriber.port().borrowed(), publisher.loan(BYTES).unwrap().ptr() != at),
        (1, true)
    );
    assert_eq!(stub.cuda.registered().quarantined, before + 2);
}

/// Their own device was done, and they were used again.
#[test]
fn device_memory_that_a_stream_of_another_device_may_touch_is_not_used_again() {
    let mut stub = stub("devices=2");
    stub.alone.leaves_memory = true;
    let other = Cuda::open_library(library(), 1).unwrap();
    let stream = other.stream().unwrap();
    let (_dir, node) = node();
    let (publisher, mut subscriber) = shared_topic(&stub.cuda, &node);
    let Lent { sample, loan } = lend(&publisher, &mut subscriber);
    let at = loan.ptr();
    // SAFETY: nothing is on the stream, here and below.
    let sent = unsafe { loan.publish(stream.stream(), [0; 8]) }.map_err(Error::from);
    // SAFETY: as above.
    let released = unsafe { sample.release_on(stream.stream()) }.map(drop).map_err(Error::from);
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(released.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        (subscriber.port().borrowed(), publisher.loan(BYTES).unwrap().ptr() != at),
        (1, true)
    );
}

#[test]
fn refused_device_memory_comes_back_and_is_sent_and_released_after_the_capture() {
    let stub = stub("");
    let (_dir, node) = node();
    let (publisher, mut subscriber) = shared_topic(&stub.cuda, &node);
    let before = stub.cuda.registered().quarantined;
    let Lent { sample, loan } = lend(&publisher, &mut subscriber);
    common::configure("capturing=1");
    // SAFETY: nothing is on the stream, here and below.
    let unsent = unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }.unwrap_err();
    // SAFETY: as above.
    let unreleased = unsafe { sample.release_on(Stream::DEFAULT) }.unwrap_err();
    assert_eq!(
        (unsent.why.kind(), unreleased.why.kind()),
        (ErrorKind::Unsupported, ErrorKind::Unsupported)
    );
    common::configure("");
    // SAFETY: as above.
    let seq = unsafe { unsent.back.unwrap().publish(Stream::DEFAULT, [0; 8]) }.unwrap();
    // SAFETY: as above.
    unsafe { unreleased.back.unwrap().release_on(Stream::DEFAULT) }.unwrap().finish().unwrap();
    assert_eq!((seq, subscriber.port().borrowed()), (1, 0));
    assert_eq!(stub.cuda.registered().quarantined, before);
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
            && Cuda::open_library(library(), 0).is_err_and(|e| e.kind() == ErrorKind::Unsupported)
            && Cuda::open_library(library(), 1).is_err_and(|e| e.kind() == ErrorKind::Unsupported)
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
    let _watchdog = testkit::Watchdog::start("drops", Duration::from_secs(100));
    let (_dir, node) = node();
    let share = DeviceShare::open(&stub.cuda, &node).unwrap();
    let publisher = share.publisher(node.topic::<DeviceFrame>("/device").unwrap()).unwrap();
    // What other tests keep reserved is registered with all that there is.
    stub.cuda.register_segments().unwrap();
    let ranges = count(0);
    let (segment, _subscriber) = topic(&node, "/image");
    let start = segment.loan_slice(BYTES).unwrap().as_ptr().addr();
    let start = outlive::topic::segments::segment_at(start).unwrap().start();
    stub.cuda.register_segments().unwrap();
    assert_eq!(count(0), ranges + 1);
    let gate = Gate::new(&stub.cuda).unwrap();
    let buffers = (stub.cuda.alloc(1000).unwrap(), stub.cuda.pinned(1000).unwrap());
    let other = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    // SAFETY: the stream lives until it has passed.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    let e = stub.cuda.synchronize_timeout(Duration::from_millis(20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    let quarantined = stub.cuda.registered().quarantined;
    // A hang would be ended by the watchdog: who holds the stream would let it pass only later.
    drop(publisher.loan(1000).unwrap());
    assert_eq!(stub.cuda.registered().quarantined, quarantined + 1);
    let allocations = count(2);
    drop((buffers, other));
    // The segment stays mapped: the driver may have it still.
    drop(segment);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.lines().any(|line| line.starts_with(&format!("{start:x}-"))), "{maps}");
    assert_eq!(count(4), 0, "ranges that were unmapped while registered");
    gate.open(ticket);
    stub.cuda.synchronize_timeout(Duration::from_secs(20)).unwrap();
    drop(gate);
    // What was given up is given back once the device is done.
    let now = || (count(0), count(2), count(4));
    let left = (ranges, allocations.saturating_sub(1), 0);
    let done = testkit::process::wait_until(Duration::from_secs(20), || now() == left);
    assert!(done, "{:?}, {allocations} allocations before", now());
}

/// It never came back; then the device would have read what its caller had freed.
#[test]
fn an_upload_that_the_device_does_not_make_comes_back_and_may_still_be_read() {
    let stub = stub("");
    let _watchdog = testkit::Watchdog::start("uploads", Duration::from_secs(100));
    let allocations = count(2);
    let gate = Gate::new(&stub.cuda).unwrap();
    // SAFETY: the default stream lives as long as the process.
    let ticket = unsafe { gate.hold(Stream::DEFAULT) }.unwrap();
    // So large that it is unmapped where it is freed.
    let data = pattern(10, 8 << 20);
    let e = stub.cuda.upload(&data).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    drop(data);
    let ranges = count(0);
    gate.open(ticket);
    stub.cuda.synchronize_timeout(Duration::from_secs(20)).unwrap();
    // What was given up is used again.
    drop(stub.cuda.upload(&[1]).unwrap());
    assert_eq!(count(0), ranges);
    let done = testkit::process::wait_until(Duration::from_secs(20), || {
        (count(2), count(3)) == (allocations, 0)
    });
    assert!(done, "{} allocations, {} copies", count(2), count(3));
}

/// Each attempt left a copy of the data behind, for as long as the process lived.
#[test]
fn copies_that_are_refused_keep_no_memory() {
    const EACH: usize = 8 << 20;
    let stub = stub("");
    let data = pattern(12, EACH);
    let from = stub.cuda.upload(&data).unwrap();
    common::configure("capturing=1");
    let before = resident_kib();
    for _ in 0..40 {
        assert_eq!(stub.cuda.upload(&data).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(from.download().unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let grown = resident_kib().saturating_sub(before);
    common::configure("");
    assert!(grown < 100 << 10, "{grown} KiB more");
    assert!(from.download().unwrap() == data);
}
