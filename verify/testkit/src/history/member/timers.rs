//! Timers and interrupts, as a member uses them.

use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use outlive::{Descriptor, Interrupt, Timer, WaitSet};

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

/// What the signal handler raises.
static TO_RAISE: AtomicPtr<Interrupt> = AtomicPtr::new(ptr::null_mut());

extern "C" fn raise_it(_signal: i32) {
    // SAFETY: null, or what `raise` keeps until the handler is done.
    if let Some(it) = unsafe { TO_RAISE.load(SeqCst).as_ref() } {
        it.raise();
    }
}

/// A timer, and when it is due for the first time.
pub(super) fn open(step: &Step, reply: &mut Reply) -> Thing {
    let [after, period] = ["after_us", "period_us"].map(|us| Duration::from_micros(step.arg(us)));
    let timer = match (after, period) {
        (after, period) if period.is_zero() => Timer::after(after),
        (after, period) if after == period => Timer::every(period),
        (after, period) => Timer::periodic(outlive::now_ns() + after.as_nanos() as u64, period),
    };
    reply.value = timer.next_ns().unwrap_or(u64::MAX);
    Thing::Timer(timer)
}

/// Says when it is due next, too.
pub(super) fn act(timer: &mut Timer, step: &Step, reply: &mut Reply) {
    match step.verb {
        Verb::Fired => reply.value = timer.fired(),
        _ => timer.stop(),
    }
    reply.data = vec![timer.next_ns().unwrap_or(u64::MAX)];
}

pub(super) fn about_interrupt(
    shared: &Shared,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let on = step.arg("on");
    // Others wait for it meanwhile.
    let it = match shared.things.lock().unwrap().get(&on) {
        Some(Thing::Interrupt(it)) => it.clone(),
        _ => panic!("handle {on} is not an interrupt"),
    };
    match step.verb {
        Verb::Raise if step.arg("signal") == 1 => raise_by_signal(&it),
        Verb::Raise => it.raise(),
        Verb::Clear => it.clear(),
        _ => reply.value = u64::from(it.is_raised()),
    }
    Ok(())
}

fn raise_by_signal(it: &Arc<Interrupt>) {
    TO_RAISE.store(Arc::as_ptr(it).cast_mut(), SeqCst);
    let handler: extern "C" fn(i32) = raise_it;
    // SAFETY: the handler does what a handler may; it has returned when `raise` does.
    unsafe {
        libc::signal(libc::SIGUSR1, handler as usize);
        libc::raise(libc::SIGUSR1);
    }
    TO_RAISE.store(ptr::null_mut(), SeqCst);
}

/// What is wrong with one that a forked child inherited: it is the child's own, in the state that
/// it had, and raising it wakes the child.
pub(super) fn misbehaves(it: &Interrupt) -> Option<String> {
    let (end, _other) = UnixStream::pair().ok()?;
    let wakes = || {
        let (mut it, mut silent) = (it, Descriptor::readable(&end));
        let mut set = WaitSet::new();
        let ready = set.wait(&mut [&mut it, &mut silent], Duration::ZERO);
        ready.is_ok_and(|ready| ready.contains(0))
    };
    let inherited = it.is_raised();
    if wakes() != inherited {
        return Some(format!("an interrupt that is raised: {inherited}"));
    }
    it.clear();
    let cleared = !wakes();
    it.raise();
    let wrong = !cleared || !wakes();
    wrong.then(|| "an interrupt that is not raised or cleared".into())
}
