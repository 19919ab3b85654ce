#![allow(unsafe_code)]

use super::*;
use crate::os::fixture::{Child, TempDir, fork_child, is_asleep, until};
use crate::os::fs::file::Draft;
use crate::os::fs::map::Mapping;
use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::sleep::futex::{WaitWord, Woken};
use crate::os::time::deadline::Deadline;

const TOKEN: usize = 64;
const DATA: usize = 1024;
const NOTE: usize = 1028;

/// A node file: our writable view and a peer's read-only one.
struct Shared {
    own: Mapping,
    peer: Mapping,
    _dir: TempDir,
}

impl Shared {
    fn new() -> Self {
        let dir = TempDir::new("robust");
        let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
        let own = draft.map().unwrap();
        let peer = Mapping::map_peer(&draft.fd(), 4096, dir.path()).unwrap();
        Self { own, peer, _dir: dir }
    }

    fn token(&self) -> *mut u8 {
        // SAFETY: inside the page.
        unsafe { self.own.base_mut().add(TOKEN) }
    }

    fn lock(&self) -> u32 {
        // SAFETY: 64 zero bytes of our own mapping, mapped until after the holder's end.
        TOKEN as u32 + unsafe { init_and_lock(self.token()) }.unwrap()
    }

    /// A child that takes the token and sleeps; returns where the word is.
    fn owner(&self) -> (Child, usize) {
        let note = self.own.atomic_u32(NOTE).unwrap();
        note.store(0, Ordering::Relaxed);
        let child = fork_child(|| {
            note.store(self.lock(), Ordering::Release);
            forever()
        });
        until(|| note.load(Ordering::Acquire) != 0);
        (child, note.load(Ordering::Acquire) as usize)
    }

    fn word(&self, at: usize) -> u32 {
        self.peer.atomic_u32(at).unwrap().load(Ordering::Acquire)
    }
}

fn forever() -> ! {
    loop {
        sched::sleep_until(Deadline::in_ns(1_000_000_000));
    }
}

#[test]
fn a_held_token_is_alive_and_a_let_go_one_is_not() {
    let shared = Shared::new();
    assert!(!is_alive_word(shared.word(TOKEN)));
    let at = shared.lock() as usize;
    assert_eq!(shared.word(at), gettid() | WAITERS);
    assert!(is_alive_word(shared.word(at)));
    // SAFETY: made by `lock`, mapped.
    unsafe { unlock(shared.token()) };
    assert_eq!(shared.word(at), 0);
}

#[test]
fn sigkill_marks_the_token_and_wakes_a_sleeper_on_a_read_only_mapping() {
    let shared = Shared::new();
    let (owner, at) = shared.owner();
    let alive = shared.word(at);
    assert!(is_alive_word(alive) && alive & WAITERS != 0);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let (data, word) = (shared.peer.atomic_u32(DATA).unwrap(), shared.peer.atomic_u32(at));
            let word = word.unwrap();
            let _pass_on = pending_guard(word);
            while is_alive_word(word.load(Ordering::Acquire)) {
                let words =
                    [WaitWord { word: data, expected: 0 }, WaitWord { word, expected: alive }];
                match futex::wait_many(&words, Deadline::NEVER) {
                    Ok(woken) => assert_eq!(woken, Woken::Word(1)),
                    Err(_) => drop(futex::wait(word, alive, Deadline::NEVER)),
                }
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
        owner.kill();
        sleeper.join().unwrap();
    });
    assert_eq!(shared.word(at), OWNER_DIED | WAITERS);
}

