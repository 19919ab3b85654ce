//! The publishing port of a topic.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

use outlive::topic;
use outlive::{Loan, PayloadType, Publisher};

use crate::node::outlive_node;
use crate::options::{SizedOptions, flag, read_options};
use crate::status::{Done, Fail, bytes, invalid, need, outlive_status, run, text};
use crate::types::{outlive_type, payload_type};

/// Settings of a topic's ports. Zero is the default everywhere; begin with
/// `= {.size = sizeof(outlive_topic_options)}`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct outlive_topic_options {
    /// `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    pub size: usize,
    /// Messages each publisher's ring holds, 1 to 65536; 16 unless the first member asks otherwise.
    pub depth: u64,
    /// Subscriber: how many messages from before it joined to receive, at most the depth.
    pub history: u64,
    /// Subscriber: how many samples it may hold at once, 1 to 64; 8 by default.
    pub borrows: u64,
    /// Publisher: most shared memory for its chunks, bytes; 1 GiB by default.
    pub memory_bytes_max: u64,
    /// Publisher: how long one publish waits for the slowest live reliable subscriber, ns; 1 s for
    /// NULL, not at all for a value of 0 or less (`OUTLIVE_WOULD_BLOCK`). Read while it is opened.
    pub reliable_timeout_ns: *const i64,
    /// Subscriber: publishers wait for it before they overwrite a message it has not read: 0 or 1.
    pub reliable: u32,
    /// Publisher: drops each message once every subscriber has read it: 0 or 1.
    pub is_volatile: u32,
}

// SAFETY: `repr(C)`, `size` first; zeros are numbers and NULL.
unsafe impl SizedOptions for outlive_topic_options {
    const NAME: &'static str = "outlive_topic_options";
    const FIRST_BYTES: usize = size_of::<Self>();
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct outlive_port_id {
    /// Number of the node.
    pub node: u64,
    /// Number of the port within the node; never reused.
    pub port: u64,
}

/// Sends messages on a topic. One thread at a time.
#[derive(Debug)]
pub struct outlive_publisher {
    publisher: Publisher<[u8]>,
    of: PayloadType,
    lent: RefCell<Out>,
}

/// Which loans are out, by number: of the copies that C makes of one, the first to be used counts.
#[derive(Debug, Default)]
struct Out {
    /// In ascending order.
    numbers: Vec<u64>,
    last: u64,
}

impl Out {
    #[inline(always)]
    fn lend(&mut self) -> u64 {
        self.last += 1;
        self.numbers.push(self.last);
        self.last
    }

    /// Whether that loan was out; it is no more.
    #[inline(always)]
    fn take_back(&mut self, number: u64) -> bool {
        let is_newest = self.numbers.last() == Some(&number);
        if is_newest {
            self.numbers.pop();
        }
        is_newest || self.take_back_older(number)
    }

    #[cold]
    fn take_back_older(&mut self, number: u64) -> bool {
        self.numbers.binary_search(&number).map(|at| self.numbers.remove(at)).is_ok()
    }
}

pub(crate) fn topic(
    node: &outlive_node,
    name: *const c_char,
    of: &PayloadType,
    options: *const outlive_topic_options,
) -> Result<topic::Builder<[u8]>, Fail> {
    let mut builder = node.node.topic::<[u8]>(text(name, "a topic name")?)?.of_type(of);
    let Some(options) = read_options(options)? else { return Ok(builder) };
    if options.depth != 0 {
        builder = builder.depth(options.depth);
    }
    if options.borrows != 0 {
        builder = builder.borrows(usize::try_from(options.borrows).unwrap_or(usize::MAX));
    }
    if options.memory_bytes_max != 0 {
        builder = builder.memory_bytes_max(options.memory_bytes_max);
    }
    // SAFETY: the caller's part: NULL, or a number lies there.
    if let Some(ns) = unsafe { options.reliable_timeout_ns.as_ref() } {
        builder = builder.reliable_timeout(Duration::from_nanos((*ns).max(0) as u64));
    }
    builder = builder.history(options.history).reliable(flag(options.reliable, "reliable")?);
    Ok(builder.volatile(flag(options.is_volatile, "is_volatile")?))
}

/// Joins topic `name`, like `/camera/front`, as a publisher, creating the topic if it does not
/// exist. `of` NULL: raw bytes; `options` may be NULL.
///
/// `OUTLIVE_TYPE_MISMATCH`: the detail names every field that differs.
///
/// Example:
///
///     outlive_publisher *poses;
///     must(outlive_publisher_open(node, "/robot/pose", type, NULL, &poses));
///     struct pose here = {1.0, 2.0, 0.5};
///     must(outlive_publisher_publish(poses, &here, sizeof here, NULL));
///     outlive_publisher_close(poses);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    options: *const outlive_topic_options,
    out: Option<&mut MaybeUninit<*mut outlive_publisher>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let of = payload_type(of);
        let publisher = topic(node, name, &of, options)?.publisher()?;
        let lent = RefCell::default();
        out.write(Box::into_raw(Box::new(outlive_publisher { publisher, of, lent })));
        Ok(())
    })
}

