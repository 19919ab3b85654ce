//! What is shared while a process has no descriptor left. In a process of its own: its limit would
//! be everybody's.

mod common;

use std::time::Duration;

use common::{connect, stub, unconnected};
use outlive::Node;
use outlive_gpu::Stream;
use outlive_gpu::share::{DeviceFrame, DeviceShare};
use testkit::temp::TempDomain;

/// Lets this process have descriptors below `number` only; returns what it was.
fn limit(number: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a struct that lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        let was = std::mem::replace(&mut limit.rlim_cur, number);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        was
    }
}

/// Its thread ended with the first connection that it had no descriptor for.
#[test]
fn memory_is_handed_out_again_once_there_are_descriptors() {
    let stub = stub("");
    let dir = TempDomain::new("gpu-descriptors").unwrap();
    let [maker, reader] =
        ["maker", "reader"].map(|name| Node::builder().root(dir.path()).name(name).open().unwrap());
    let [of_maker, of_reader] =
        [&maker, &reader].map(|node| DeviceShare::open(&stub.cuda, node).unwrap());
    let topic = |node: &Node| node.topic::<DeviceFrame>("/device").unwrap();
    let publisher = of_maker.publisher(topic(&maker)).unwrap();
    let mut subscriber = of_reader.subscriber(topic(&reader)).unwrap();
    assert_eq!(publisher.port().subscribers().unwrap(), 1);
    let loan = publisher.loan(1000).unwrap();
    // SAFETY: nothing is on the stream.
    unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }.unwrap();
    // The thread may have one in hand for the first of them.
    let others = [(); 3].map(|()| unconnected());
    let before = limit(3);
    let connected = others.iter().all(|socket| connect(socket, &maker, maker.id()));
    // They ask for nothing: it comes to all of them at once.
    drop(others);
    std::thread::sleep(Duration::from_millis(200));
    limit(before);
    assert!(connected);
    let sample = subscriber.receive().unwrap().expect("sent before");
    assert_eq!(sample.bytes(), 1000);
}
