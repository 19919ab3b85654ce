//! What a wait costs, and who is next.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::*;
use crate::lock::mutex::hold::Hold;
use crate::lock::mutex::wait::wake;
use crate::lock::mutex::word::{ID, WAITERS};
use crate::os::death::robust;
use crate::os::fixture::{
    in_a_child, is_asleep, refuse, refuse_none, thread_cpu, thread_sleeps, until,
};
use crate::os::process::sched;
use crate::sync::Ordering::Relaxed;

/// A waiter that stood back for an heir waits asleep for whoever holds the lock then.
#[test]
fn a_waiter_that_stood_back_sleeps() {
    /// Rounds in which the heir came first; of the others nothing is learned.
    const ROUNDS: u64 = 8;
    const HELD: Duration = Duration::from_millis(60);
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = RawMutex::open(&node, "/a").unwrap();
    let (mut busy, mut waited) = (Duration::ZERO, Duration::ZERO);
    let mut rounds = 0;
    for round in 0..1000 {
        if rounds == ROUNDS {
            break;
        }
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // As if woken in vain too often: the lock is free, and others are to stand back.
                let (hold, gate) = (lock.gated(), lock.gated().gate());
                gate.heir.store(hold.take_slow(Deadline::NEVER).unwrap().0 & ID, Relaxed);
                gate.word.store(WAITERS, Relaxed);
                start.wait();
                let late = Instant::now();
                while late.elapsed() < Duration::from_micros(30 * (round % 12)) {
                    std::hint::spin_loop();
                }
                let _ = lock.lock().unwrap();
                std::thread::sleep(HELD);
                lock.unlock().unwrap();
            });
            start.wait();
            let (begin, cpu) = (Instant::now(), thread_cpu());
            let _ = lock.lock().unwrap();
            let (cpu, time) = (thread_cpu() - cpu, begin.elapsed());
            lock.unlock().unwrap();
            if time > HELD / 2 {
                (busy, waited, rounds) = (busy + cpu, waited + time, rounds + 1);
            }
        });
    }
    assert_eq!(rounds, ROUNDS, "the heir never came first");
    assert!(busy < waited / 20, "{busy:?} of {waited:?} on a core");
}

/// Runs `takes` beside an heir of a free lock that lives and does not come, as one that is stopped
/// or has no core; then somebody has the lock, and no heir is left.
fn beside_an_absent_heir(takes: impl FnOnce(&RawMutex)) {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = RawMutex::open(&node, "/a").unwrap();
    let gate = || lock.gated().gate();
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let id = lock.gated().take_slow(Deadline::NEVER).unwrap().0;
            gate().heir.store(id & ID, Relaxed);
            gate().word.store(WAITERS, Relaxed);
            ready.wait();
            ready.wait();
        });
        ready.wait();
        takes(&lock);
        let left = (gate().word.load(Relaxed) & ID != 0, gate().heir.load(Relaxed));
        ready.wait();
        assert_eq!(left, (true, 0), "nobody held it");
        lock.unlock().unwrap();
    });
}

#[test]
fn an_heir_that_does_not_come_is_passed_over() {
    beside_an_absent_heir(|lock| {
        let _ = lock.lock_until(Deadline::after(Duration::from_secs(20)));
    });
}

/// As a control loop takes it: it waits shorter than others stand back for the heir.
#[test]
fn an_heir_that_does_not_come_is_passed_over_by_those_who_do_not_wait() {
    for patience in [Duration::ZERO, Duration::from_micros(200)] {
        beside_an_absent_heir(|lock| {
            let (began, mut refused) = (Instant::now(), 0);
            while lock.lock_until(Deadline::after(patience)).is_err()
                && began.elapsed() < Duration::from_secs(20)
            {
                refused += 1;
            }
            assert!(refused > 0, "it is given a while to come");
        });
    }
}

/// As a control loop takes it that has a period of its own: here a multiple of 2^19 ns.
#[test]
fn an_heir_that_does_not_come_is_passed_over_by_one_who_tries_at_any_period() {
    let mut refused = 0;
    beside_an_absent_heir(|lock| {
        while refused < 8 && lock.try_lock().is_err() {
            refused += 1;
            sched::sleep_until(Deadline::in_ns(7 << 19));
        }
    });
    assert_eq!(refused, 1, "it had its time");
}

/// The files of that node, as `refuse` takes them.
/// As `until`, for what takes 100 ms.
fn soon(mut done: impl FnMut() -> bool) {
    let in_time = (0..3000).any(|_| {
        sched::sleep_until(Deadline::in_ns(1_000_000));
        done()
    });
    assert!(in_time, "gave up waiting");
}

