//! One load of a word that the kernel marks when its thread dies.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use outlive::{Node, NodeId, Result, Watch};
use outlive_baselines::{OpenPthreadMutex, PthreadMutex};

use super::method::{Method, Stage};

const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID: u32 = 0x3fff_ffff;

fn is_held(word: u32) -> bool {
    word & TID != 0 && word & OWNER_DIED == 0
}

/// A node of outlive, for certain: the word through a read-only map, the file lock once the word
/// says dead.
pub(super) struct Ours {
    watcher: Option<(Node, Watch)>,
}

/// A node of outlive by its word alone.
pub(super) struct Hint(Ours);

impl Method for Hint {
    const NAME: &'static str = "outlive, word alone";
    const WRONG: &'static str = "says dead as soon as the process begins to end: its last \
        threads may run on for a moment";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        Ours::new(stage).map(Self)
    }

    fn live(&mut self, stage: &Stage) -> Result<()> {
        self.0.live(stage)
    }

    fn watch(&mut self, stage: &Stage, pid: i32) -> Result<()> {
        self.0.watch(stage, pid)
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.0.watcher.as_ref().is_some_and(|(_, watch)| watch.seems_alive())
    }
}

fn join(stage: &Stage) -> Result<()> {
    let node = Node::builder().root(&stage.root.0).name("watched").open()?;
    stage.map.words::<2>(64)[0].store(node.id().get(), SeqCst);
    std::mem::forget(node);
    Ok(())
}

fn watch(stage: &Stage) -> Result<(Node, Watch)> {
    let node = Node::builder().root(&stage.root.0).name("watcher").open()?;
    let id = NodeId::from_raw(stage.map.words::<2>(64)[0].load(SeqCst));
    let watch = node.watch(id)?;
    Ok((node, watch))
}

impl Method for Ours {
    const NAME: &'static str = "outlive";
    const WRONG: &'static str = "nothing known; once the word says dead, told when the process's \
        memory is gone";
    const CHECKS: u64 = 10_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self { watcher: None })
    }

    fn live(&mut self, stage: &Stage) -> Result<()> {
        join(stage)
    }

    fn watch(&mut self, stage: &Stage, _: i32) -> Result<()> {
        self.watcher = Some(watch(stage)?);
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.watcher.as_ref().is_some_and(|(_, watch)| watch.is_alive())
    }
}

/// The first word of a robust mutex of the C library that the process holds.
pub(super) struct LibcMutex {
    mutex: OpenPthreadMutex,
    word: *const AtomicU32,
}

impl Method for LibcMutex {
    const NAME: &'static str = "load of a libc mutex";
    const WRONG: &'static str = "takes the end of the thread for the process's; where the word \
        lies is the C library's secret; needs a process that still has its memory when it exits";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        // SAFETY: zeroes that both processes share, mapped as long as the stage.
        let mutex = unsafe { PthreadMutex { robust: true }.make_at(stage.map.at(0, 64))? };
        Ok(Self { mutex, word: stage.map.at(0, 64).cast() })
    }

    fn live(&mut self, _: &Stage) -> Result<()> {
        self.mutex.seize();
        Ok(())
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        // SAFETY: in the stage's map, which lives as long as the method.
        is_held(unsafe { &*self.word }.load(Relaxed))
    }
}

/// An entry of our own in the C library's robust list.
pub(super) struct OwnEntry(*const AtomicU32);

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    next: *mut usize,
    futex_offset: isize,
    pending: *mut usize,
}

impl Method for OwnEntry {
    const NAME: &'static str = "load of an own entry in libc's list";
    const WRONG: &'static str =
        "as the libc mutex, and the C library may rebuild its list without it";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        Ok(Self(stage.map.at(512, 128).cast()))
    }

    fn live(&mut self, stage: &Stage) -> Result<()> {
        let mut head: *mut Head = std::ptr::null_mut();
        let mut len = 0usize;
        // SAFETY: asks for this thread's own list; the entry and its word lie in 128 zeroed bytes
        // of shared memory that this process keeps mapped until it dies. The entry comes at 64:
        // the C library may write the word before it (its `prev`).
        unsafe {
            libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut len);
            let word = &*self.0;
            let entry = word.as_ptr().cast::<u8>().offset(-(*head).futex_offset).cast::<usize>();
            debug_assert!((64..120).contains(&(entry.addr() - stage.map.at(512, 128).addr() + 64)));
            word.store(libc::gettid() as u32 | WAITERS, SeqCst);
            entry.write((*head).next.addr());
            (&raw mut (*head).next).write_volatile(entry.cast());
        }
        Ok(())
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        // SAFETY: as for `LibcMutex`.
        is_held(unsafe { &*self.0 }.load(Relaxed))
    }
}