#[test]
fn the_end_of_the_holding_thread_marks_the_token_and_another_takes_it_again() {
    let shared = Shared::new();
    let at = std::thread::scope(|scope| {
        scope.spawn(|| shared.lock() as usize).join().unwrap();
        // The scope ends when the closure does; the kernel marks the word a little later.
        shared.peer.atomic_u32(NOTE).unwrap(); // still mapped
        let (head, at) = (TOKEN, TOKEN + TOKEN_BYTES);
        until(|| (head..at).step_by(4).any(|at| shared.word(at) & OWNER_DIED != 0));
        (head..at).step_by(4).find(|at| shared.word(*at) & OWNER_DIED != 0).unwrap()
    });
    // SAFETY: made by `lock` in this process, mapped.
    let relocked = unsafe { relock(shared.token()) };
    assert!(relocked.unwrap());
    assert_eq!(shared.word(at), gettid() | WAITERS);
    let from_elsewhere = std::thread::scope(|scope| {
        let token = shared.token() as usize;
        // SAFETY: as above; another thread may neither let go nor take a held token.
        let attempt = move || unsafe {
            unlock(token as *mut u8);
            relock(token as *mut u8)
        };
        scope.spawn(attempt).join().unwrap()
    });
    assert!(!from_elsewhere.unwrap());
    assert!(is_alive_word(shared.word(at)));
    // SAFETY: as above.
    unsafe { unlock(shared.token()) };
    assert_eq!(shared.word(at), 0);
    // SAFETY: as above.
    assert!(unsafe { relock(shared.token()) }.unwrap());
    assert_eq!(shared.word(at), gettid() | WAITERS);
    // SAFETY: as above.
    unsafe { unlock(shared.token()) };
}

#[test]
fn a_fork_neither_holds_nor_marks_its_parents_token() {
    let shared = Shared::new();
    let at = shared.lock() as usize;
    let child = fork_child(|| {
        // SAFETY: made by the parent; a child is another thread to it.
        let again = unsafe {
            unlock(shared.token());
            relock(shared.token())
        };
        i32::from(!matches!(again, Ok(false)))
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(shared.word(at), gettid() | WAITERS);
    // SAFETY: made by `lock`, mapped.
    unsafe { unlock(shared.token()) };
}

#[test]
fn a_sleeper_that_dies_right_after_its_wake_passes_it_on() {
    let shared = Shared::new();
    let (owner, at) = shared.owner();
    let alive = shared.word(at);
    let note = shared.own.atomic_u32(DATA).unwrap();
    // First in the kernel's queue: woken alone, and killed before it can wake anybody.
    let first = fork_child(|| {
        let word = match shared.peer.atomic_u32(at) {
            Ok(word) => word,
            Err(_) => return 1,
        };
        let guard = pending_guard(word);
        note.store(1, Ordering::Release);
        while is_alive_word(word.load(Ordering::Acquire)) {
            futex::wait(word, alive, Deadline::NEVER);
        }
        // SAFETY: kills this child.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        drop(guard);
        2
    });
    until(|| note.load(Ordering::Acquire) == 1 && is_asleep(first.pid()));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let word = shared.peer.atomic_u32(at).unwrap();
            note.store(gettid(), Ordering::Release);
            while is_alive_word(word.load(Ordering::Acquire)) {
                futex::wait(word, alive, Deadline::NEVER);
            }
        });
        until(|| note.load(Ordering::Acquire) != 1);
        until(|| is_asleep(note.load(Ordering::Acquire) as i32));
        owner.kill();
        assert_eq!(first.wait(), -libc::SIGKILL);
        second.join().unwrap();
    });
}

#[test]
fn a_pending_word_without_owner_wakes_a_sleeper_when_its_thread_dies() {
    let shared = Shared::new();
    let word = shared.peer.atomic_u32(DATA).unwrap();
    std::thread::scope(|scope| {
        let note = shared.own.atomic_u32(NOTE).unwrap();
        let sleeper = scope.spawn(|| {
            note.store(gettid(), Ordering::Release);
            futex::wait(word, 0, Deadline::NEVER)
        });
        until(|| note.load(Ordering::Acquire) != 0);
        until(|| is_asleep(note.load(Ordering::Acquire) as i32));
        let child = fork_child(|| {
            let guard = pending_guard(word);
            // SAFETY: kills this child.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            drop(guard);
            1
        });
        assert_eq!(child.wait(), -libc::SIGKILL);
        assert_eq!(sleeper.join().unwrap(), Woken::Word(0));
    });
}

#[test]
fn a_dropped_pending_guard_leaves_no_pending_operation() {
    let word = AtomicU32::new(0);
    drop(pending_guard(&word));
    let head = head_of_thread();
    assert!(!head.is_null());
    // SAFETY: this thread's own list head.
    assert!(unsafe { (&raw const (*head).pending).read_volatile() }.is_null());
}
