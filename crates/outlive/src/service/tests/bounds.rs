//! Bounds that are changed later, to divide memory.

use super::*;

#[test]
fn a_bound_of_requests_that_is_set_later_holds() {
    let dir = TempDir::new("service-bound-later");
    let n = node(&dir);
    let service = || n.service::<[u8], [u8]>("/s").unwrap();
    let (mut server, mut client) = (service().server().unwrap(), service().client().unwrap());
    let mut fill = |bound: u64| {
        client.set_bound_bytes(bound);
        let sent = std::iter::from_fn(|| client.send(&[1; 1000]).ok()).count();
        (sent, client.memory_bytes())
    };
    let (first, memory) = fill(16 << 10);
    assert!(first > 10 && memory == 16 << 10, "{first} in {memory}");
    let (more, memory) = fill(64 << 10);
    assert!(more > 20 && memory <= 64 << 10, "{more} more in {memory}");
    assert_eq!(fill(0), (0, memory));
    let received = std::iter::from_fn(|| server.receive().unwrap()).count();
    assert_eq!(received, first + more);
}

#[test]
fn lanes_of_replies_share_a_maximum() {
    let dir = TempDir::new("service-share");
    let n = node(&dir);
    let service = || n.service::<[u8], [u8]>("/s").unwrap();
    let mut server = service().server().unwrap();
    let mut clients = [(); 3].map(|()| service().client().unwrap());
    let mut requests = Vec::new();
    for client in &mut clients {
        client.send(&[]).unwrap();
        requests.push(server.receive().unwrap().expect("sent just now"));
    }
    let first = server.memory_bytes();
    assert_eq!(first, 3 * (16 << 10));
    let mut fill = |most: u64| {
        server.set_memory_bytes_max(most);
        let mut part = |i: usize| match server.respond_part(&requests[i], &[1; 1000]) {
            Ok(()) => Some(()),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}");
                None
            }
        };
        let sent = [0, 1, 2].map(|i| std::iter::from_fn(|| part(i)).count());
        (sent, server.memory_bytes())
    };
    // Each has its first lane, and no more.
    let (begun, memory) = fill(0);
    assert!(begun.iter().all(|n| *n > 10) && memory == first, "{begun:?} in {memory}");
    // What one takes, the others lack.
    let (more, memory) = fill(160 << 10);
    assert!(more[0] > 50 && more[1] < more[0], "{more:?}");
    assert!(memory > first && memory <= 160 << 10, "{memory}");
    let e = server.respond_part(&requests[2], &[0; 200_000]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    // Nothing that was sent is lost.
    for (i, client) in clients.iter_mut().enumerate() {
        let received = std::iter::from_fn(|| client.receive().unwrap()).count();
        assert_eq!(received, begun[i] + more[i]);
    }
}
