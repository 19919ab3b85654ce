//! Waiting for several things at once.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use outlive::{Descriptor, Timer, WaitSet, Waitable};

use crate::node::outlive_watch;
use crate::queue::outlive_consumer;
use crate::server::outlive_server;
use crate::service::outlive_client;
use crate::status::{Fail, invalid, need, outlive_status, run};
use crate::subscriber::outlive_subscriber;

/// Waits until one of several things is ready. One thread at a time.
#[derive(Debug)]
pub struct outlive_waitset {
    set: WaitSet,
}

/// Ready at one instant, or every so often. One thread at a time.
#[derive(Debug)]
pub struct outlive_timer {
    timer: Timer,
}

/// What a member of a wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum outlive_member_kind {
    /// An `outlive_subscriber`: ready while there is a message, and once for each new event.
    OUTLIVE_SUBSCRIBER = 1,
    /// An `outlive_consumer`, likewise. A message in hand counts as received.
    OUTLIVE_CONSUMER = 2,
    /// An `outlive_server`: ready while there is a request.
    OUTLIVE_SERVER = 3,
    /// An `outlive_client`: ready while there is a reply, or a request has failed.
    OUTLIVE_CLIENT = 4,
    /// An `outlive_watch`: ready while the node is dead; take it out of the list then.
    OUTLIVE_WATCH = 5,
    /// An `outlive_timer`: ready while it is due and `outlive_timer_fired` was not asked yet.
    OUTLIVE_TIMER = 6,
    /// The descriptor `fd`, ready when it can be read; `object` is NULL.
    OUTLIVE_READABLE_FD = 7,
    /// The descriptor `fd`, ready when it can be written; `object` is NULL.
    OUTLIVE_WRITABLE_FD = 8,
}

/// A member of a wait.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_member {
    /// Its handle.
    pub object: *mut c_void,
    /// What it is: an `outlive_member_kind`.
    pub kind: u32,
    /// The descriptor, where it is one.
    pub fd: c_int,
    /// Set by the wait: whether it is ready.
    pub ready: bool,
}

/// Makes a set. It takes nothing until a wait needs it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_waitset_new(
    out: Option<&mut MaybeUninit<*mut outlive_waitset>>,
) -> outlive_status {
    run(|| {
        let set = Box::new(outlive_waitset { set: WaitSet::new() });
        need(out, "out")?.write(Box::into_raw(set));
        Ok(())
    })
}

/// Frees a set. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_waitset_free(set: Option<Box<outlive_waitset>>) {
    drop(set);
}

/// Waits until at least one of `count` members is ready, and says at each whether it is. No handle
/// may be in the list twice. The list is given anew with each wait, as to `poll`.
///
/// `OUTLIVE_TIMEOUT`: the deadline passed, none is ready. `OUTLIVE_NO_WAIT` only looks.
///
/// A peer killed at any instruction wakes the set: by its message if that was committed, and by its
/// death.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_waitset_wait(
    set: Option<&mut outlive_waitset>,
    members: *mut outlive_member,
    count: usize,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let set = need(set, "a set")?;
        let members = list(members, count)?;
        let mut fds = Vec::new();
        for member in members.iter_mut() {
            member.ready = false;
            if member.kind == outlive_member_kind::OUTLIVE_READABLE_FD as u32
                || member.kind == outlive_member_kind::OUTLIVE_WRITABLE_FD as u32
            {
                if member.fd < 0 {
                    return Err(invalid("a member", "its fd is no descriptor"));
                }
                // SAFETY: the caller's part: it stays open during the wait.
                fds.push(unsafe { BorrowedFd::borrow_raw(member.fd) });
            }
        }
        let mut next_fd = fds.iter();
        let mut foreign = Vec::with_capacity(fds.len());
        for member in members.iter() {
            if member.kind == outlive_member_kind::OUTLIVE_READABLE_FD as u32 {
                foreign.extend(next_fd.next().map(Descriptor::readable));
            } else if member.kind == outlive_member_kind::OUTLIVE_WRITABLE_FD as u32 {
                foreign.extend(next_fd.next().map(Descriptor::writable));
            }
        }
        let mut next_foreign = foreign.iter_mut();
        let mut list: Vec<&mut dyn Waitable> = Vec::with_capacity(count);
        for member in members.iter() {
            list.push(match waitable(member)? {
                Some(waitable) => waitable,
                None => need(next_foreign.next(), "a descriptor")?,
            });
        }
        let ready = set.set.wait_until(&mut list, deadline_ns)?;
        if ready.is_empty() {
            return Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT));
        }
        ready.for_each(|i| members[i].ready = true);
        Ok(())
    })
}

fn list<'a>(members: *mut outlive_member, count: usize) -> Result<&'a mut [outlive_member], Fail> {
    if members.is_null() || count == 0 {
        return Err(invalid("members", "there are none"));
    }
    // SAFETY: the caller's part: so many members, its own.
    Ok(unsafe { std::slice::from_raw_parts_mut(members, count) })
}

/// The handle of a member; `None` for a descriptor.
fn waitable<'a>(member: &outlive_member) -> Result<Option<&'a mut dyn Waitable>, Fail> {
    use outlive_member_kind as Kind;
    let object = member.object;
    let is = |kind: Kind| member.kind == kind as u32;
    if is(Kind::OUTLIVE_READABLE_FD) || is(Kind::OUTLIVE_WRITABLE_FD) {
        return Ok(None);
    }
    if object.is_null() {
        return Err(invalid("a member", "its object is NULL"));
    }
    // SAFETY: the caller's part: the handle is of the kind it says, valid during the wait, used by
    // this thread alone, and once in the list.
    let found: &mut dyn Waitable = unsafe {
        if is(Kind::OUTLIVE_SUBSCRIBER) {
            &mut (*object.cast::<outlive_subscriber>()).subscriber
        } else if is(Kind::OUTLIVE_CONSUMER) {
            (*object.cast::<outlive_consumer>()).waitable()
        } else if is(Kind::OUTLIVE_SERVER) {
            &mut (*object.cast::<outlive_server>()).server
        } else if is(Kind::OUTLIVE_CLIENT) {
            &mut (*object.cast::<outlive_client>()).client
        } else if is(Kind::OUTLIVE_WATCH) {
            &mut (*object.cast::<outlive_watch>()).watch
        } else if is(Kind::OUTLIVE_TIMER) {
            &mut (*object.cast::<outlive_timer>()).timer
        } else {
            return Err(invalid("a member", "its kind is none there is"));
        }
    };
    Ok(Some(found))
}

/// Ready from `first_ns` of CLOCK_MONOTONIC on and every `period_ns` after it; 0: once.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_timer_new(
    first_ns: u64,
    period_ns: u64,
    out: Option<&mut MaybeUninit<*mut outlive_timer>>,
) -> outlive_status {
    run(|| {
        let timer = match period_ns {
            0 => Timer::at(first_ns),
            _ => Timer::periodic(first_ns, Duration::from_nanos(period_ns)),
        };
        need(out, "out")?.write(Box::into_raw(Box::new(outlive_timer { timer })));
        Ok(())
    })
}

/// How often it became due since the last call; until it is asked, it stays ready.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_timer_fired(timer: Option<&mut outlive_timer>) -> u64 {
    timer.map_or(0, |timer| timer.timer.fired())
}

/// Frees a timer. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_timer_free(timer: Option<Box<outlive_timer>>) {
    drop(timer);
}
