//! The receiving port of a topic.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::AsRawFd;

use outlive::topic::Event;
use outlive::{Deadline, PayloadType, Sample, Subscriber};

use crate::node::{OUTLIVE_NO_WAIT, outlive_node};
use crate::publisher::{outlive_port_id, outlive_topic_options, topic};
use crate::status::{Done, Fail, need, outlive_status, run};
use crate::types::{outlive_type, payload_type};

/// Receives the messages of all publishers of a topic, in order per publisher. One thread at a
/// time. Samples outlive it.
#[derive(Debug)]
pub struct outlive_subscriber {
    pub(crate) subscriber: Subscriber<[u8]>,
    of: PayloadType,
    type_name: CString,
    description: CString,
    event_why: CString,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_meta {
    /// Who sent it.
    pub publisher: outlive_port_id,
    /// Its number among the messages of that publisher, from 0.
    pub seq: u64,
    /// When it was published, ns of CLOCK_MONOTONIC.
    pub timestamp_ns: u64,
    /// Messages of that publisher lost right before this one.
    pub lost_before: u64,
    /// Reserved; 0 today.
    pub reserved: [u64; 3],
}

/// Room for a received message, on the stack or wherever the caller likes. It may be moved as
/// bytes: once a copy is released, the original must not be used any more. Release it with
/// `outlive_sample_release`, from any thread.
#[derive(Debug)]
#[repr(C)]
pub struct outlive_sample {
    /// 0: no message. 1: a copy of one. Else where it lies in shared memory.
    pub held: u64,
    /// outlive's own.
    pub internal: [u64; 3],
}

const _: () = {
    let room = size_of::<outlive_sample>() - offset_of!(outlive_sample, internal);
    assert!(size_of::<Sample<[u8]>>() <= room && align_of::<Sample<[u8]>>() <= 8);
};

impl outlive_sample {
    #[inline]
    fn sample(&self) -> Option<&Sample<[u8]>> {
        // SAFETY: `held` is set exactly while a sample is stored.
        (self.held != 0).then(|| unsafe { &*self.internal.as_ptr().cast() })
    }
}

/// Joins topic `name` as a subscriber, creating the topic if it does not exist. `of` NULL: raw
/// bytes; `options` may be NULL. Errors as `outlive_publisher_open`.
///
/// Example:
///
///     outlive_subscriber *poses;
///     outlive_sample sample;
///     outlive_event event; // a publisher joined, left or died
///     outlive_status status;
///     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
///     must(outlive_subscriber_open(node, "/robot/pose", type, NULL, &poses));
///     while ((status = outlive_subscriber_receive(poses, deadline, &sample)) == OUTLIVE_EVENT)
///         must(outlive_subscriber_next_event(poses, &event));
///     must(status);
///     drive(outlive_sample_data(&sample, NULL));
///     outlive_sample_release(&sample);
///     outlive_subscriber_close(poses);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: *const outlive_topic_options,
    out: Option<&mut MaybeUninit<*mut outlive_subscriber>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let of = payload_type(of);
        let subscriber = topic(node, name, &of, options)?.subscriber()?;
        give(out, subscriber, of)
    })
}

/// Joins an existing topic of any type and receives its payloads as bytes; for tools.
/// `OUTLIVE_NOT_FOUND` when there is no such topic yet.
///
/// Example:
///
///     outlive_topic_options options = {.size = sizeof options, .history = 1};
///     outlive_subscriber *any;
///     outlive_sample sample;
///     outlive_meta meta;
///     must(outlive_subscriber_open_any(node, "/robot/pose", &options, &any));
///     printf("%s\n%s", outlive_subscriber_type_name(any), outlive_subscriber_description(any));
///     if (outlive_subscriber_latest(any, &sample) == OUTLIVE_OK) {
///         must(outlive_sample_meta(&sample, &meta));
///         printf("message %" PRIu64 " of node %" PRIu64 "\n", meta.seq, meta.publisher.node);
///         outlive_sample_release(&sample);
///     }
///     outlive_subscriber_close(any);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_open_any(
    node: Option<&outlive_node>,
    name: *const c_char,
    options: *const outlive_topic_options,
    out: Option<&mut MaybeUninit<*mut outlive_subscriber>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let bytes = PayloadType::bytes();
        let subscriber = topic(node, name, &bytes, options)?.subscriber_of_any_type()?;
        give(out, subscriber, bytes)
    })
}

fn give(
    out: &mut MaybeUninit<*mut outlive_subscriber>,
    subscriber: Subscriber<[u8]>,
    of: PayloadType,
) -> Done {
    let type_name = CString::new(subscriber.type_name()).unwrap_or_default();
    let description = subscriber.description().map(|d| d.to_text()).unwrap_or_default();
    let description = CString::new(description).unwrap_or_default();
    let event_why = CString::default();
    let handle = outlive_subscriber { subscriber, of, type_name, description, event_why };
    out.write(Box::into_raw(Box::new(handle)));
    Ok(())
}

