//! Waiting for several things at once.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use outlive::{Deadline, Descriptor, Interrupt, Timer, WaitSet, Waitable};

use crate::node::outlive_watch;
use crate::options::reserved;
use crate::queue::outlive_consumer;
use crate::server::outlive_server;
use crate::service::outlive_client;
use crate::shutdown;
use crate::status::{Fail, invalid, need, outlive_status, run};
use crate::subscriber::outlive_subscriber;

/// Waits until one of several things is ready. One thread at a time.
#[derive(Debug)]
pub struct outlive_waitset {
    set: WaitSet,
}

/// Ready once, or periodically. One thread at a time.
#[derive(Debug)]
pub struct outlive_timer {
    timer: Timer,
}

/// Ends waits of this process when another thread or a signal handler raises it. Any thread may use
/// it.
#[derive(Debug)]
pub struct outlive_interrupt {
    interrupt: Interrupt,
}

/// What a member of a wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum outlive_member_kind {
    /// An `outlive_subscriber`: ready while there is a message, and once for each new event.
    OUTLIVE_SUBSCRIBER = 1,
    /// An `outlive_consumer`, likewise; also while a message is in hand.
    OUTLIVE_CONSUMER = 2,
    /// An `outlive_server`: ready while there is a request.
    OUTLIVE_SERVER = 3,
    /// An `outlive_client`: ready while there is a reply, or a request has failed.
    OUTLIVE_CLIENT = 4,
    /// An `outlive_watch`: ready while the node is dead; take it out of the list then.
    OUTLIVE_WATCH = 5,
    /// An `outlive_timer`: ready while it is due, until `outlive_timer_fired` is called.
    OUTLIVE_TIMER = 6,
    /// The descriptor `fd`, ready when it can be read; `object` is NULL.
    OUTLIVE_READABLE_FD = 7,
    /// The descriptor `fd`, ready when it can be written; `object` is NULL.
    OUTLIVE_WRITABLE_FD = 8,
    /// That `outlive_shutdown_on_signals` was asked to end the process; `object` is NULL.
    OUTLIVE_SHUTDOWN = 9,
    /// An `outlive_interrupt`: ready while it is raised.
    OUTLIVE_INTERRUPT = 10,
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
    /// 0.
    pub reserved: [u8; 7],
}

/// Makes a set. It takes no resources until a wait needs them.
///
/// Example:
///
///     outlive_subscriber *poses;
///     outlive_waitset *set;
///     must(outlive_subscriber_open(node, "/robot/pose", type, NULL, &poses));
///     must(outlive_waitset_new(&set));
///     outlive_member members[] = {{.object = poses, .kind = OUTLIVE_SUBSCRIBER},
///                                 {.fd = STDIN_FILENO, .kind = OUTLIVE_READABLE_FD}};
///     must(outlive_waitset_wait(set, members, 2, OUTLIVE_FOREVER));
///     printf("pose: %d, input: %d\n", members[0].ready, members[1].ready);
///     outlive_waitset_free(set);
///     outlive_subscriber_close(poses);
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

/// Frees a set. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_waitset_free(set: Option<Box<outlive_waitset>>) {
    drop(set);
}

