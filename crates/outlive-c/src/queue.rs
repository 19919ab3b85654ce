//! Queues: many producers, one consumer. Sending answers in the classic manner, by `errno`.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use outlive::internals::fork_generation;
use outlive::queue::{self, Slot};
use outlive::{Consumer, Deadline, Error, ErrorKind, PayloadType, Producer};

use crate::node::outlive_node;
use crate::options::{SizedOptions, flag, read_options, reserved};
use crate::publisher::outlive_port_id;
use crate::status::{Done, Fail, bytes, invalid, need, outlive_status, run, text};
use crate::subscriber::{outlive_event, outlive_event_kind};
use crate::types::{outlive_type, payload_type};

/// Settings of a queue's ends. Zero is the default everywhere; begin with
/// `= {.size = sizeof(outlive_queue_options)}`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_queue_options {
    /// `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    pub size: usize,
    /// Producer: most shared memory its lane may take, bytes; 64 MiB by default.
    pub bound_bytes: u64,
    /// Producer: shared memory its lane takes at first and keeps, bytes; 16 KiB by default.
    pub first_bytes: u64,
    /// Consumer: receives in the order of time stamps, held back at most this long, ns. Makes the
    /// queue `stamped`; `OUTLIVE_TYPE_MISMATCH` if it exists without stamps.
    pub ordered_holdback_ns: u64,
    /// Every message carries a time stamp: 0 or 1. The first member decides.
    pub stamped: u32,
    /// 0.
    pub reserved_word: u32,
}

// SAFETY: `repr(C)`, `size` first; zeros are numbers and NULL.
unsafe impl SizedOptions for outlive_queue_options {
    const NAME: &'static str = "outlive_queue_options";
    const FIRST_BYTES: usize = size_of::<Self>();
}

fn queue(
    node: &outlive_node,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: *const outlive_queue_options,
) -> Result<queue::Builder<[u8]>, Fail> {
    let builder = node.node.queue::<[u8]>(text(name, "a queue name")?)?;
    let mut builder = builder.of_type(&payload_type(of));
    let Some(options) = read_options(options)? else { return Ok(builder) };
    reserved(options.reserved_word.into())?;
    if options.bound_bytes != 0 {
        builder = builder.bound_bytes(options.bound_bytes);
    }
    if options.first_bytes != 0 {
        builder = builder.first_bytes(options.first_bytes);
    }
    if flag(options.stamped, "stamped")? {
        builder = builder.stamped();
    }
    if options.ordered_holdback_ns != 0 {
        builder = builder.ordered(Duration::from_nanos(options.ordered_holdback_ns));
    }
    Ok(builder)
}

/// Tells what a handle gave from what it gave before, and from what another handle gave.
#[derive(Debug)]
struct Generation {
    number: u64,
    /// Of the process that has it, not of its children.
    process: u32,
}

impl Generation {
    fn first() -> Self {
        static HANDLES: AtomicU64 = AtomicU64::new(1);
        // Odd multiples of this constant are far from each other: no two handles of a process meet.
        let number = HANDLES.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { number, process: fork_generation() }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// Refuses what a parent had in hand as it forked.
    #[inline(always)]
    fn of_this_process(&self, what: &str) -> Done {
        if self.process == fork_generation() { Ok(()) } else { Err(inherited(what)) }
    }
}

#[cold]
fn inherited(what: &str) -> Fail {
    let remedy = "it is the parent's: open a node in this process";
    Fail::Error(Error::new(ErrorKind::ForkedChild, "using", what, remedy))
}

/// Sends messages to the one consumer of a queue. One thread at a time.
#[derive(Debug)]
pub struct outlive_producer {
    /// Reserved room; it goes before the producer it is of.
    slot: Option<Slot<'static, [u8]>>,
    /// Of what was reserved last.
    generation: Generation,
    id: outlive_port_id,
    producer: Box<Producer<[u8]>>,
    of: PayloadType,
    last: outlive_status,
}

/// Joins queue `name` as a producer, creating the queue if it does not exist. It may join before
/// the consumer. `of` NULL: raw bytes; `options` may be NULL.
///
/// Example:
///
///     outlive_queue_options options = {.size = sizeof options, .bound_bytes = 1 << 20};
///     outlive_producer *goals;
///     must(outlive_producer_open(node, "/arm/goals", type, &options, &goals));
///     must(outlive_producer_wait_for_consumer(goals, outlive_now_ns() + 10000000000)); // 10 s
///     struct pose goal = {3.0, 4.0, 0.0};
///     if (outlive_producer_send(goals, &goal, sizeof goal, OUTLIVE_NO_WAIT) != 0) {
///         perror("/arm/goals"); // EAGAIN: full; EOWNERDEAD: no live consumer
///     }
///     outlive_producer_close(goals);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: *const outlive_queue_options,
    out: Option<&mut MaybeUninit<*mut outlive_producer>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let producer = Box::new(queue(node, name, of, options)?.producer()?);
        let (of, last) = (payload_type(of), outlive_status::OUTLIVE_OK);
        let generation = Generation::first();
        let id = producer.id();
        let id = outlive_port_id { node: id.node.get(), port: id.port };
        let handle = outlive_producer { slot: None, generation, id, producer, of, last };
        out.write(Box::into_raw(Box::new(handle)));
        Ok(())
    })
}

