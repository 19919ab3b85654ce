//! Bounds that nobody passes without being told. In a process of its own: its events stay.

mod common;

use std::time::Duration;

use common::{EVENTS_MAX, count, pattern, stub, topic};
use outlive::Node;
use outlive_gpu::{ErrorKind, Gate, LoanExt};
use testkit::temp::TempDomain;

const BYTES: usize = 5000;

#[test]
fn more_copies_and_waits_than_there_may_be_are_refused_until_some_are_done() {
    let mut stub = stub("");
    stub.alone.many_events = true;
    let dir = TempDomain::new("gpu-bounds").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    let (publisher, mut subscriber) = topic(&node, "/image");
    let from = stub.cuda.upload(&pattern(1, BYTES)).unwrap();
    let gate = Gate::new(&stub.cuda).unwrap();
    let stream = stub.cuda.stream().unwrap();
    let mut last = None;
    let refused = loop {
        // SAFETY: the stream lives until it has passed.
        match unsafe { gate.hold(stream.stream()) } {
            Ok(ticket) => last = Some(ticket),
            Err(e) => break e,
        }
        assert!(count(1) <= EVENTS_MAX);
    };
    let all_are_used = || count(1) == EVENTS_MAX || !common::is_stub();
    assert_eq!((refused.kind(), all_are_used()), (ErrorKind::Unsupported, true));
    assert!(refused.to_string().contains("512 copies and waits at once"), "{refused}");
    assert!(refused.remedy().contains("look for what keeps their stream"), "{refused}");
    // A copy is refused as well, and its slot is not lost.
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: buffers and the stream live until the copies are done, here and below.
    let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) };
    assert_eq!(fill.map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
    // The refused wait has let its stream go on; so does the last one that was taken.
    gate.open(last.unwrap());
    stub.cuda.synchronize_timeout(Duration::from_secs(60)).unwrap();
    // Once they are done there is room again, for others than those who waited, too.
    let loan = publisher.loan_slice(BYTES).unwrap();
    // SAFETY: as above.
    let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), stream.stream()) };
    fill.unwrap().publish().unwrap();
    assert!(*subscriber.receive().unwrap().unwrap() == *pattern(1, BYTES));
    assert!(all_are_used());

    // A copy counts until it is done, also where nobody waits for it.
    let to = stub.cuda.alloc(BYTES).unwrap();
    // SAFETY: as above.
    let ticket = unsafe { gate.hold(stream.stream()) }.unwrap();
    let copy = || {
        // SAFETY: as above.
        unsafe { stub.cuda.copy_on_device(to.ptr(), from.ptr(), BYTES, stream.stream()) }
    };
    let refused = (0..EVENTS_MAX).find_map(|_| copy().err()).unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    gate.open(ticket);
    stub.cuda.synchronize_timeout(Duration::from_secs(60)).unwrap();
    copy().unwrap();
    assert!(all_are_used());
}
