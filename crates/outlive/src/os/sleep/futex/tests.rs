#![allow(unsafe_code)]

use std::sync::Arc;

use super::*;
use crate::os::fixture::{TempDir, fork_child};
use crate::os::fs::file::Draft;
use crate::os::fs::map::Mapping;

fn soon() -> Deadline {
    Deadline::in_ns(20_000_000)
}

#[test]
fn a_sleeper_on_a_read_only_mapping_is_woken_through_another_one() {
    let dir = TempDir::new("futex");
    let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
    let own = draft.map().unwrap();
    let peer = Arc::new(Mapping::map_peer(&draft.fd(), 4096, dir.path()).unwrap());
    for many in [false, has_waitv()] {
        own.atomic_u32(64).unwrap().store(0, Ordering::Relaxed);
        let theirs = Arc::clone(&peer);
        let sleeper = std::thread::spawn(move || {
            let word = theirs.atomic_u32(64).unwrap();
            while word.load(Ordering::Acquire) == 0 {
                if many {
                    let other = theirs.atomic_u32(128).unwrap();
                    let words =
                        [WaitWord { word: other, expected: 0 }, WaitWord { word, expected: 0 }];
                    assert_eq!(wait_many(&words, Deadline::NEVER), Ok(Woken::Word(1)));
                } else {
                    assert_eq!(wait(word, 0, Deadline::NEVER), Woken::Word(0));
                }
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
        let word = own.atomic_u32(64).unwrap();
        word.store(1, Ordering::Release);
        assert!(wake(word, i32::MAX) >= 0);
        sleeper.join().unwrap();
    }
}

#[test]
fn a_changed_word_ends_the_sleep_before_it_starts() {
    let (a, b) = (AtomicU32::new(5), AtomicU32::new(6));
    assert_eq!(wait(&a, 4, Deadline::NEVER), Woken::Word(0));
    if has_waitv() {
        let words = [WaitWord { word: &a, expected: 5 }, WaitWord { word: &b, expected: 5 }];
        assert_eq!(wait_many(&words, Deadline::NEVER), Ok(Woken::Word(1)));
    }
}

#[test]
fn a_deadline_ends_every_kind_of_sleep() {
    let a = AtomicU32::new(5);
    assert_eq!(wait(&a, 5, soon()), Woken::Timeout);
    assert_eq!(wait(&a, 5, Deadline::AT_ONCE), Woken::Timeout);
    if has_waitv() {
        assert_eq!(wait_many(&[WaitWord { word: &a, expected: 5 }], soon()), Ok(Woken::Timeout));
        assert_eq!(wait_many(&[], soon()), Ok(Woken::Timeout));
        let most = [WaitWord { word: &a, expected: 5 }; WAIT_WORDS_MAX];
        assert_eq!(wait_many(&most, soon()), Ok(Woken::Timeout));
    }
}

#[test]
fn more_words_than_the_kernel_takes_are_refused() {
    let a = AtomicU32::new(5);
    let words = [WaitWord { word: &a, expected: 5 }; WAIT_WORDS_MAX + 1];
    assert_eq!(wait_many(&words, soon()), Err(NoWaitv));
}

#[test]
fn without_waitv_the_caller_is_told() {
    // In a child, because the answer holds for the whole process.
    let child = fork_child(|| {
        set_waitv_for_tests(false);
        let a = AtomicU32::new(5);
        let answer = wait_many(&[WaitWord { word: &a, expected: 5 }], Deadline::AT_ONCE);
        i32::from(answer != Err(NoWaitv) || has_waitv())
    });
    assert_eq!(child.wait(), 0);
}

#[test]
fn a_word_whose_page_vanished_does_not_hang_the_sleeper() {
    let dir = TempDir::new("futex");
    let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
    let peer = Mapping::map_peer(&draft.fd(), 4096, dir.path()).unwrap();
    let word = peer.atomic_u32(0).unwrap();
    // SAFETY: shortens a file of ours; the guard covers the mapping.
    unsafe { libc::ftruncate(std::os::fd::AsRawFd::as_raw_fd(&draft.fd()), 0) };
    assert_eq!(wait(word, 0, Deadline::NEVER), Woken::Word(0)); // EFAULT, no signal
    assert_eq!(word.load(Ordering::Relaxed), 0);
    assert!(peer.is_poisoned());
    assert_eq!(wait(word, 0, Deadline::NEVER), Woken::Word(0));
}