#[cold]
fn misfit(of: &PayloadType, size: usize) -> Fail {
    invalid(of.name(), &format!("a payload of this type cannot have {size} bytes"))
}

impl outlive_publisher {
    #[inline]
    fn check(&self, size: usize) -> Done {
        if self.of.fits(size) { Ok(()) } else { Err(misfit(&self.of, size)) }
    }
}

/// Copies `size` bytes in and publishes them. `seq`, unless NULL, gets the message's number.
///
/// Never waits, unless subscribers asked to be waited for: then `OUTLIVE_TIMEOUT`.
/// `OUTLIVE_OUT_OF_MEMORY`: the ring and what subscribers hold reach the memory bound. Nothing was
/// published when it fails. If the process is killed at any instruction, the message was sent whole
/// or not at all.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_publish(
    publisher: Option<&outlive_publisher>,
    data: *const c_void,
    size: usize,
    seq: Option<&mut MaybeUninit<u64>>,
) -> outlive_status {
    run(|| {
        let publisher = need(publisher, "a publisher")?;
        publisher.check(size)?;
        let n = publisher.publisher.publish(bytes(data, size)?)?;
        if let Some(seq) = seq {
            seq.write(n);
        }
        Ok(())
    })
}

/// Publishes `count` messages that lie one behind the other, of the topic's type, which has a fixed
/// size. Small ones take half the time of as many calls of `outlive_publisher_publish`; those have
/// the same time stamp, but one that had to wait and those behind it have another.
///
/// Errors as there. Those before the one that failed are sent: `outlive_publisher_published` tells
/// how many.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_publish_batch(
    publisher: Option<&outlive_publisher>,
    data: *const c_void,
    count: usize,
) -> outlive_status {
    run(|| {
        let publisher = need(publisher, "a publisher")?;
        let messages = bytes(data, count.saturating_mul(publisher.of.size()))?;
        Ok(publisher.publisher.publish_batch_bytes(messages)?)
    })
}

/// A writable slot in shared memory, lent by a publisher, which must stay open meanwhile. Write to
/// `data`, then publish or drop it. It may be moved as bytes; a copy stands for the same loan:
/// whichever is published or dropped first counts, and the others are gone.
#[derive(Debug)]
#[repr(C)]
pub struct outlive_loan {
    /// Where to write, aligned for the type; holds whatever was there before. NULL: no loan.
    pub data: *mut c_void,
    /// Bytes there.
    pub size: usize,
    /// outlive's own.
    pub internal: [u64; 8],
}

/// What a loan keeps.
struct Lent {
    loan: Loan<'static, [u8]>,
    lender: &'static outlive_publisher,
    number: u64,
}

const _: () = {
    let room = size_of::<outlive_loan>() - offset_of!(outlive_loan, internal);
    assert!(size_of::<Lent>() <= room && align_of::<Lent>() <= 8);
};

impl outlive_loan {
    /// Where the loan inside is, to be read once: it is gone from here on. `None` where a copy of
    /// it was quicker.
    #[inline(always)]
    fn take(&mut self) -> Option<*const Loan<'static, [u8]>> {
        if self.data.is_null() {
            return None;
        }
        self.data = std::ptr::null_mut();
        let at = self.internal.as_ptr().cast::<Lent>();
        // SAFETY: `data` is set exactly while a loan is stored; it was written by
        // `outlive_publisher_loan`, possibly moved since, which loans bear.
        unsafe {
            let is_it = (*at).lender.lent.borrow_mut().take_back((*at).number);
            is_it.then_some(&raw const (*at).loan)
        }
    }
}

