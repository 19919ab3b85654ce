use std::time::Duration;

use crate::os::fixture::TempDir;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use crate::{Domain, Node};

/// Members open, use and drop their ends all the time; nobody dies.
#[test]
fn what_comes_and_goes_is_no_fault() {
    let dir = TempDir::new("audit-busy");
    let settings = Node::builder().root(dir.join("root")).name("test");
    let audits = AtomicU32::new(0);
    let go_on = || audits.load(Relaxed) < 300;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let node = settings.clone().open().unwrap();
            while go_on() {
                let publisher = node.topic::<[u8]>("/t").unwrap().publisher().unwrap();
                for i in 0..50 {
                    publisher.publish(&vec![1; 200 + 100 * i]).unwrap();
                }
            }
        });
        scope.spawn(|| {
            let node = settings.clone().open().unwrap();
            while go_on() {
                let mut producer = node.queue::<[u8]>("/q").unwrap().producer().unwrap();
                let _ = producer.try_send(&[1; 100]);
                let mut server = node.service::<u64, u64>("/s").unwrap().server().unwrap();
                let mut client = node.service::<u64, u64>("/s").unwrap().client().unwrap();
                client.send(&1).unwrap();
                let request = server.receive().unwrap().expect("sent just now");
                server.respond(request, &2).unwrap();
                let _ = node.queue::<[u8]>("/q").unwrap().consumer().unwrap().receive();
            }
        });
        scope.spawn(|| {
            let node = settings.clone().open().unwrap();
            let mut subscriber = node.topic::<[u8]>("/t").unwrap().subscriber().unwrap();
            while go_on() {
                let _ = subscriber.receive_timeout(Duration::from_millis(5)).unwrap();
            }
        });
        let domain = Domain::of(&settings).unwrap();
        while go_on() {
            let found = domain.audit().unwrap().faults;
            audits.fetch_add(1, Relaxed);
            if !found.is_empty() {
                audits.store(300, Relaxed); // the others end, too
                panic!("{found:?}");
            }
        }
    });
}