/// The kernel marks no word of a process whose memory it has thrown away, as for want of memory.
#[test]
fn who_only_tries_inherits_from_a_holder_that_went_without_a_mark() {
    let dir = TempDir::new("lock-unmarked");
    let (one, two) = (node(&dir), node(&dir));
    let (lock, other) = (one.mutex::<u64>("/a").unwrap(), two.mutex::<u64>("/a").unwrap());
    let (read, write) = (one.rwlock::<u64>("/r").unwrap(), one.rwlock::<u64>("/w").unwrap());
    let (to_write, to_read) = (two.rwlock::<u64>("/r").unwrap(), two.rwlock::<u64>("/w").unwrap());
    let (permits, wanted) = (one.semaphore("/s", 1).unwrap(), two.semaphore("/s", 1).unwrap());
    let held = (lock.lock().unwrap(), read.read().unwrap(), write.write().unwrap());
    let permit = permits.acquire().unwrap();
    in_thread(|| {
        assert_eq!(other.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(to_write.try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(to_read.try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(wanted.try_acquire().unwrap_err().kind(), ErrorKind::WouldBlock);
        one.unlock_file();
        soon(|| matches!(other.try_lock(), Err(LockError::OwnerDied(_))));
        soon(|| to_write.try_write().is_ok());
        soon(|| matches!(to_read.try_read(), Err(LockError::OwnerDied(_))));
        soon(|| wanted.try_acquire().is_ok_and(|permit| permit.owner_died()));
    });
    std::mem::forget((held, permit));
}

fn files_of(node: &Node) -> String {
    format!("/nodes/{}", node.id())
}

/// Though the lock is free and other lines are.
#[test]
fn a_reader_that_cannot_judge_an_idle_line_takes_another() {
    let dir = TempDir::new("lock");
    let (a, b) = (node(&dir), node(&dir));
    let (theirs, ours) = (a.rwlock::<u64>("/a").unwrap(), b.rwlock::<u64>("/a").unwrap());
    drop(theirs.read().unwrap());
    drop(b.mutex::<u64>("/b").unwrap().lock().unwrap());
    refuse("map", &files_of(&a), libc::ENOMEM, u32::MAX);
    let read = ours.read().map(|value| *value).map_err(|e| e.kind());
    assert!(refuse_none() < u32::MAX, "nobody was asked about");
    assert_eq!(read, Ok(0));
}

/// Runs `takes` beside the heir of a free lock whose files cannot be mapped.
fn beside_an_unseen_heir(takes: impl FnOnce(&RawMutex) -> LockResult<Acquired>) {
    let dir = TempDir::new("lock");
    let (a, b) = (node(&dir), node(&dir));
    let theirs = RawMutex::open(&a, "/a").unwrap();
    let ours = RawMutex::open(&b, "/a").unwrap();
    drop(b.mutex::<u64>("/b").unwrap().lock().unwrap());
    let gate = ours.gated().gate();
    let id = theirs.gated().take_slow(Deadline::NEVER).unwrap().0;
    gate.heir.store(id & ID, Relaxed);
    gate.word.store(WAITERS, Relaxed);
    refuse("map", &files_of(&a), libc::ENOMEM, u32::MAX);
    let taken = takes(&ours).map_err(|e| e.kind());
    assert!(refuse_none() < u32::MAX, "nobody was asked about");
    assert_eq!((taken, gate.heir.load(Relaxed)), (Ok(Acquired::Clean), 0));
    ours.unlock().unwrap();
}

/// It was waited for by nobody: each call failed, though the lock is free.
#[test]
fn an_heir_that_cannot_be_judged_is_passed_over() {
    let long = Duration::from_secs(20);
    beside_an_unseen_heir(|lock| lock.lock_until(Deadline::after(long)));
    let until = Deadline::after(long);
    beside_an_unseen_heir(|lock| {
        loop {
            match lock.try_lock() {
                Err(e) if e.kind() == ErrorKind::WouldBlock && !until.has_passed() => {}
                taken => return taken,
            }
        }
    });
}

/// Of three that sleep the first gets the lock, the second is woken to watch the first, and gives
/// up: then the third has to watch, or nobody learns how the first ends.
#[test]
fn one_that_gives_up_leaves_its_watch_to_the_next() {
    if !in_a_child(module_path!(), "one_that_gives_up_leaves_its_watch_to_the_next") {
        return;
    }
    // Nothing but a wake ends a sleep.
    crate::os::sleep::slice::set_slice_ns_max(3_600_000_000_000);
    for second_gives_up in [Duration::from_millis(100), Duration::MAX] {
        let dir = TempDir::new("lock-watch");
        let node = node(&dir);
        let (lock, other) = (node.mutex::<u64>("/a").unwrap(), node.mutex::<u64>("/b").unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        let all_ended = std::thread::scope(|scope| {
            let held = lock.lock().unwrap();
            // The second may be quicker than the first, which ends the same.
            let waiters = [Duration::MAX, second_gives_up, Duration::MAX].map(|timeout| {
                let (tell, lock, other) = (tell.clone(), &lock, &other);
                let waiter = scope.spawn(move || {
                    // From here on it sleeps for the lock only.
                    drop(other.lock().unwrap());
                    tell.send(robust::gettid()).unwrap();
                    if let Ok(guard) = lock.lock_timeout(timeout) {
                        std::thread::sleep(Duration::from_millis(200));
                        // Its thread ends and its process does not: all others are refused.
                        std::mem::forget(guard);
                    }
                });
                let tid: u32 = told.recv().unwrap();
                until(|| is_asleep(tid as i32));
                waiter
            });
            drop(held);
            let deadline = Deadline::after(Duration::from_secs(20));
            let ended = || waiters.iter().all(|waiter| waiter.is_finished());
            while !ended() && !deadline.has_passed() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let in_time = ended();
            wake(by_calls(&node, "/a").gated().gate().word, i32::MAX);
            in_time
        });
        assert!(all_ended, "the second gave up after {second_gives_up:?}");
    }
}

/// A control loop beside a logger: it wants the lock for a short time only, again and again.
#[test]
fn who_often_waits_for_a_short_time_keeps_no_other_awake() {
    let dir = TempDir::new("lock-short");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let held = lock.lock().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let lock = &lock;
        let waiter = scope.spawn(move || {
            tell.send(robust::gettid()).unwrap();
            let before = thread_sleeps();
            drop(lock.lock().unwrap());
            thread_sleeps() - before
        });
        let tid: u32 = told.recv().unwrap();
        until(|| is_asleep(tid as i32));
        let often = scope.spawn(move || {
            for _ in 0..500 {
                assert!(lock.lock_timeout(Duration::from_millis(1)).is_err());
            }
        });
        often.join().unwrap();
        drop(held);
        let sleeps = waiter.join().unwrap();
        assert!(sleeps < 250, "{sleeps} sleeps beside 500 short waits");
    });
}