/// Lends a slot for `size` bytes, to fill and publish without a copy.
///
/// Errors as `outlive_publisher_publish`; `loan->data` is NULL then.
///
/// Example:
///
///     outlive_publisher *frames; // of raw bytes
///     outlive_loan loan;
///     must(outlive_publisher_open(node, "/camera/raw", NULL, NULL, &frames));
///     must(outlive_publisher_loan(frames, 640 * 480, &loan));
///     memset(loan.data, 128, loan.size); // in shared memory; it holds whatever was there before
///     must(outlive_loan_publish(&loan, NULL));
///     outlive_publisher_close(frames);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_loan(
    publisher: Option<&outlive_publisher>,
    size: usize,
    loan: Option<&mut MaybeUninit<outlive_loan>>,
) -> outlive_status {
    run(|| {
        let out = need(loan, "a loan")?.as_mut_ptr();
        // SAFETY: the caller's own memory, to be written only.
        unsafe { (&raw mut (*out).data).write(std::ptr::null_mut()) };
        let publisher = need(publisher, "a publisher")?;
        publisher.check(size)?;
        // SAFETY: the caller keeps the publisher open while it has the loan.
        let lender: &'static outlive_publisher = unsafe { &*std::ptr::from_ref(publisher) };
        let mut loan = lender.publisher.loan_slice(size)?;
        let data = loan.as_mut_ptr();
        let number = lender.lent.borrow_mut().lend();
        // SAFETY: as above; the words have room and alignment, asserted above.
        unsafe {
            (&raw mut (*out).data).write(data.cast());
            (&raw mut (*out).size).write(size);
            let at = (&raw mut (*out).internal).cast::<Lent>();
            (&raw mut (*at).loan).write(loan);
            (&raw mut (*at).lender).write(lender);
            (&raw mut (*at).number).write(number);
        }
        Ok(())
    })
}

/// Publishes a filled loan, which is gone afterwards, even when it fails. `seq` may be NULL.
///
/// `OUTLIVE_INVALID_ARGUMENT`: it, or a copy of it, was published or dropped before.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_loan_publish(
    loan: Option<&mut outlive_loan>,
    seq: Option<&mut MaybeUninit<u64>>,
) -> outlive_status {
    run(|| {
        let at = need(loan, "a loan")?.take().ok_or_else(gone)?;
        // SAFETY: `take` just gave it, and gives it once.
        let n = unsafe { at.read() }.publish()?;
        if let Some(seq) = seq {
            seq.write(n);
        }
        Ok(())
    })
}

#[cold]
fn gone() -> Fail {
    invalid("a loan", "it, or a copy of it, is published or dropped: ask for a loan again")
}

/// Gives a loan back unpublished. Does nothing for NULL or a loan that is gone already, perhaps by
/// a copy of it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_loan_drop(loan: Option<&mut outlive_loan>) {
    run(|| {
        if let Some(at) = loan.and_then(outlive_loan::take) {
            // SAFETY: `take` just gave it, and gives it once.
            drop(unsafe { at.read() });
        }
        Ok(())
    });
}

/// Who this is, as subscribers see it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_id(publisher: Option<&outlive_publisher>) -> outlive_port_id {
    publisher.map_or_else(outlive_port_id::default, |p| {
        let id = p.publisher.id();
        outlive_port_id { node: id.node.get(), port: id.port }
    })
}

/// Messages published so far, which is the number of the next one.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_published(publisher: Option<&outlive_publisher>) -> u64 {
    publisher.map_or(0, |p| p.publisher.published())
}

/// Bytes of shared memory it takes.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_memory_bytes(publisher: Option<&outlive_publisher>) -> u64 {
    publisher.map_or(0, |p| p.publisher.memory_bytes())
}

/// Counts the live subscribers.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_subscribers(
    publisher: Option<&outlive_publisher>,
    count: Option<&mut MaybeUninit<usize>>,
) -> outlive_status {
    run(|| {
        let (publisher, count) = (need(publisher, "a publisher")?, need(count, "count")?);
        count.write(publisher.publisher.subscribers()?);
        Ok(())
    })
}

/// Leaves the topic. What was sent stays readable while the topic has members. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_publisher_close(publisher: Option<Box<outlive_publisher>>) {
    run(|| {
        drop(publisher);
        Ok(())
    });
}
