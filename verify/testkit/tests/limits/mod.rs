//! Too little of something: what the tests of scarcity lower, each in a process of its own.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use outlive::{ErrorKind, Node, Result};
use testkit::spawn::spawn_test;
use testkit::{Watchdog, role};

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Runs `body` in a process of its own.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if role().is_some() {
        let _watchdog = Watchdog::start(test, Duration::from_secs(200));
        body();
        println!("was alone");
        return;
    }
    let ran = spawn_test(test, "alone", &[]).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    println!("{told}");
    assert!(ran.status.success() && told.contains("was alone"), "{}: {told}", ran.status);
}

pub(crate) fn limit(resource: libc::__rlimit_resource_t, soft: u64) -> u64 {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer outlives the call.
    assert_eq!(unsafe { libc::getrlimit(resource, &mut old) }, 0);
    let new = libc::rlimit { rlim_cur: soft.min(old.rlim_max), rlim_max: old.rlim_max };
    // SAFETY: the pointer outlives the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &new) }, 0);
    old.rlim_cur
}

/// Something that there can be too little of.
pub(crate) trait Scarce {
    const NAME: &str;
    /// Leaves so much until dropped.
    fn leave(amount: u64) -> Self;
    /// Whether an error tells of it, and what to do.
    fn is_told(e: &outlive::Error) -> bool;
}

/// File descriptors.
pub(crate) struct Descriptors {
    fillers: Vec<File>,
    before: u64,
}

pub(crate) fn descriptors() -> Vec<u64> {
    let names = std::fs::read_dir("/proc/self/fd").unwrap();
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_str()?.parse().ok()
    };
    names.filter_map(number).collect()
}

impl Scarce for Descriptors {
    const NAME: &str = "descriptors";

    fn leave(amount: u64) -> Self {
        let end = descriptors().into_iter().max().unwrap_or(0) + 1;
        let before = limit(libc::RLIMIT_NOFILE, end);
        let fillers = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        limit(libc::RLIMIT_NOFILE, end + amount);
        Self { fillers, before }
    }

    fn is_told(e: &outlive::Error) -> bool {
        e.kind() == ErrorKind::Io && e.remedy().contains("ulimit -n")
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        limit(libc::RLIMIT_NOFILE, self.before);
        self.fillers.clear();
    }
}

/// Address space, and with it mappings.
pub(crate) struct AddressSpace(u64);

impl AddressSpace {
    /// The heap keeps enough for everything but mappings of files.
    pub(crate) fn prepare() {
        #[cfg(target_env = "gnu")]
        // SAFETY: plain calls.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
            libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            libc::mallopt(libc::M_TOP_PAD, 64 << 20);
        }
        drop(std::hint::black_box(vec![1u8; 16 << 20]));
        // The stack is a mapping that grows.
        std::hint::black_box([1u8; 512 << 10]);
    }
}

impl Scarce for AddressSpace {
    const NAME: &str = "bytes of address space";

    fn leave(amount: u64) -> Self {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
        Self(limit(libc::RLIMIT_AS, pages * 4096 + amount))
    }

    fn is_told(e: &outlive::Error) -> bool {
        e.kind() == ErrorKind::OutOfMemory && !e.remedy().is_empty()
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        limit(libc::RLIMIT_AS, self.0);
    }
}

pub(crate) fn node(root: &Path) -> Node {
    open(root).unwrap()
}

pub(crate) fn open(root: &Path) -> Result<Node> {
    Node::builder().root(root).name("test").open()
}
