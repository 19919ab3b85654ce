//! Condition variables, semaphores, sets of numbers.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::{MaybeUninit, transmute};

use outlive::Deadline;
use outlive::lock::{Acquired, LocklessSet, Permit, RobustCondvar, RobustSemaphore};

use crate::lock::{outlive_mutex, refused};
use crate::node::outlive_node;
use crate::status::{Fail, need, outlive_status, run, text};

/// Waiting for a change of data under an `outlive_mutex`. Any number of threads may use one handle.
#[derive(Debug)]
pub struct outlive_condvar {
    condvar: RobustCondvar,
}

/// Opens the condition variable `name` of the node's domain, or creates it.
///
/// Example:
///
///     outlive_mutex *mutex;
///     outlive_condvar *changed; // for outlive_condvar_notify, where the goal is set
///     must(outlive_mutex_open(node, "/robot/goal", type, NULL, &mutex));
///     must(outlive_condvar_open(node, "/robot/goal-changed", &changed));
///     const struct pose *goal = outlive_mutex_data(mutex);
///     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
///     must(outlive_mutex_lock(mutex, deadline));
///     while (goal->x == 0.0 && outlive_now_ns() < deadline)
///         must(outlive_condvar_wait(changed, mutex, deadline, NULL));
///     must(outlive_mutex_unlock(mutex));
///     outlive_condvar_free(changed);
///     outlive_mutex_free(mutex);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_condvar_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_condvar>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let condvar = node.node.condvar(text(name, "a name")?)?;
        out.write(Box::into_raw(Box::new(outlive_condvar { condvar })));
        Ok(())
    })
}

/// Releases the mutex, which the calling thread holds, waits for a notification until
/// `deadline_ns`, and takes the mutex again, however long that takes. Check the data again
/// afterwards: wake-ups may be spurious. `notified`, unless NULL, gets whether a notification came;
/// that the deadline passed is not an error.
///
/// Returns the same as `outlive_mutex_lock`; with `OUTLIVE_OK` and `OUTLIVE_OWNER_DIED` the mutex
/// is held. `OUTLIVE_NOT_OWNED`: the calling thread did not hold it. `OUTLIVE_UNSUPPORTED`, for a
/// mutex with priority inheritance, and `OUTLIVE_INVALID_ARGUMENT`, where one is NULL: nothing was
/// released, so the mutex stays as it was. With any other error it is not held.
///
/// It cannot tell whether anyone is left to notify it: give a deadline, or watch the node.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_condvar_wait(
    condvar: Option<&outlive_condvar>,
    mutex: Option<&outlive_mutex>,
    deadline_ns: u64,
    notified: Option<&mut MaybeUninit<bool>>,
) -> outlive_status {
    run(|| {
        let (condvar, mutex) = (need(condvar, "a condition variable")?, need(mutex, "a mutex")?);
        let waited = condvar.condvar.wait_raw(&mutex.mutex, Deadline::at_ns(deadline_ns));
        let (how, told) = waited.map_err(refused)?;
        if let Some(notified) = notified {
            notified.write(told);
        }
        match how {
            Acquired::Clean => Ok(()),
            Acquired::OwnerDied => Err(Fail::Quiet(outlive_status::OUTLIVE_OWNER_DIED)),
        }
    })
}

/// Wakes one waiter, or all of them, if there are any. With or without the mutex held.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_condvar_notify(
    condvar: Option<&outlive_condvar>,
    all: bool,
) -> outlive_status {
    run(|| {
        let condvar = &need(condvar, "a condition variable")?.condvar;
        if all {
            condvar.notify_all()
        } else {
            condvar.notify_one()
        }
        Ok(())
    })
}

/// Frees the handle. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_condvar_free(condvar: Option<Box<outlive_condvar>>) {
    run(|| {
        drop(condvar);
        Ok(())
    });
}

/// A counting semaphore; a killed holder's permit comes back. Any number of threads may use one
/// handle; a permit is a thread's.
#[derive(Debug)]
pub struct outlive_semaphore {
    semaphore: RobustSemaphore,
}

/// A permit of a semaphore, which must not be freed before it. It may be moved as bytes: once a
/// copy is given back, the original must not be used any more.
#[derive(Debug)]
#[repr(C)]
pub struct outlive_permit {
    /// 0: none.
    pub held: u32,
    /// Which of the permits it is, from 0: for instance the number of a device.
    pub index: u32,
    /// Whether the previous holder died with it: what it guards may be inconsistent.
    pub owner_died: bool,
    /// Reserved; 0 today.
    pub reserved: [u8; 7],
    /// outlive's own.
    pub internal: [u64; 6],
}

const PERMIT_WORDS: usize = 6;
const _: () = assert!(size_of::<Permit<'_>>() <= PERMIT_WORDS * 8);
const _: () = assert!(align_of::<Permit<'_>>() <= 8);

/// Opens the semaphore `name`, or creates it with `permits` permits, 1 to 1024.
/// `OUTLIVE_TYPE_MISMATCH` when it exists with another number.
///
/// Example:
///
///     outlive_semaphore *grippers;
///     outlive_permit permit;
///     must(outlive_semaphore_open(node, "/arm/grippers", 2, &grippers));
///     must(outlive_semaphore_acquire(grippers, OUTLIVE_FOREVER, &permit));
///     printf("gripper %" PRIu32 " of 2\n", permit.index);
///     outlive_permit_release(&permit);
///     outlive_semaphore_free(grippers);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_semaphore_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    permits: usize,
    out: Option<&mut MaybeUninit<*mut outlive_semaphore>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let semaphore = node.node.semaphore(text(name, "a name")?, permits)?;
        out.write(Box::into_raw(Box::new(outlive_semaphore { semaphore })));
        Ok(())
    })
}

