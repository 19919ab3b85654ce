//! Somebody else looks, and the watcher reads a word.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::thread::JoinHandle;
use std::time::Duration;

use measure::cores::Cores;
use outlive::Result;

use super::calls::{Proc, exists};
use super::method::{Method, Stage};
use super::sockets::Poll;
use crate::pair::Peer;

/// How often a helper looks.
const PERIOD: Duration = Duration::from_millis(1);

/// A thread of the watcher that looks at the other's /proc directory every millisecond.
pub(super) struct PollingThread {
    proc: Proc,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    dead: AtomicU32,
    stop: AtomicU32,
}

impl Method for PollingThread {
    const NAME: &'static str = "thread that polls /proc";
    const WRONG: &'static str = "as /proc, and up to a period late; a thread and a system call for \
        each process watched";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        Ok(Self { proc: Proc::new(stage)?, shared: Arc::default(), thread: None })
    }

    fn live(&mut self, stage: &Stage) -> Result<()> {
        self.proc.live(stage)
    }

    fn watch(&mut self, stage: &Stage, pid: i32) -> Result<()> {
        self.proc.watch(stage, pid)?;
        let dir = self.proc.dir().and_then(|dir| dir.try_clone().ok());
        let shared = Arc::clone(&self.shared);
        self.thread = dir.map(|dir| {
            std::thread::spawn(move || {
                while shared.stop.load(Relaxed) == 0 && exists(&dir) {
                    std::thread::sleep(PERIOD);
                }
                shared.dead.store(1, Release);
            })
        });
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.shared.dead.load(Relaxed) == 0
    }
}

impl Drop for PollingThread {
    fn drop(&mut self) {
        self.shared.stop.store(1, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A process of its own that has a socket to every member and writes down who is gone.
pub(super) struct Tracker {
    socket: Poll,
    word: *const std::sync::atomic::AtomicU64,
    tracker: Option<Peer>,
}

impl Method for Tracker {
    const NAME: &'static str = "central tracker";
    const WRONG: &'static str = "nobody reports the tracker's own death; up to a period late";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        let word = &raw const stage.map.words::<1>(1024)[0];
        Ok(Self { socket: Poll::new(stage)?, word, tracker: None })
    }

    fn watch(&mut self, stage: &Stage, pid: i32) -> Result<()> {
        self.socket.watch(stage, pid)?;
        let cores = Cores::first_two()?;
        // SAFETY: in the stage's map, which lives as long as the method.
        let (word, socket) = (unsafe { &*self.word }, &mut self.socket);
        self.tracker = Some(Peer::spawn(cores.peers, || {
            while socket.is_alive() {
                std::thread::sleep(PERIOD);
            }
            word.store(1, Release);
            loop {
                std::thread::park();
            }
        })?);
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.word().load(Relaxed) == 0
    }
}

impl Tracker {
    fn word(&self) -> &std::sync::atomic::AtomicU64 {
        // SAFETY: in the stage's map, which lives as long as the method.
        unsafe { &*self.word }
    }
}