/// 0, or -1 and `errno`.
#[inline]
fn classic(status: outlive_status) -> c_int {
    if status == outlive_status::OUTLIVE_OK {
        return 0;
    }
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = status.errno() };
    -1
}

/// Sends a copy of `size` bytes: 0, or -1 with `errno`. Nothing was sent when it fails.
///
/// `EOWNERDEAD`: no live consumer, or it died while this call waited. `EAGAIN` with
/// `OUTLIVE_NO_WAIT`, `ETIMEDOUT` with a deadline: the lane is at its bound. `EINVAL`: the type
/// cannot have that size, or the bound does not allow it. `ENOSPC`: the RAM disk is full.
/// `outlive_producer_status` returns the same as a status.
///
/// `deadline_ns`: how long to wait for room, an instant of CLOCK_MONOTONIC.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_send(
    producer: Option<&mut outlive_producer>,
    data: *const c_void,
    size: usize,
    deadline_ns: u64,
) -> c_int {
    let mut port = producer;
    let status = run(|| {
        let port = need(port.as_deref_mut(), "a producer")?;
        let message = bytes(data, size)?;
        port.slot = None;
        Ok(port.producer.send_until(message, Deadline::at_ns(deadline_ns))?)
    });
    noted(port, status)
}

/// Sends `count` contiguous messages of the queue's type, which must have a fixed size: all of them
/// or none, several times as fast as one by one. Else as `outlive_producer_send`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_send_batch(
    producer: Option<&mut outlive_producer>,
    data: *const c_void,
    count: usize,
    deadline_ns: u64,
) -> c_int {
    let mut port = producer;
    let status = run(|| {
        let port = need(port.as_deref_mut(), "a producer")?;
        let size = count.saturating_mul(port.of.size());
        let messages = bytes(data, size)?;
        port.slot = None;
        Ok(port.producer.send_batch_bytes(messages, Deadline::at_ns(deadline_ns))?)
    });
    noted(port, status)
}

/// Keeps the status for whoever asks what `errno` stands for.
#[inline]
fn noted(port: Option<&mut outlive_producer>, status: outlive_status) -> c_int {
    if let Some(port) = port {
        port.last = status;
    }
    classic(status)
}

/// The status behind this producer's last return value.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_status(producer: Option<&outlive_producer>) -> outlive_status {
    producer.map_or(outlive_status::OUTLIVE_INVALID_ARGUMENT, |port| port.last)
}

/// Room in a producer's lane: write `size` bytes to `data` and commit it. A copy stands for the
/// same room: whichever is committed or given back first counts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_slot {
    /// Where to write, aligned for the type; holds whatever was there before. NULL: no room.
    pub data: *mut c_void,
    /// Bytes there.
    pub size: usize,
    /// Which reservation it is.
    pub generation: u64,
    /// Reserved; 0 today.
    pub reserved: [u64; 1],
}

