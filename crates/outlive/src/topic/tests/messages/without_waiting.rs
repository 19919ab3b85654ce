//! Calls that do not wait: what they hand back and what they say.

use std::time::Duration;

use crate::os::fixture::TempDir;
use crate::topic::*;
use crate::{Deadline, Error, ErrorKind, Node};

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn same_words(refused: TryPublishError, error: &Error) {
    assert_eq!((refused.kind(), refused.to_string()), (error.kind(), error.to_string()));
    let turned = Error::from(refused);
    assert_eq!((turned.to_string(), turned.object()), (error.to_string(), error.object()));
}

#[test]
fn a_loan_that_could_not_be_published_comes_back_as_it_was_filled() {
    let dir = TempDir::new("try-loan");
    let n = node(&dir);
    let topic = || n.topic::<[u8; 4096]>("/t").unwrap().depth(2);
    let mut subscriber = topic().reliable(true).subscriber().unwrap();
    let publisher = topic().reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
    for seq in 0..2 {
        assert_eq!(publisher.try_publish(&[seq as u8; 4096]).unwrap(), seq);
    }
    let mut loan = publisher.try_loan().unwrap();
    loan.fill(7);
    let refused = loan.try_publish().unwrap_err();
    // One that had waited would say `Timeout`, a minute later.
    assert!(matches!(refused.why, TryPublishError::Behind(_)), "{refused:?}");
    assert!(refused.loan.iter().all(|b| *b == 7));
    let value = publisher.try_publish(&[8; 4096]).unwrap_err();
    assert!(matches!(value, TryPublishError::Behind(_)), "{value:?}");
    assert_eq!(publisher.published(), 2);
    assert_eq!(subscriber.receive().unwrap().unwrap()[0], 0);
    assert_eq!(refused.loan.try_publish().unwrap(), 2);
    let rest: Vec<u8> = subscriber.drain().map(|sample| sample.unwrap()[4095]).collect();
    assert_eq!(rest, [1, 7]);
}

#[test]
fn a_refusal_says_in_words_what_the_waiting_call_says() {
    let dir = TempDir::new("try-words");
    let (n, other) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<u64>("/t").unwrap().depth(2);
    let _behind = topic(&other).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).reliable_timeout(Duration::ZERO).publisher().unwrap();
    let sent = std::iter::repeat_with(|| publisher.try_publish(&1)).find_map(|sent| sent.err());
    let error = publisher.publish(&1).unwrap_err();
    let words = format!(
        "publishing on /t: would block; the reliable subscriber of node {} has 2 messages to read: \
         wait longer, make the topic deeper, or stop that node if it hangs",
        other.id()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::WouldBlock, words));
    same_words(sent.unwrap(), &error);

    let loans = n.topic::<[u8; 4096]>("/l").unwrap().memory_bytes_max(64 << 10);
    let publisher = loans.publisher().unwrap();
    let held: Vec<_> = std::iter::from_fn(|| publisher.try_loan().ok()).collect();
    assert!(held.len() > 4, "{}", held.len());
    let error = publisher.loan().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("of 65536 allowed"), "{error}");
    same_words(publisher.try_loan().unwrap_err(), &error);
    same_words(publisher.try_publish(&[1; 4096]).unwrap_err(), &error);
    drop(held);
    drop(publisher.try_loan().unwrap());
    let slices = n.topic::<[u8]>("/s").unwrap().memory_bytes_max(64 << 10);
    let publisher = slices.publisher().unwrap();
    let held: Vec<_> = std::iter::from_fn(|| publisher.try_loan_slice(4096).ok()).collect();
    assert!(held.len() > 4 && held[0].len() == 4096, "{}", held.len());
    same_words(
        publisher.try_loan_slice(4096).unwrap_err(),
        &publisher.loan_slice(4096).unwrap_err(),
    );
    drop(held);
    assert_eq!(size_of::<Result<u64, TryPublishError>>(), size_of::<crate::Result<u64>>());
    let loan = size_of::<crate::Result<Loan<'static, u64>>>();
    assert_eq!(size_of::<Result<Loan<'static, u64>, TryPublishError>>(), loan);
}

#[test]
fn room_can_be_waited_for_without_publishing() {
    let dir = TempDir::new("wait-room");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/t").unwrap().depth(2);
    let publisher = topic().reliable_timeout(Duration::ZERO).publisher().unwrap();
    publisher.wait_for_room(Deadline::AT_ONCE).unwrap();
    let mut subscriber = topic().reliable(true).subscriber().unwrap();
    publisher.publish(&0).unwrap();
    publisher.publish(&1).unwrap();
    for (until, kind) in [
        (Deadline::AT_ONCE, ErrorKind::WouldBlock),
        (Deadline::in_ns(0), ErrorKind::Timeout),
        (Deadline::after(Duration::from_millis(2)), ErrorKind::Timeout),
    ] {
        let refused = publisher.wait_for_room(until).unwrap_err();
        assert_eq!(refused.kind(), kind);
        assert!(until.has_passed() && refused.remedy().contains("has 2 messages"), "{refused}");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            subscriber.drain().count()
        });
        publisher.wait_for_room(Deadline::after(Duration::from_secs(60))).unwrap();
    });
    assert_eq!((publisher.published(), publisher.publish(&2).unwrap()), (2, 2));
}
