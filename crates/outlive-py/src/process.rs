//! What this process has opened, and its end.

use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use outlive::topic::segments::{self, Segment, SegmentWatcher, Unmap};
use outlive::{AtExit, ErrorKind, Node as CoreNode};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use crate::error::fail;

/// What a node closes when it is closed itself, and a process at its end.
pub(crate) trait Close: Send + Sync {
    /// Ends its use; `false` while a thread is in a call on it, which then ends it.
    fn close(&self, py: Python<'_>) -> bool;

    /// The thread has ended: it holds nothing of it any more. Without the interpreter's lock.
    fn forget_thread(&self, _thread: ThreadId) {}
}

/// What a process has opened. A forked child has its own: what it has inherited is not its own to
/// close, and a thread that is not there may have had a list locked.
pub(crate) struct Process {
    id: u32,
    /// All of it, nodes too: who keeps a port need not keep its `Node`.
    opened: Mutex<Vec<Weak<dyn Close>>>,
    /// Its nodes, closed ones too: a sample or a permit keeps them.
    nodes: Mutex<Vec<Joined>>,
    /// One more for each call that opens a node.
    opening: Arc<()>,
    /// The interpreter ends.
    ending: AtomicBool,
    /// The thread that ends it.
    ender: OnceLock<ThreadId>,
}

/// A node of the core that may not have left yet.
struct Joined {
    at_exit: AtExit,
    /// There until it has.
    file: PathBuf,
}

impl Joined {
    fn new(node: &CoreNode) -> Self {
        let domain = outlive::Domain::of_node(node);
        let file = domain.dir().join("nodes").join(node.id().get().to_string());
        Self { at_exit: node.at_exit(), file }
    }

    fn may_be_there(&self) -> bool {
        self.file.try_exists().unwrap_or(true)
    }
}

/// How often this process is a forked child. The system is asked for its own number too slowly for
/// every call.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A forked child has another one than its parent.
#[inline]
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// First in a forked child.
pub(crate) fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The last one, which is this process's or that of a process it was forked from. Never freed.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

impl Process {
    fn last() -> Option<&'static Self> {
        // SAFETY: null, or made by `own` and never freed.
        unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
    }

    /// This process's, if it has opened something.
    fn current() -> Option<&'static Self> {
        Self::last().filter(|last| last.is_own())
    }

    fn is_own(&self) -> bool {
        self.id == std::process::id()
    }

    /// This process's. The interpreter's lock lets no two threads make one.
    pub(crate) fn own(_py: Python<'_>) -> &'static Self {
        if let Some(own) = Self::current() {
            return own;
        }
        let id = std::process::id();
        let (opened, nodes, opening, ending, ender) = Default::default();
        let own = Box::leak(Box::new(Self { id, opened, nodes, opening, ending, ender }));
        PROCESS.store(own, Ordering::Release);
        own
    }

    /// For a call that opens a node: the end waits until it is gone.
    pub(crate) fn opening(&self) -> PyResult<Arc<()>> {
        let opening = Arc::clone(&self.opening);
        must_not_end().map(|()| opening)
    }

    /// Notes one that is to leave at the end, whatever refers to it then.
    pub(crate) fn note_node(&self, node: &CoreNode) {
        let mut nodes = lock(&self.nodes);
        if nodes.len() == nodes.capacity() {
            nodes.retain(Joined::may_be_there);
        }
        nodes.push(Joined::new(node));
    }

    /// Closes what it has opened, and waits for calls of other threads to end, two seconds at most:
    /// on a busy machine they need more than the 100 ms after which they look.
    fn close(&self, py: Python<'_>) {
        for _ in 0..200 {
            if self.has_closed(py) {
                return;
            }
            py.detach(|| std::thread::sleep(Duration::from_millis(10)));
        }
    }

    /// Closes all there is by now; `false` while a thread is in a call.
    fn has_closed(&self, py: Python<'_>) -> bool {
        // Before the look at what there is: those calls add to it.
        let none_opens = Arc::strong_count(&self.opening) == 1;
        let all: Vec<_> = lock(&self.opened).iter().filter_map(Weak::upgrade).collect();
        let open = all.iter().filter(|one| !one.close(py)).count();
        none_opens && open == 0
    }

    /// All its nodes leave. The interpreter frees neither what a daemon thread has nor the names
    /// of the main program that it runs in.
    fn leave(&self, py: Python<'_>) {
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        py.detach(|| nodes.iter().for_each(|node| node.at_exit.leave()));
    }
}

/// Notes what `_close_all` is to close.
pub(crate) fn note_opened(py: Python<'_>, one: Weak<dyn Close>) {
    note(&mut lock(&Process::own(py).opened), one);
}

/// Not for longer than a statement that makes no exception: see `port::Common::shared`.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Adds one to a list that forgets those that are gone.
pub(crate) fn note(list: &mut Vec<Weak<dyn Close>>, one: Weak<dyn Close>) {
    if list.len() == list.capacity() {
        list.retain(|known| known.strong_count() > 0);
    }
    list.push(one);
}

/// Whether the interpreter ends: what is dropped now is dropped by nobody's wish.
pub(crate) fn is_ending() -> bool {
    Process::last().is_some_and(|last| last.ending.load(Ordering::Relaxed) && last.is_own())
}

/// As the interpreter ends: ends the daemon thread that calls, instead of an exception of ours.
/// That would be printed, and a thread that prints at that moment may have the interpreter abort:
/// its last flush does not get the lock of standard error.
pub(crate) fn ends_thread() -> Option<PyErr> {
    let ender = Process::current()?.ender.get()?;
    let daemon = *ender != std::thread::current().id();
    daemon.then(|| PySystemExit::new_err(()))
}

/// What is opened once all is closed, nobody closes.
pub(crate) fn must_not_end() -> PyResult<()> {
    match is_ending() {
        true => {
            let remedy = "the interpreter ends: open it earlier";
            let refused = || fail(ErrorKind::InvalidArgument, "opening", "this object", remedy);
            Err(ends_thread().unwrap_or_else(refused))
        }
        false => Ok(()),
    }
}

/// A thread that held something has ended.
pub(crate) fn thread_ended(thread: ThreadId) {
    if let Some(process) = Process::current() {
        let all: Vec<_> = lock(&process.opened).iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|one| one.forget_thread(thread));
    }
}

/// Keeps messages mapped as the interpreter ends: a thread that it stops in the midst of a
/// calculation may still read an array over what was a loan, and that need not keep its publisher.
struct StayMapped;

impl SegmentWatcher for StayMapped {
    fn unmapping(&self, _: &Segment) -> Unmap {
        Unmap::Never
    }
}

/// Closes all nodes of the process, which then leave. For the end of the interpreter.
#[pyfunction]
pub(crate) fn _close_all(py: Python<'_>) {
    let Some(process) = Process::current() else { return };
    static STAY_MAPPED: LazyLock<Arc<StayMapped>> = LazyLock::new(|| Arc::new(StayMapped));
    segments::watch(&STAY_MAPPED);
    let _ = process.ender.set(std::thread::current().id());
    process.ending.store(true, Ordering::Relaxed);
    process.close(py);
    process.leave(py);
}