/// Receives with `take`; what it gives goes to `out`.
#[inline(always)]
fn receive(
    subscriber: Option<&mut outlive_subscriber>,
    out: Option<&mut MaybeUninit<outlive_sample>>,
    take: impl FnOnce(&mut Subscriber<[u8]>) -> outlive::Result<Option<Sample<[u8]>>>,
    none: impl FnOnce() -> outlive_status,
) -> outlive_status {
    run(|| {
        let out = need(out, "a sample")?.as_mut_ptr();
        // SAFETY: the caller's own memory, to be written only.
        unsafe { (&raw mut (*out).held).write(0) };
        let port = need(subscriber, "a subscriber")?;
        let Some(sample) = take(&mut port.subscriber)? else { return Err(Fail::Quiet(none())) };
        if !port.of.accepts(&sample) && !port.subscriber.is_any_type() {
            return Err(misfit(port, sample.len()));
        }
        let held = if sample.is_borrowed() { sample.as_ptr().addr() as u64 } else { 1 };
        // SAFETY: as above; size and alignment are asserted above.
        unsafe {
            (&raw mut (*out).internal).cast::<Sample<[u8]>>().write(sample);
            (&raw mut (*out).held).write(held);
        }
        Ok(())
    })
}

#[cold]
fn misfit(port: &outlive_subscriber, size: usize) -> Fail {
    Fail::Error(outlive::Error::new(
        outlive::ErrorKind::Corrupt,
        "receiving on",
        port.subscriber.topic(),
        format!("a message of {size} bytes does not match its type: restart its publisher"),
    ))
}

/// The next message. Waits for it until `deadline_ns` of CLOCK_MONOTONIC, not at all with
/// `OUTLIVE_NO_WAIT`.
///
/// `OUTLIVE_WOULD_BLOCK`: there is none now. `OUTLIVE_TIMEOUT`: the deadline passed.
/// `OUTLIVE_EVENT`: something happened to a publisher, see `outlive_subscriber_next_event`; the
/// other two do not say that nothing has.
/// `OUTLIVE_TOO_MANY_BORROWS`: release samples first; nothing is lost.
///
/// A dead publisher's committed messages come first, then the event. A stopped one is alive.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_receive(
    subscriber: Option<&mut outlive_subscriber>,
    deadline_ns: u64,
    sample: Option<&mut MaybeUninit<outlive_sample>>,
) -> outlive_status {
    if deadline_ns == OUTLIVE_NO_WAIT {
        let none = || outlive_status::OUTLIVE_WOULD_BLOCK;
        return receive(subscriber, sample, Subscriber::receive, none);
    }
    let deadline = Deadline::at_ns(deadline_ns);
    let take = |port: &mut Subscriber<[u8]>| port.receive_until(deadline);
    receive(subscriber, sample, take, || match deadline.has_passed() {
        true => outlive_status::OUTLIVE_TIMEOUT,
        false => outlive_status::OUTLIVE_EVENT,
    })
}

/// The newest message; older ones are skipped. Never waits; else as `outlive_subscriber_receive`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_latest(
    subscriber: Option<&mut outlive_subscriber>,
    sample: Option<&mut MaybeUninit<outlive_sample>>,
) -> outlive_status {
    let none = || outlive_status::OUTLIVE_WOULD_BLOCK;
    receive(subscriber, sample, Subscriber::latest, none)
}

/// The earliest published of the available messages, over all publishers. Never waits; else as
/// `outlive_subscriber_receive`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_receive_in_order(
    subscriber: Option<&mut outlive_subscriber>,
    sample: Option<&mut MaybeUninit<outlive_sample>>,
) -> outlive_status {
    let none = || outlive_status::OUTLIVE_WOULD_BLOCK;
    receive(subscriber, sample, Subscriber::receive_in_order, none)
}

/// The payload, read-only, valid until the sample is released or moved. `size` may be NULL. NULL
/// where there is no message.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_sample_data(
    sample: Option<&outlive_sample>,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const c_void {
    let payload = sample.and_then(outlive_sample::sample).map(|sample| &**sample);
    if let Some(size) = size {
        size.write(payload.map_or(0, <[u8]>::len));
    }
    payload.map_or(std::ptr::null(), |payload| payload.as_ptr().cast())
}

/// Publisher, number, time and losses.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_sample_meta(
    sample: Option<&outlive_sample>,
    meta: Option<&mut MaybeUninit<outlive_meta>>,
) -> outlive_status {
    run(|| {
        let meta = need(meta, "meta")?;
        let of = need(sample.and_then(outlive_sample::sample), "a sample")?.meta();
        meta.write(outlive_meta {
            publisher: outlive_port_id { node: of.publisher.node.get(), port: of.publisher.port },
            seq: of.seq,
            timestamp_ns: of.timestamp_ns,
            lost_before: of.lost_before,
            reserved: [0; 3],
        });
        Ok(())
    })
}

