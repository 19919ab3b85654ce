//! What a wait costs, and who is next.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::*;
use crate::lock::mutex::hold::Hold;
use crate::lock::mutex::word::WAITERS;
use crate::os::fixture::thread_cpu;
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
                gate.heir.store(hold.take_slow(Deadline::NEVER).unwrap().0, Relaxed);
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

/// An heir that lives and does not come, because it is stopped or has no core, keeps nobody out.
#[test]
fn an_heir_that_does_not_come_is_passed_over() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = RawMutex::open(&node, "/a").unwrap();
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (hold, gate) = (lock.gated(), lock.gated().gate());
            gate.heir.store(hold.take_slow(Deadline::NEVER).unwrap().0, Relaxed);
            gate.word.store(WAITERS, Relaxed);
            ready.wait();
            ready.wait();
        });
        ready.wait();
        let patience = Duration::from_secs(20);
        let taken = lock.lock_until(Deadline::after(patience));
        ready.wait();
        assert_eq!(taken.unwrap(), Acquired::Clean);
        lock.unlock().unwrap();
    });
    assert_eq!(lock.gated().gate().heir.load(Relaxed), 0);
}