/// Waits until at least one of `count` members is ready, and marks each that is. No handle may be
/// in the list twice. Each wait takes the list again, as `poll` does. What the list names must live
/// until the wait returns.
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
            member.reserved.iter().try_for_each(|byte| reserved(u64::from(*byte)))?;
            if member.kind == outlive_member_kind::OUTLIVE_READABLE_FD as u32
                || member.kind == outlive_member_kind::OUTLIVE_WRITABLE_FD as u32
            {
                if member.fd < 0 {
                    return Err(invalid("a member", "its fd is negative"));
                }
                // SAFETY: the caller's part: it stays open during the wait.
                fds.push(unsafe { BorrowedFd::borrow_raw(member.fd) });
            }
        }
        let mut next_fd = fds.iter();
        let mut foreign: Vec<Box<dyn Waitable + '_>> = Vec::new();
        for member in members.iter() {
            let is = |kind: outlive_member_kind| member.kind == kind as u32;
            if is(outlive_member_kind::OUTLIVE_READABLE_FD) {
                let fd = next_fd.next().map(Descriptor::readable);
                foreign.extend(fd.map(|fd| Box::new(fd) as Box<dyn Waitable + '_>));
            } else if is(outlive_member_kind::OUTLIVE_WRITABLE_FD) {
                let fd = next_fd.next().map(Descriptor::writable);
                foreign.extend(fd.map(|fd| Box::new(fd) as Box<dyn Waitable + '_>));
            } else if is(outlive_member_kind::OUTLIVE_SHUTDOWN) {
                foreign.push(Box::new(shutdown::member()?));
            } else if is(outlive_member_kind::OUTLIVE_INTERRUPT) {
                // SAFETY: the caller's part: such a handle, valid during the wait.
                let interrupt = unsafe { member.object.cast::<outlive_interrupt>().as_ref() };
                foreign.push(Box::new(&need(interrupt, "an interrupt")?.interrupt));
            } else if has_message_in_hand(member) {
                foreign.push(Box::new(Timer::at(0)));
            }
        }
        let mut next_foreign = foreign.iter_mut();
        let mut list: Vec<&mut dyn Waitable> = Vec::with_capacity(count);
        for member in members.iter() {
            list.push(match waitable(member)? {
                Some(waitable) => waitable,
                None => &mut **need(next_foreign.next(), "a member")?,
            });
        }
        let ready = set.set.wait_until(&mut list, Deadline::at_ns(deadline_ns))?;
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
    if count > isize::MAX as usize / size_of::<outlive_member>() {
        return Err(invalid("members", "there are more than memory can hold"));
    }
    // SAFETY: the caller's part: so many members, its own.
    Ok(unsafe { std::slice::from_raw_parts_mut(members, count) })
}

/// Whether it is a consumer whose caller has a message in hand. It is ready; to look at it as at
/// others would take up another message in the place of that one.
fn has_message_in_hand(member: &outlive_member) -> bool {
    let is_consumer = member.kind == outlive_member_kind::OUTLIVE_CONSUMER as u32;
    // SAFETY: the caller's part: the handle is of the kind it says, and valid during the wait.
    is_consumer
        && unsafe { member.object.cast::<outlive_consumer>().as_ref() }.is_some_and(|c| c.held)
}

/// The handle of a member; `None` for what stands in for one: descriptors, what any thread may use,
/// a consumer whose message is in hand.
fn waitable<'a>(member: &outlive_member) -> Result<Option<&'a mut dyn Waitable>, Fail> {
    use outlive_member_kind as Kind;
    let object = member.object;
    let is = |kind: Kind| member.kind == kind as u32;
    if is(Kind::OUTLIVE_READABLE_FD)
        || is(Kind::OUTLIVE_WRITABLE_FD)
        || is(Kind::OUTLIVE_SHUTDOWN)
        || is(Kind::OUTLIVE_INTERRUPT)
        || has_message_in_hand(member)
    {
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
            &mut (*object.cast::<outlive_consumer>()).consumer
        } else if is(Kind::OUTLIVE_SERVER) {
            &mut (*object.cast::<outlive_server>()).server
        } else if is(Kind::OUTLIVE_CLIENT) {
            &mut (*object.cast::<outlive_client>()).client
        } else if is(Kind::OUTLIVE_WATCH) {
            &mut (*object.cast::<outlive_watch>()).watch
        } else if is(Kind::OUTLIVE_TIMER) {
            &mut (*object.cast::<outlive_timer>()).timer
        } else {
            return Err(invalid("a member", "its kind is unknown"));
        }
    };
    Ok(Some(found))
}

/// Makes an interrupt that is not raised.
///
/// Example:
///
///     outlive_interrupt *stop;
///     outlive_waitset *set;
///     must(outlive_interrupt_new(&stop));
///     must(outlive_waitset_new(&set));
///     outlive_interrupt_raise(stop); // in another thread, or in a signal handler
///     outlive_member member = {.object = stop, .kind = OUTLIVE_INTERRUPT};
///     must(outlive_waitset_wait(set, &member, 1, OUTLIVE_FOREVER));
///     outlive_interrupt_clear(stop); // for the next time
///     outlive_waitset_free(set);
///     outlive_interrupt_free(stop);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_interrupt_new(
    out: Option<&mut MaybeUninit<*mut outlive_interrupt>>,
) -> outlive_status {
    run(|| {
        let interrupt = Box::new(outlive_interrupt { interrupt: Interrupt::new() });
        need(out, "out")?.write(Box::into_raw(interrupt));
        Ok(())
    })
}

/// Ends all waits for it, now and until it is cleared. Async-signal-safe: a signal handler may call
/// it on a live handle; `errno` is kept. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_interrupt_raise(interrupt: Option<&outlive_interrupt>) {
    if let Some(interrupt) = interrupt {
        interrupt.interrupt.raise();
    }
}

/// Whether it is raised. Async-signal-safe. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_interrupt_is_raised(interrupt: Option<&outlive_interrupt>) -> bool {
    interrupt.is_some_and(|interrupt| interrupt.interrupt.is_raised())
}

/// Resets it for the next use; call it from the one thread that waits for it. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_interrupt_clear(interrupt: Option<&outlive_interrupt>) {
    if let Some(interrupt) = interrupt {
        interrupt.interrupt.clear();
    }
}

/// Frees it: nobody waits for it, and no handler may raise it any more. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_interrupt_free(interrupt: Option<Box<outlive_interrupt>>) {
    drop(interrupt);
}

/// Ready from `first_ns` of CLOCK_MONOTONIC on and every `period_ns` after it; 0: once.
///
/// Example:
///
///     outlive_timer *tick;
///     outlive_waitset *set;
///     must(outlive_timer_new(outlive_now_ns() + 10000000, 0, &tick)); // once, in 10 ms
///     must(outlive_waitset_new(&set));
///     outlive_member member = {.object = tick, .kind = OUTLIVE_TIMER};
///     must(outlive_waitset_wait(set, &member, 1, OUTLIVE_FOREVER));
///     printf("due %" PRIu64 " times\n", outlive_timer_fired(tick));
///     outlive_waitset_free(set);
///     outlive_timer_free(tick);
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

/// How often it became due since the last call; it stays ready until this is called.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_timer_fired(timer: Option<&mut outlive_timer>) -> u64 {
    timer.map_or(0, |timer| timer.timer.fired())
}

/// Frees a timer. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_timer_free(timer: Option<Box<outlive_timer>>) {
    drop(timer);
}
