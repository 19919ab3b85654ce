//! Segments, as a member uses them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use outlive::ErrorKind;

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use super::things::locks::Lock;
use super::things::segments::{LINE, PLACED, Segment, WORDS};
use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

fn name(step: &Step) -> String {
    format!("/h/segment{}", step.arg("segment"))
}

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let (node, name, value) = (shared.node(step.arg("node")), name(step), step.arg("value"));
    let segment = match (step.arg("large") == 1, value) {
        (false, 0) => Segment::Small(node.segment(&name)?),
        (true, 0) => Segment::Large(node.segment(&name)?),
        (false, value) => Segment::Small(node.segment_with(&name, &filled(value))?),
        (true, value) => Segment::Large(node.segment_with(&name, &filled(value))?),
    };
    Ok(Thing::Segment(segment))
}

/// The first line only: the others are for locks.
fn filled<const N: usize>(value: u64) -> [u64; N] {
    std::array::from_fn(|i| if i < WORDS { value } else { 0 })
}

pub(super) fn remove(shared: &Shared, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    reply.value = u64::from(shared.node(step.arg("node")).remove_lock(&name(step))?);
    Ok(())
}

fn words(segment: &Segment) -> &[AtomicU64; WORDS] {
    let first: *mut u64 = match segment {
        Segment::Small(it) => it.as_ptr().cast(),
        Segment::Large(it) => it.as_ptr().cast(),
    };
    // SAFETY: the segment's first words, mapped as long as it lives; all use them as atomics.
    unsafe { &*first.cast() }
}

pub(super) fn act(segment: &Segment, step: &Step, reply: &mut Reply) {
    let words = words(segment);
    match step.verb {
        Verb::Poke => words[step.arg("at") as usize % WORDS].store(step.arg("value"), Relaxed),
        _ => reply.data = words.iter().map(|word| word.load(Relaxed)).collect(),
    }
}

macro_rules! of_either {
    ($segment:expr, $it:ident => $do:expr) => {
        match $segment {
            Segment::Small($it) => $do,
            Segment::Large($it) => $do,
        }
    };
}

/// What lies there, placed if need be.
pub(super) fn place(segment: &Segment, step: &Step) -> outlive::Result<Thing> {
    let (at, count) = (step.arg("line") as usize * LINE, step.arg("count") as usize);
    Ok(match PLACED.get(step.arg("what") as usize) {
        Some(Verb::Mutex) => {
            Thing::Lock(Lock::Mutex(Arc::new(of_either!(segment, it => it.mutex(at))?)))
        }
        Some(Verb::RwLock) => {
            Thing::Lock(Lock::Rw(Arc::new(of_either!(segment, it => it.rwlock(at))?)))
        }
        Some(Verb::Condvar) => Thing::Condvar(Arc::new(of_either!(segment, it => it.condvar(at))?)),
        Some(Verb::Semaphore) => {
            Thing::Semaphore(Arc::new(of_either!(segment, it => it.semaphore(at, count))?))
        }
        _ => Thing::Set(of_either!(segment, it => it.lockless_set(at, count))?),
    })
}

/// How one that was inherited by a forked child answers; what is in it can be read.
pub(super) fn refuses(segment: &Segment) -> String {
    let _ = words(segment)[0].load(Relaxed);
    let first = Step::new(0, 0, Verb::Place, &[0, 0, 1, 2, 0]);
    match place(segment, &first).map(drop).map_err(|e| e.kind()) {
        // Before that it finds that there is something else.
        Err(ErrorKind::InvalidArgument) => "ForkedChild".into(),
        Err(kind) => format!("{kind:?}"),
        Ok(()) => "ok".into(),
    }
}