/// Whether the payload lies in shared memory, without a copy.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_sample_is_borrowed(sample: Option<&outlive_sample>) -> bool {
    sample.and_then(outlive_sample::sample).is_some_and(Sample::is_borrowed)
}

/// Releases the message. Does nothing for NULL or a sample that holds none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_sample_release(sample: Option<&mut outlive_sample>) {
    let Some(sample) = sample else { return };
    if sample.held == 0 {
        return;
    }
    sample.held = 0;
    run(|| {
        // SAFETY: it was held until just now, and is not any more.
        unsafe { sample.internal.as_mut_ptr().cast::<Sample<[u8]>>().drop_in_place() };
        Ok(())
    });
}

/// What happened to a publisher or a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum outlive_event_kind {
    /// It was found.
    OUTLIVE_JOINED = 1,
    /// It left cleanly; everything it sent has been received.
    OUTLIVE_LEFT = 2,
    /// Its process died; everything it had committed has been received.
    OUTLIVE_DIED = 3,
    /// Its bytes are invalid; it is no longer read. `why` says more.
    OUTLIVE_PEER_CORRUPT = 4,
}

/// An event of a subscriber or a consumer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_event {
    /// What happened.
    pub kind: outlive_event_kind,
    /// For a death: it died while writing a message, which nobody ever sees.
    pub unfinished: bool,
    /// To whom.
    pub port: outlive_port_id,
    /// For a death: messages lost after the last one received.
    pub lost: u64,
    /// What is wrong, until the next call on the same port; NULL where nothing is.
    pub why: *const c_char,
    /// Reserved; 0 today.
    pub reserved: [u64; 3],
}

/// The oldest event not returned yet; `OUTLIVE_WOULD_BLOCK` when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_next_event(
    subscriber: Option<&mut outlive_subscriber>,
    event: Option<&mut MaybeUninit<outlive_event>>,
) -> outlive_status {
    run(|| {
        let (port, out) = (need(subscriber, "a subscriber")?, need(event, "an event")?);
        let Some(event) = port.subscriber.next_event() else {
            return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK));
        };
        use outlive_event_kind as Kind;
        let (kind, publisher, lost, unfinished, why) = match event {
            Event::PublisherJoined(id) => (Kind::OUTLIVE_JOINED, id, 0, false, None),
            Event::PublisherLeft(id) => (Kind::OUTLIVE_LEFT, id, 0, false, None),
            Event::PublisherDied { publisher, unfinished, lost } => {
                (Kind::OUTLIVE_DIED, publisher, lost, unfinished, None)
            }
            Event::PublisherCorrupt { publisher, why } => {
                (Kind::OUTLIVE_PEER_CORRUPT, publisher, 0, false, Some(why))
            }
            _ => return Err(Fail::Quiet(outlive_status::OUTLIVE_WOULD_BLOCK)),
        };
        let has_why = why.is_some();
        port.event_why = CString::new(why.unwrap_or_default()).unwrap_or_default();
        out.write(outlive_event {
            kind,
            unfinished,
            port: outlive_port_id { node: publisher.node.get(), port: publisher.port },
            lost,
            why: if has_why { port.event_why.as_ptr() } else { std::ptr::null() },
            reserved: [0; 3],
        });
        Ok(())
    })
}

/// Messages lost so far, over all publishers: overwritten before this subscriber read them.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_lost(subscriber: Option<&outlive_subscriber>) -> u64 {
    subscriber.map_or(0, |port| port.subscriber.lost())
}

/// Name of the topic's type; stays as long as the subscriber. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_type_name(
    subscriber: Option<&outlive_subscriber>,
) -> *const c_char {
    subscriber.map_or(std::ptr::null(), |port| port.type_name.as_ptr())
}

/// What payloads look like, as `outlive_type_fixed` takes it; empty if nobody described them. Stays
/// as long as the subscriber. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_description(
    subscriber: Option<&outlive_subscriber>,
) -> *const c_char {
    subscriber.map_or(std::ptr::null(), |port| port.description.as_ptr())
}

/// A descriptor for epoll and the like: readable unless the last receiving call found nothing. The
/// first call makes it, and it closes with the subscriber; do not read from it. While nothing comes
/// it becomes readable about every 100 ms, to look again: the next call then finds nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_fd(
    subscriber: Option<&mut outlive_subscriber>,
    fd: Option<&mut MaybeUninit<c_int>>,
) -> outlive_status {
    run(|| {
        let (port, fd) = (need(subscriber, "a subscriber")?, need(fd, "fd")?);
        fd.write(port.subscriber.fd()?.as_raw_fd());
        Ok(())
    })
}

/// Leaves the topic. Samples that are held stay readable. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_subscriber_close(subscriber: Option<Box<outlive_subscriber>>) {
    run(|| {
        drop(subscriber);
        Ok(())
    });
}