/// Lends room for a message of `size` bytes in the lane, to be written and committed without a
/// copy: 0, or -1 with `errno` as of `outlive_producer_send`; `slot->data` is NULL then. Any other
/// call on the producer gives it back; committing it then is `EINVAL`.
///
/// Example:
///
///     outlive_producer *goals;
///     outlive_slot slot;
///     must(outlive_producer_open(node, "/arm/goals", type, NULL, &goals));
///     if (outlive_producer_reserve(goals, sizeof(struct pose), OUTLIVE_FOREVER, &slot) == 0) {
///         *(struct pose *)slot.data = (struct pose){3.0, 4.0, 0.0};
///         outlive_producer_commit(goals, &slot);
///     }
///     outlive_producer_close(goals);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_reserve(
    producer: Option<&mut outlive_producer>,
    size: usize,
    deadline_ns: u64,
    slot: Option<&mut MaybeUninit<outlive_slot>>,
) -> c_int {
    let mut port = producer;
    let status = run(|| {
        let none = outlive_slot { data: null_mut(), size: 0, generation: 0, reserved: [0; 1] };
        let out = need(slot, "a slot")?.write(none);
        let port = need(port.as_deref_mut(), "a producer")?;
        port.slot = None;
        // SAFETY: the slot borrows from a box that goes after it, and that every call leaves alone
        // until it has dropped the slot.
        let lane: &'static mut Producer<[u8]> =
            unsafe { &mut *std::ptr::from_mut(port.producer.as_mut()) };
        let mut slot = lane.reserve_slice_until(size, Deadline::at_ns(deadline_ns))?;
        (out.data, out.size) = (slot.as_mut_ptr().cast(), size);
        out.generation = port.generation.next();
        port.slot = Some(slot);
        Ok(())
    });
    noted(port, status)
}

impl outlive_producer {
    /// The reservation that `slot` is of, which is gone from here on.
    fn take(&mut self, slot: &mut outlive_slot) -> Result<Slot<'static, [u8]>, Fail> {
        let is_it = !slot.data.is_null() && slot.generation == self.generation.number;
        slot.data = null_mut();
        self.slot.take_if(|_| is_it).ok_or_else(stale_slot)
    }
}

#[cold]
fn stale_slot() -> Fail {
    invalid("a slot", "it is committed, given back, or not this producer's: reserve again")
}

/// Sends what was written to the reserved room: 0, or -1 with `EINVAL` when it is not from the last
/// reservation, or was already committed or given back. The slot is gone afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_commit(
    producer: Option<&mut outlive_producer>,
    slot: Option<&mut outlive_slot>,
) -> c_int {
    let mut port = producer;
    let status = run(|| {
        let (port, slot) = (need(port.as_deref_mut(), "a producer")?, need(slot, "a slot")?);
        let slot = port.take(slot)?;
        port.generation.of_this_process("a slot")?;
        slot.commit();
        Ok(())
    });
    noted(port, status)
}

/// Gives reserved room back: nothing is sent. Does nothing for NULL or a slot that is gone already.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_discard(
    producer: Option<&mut outlive_producer>,
    slot: Option<&mut outlive_slot>,
) {
    run(|| {
        if let (Some(port), Some(slot)) = (producer, slot) {
            let _given_back = port.take(slot);
        }
        Ok(())
    });
}

/// Whether a live consumer reads the queue. It may die right after the answer. Also true
/// while that cannot be found out, for instance for lack of memory: a send says what is lacking.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_has_consumer(producer: Option<&mut outlive_producer>) -> bool {
    let mut has = false;
    run(|| {
        let port = need(producer, "a producer")?;
        port.slot = None;
        has = port.producer.has_consumer();
        Ok(())
    });
    has
}

/// Waits until a live consumer reads the queue; `OUTLIVE_TIMEOUT` when the deadline passed first.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_wait_for_consumer(
    producer: Option<&mut outlive_producer>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let port = need(producer, "a producer")?;
        port.slot = None;
        match port.producer.wait_for_consumer(Deadline::at_ns(deadline_ns).remaining())? {
            true => Ok(()),
            false => Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
    })
}