/// Takes a permit, waiting until `deadline_ns` for as long as living threads hold all of them.
///
/// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`; `OUTLIVE_DEADLOCK` when the calling thread holds them
/// all.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_semaphore_acquire(
    semaphore: Option<&outlive_semaphore>,
    deadline_ns: u64,
    permit: Option<&mut MaybeUninit<outlive_permit>>,
) -> outlive_status {
    run(|| {
        let none = outlive_permit {
            held: 0,
            index: 0,
            owner_died: false,
            reserved: [0; 7],
            internal: [0; PERMIT_WORDS],
        };
        let out = need(permit, "a permit")?.write(none);
        let semaphore = &need(semaphore, "a semaphore")?.semaphore;
        let taken = semaphore.acquire_until(Deadline::at_ns(deadline_ns));
        let permit = taken.map_err(refused)?;
        (out.index, out.owner_died) = (permit.index() as u32, permit.owner_died());
        // SAFETY: the caller keeps the semaphore while it has the permit; the words have room and
        // alignment, asserted above.
        unsafe {
            let permit = transmute::<Permit<'_>, Permit<'static>>(permit);
            out.internal.as_mut_ptr().cast::<Permit<'static>>().write(permit);
        }
        out.held = 1;
        Ok(())
    })
}

/// Gives a permit back; call it from the thread that took it. Does nothing for NULL or one already
/// given back.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_permit_release(permit: Option<&mut outlive_permit>) {
    run(|| {
        if let Some(permit) = permit
            && std::mem::take(&mut permit.held) != 0
        {
            // SAFETY: `held` is set exactly while a permit is stored.
            drop(unsafe { permit.internal.as_ptr().cast::<Permit<'static>>().read() });
        }
        Ok(())
    });
}

/// How many permits are free right now; others may take them at once. Those of dead holders count
/// as held.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_semaphore_available(semaphore: Option<&outlive_semaphore>) -> usize {
    semaphore.map_or(0, |semaphore| semaphore.semaphore.available())
}

/// Frees the handle. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_semaphore_free(semaphore: Option<Box<outlive_semaphore>>) {
    run(|| {
        drop(semaphore);
        Ok(())
    });
}

/// A set of numbers that any number of threads and processes change without a lock.
#[derive(Debug)]
pub struct outlive_set {
    set: LocklessSet,
}

/// Opens the set `name`, or creates it with room for `capacity` numbers, 1 to 16777216.
/// `OUTLIVE_TYPE_MISMATCH` when it exists with another capacity.
///
/// Example:
///
///     outlive_set *seen;
///     bool added;
///     must(outlive_set_open(node, "/map/seen", 1024, &seen));
///     must(outlive_set_insert(seen, 42, &added));
///     printf("42 is %s\n", added ? "new" : "known");
///     outlive_set_free(seen);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    capacity: usize,
    out: Option<&mut MaybeUninit<*mut outlive_set>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let set = node.node.lockless_set(text(name, "a name")?, capacity)?;
        out.write(Box::into_raw(Box::new(outlive_set { set })));
        Ok(())
    })
}

/// Adds `id`, which is not 0. `added`, unless NULL: false if it was a member already. Two threads
/// that insert the same id at the same time may both get true. `OUTLIVE_NO_SPACE`: the set is full.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_insert(
    set: Option<&outlive_set>,
    id: u64,
    added: Option<&mut MaybeUninit<bool>>,
) -> outlive_status {
    run(|| {
        let new = need(set, "a set")?.set.insert(id)?;
        if let Some(added) = added {
            added.write(new);
        }
        Ok(())
    })
}

/// Removes `id`; false if it was not a member.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_remove(set: Option<&outlive_set>, id: u64) -> bool {
    set.is_some_and(|set| set.set.remove(id))
}

/// Whether `id` is a member right now.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_contains(set: Option<&outlive_set>, id: u64) -> bool {
    set.is_some_and(|set| set.set.contains(id))
}

/// Writes at most `room` members, in ascending order, to `ids`, and returns how many there are,
/// which may be more. Ids inserted or removed meanwhile may or may not be included.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_ids(set: Option<&outlive_set>, ids: *mut u64, room: usize) -> usize {
    let found = set.map_or(Vec::new(), |set| set.set.ids());
    give(&found, ids, room);
    found.len()
}

fn give(found: &[u64], to: *mut u64, room: usize) {
    let count = if to.is_null() { 0 } else { found.len().min(room) };
    if count > 0 {
        // SAFETY: the caller's part: room for so many.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), to, count) };
    }
}

/// Frees the handle. The set stays. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_set_free(set: Option<Box<outlive_set>>) {
    run(|| {
        drop(set);
        Ok(())
    });
}
