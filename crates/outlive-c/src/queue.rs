//! Queues: many producers, one consumer. Sending answers in the classic manner, by `errno`.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use outlive::{Consumer, PayloadType, Producer, QueueBuilder, QueueEvent, Slot};

use crate::node::{OUTLIVE_NO_WAIT, outlive_node, until};
use crate::publisher::outlive_port_id;
use crate::status::{Fail, bytes, need, outlive_status, run, text};
use crate::subscriber::{outlive_event, outlive_event_kind};
use crate::types::{outlive_type, payload_type};

/// Settings of a queue's ends. Zero is the default everywhere; begin with `= {0}`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_queue_options {
    /// Producer: most shared memory its lane may take, bytes; 64 MiB by default.
    pub bound_bytes: u64,
    /// Producer: shared memory its lane takes at first and keeps, bytes; 16 KiB by default.
    pub first_bytes: u64,
    /// Consumer: receives in the order of time stamps, holding back for at most so long, ns.
    pub ordered_holdback_ns: u64,
    /// Every message carries a time stamp: 0 or 1.
    pub stamped: u32,
    /// 0.
    pub reserved_word: u32,
    /// 0.
    pub reserved: [u64; 4],
}

fn queue(
    node: &outlive_node,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: Option<&outlive_queue_options>,
) -> Result<QueueBuilder<[u8]>, Fail> {
    let builder = node.node.queue::<[u8]>(text(name, "a queue name")?)?;
    let mut builder = builder.of_type(&payload_type(of));
    let Some(options) = options else { return Ok(builder) };
    if options.bound_bytes != 0 {
        builder = builder.bound_bytes(options.bound_bytes);
    }
    if options.first_bytes != 0 {
        builder = builder.first_bytes(options.first_bytes);
    }
    if options.stamped != 0 {
        builder = builder.stamped();
    }
    if options.ordered_holdback_ns != 0 {
        builder = builder.ordered(Duration::from_nanos(options.ordered_holdback_ns));
    }
    Ok(builder)
}

/// Sends messages to the one consumer of a queue. One thread at a time.
#[derive(Debug)]
pub struct outlive_producer {
    /// Reserved room; it goes before the producer it is of.
    slot: Option<Slot<'static, [u8]>>,
    producer: Box<Producer<[u8]>>,
    of: PayloadType,
    last: outlive_status,
}

/// Joins queue `name` as a producer, making the queue if it does not exist. It may come before the
/// consumer. `of` NULL: raw bytes; `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: Option<&outlive_queue_options>,
    out: Option<&mut MaybeUninit<*mut outlive_producer>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let producer = Box::new(queue(node, name, of, options)?.producer()?);
        let (of, last) = (payload_type(of), outlive_status::OUTLIVE_OK);
        out.write(Box::into_raw(Box::new(outlive_producer { slot: None, producer, of, last })));
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
/// `OUTLIVE_NO_WAIT`, `ETIMEDOUT` with a deadline: the lane is at its bound. `EINVAL`: the size is
/// none of the type, or more than the bound allows. `ENOSPC`: the RAM disk is full.
/// `outlive_producer_status` tells the same as a status.
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
        Ok(port.producer.send_until(message, deadline_ns)?)
    });
    noted(port, status)
}

/// Sends `count` messages that lie one behind the other, of the queue's type, which has a fixed
/// size: all of them or none, several times as fast as one by one. Else as `outlive_producer_send`.
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
        Ok(port.producer.send_batch_bytes(messages, deadline_ns)?)
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

/// The status behind the last answer of this producer.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_status(producer: Option<&outlive_producer>) -> outlive_status {
    producer.map_or(outlive_status::OUTLIVE_INVALID_ARGUMENT, |port| port.last)
}

/// Lends room for a message of `size` bytes in the lane, to be written and committed without a
/// copy: its address, or NULL with `errno` as of `outlive_producer_send`. Any other call on the
/// producer gives it back.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_reserve(
    producer: Option<&mut outlive_producer>,
    size: usize,
    deadline_ns: u64,
) -> *mut c_void {
    let mut port = producer;
    let mut at = std::ptr::null_mut();
    let status = run(|| {
        let port = need(port.as_deref_mut(), "a producer")?;
        port.slot = None;
        // SAFETY: the slot borrows from a box that goes after it, and that every call leaves alone
        // until it has dropped the slot.
        let lane: &'static mut Producer<[u8]> =
            unsafe { &mut *std::ptr::from_mut(port.producer.as_mut()) };
        let mut slot = lane.reserve_slice_until(size, deadline_ns)?;
        at = slot.as_mut_ptr().cast();
        port.slot = Some(slot);
        Ok(())
    });
    noted(port, status);
    at
}