/// Who this is, as the consumer sees it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_id(producer: Option<&outlive_producer>) -> outlive_port_id {
    producer.map_or_else(outlive_port_id::default, |port| port.id)
}

/// Leaves the queue. Unread messages stay for the consumer. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_close(producer: Option<Box<outlive_producer>>) {
    run(|| {
        drop(producer);
        Ok(())
    });
}

/// The one consumer of a queue. One thread at a time.
#[derive(Debug)]
pub struct outlive_consumer {
    pub(crate) consumer: Consumer<[u8]>,
    /// A message is in the caller's hand: that of `generation`.
    pub(crate) held: bool,
    generation: Generation,
    event_why: CString,
}

/// Joins queue `name` as its consumer, creating the queue if it does not exist. It resumes where a
/// dead or departed consumer stopped: the message that one had in hand comes again.
/// `OUTLIVE_CONSUMER_EXISTS` while another one lives. `of` and `options` as in
/// `outlive_producer_open`.
///
/// Example:
///
///     outlive_consumer *goals;
///     outlive_message message;
///     outlive_event event; // a producer joined, left or died
///     outlive_status status;
///     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
///     must(outlive_consumer_open(node, "/robot/goals", type, NULL, &goals));
///     while ((status = outlive_consumer_receive(goals, deadline, &message)) == OUTLIVE_EVENT)
///         must(outlive_consumer_next_event(goals, &event));
///     must(status);
///     drive(message.data); // if the process dies in it, the next consumer gets the message
///     must(outlive_consumer_ack(goals, &message));
///     outlive_consumer_close(goals);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: *const outlive_queue_options,
    out: Option<&mut MaybeUninit<*mut outlive_consumer>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let consumer = queue(node, name, of, options)?.consumer()?;
        let (generation, event_why) = (Generation::first(), CString::default());
        let handle = outlive_consumer { consumer, held: false, generation, event_why };
        out.write(Box::into_raw(Box::new(handle)));
        Ok(())
    })
}

/// A message in its lane. A copy stands for the same message, which is acknowledged or given back
/// once.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_message {
    /// The payload, read-only, until the message is acknowledged or given back.
    pub data: *const c_void,
    /// Bytes there.
    pub size: usize,
    /// Who sent it.
    pub producer: outlive_port_id,
    /// When it was sent, ns of CLOCK_MONOTONIC; 0 in a queue without time stamps.
    pub timestamp_ns: u64,
    /// Which message of this consumer it is.
    pub generation: u64,
    /// Reserved; 0 today.
    pub reserved: [u64; 2],
}

/// The next message, waiting for it until `deadline_ns`, not at all with `OUTLIVE_NO_WAIT`.
///
/// It stays in hand until `outlive_consumer_ack` acknowledges it: only then does it count as
/// received. If the process dies or closes the consumer before, the next consumer receives it
/// again; after `outlive_consumer_nack`, this one does. One message is in hand at a time:
/// `OUTLIVE_TOO_MANY_BORROWS` while one is; nothing is lost. It stays in hand while you ask for
/// events or wait in a set.
///
/// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`, `OUTLIVE_EVENT` as of `outlive_subscriber_receive`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_receive(
    consumer: Option<&mut outlive_consumer>,
    deadline_ns: u64,
    message: Option<&mut MaybeUninit<outlive_message>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(consumer, "a consumer")?, need(message, "a message")?);
        if port.held {
            return Err(in_hand(port));
        }
        let lane = &mut port.consumer;
        let deadline = Deadline::at_ns(deadline_ns);
        let there = deadline == Deadline::AT_ONCE || lane.wait_for_message(deadline)?;
        let Some(held) = (if there { lane.hold()? } else { None }) else {
            return Err(Fail::Quiet(match deadline {
                Deadline::AT_ONCE => outlive_status::OUTLIVE_WOULD_BLOCK,
                _ if deadline.has_passed() => outlive_status::OUTLIVE_TIMEOUT,
                _ => outlive_status::OUTLIVE_EVENT,
            }));
        };
        let at = out.as_mut_ptr();
        // SAFETY: the caller's own memory. Field by field: a struct that was just put together on
        // the stack is slow to copy.
        unsafe {
            (&raw mut (*at).data).write(held.message.as_ptr().cast());
            (&raw mut (*at).size).write(held.message.len());
            (&raw mut (*at).producer.node).write(held.producer.node.get());
            (&raw mut (*at).producer.port).write(held.producer.port);
            (&raw mut (*at).timestamp_ns).write(held.timestamp_ns.unwrap_or(0));
            (&raw mut (*at).generation).write(port.generation.next());
            (&raw mut (*at).reserved).write([0; 2]);
        }
        port.held = true;
        Ok(())
    })
}

