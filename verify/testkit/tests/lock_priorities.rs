//! Locks among threads of different real-time priorities on one core. Needs the right to use
//! SCHED_FIFO; prints a line and does nothing without it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use outlive::Node;
use testkit::{TempDomain, Watchdog};

/// Moves the calling thread to the last allowed core under SCHED_FIFO; false if it may not.
fn fifo(priority: i32) -> bool {
    // SAFETY: a zeroed set is a valid one; the calls fill or read locals, for the calling thread.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&cores), &raw mut cores), 0);
        let last = (0..libc::CPU_SETSIZE as usize).rfind(|core| libc::CPU_ISSET(*core, &cores));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(last.unwrap(), &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &raw const one), 0);
        let param = libc::sched_param { sched_priority: priority };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0
    }
}

fn may_fifo() -> bool {
    let may = std::thread::spawn(|| fifo(1)).join().unwrap();
    if !may {
        println!("SKIPPED: this user may not use SCHED_FIFO");
    }
    may
}

fn busy(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A holder that takes the lock again at once passes a waiter of a lower priority over until that
/// becomes the heir; then it stands back, and sleeps while the heir holds the lock.
#[test]
fn a_holder_that_stood_back_for_a_lower_priority_lets_it_finish() {
    if !may_fifo() {
        return;
    }
    const TURNS: u64 = 10;
    // Threads that hog a core cannot be joined.
    let _watchdog = Watchdog::start("a waiter of priority 10", Duration::from_secs(30));
    let dir = TempDomain::new("lock-heir").unwrap();
    let node = Node::builder().root(dir.path()).name("fifo").open().unwrap();
    let stop = AtomicBool::new(false);
    let lock = node.mutex::<u64>("/fifo").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(fifo(20));
            while !stop.load(SeqCst) {
                let mut guard = lock.lock().unwrap();
                *guard += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        scope.spawn(|| {
            assert!(fifo(10));
            for _ in 0..TURNS {
                let guard = lock.lock().unwrap();
                busy(Duration::from_millis(2));
                drop(guard);
            }
            stop.store(true, SeqCst);
        });
    });
}

/// One thread of a low priority holds a lock for which one of a high priority waits, while one in
/// between has the core: whether the high one had the lock before that was done.
fn in_time(lock: impl Fn(&dyn Fn()) + Sync) -> bool {
    let _watchdog = Watchdog::start("three priorities", Duration::from_secs(30));
    let (high_done, in_time) = (AtomicBool::new(false), AtomicBool::new(false));
    let (high_is, medium_is) = (std::sync::OnceLock::new(), std::sync::OnceLock::new());
    let go = [AtomicBool::new(false), AtomicBool::new(false)];
    let until = |go: &AtomicBool| {
        while !go.load(SeqCst) {
            std::thread::park();
        }
    };
    std::thread::scope(|scope| {
        let high = scope.spawn(|| {
            assert!(fifo(30));
            until(&go[0]);
            lock(&|| high_done.store(true, SeqCst));
        });
        let medium = scope.spawn(|| {
            assert!(fifo(20));
            until(&go[1]);
            busy(Duration::from_millis(300));
            in_time.store(high_done.load(SeqCst), SeqCst);
        });
        high_is.set(high.thread().clone()).unwrap();
        medium_is.set(medium.thread().clone()).unwrap();
        scope.spawn(|| {
            // Both are asleep by then.
            std::thread::sleep(Duration::from_millis(50));
            assert!(fifo(10));
            lock(&|| {
                for (at, thread) in [high_is.get(), medium_is.get()].into_iter().enumerate() {
                    go[at].store(true, SeqCst);
                    // The high one has the core at once, and waits for us.
                    thread.unwrap().unpark();
                }
                busy(Duration::from_millis(5));
            });
        });
    });
    in_time.load(SeqCst)
}

/// Medium work keeps a high priority waiting for a low one; not with priority inheritance.
#[test]
fn a_holder_has_the_priority_of_its_waiter_by_a_pi_mutex_only() {
    if !may_fifo() {
        return;
    }
    let dir = TempDomain::new("lock-pi").unwrap();
    let node = Node::builder().root(dir.path()).name("fifo").open().unwrap();
    let (robust, pi) = (node.mutex::<u64>("/robust"), node.pi_mutex::<u64>("/pi"));
    let (robust, pi) = (robust.unwrap(), pi.unwrap());
    let by_robust = in_time(|inside| {
        let _guard = robust.lock().unwrap();
        inside();
    });
    let by_pi = in_time(|inside| {
        let _guard = pi.lock().unwrap();
        inside();
    });
    println!("in time: RobustMutex {by_robust}, PiMutex {by_pi}");
    assert!(!by_robust, "the test shows no inversion");
    assert!(by_pi);
}