/// Sends what was written to the reserved room: 0, or -1 with `EINVAL` when nothing is reserved.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_commit(producer: Option<&mut outlive_producer>) -> c_int {
    let mut port = producer;
    let status = run(|| {
        let port = need(port.as_deref_mut(), "a producer")?;
        need(port.slot.take(), "reserved room")?.commit();
        Ok(())
    });
    noted(port, status)
}

/// Whether a live consumer reads the queue. It may die right after the answer.
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
        match port.producer.wait_for_consumer(until(deadline_ns))? {
            true => Ok(()),
            false => Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
    })
}

/// Who this is, as the consumer sees it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_producer_id(producer: Option<&outlive_producer>) -> outlive_port_id {
    producer.map_or_else(outlive_port_id::default, |port| {
        let id = port.producer.id();
        outlive_port_id { node: id.node.get(), port: id.port }
    })
}

/// Leaves the queue. What is unread stays for the consumer. NULL is nothing.
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
    consumer: Consumer<[u8]>,
    /// A message is in the caller's hand.
    held: bool,
    event_why: CString,
}

impl outlive_consumer {
    /// For a wait set: a message in hand counts as received.
    #[inline(always)]
    pub(crate) fn waitable(&mut self) -> &mut Consumer<[u8]> {
        if std::mem::take(&mut self.held) {
            self.consumer.let_go();
        }
        &mut self.consumer
    }
}

impl Drop for outlive_consumer {
    fn drop(&mut self) {
        self.waitable();
    }
}

/// Joins queue `name` as its consumer, making the queue if it does not exist. After a dead or
/// departed consumer it goes on where that one stopped: the message that one had in hand comes
/// again. `OUTLIVE_CONSUMER_EXISTS` while another one lives.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: Option<&outlive_queue_options>,
    out: Option<&mut MaybeUninit<*mut outlive_consumer>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let consumer = queue(node, name, of, options)?.consumer()?;
        let handle = outlive_consumer { consumer, held: false, event_why: CString::default() };
        out.write(Box::into_raw(Box::new(handle)));
        Ok(())
    })
}

/// A message in its lane.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_message {
    /// The payload, read-only, until the message is done.
    pub data: *const c_void,
    /// Bytes there.
    pub size: usize,
    /// Who sent it.
    pub producer: outlive_port_id,
    /// When it was sent, ns of CLOCK_MONOTONIC; 0 in a queue without time stamps.
    pub timestamp_ns: u64,
}

/// The next message, waiting for it until `deadline_ns`, not at all with `OUTLIVE_NO_WAIT`.
///
/// The message before it counts as received now, if `outlive_consumer_done` did not say so before.
/// If the process dies with a message in hand, the next consumer receives it again.
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
        let lane = port.waitable();
        let there = deadline_ns == OUTLIVE_NO_WAIT || lane.wait_for_message(deadline_ns)?;
        let Some(held) = (if there { lane.hold()? } else { None }) else {
            return Err(Fail::Quiet(match deadline_ns {
                OUTLIVE_NO_WAIT => outlive_status::OUTLIVE_WOULD_BLOCK,
                _ if outlive::now_ns() >= deadline_ns => outlive_status::OUTLIVE_TIMEOUT,
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
        }
        port.held = true;
        Ok(())
    })
}

/// Says that the message in hand is received; its bytes are not to be read any more.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_done(consumer: Option<&mut outlive_consumer>) {
    if let Some(port) = consumer {
        port.waitable();
    }
}

/// The oldest event that was not asked for yet; `OUTLIVE_WOULD_BLOCK` when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_next_event(
    consumer: Option<&mut outlive_consumer>,
    event: Option<&mut MaybeUninit<outlive_event>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(consumer, "a consumer")?, need(event, "an event")?);
        let Some(event) = port.waitable().next_event() else {
            return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK));
        };
        use outlive_event_kind as Kind;
        let (kind, id, why) = match event {
            QueueEvent::ProducerJoined(id) => (Kind::OUTLIVE_JOINED, id, None),
            QueueEvent::ProducerLeft(id) => (Kind::OUTLIVE_LEFT, id, None),
            QueueEvent::ProducerDied(id) => (Kind::OUTLIVE_DIED, id, None),
            QueueEvent::ProducerCorrupt { producer, why } => {
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
        });
        Ok(())
    })
}

/// Leaves the queue; another process may consume it then. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_consumer_close(consumer: Option<Box<outlive_consumer>>) {
    run(|| {
        drop(consumer);
        Ok(())
    });
}