#[cold]
fn in_hand(port: &outlive_consumer) -> Fail {
    Fail::Error(Error::new(
        ErrorKind::TooManyBorrows,
        "receiving from",
        port.consumer.queue(),
        "a message is in hand: acknowledge it or give it back first",
    ))
}

impl outlive_consumer {
    /// The message in hand is that of the caller; it is in hand no more.
    #[inline(always)]
    fn lay_down(&mut self, message: Option<&outlive_message>) -> Done {
        let message = need(message, "a message")?;
        if !self.held || message.generation != self.generation.number {
            return Err(stale_message());
        }
        self.generation.of_this_process("a message")?;
        self.held = false;
        Ok(())
    }
}

#[cold]
fn stale_message() -> Fail {
    invalid("a message", "it is acknowledged, given back, or not this consumer's")
}

/// Acknowledges the message in hand; its bytes must not be read any more.
///
/// `OUTLIVE_INVALID_ARGUMENT`: the message is not the one in hand, but an earlier one or another
/// consumer's; nothing is acknowledged.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_ack(
    consumer: Option<&mut outlive_consumer>,
    message: Option<&outlive_message>,
) -> outlive_status {
    run(|| {
        let port = need(consumer, "a consumer")?;
        port.lay_down(message)?;
        port.consumer.let_go();
        Ok(())
    })
}

/// Puts the message in hand back unreceived; its bytes must not be read any more. It comes again
/// with the next receive, of this consumer or, if it is closed, of the next; after a look of a wait
/// set at the consumer a message of another producer may come first. Returns the same as
/// `outlive_consumer_ack`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_nack(
    consumer: Option<&mut outlive_consumer>,
    message: Option<&outlive_message>,
) -> outlive_status {
    run(|| need(consumer, "a consumer")?.lay_down(message))
}

/// The oldest event not returned yet; `OUTLIVE_WOULD_BLOCK` when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_next_event(
    consumer: Option<&mut outlive_consumer>,
    event: Option<&mut MaybeUninit<outlive_event>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(consumer, "a consumer")?, need(event, "an event")?);
        let Some(event) = port.consumer.next_event() else {
            return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK));
        };
        use outlive_event_kind as Kind;
        let (kind, id, why) = match event {
            queue::Event::ProducerJoined(id) => (Kind::OUTLIVE_JOINED, id, None),
            queue::Event::ProducerLeft(id) => (Kind::OUTLIVE_LEFT, id, None),
            queue::Event::ProducerDied(id) => (Kind::OUTLIVE_DIED, id, None),
            queue::Event::ProducerCorrupt { producer, why } => {
                (Kind::OUTLIVE_PEER_CORRUPT, producer, Some(why))
            }
            _ => return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK)),
        };
        let has_why = why.is_some();
        port.event_why = CString::new(why.unwrap_or_default()).unwrap_or_default();
        out.write(outlive_event {
            kind,
            unfinished: false,
            port: outlive_port_id { node: id.node.get(), port: id.port },
            lost: 0,
            why: if has_why { port.event_why.as_ptr() } else { std::ptr::null() },
            reserved: [0; 3],
        });
        Ok(())
    })
}

/// Leaves the queue. Another process may then consume it; any message in hand is delivered to that
/// one again. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_close(consumer: Option<Box<outlive_consumer>>) {
    run(|| {
        drop(consumer);
        Ok(())
    });
}
