//! What rows are made of: a call with all that it needs, and peers that hold, fill or answer.

use std::time::Duration;

use outlive::{
    Client, Consumer, DocDir, Node, Payload, Producer, Publisher, Server, Subscriber, doc_dir,
};

/// A call that can be made again and again, and what it needs.
pub(crate) struct Scene {
    pub(crate) call: Box<dyn FnMut()>,
    _dir: DocDir,
}

pub(crate) fn scene<F: FnMut() + 'static>(make: impl FnOnce(&Node) -> F) -> Scene {
    let dir = doc_dir();
    let node = Node::builder().root(dir.path()).name("refusals").open().unwrap();
    Scene { call: Box::new(make(&node)), _dir: dir }
}

/// A scene by its name; where a call is refused, as which kind.
pub(crate) type Row = (&'static str, fn() -> Scene);

pub(crate) fn lane(node: &Node, bytes: u64) -> (Producer<[u64; 8]>, Consumer<[u64; 8]>) {
    let queue = || node.queue::<[u64; 8]>("/q").unwrap().first_bytes(bytes).bound_bytes(bytes);
    let consumer = queue().consumer().unwrap();
    (queue().producer().unwrap(), consumer)
}

pub(crate) fn full_lane(node: &Node) -> (Producer<[u64; 8]>, Consumer<[u64; 8]>) {
    let (mut producer, consumer) = lane(node, 4 << 10);
    while producer.try_send(&[7; 8]).is_ok() {}
    (producer, consumer)
}

/// Runs `hold` in a thread that lives as long as the process.
pub(crate) fn elsewhere<L: Send + 'static>(lock: L, hold: fn(&L)) {
    let (say, held) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        hold(&lock);
        say.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    held.recv().unwrap();
}

/// Lanes of slices, with room for few of 64 elements.
pub(crate) fn slices(node: &Node) -> (Producer<[u64]>, Consumer<[u64]>) {
    let queue = || node.queue::<[u64]>("/q").unwrap().first_bytes(4 << 10).bound_bytes(4 << 10);
    let consumer = queue().consumer().unwrap();
    (queue().producer().unwrap(), consumer)
}

pub(crate) fn ports<T: Payload + ?Sized>(node: &Node) -> (Publisher<T>, Subscriber<T>) {
    let topic = || node.topic::<T>("/t").unwrap();
    let subscriber = topic().subscriber().unwrap();
    (topic().publisher().unwrap(), subscriber)
}

/// A publisher of 4 messages that a reliable subscriber has yet to read. It waits for `timeout`.
pub(crate) fn behind(node: &Node, timeout: Duration) -> (Publisher<[u64]>, Subscriber<[u64]>) {
    let topic = || node.topic::<[u64]>("/t").unwrap().depth(4);
    let subscriber = topic().reliable(true).subscriber().unwrap();
    let publisher = topic().reliable_timeout(timeout).publisher().unwrap();
    (0..4).for_each(|n| assert_eq!(publisher.publish(&[n; 512]).unwrap(), n));
    (publisher, subscriber)
}

pub(crate) fn service(node: &Node) -> (Server<u64, u64>, Client<u64, u64>) {
    let service = || node.service::<u64, u64>("/s").unwrap();
    let server = service().server().unwrap();
    (server, service().client().unwrap())
}

/// A client whose server, in a thread that lives as long as the process, answers each request.
pub(crate) fn answered(node: &Node) -> Client<u64, u64> {
    let (mut server, client) = service(node);
    std::thread::spawn(move || {
        loop {
            if let Some(request) = server.receive_timeout(Duration::from_secs(1)).unwrap() {
                let answer = *request;
                // The last client leaves with its test.
                let _ = server.respond(request, &answer);
            }
        }
    });
    client
}
