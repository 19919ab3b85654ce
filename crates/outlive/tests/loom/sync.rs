//! The models' door to atomics: loom's, counted, so that a thread can be killed at any store; and
//! the faults that turn a model into a mutant.

use std::any::Any;
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub(crate) use crate::loom::sync::atomic::{Ordering, fence};

macro_rules! atomic {
    ($name:ident, $int:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name(crate::loom::sync::atomic::$name);

        impl $name {
            pub(crate) fn new(value: $int) -> Self {
                Self(crate::loom::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $int {
                may_pause();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $int, order: Ordering) {
                step();
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.swap(value, order)
            }

            pub(crate) fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_add(value, order)
            }

            pub(crate) fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_sub(value, order)
            }

            pub(crate) fn fetch_or(&self, bits: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_or(bits, order)
            }

            pub(crate) fn fetch_and(&self, bits: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_and(bits, order)
            }

            pub(crate) fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_max(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                from: $int,
                to: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                step();
                self.0.compare_exchange(from, to, success, failure)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

pub(crate) fn swap_fenced(word: &AtomicU64, value: u64) -> u64 {
    if fault("swap.relaxed") {
        word.store(value, Ordering::Relaxed);
        return 0;
    }
    if fault("swap.is_store") {
        word.store(value, Ordering::Release);
        fence(Ordering::SeqCst);
        return 0;
    }
    let old = word.swap(value, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    old
}

pub(crate) fn after_rmw() {
    fence(Ordering::SeqCst);
}

/// Time as two threads see it: what one stored before its time passed, the other sees after its
/// own passed, or the other way round. That is what a bounded delay of stores amounts to, and
/// what a fence on both sides says.
pub(crate) fn time_passes() {
    if !fault("time.stands_still") {
        fence(Ordering::SeqCst);
    }
}

crate::loom::thread_local! {
    static STEPS_LEFT: Cell<u32> = Cell::new(u32::MAX);
}

struct Killed;

/// loom goes on with another thread wherever that may matter.
#[cfg(not(miri))]
fn may_pause() {}

#[cfg(miri)]
use crate::loom::may_pause;

/// One visible step of this thread; does not return if the thread is to die before it.
pub(crate) fn step() {
    may_pause();
    STEPS_LEFT.with(|left| match left.get() {
        0 => resume_unwind(Box::new(Killed)),
        u32::MAX => {}
        n => left.set(n - 1),
    });
}

/// Runs `body` and kills it after `steps` visible steps; `true` if it was over before.
pub(crate) fn kill_after(steps: u32, body: impl FnOnce()) -> bool {
    STEPS_LEFT.with(|left| left.set(steps));
    let ended = catch_unwind(AssertUnwindSafe(body));
    STEPS_LEFT.with(|left| left.set(u32::MAX));
    match ended {
        Ok(()) => true,
        Err(why) if is_kill(&*why) => false,
        Err(why) => resume_unwind(why),
    }
}

fn is_kill(why: &(dyn Any + Send)) -> bool {
    why.is::<Killed>()
}

std::thread_local! {
    // loom runs the threads of a model on the thread of its test.
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

pub(crate) fn planted() -> Option<&'static str> {
    PLANTED.get()
}

pub(crate) fn plant(fault: Option<&'static str>) {
    PLANTED.set(fault);
}

pub(crate) fn fault(name: &str) -> bool {
    planted() == Some(name)
}

pub(crate) fn unless_fault(name: &str, order: Ordering) -> Ordering {
    if fault(name) { Ordering::Relaxed } else { order }
}

/// Asserts that `model` fails with the fault `name` planted.
pub(crate) fn caught(name: &'static str, model: impl Fn()) {
    // A race or a deadlock ends Miri, so that each of its runs has one mutant, or none.
    #[cfg(miri)]
    if crate::loom::mutant().as_deref() != Some(name) {
        return;
    }
    plant(Some(name));
    let caught = catch_unwind(AssertUnwindSafe(model)).is_err();
    plant(None);
    assert!(caught, "nothing noticed the fault {name}");
    // Not `eprintln`, which the test runner keeps to itself: the runner of all faults reads it.
    let _ = writeln!(std::io::stderr(), "caught: {name}");
    #[cfg(miri)]
    std::process::exit(0);
}

/// Asserts that `model` does not fail with the fault `name` planted: it cannot tell, and its
/// place says why.
pub(crate) fn not_caught(name: &'static str, model: impl Fn()) {
    if cfg!(miri) {
        return; // what loom cannot tell Miri may
    }
    plant(Some(name));
    model();
    plant(None);
}
