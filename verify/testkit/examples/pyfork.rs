//! A library for `tests/pyfork.py`: a node, a publisher, a subscriber behind C functions, so that
//! the forks of Python are the ones that are tested.
//!
//! Results are 0 or more; a failure is minus one minus the position of its kind in `KINDS`, or
//! `OTHER`.

use std::ffi::{CStr, c_char};
use std::path::Path;

use outlive::{ErrorKind, Node, Publisher, Sample, Subscriber};

/// The kinds that the script knows.
const KINDS: [ErrorKind; 2] = [ErrorKind::ForkedChild, ErrorKind::TooManyBorrows];
const OTHER: i64 = -100;
/// Nothing to receive.
const NOTHING: i64 = -99;

/// What the script holds.
#[derive(Debug)]
pub struct Member {
    sample: Option<Sample<[u8]>>,
    subscriber: Subscriber<[u8]>,
    publisher: Publisher<[u8]>,
    node: Node,
}

fn code(e: &outlive::Error) -> i64 {
    KINDS.iter().position(|kind| *kind == e.kind()).map_or_else(
        || {
            eprintln!("{e}");
            OTHER
        },
        |at| -1 - at as i64,
    )
}

fn open(root: &Path) -> outlive::Result<Member> {
    let node = Node::builder().root(root).name("python").open()?;
    let topic = || Ok::<_, outlive::Error>(node.topic::<[u8]>("/python")?.depth(4).borrows(2));
    let publisher = topic()?.publisher()?;
    let subscriber = topic()?.subscriber()?;
    Ok(Member { sample: None, subscriber, publisher, node })
}

/// Opens node, publisher and subscriber; null when that fails.
///
/// # Safety
/// `root` is a string that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_open(root: *const c_char) -> *mut Member {
    // SAFETY: by the caller.
    let root = unsafe { CStr::from_ptr(root) }.to_string_lossy();
    match open(Path::new(&*root)) {
        Ok(member) => Box::into_raw(Box::new(member)),
        Err(e) => {
            eprintln!("{e}");
            std::ptr::null_mut()
        }
    }
}

/// The node's ordinal.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_node(member: *const Member) -> u64 {
    // SAFETY: by the caller.
    unsafe { &*member }.node.id().get()
}

/// 1 while the node `ordinal` lives, 0 when it is dead or gone.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_is_alive(member: *const Member, ordinal: u64) -> i64 {
    // SAFETY: by the caller.
    let node = &unsafe { &*member }.node;
    match node.watch(outlive::NodeId::from_raw(ordinal)) {
        Ok(watch) => i64::from(watch.is_alive()),
        Err(e) if e.kind() == ErrorKind::NotFound => 0,
        Err(e) => code(&e),
    }
}

/// Publishes `len` bytes of value `byte`; its number.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_publish(member: *mut Member, byte: u8, len: usize) -> i64 {
    // SAFETY: by the caller.
    let member = unsafe { &*member };
    match member.publisher.publish(&vec![byte; len]) {
        Ok(seq) => seq as i64,
        Err(e) => code(&e),
    }
}

/// The next message's first byte, the message let go at once.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_receive(member: *mut Member) -> i64 {
    // SAFETY: by the caller.
    match unsafe { &mut *member }.subscriber.receive() {
        Ok(Some(sample)) => sample.first().map_or(NOTHING, |b| i64::from(*b)),
        Ok(None) => NOTHING,
        Err(e) => code(&e),
    }
}

/// As `pyfork_receive`; the message is kept.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_hold(member: *mut Member) -> i64 {
    // SAFETY: by the caller.
    let member = unsafe { &mut *member };
    match member.subscriber.receive() {
        Ok(Some(sample)) if sample.is_borrowed() => {
            let first = i64::from(sample[0]);
            member.sample = Some(sample);
            first
        }
        Ok(_) => NOTHING,
        Err(e) => code(&e),
    }
}

/// The byte that all bytes of the kept message are.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_held(member: *const Member) -> i64 {
    // SAFETY: by the caller.
    let Some(sample) = &unsafe { &*member }.sample else { return NOTHING };
    if sample.iter().all(|b| *b == sample[0]) { i64::from(sample[0]) } else { OTHER }
}

/// Lets the kept message go.
///
/// # Safety
/// `member` came from `pyfork_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_release(member: *mut Member) {
    // SAFETY: by the caller.
    unsafe { &mut *member }.sample = None;
}

/// Closes everything.
///
/// # Safety
/// `member` came from `pyfork_open` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pyfork_close(member: *mut Member) {
    // SAFETY: made by `pyfork_open`; given up by the caller.
    drop(unsafe { Box::from_raw(member) });
}
