//! The stub driver, opened and told what to do.
#![allow(dead_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use outlive_gpu::Cuda;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The stub as one test wants it; the next test waits.
pub(crate) struct Stub {
    pub(crate) cuda: Cuda,
    pub(crate) alone: Alone,
}

/// The stub without a device opened on it.
pub(crate) struct Alone {
    /// It may make as many events as there can be.
    pub(crate) many_events: bool,
    /// It gives up memory of the device that nobody gets back.
    pub(crate) leaves_memory: bool,
    /// Allocations that were there before.
    allocations: usize,
    _guard: MutexGuard<'static, ()>,
}

/// A driver to test with instead of the stub: `make gpu-check` names the real one.
fn other_driver() -> Option<PathBuf> {
    std::env::var_os("OUTLIVE_GPU_TEST_DRIVER").map(PathBuf::from)
}

/// Whether what only the stub can do, or count, can be asked for.
pub(crate) fn is_stub() -> bool {
    other_driver().is_none()
}

pub(crate) fn library() -> PathBuf {
    if let Some(path) = other_driver() {
        return path;
    }
    outlive_gpu_stub::library().expect("the stub driver is built with the tests")
}

pub(crate) fn symbol(name: &str) -> *mut c_void {
    let path = CString::new(library().to_str().unwrap()).unwrap();
    let name = CString::new(name).unwrap();
    // SAFETY: the library stays open; the names are its own.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let symbol = libc::dlsym(handle, name.as_ptr());
        assert!(!handle.is_null() && !symbol.is_null());
        symbol
    }
}

/// Tells the stub, without waiting for other tests: for processes of one test.
pub(crate) fn configure(settings: &str) {
    if other_driver().is_some() {
        return;
    }
    let text = CString::new(settings).unwrap();
    // SAFETY: the function has this signature.
    unsafe {
        let f: extern "C" fn(*const c_char) = std::mem::transmute(symbol("outlive_stub_configure"));
        f(text.as_ptr());
    }
}

impl Drop for Alone {
    /// At the end of each test: nothing was left that a device would take for something else.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert_eq!(count(4), 0, "ranges that were unmapped while registered");
        assert_eq!(count(5), 0, "captures of others that were spoilt");
        let copies = count(3);
        assert!(self.leaves_memory || copies == 0, "{copies} copies are under way");
        let most = if self.many_events { EVENTS_MAX } else { EVENTS };
        assert!(count(1) <= most, "{} events", count(1));
        // What is given up to a device that is stuck stays; everything else is gone.
        assert!(self.leaves_memory || count(2) == self.allocations, "{} allocations", count(2));
    }
}

/// Most events that a process of these tests ever has: they are used again.
const EVENTS: usize = 100;
/// Most that there can be.
pub(crate) const EVENTS_MAX: usize = 512;

/// 0 ranges registered, 1 events, 2 allocations, 3 copies under way, 4 ranges unmapped while
/// registered, 5 captures spoilt, 6 registrations held.
pub(crate) fn count(what: c_int) -> usize {
    if other_driver().is_some() {
        let registered = Cuda::open_library(library(), 0).unwrap().registered();
        return [registered.segments, 0, 0, registered.copies, 0, 0, 0][what as usize];
    }
    // SAFETY: as above.
    unsafe {
        let f: extern "C" fn(c_int) -> usize = std::mem::transmute(symbol("outlive_stub_count"));
        f(what)
    }
}

pub(crate) fn alone(settings: &str) -> Alone {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    configure(settings);
    let allocations = count(2);
    Alone { many_events: false, leaves_memory: false, allocations, _guard: guard }
}

pub(crate) fn stub(settings: &str) -> Stub {
    let alone = alone(settings);
    let cuda = Cuda::open_library(library(), 0).unwrap();
    Stub { cuda, alone }
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..bytes)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        })
        .collect()
}

pub(crate) fn topic(
    node: &outlive::Node,
    name: &str,
) -> (outlive::Publisher<[u8]>, outlive::Subscriber<[u8]>) {
    let publisher = node.topic::<[u8]>(name).unwrap().publisher().unwrap();
    let subscriber = node.topic::<[u8]>(name).unwrap().subscriber().unwrap();
    // From here on the publisher has seen it, so that its samples are borrowed.
    assert_eq!(publisher.subscribers().unwrap(), 1);
    (publisher, subscriber)
}

/// A socket that waits for nobody.
pub(crate) fn unconnected() -> OwnedFd {
    // SAFETY: a system call without pointers; the descriptor is ours alone.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0))
    }
}

/// Connects it to the socket of `of`, in the domain of `node`; false where that would wait.
pub(crate) fn connect(socket: &OwnedFd, node: &outlive::Node, of: outlive::NodeId) -> bool {
    let domain = outlive::Domain::of_node(node);
    let at = std::fs::metadata(domain.dir()).unwrap();
    let name = format!("outlive-gpu/{:x}-{:x}/{of}", at.dev(), at.ino());
    // SAFETY: plain structures that live through the call.
    unsafe {
        let mut to: libc::sockaddr_un = std::mem::zeroed();
        to.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in to.sun_path[1..].iter_mut().zip(name.as_bytes()) {
            *to = *from as libc::c_char;
        }
        let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
        let to = (&raw const to).cast();
        libc::connect(socket.as_raw_fd(), to, len as libc::socklen_t) == 0
    }
}
