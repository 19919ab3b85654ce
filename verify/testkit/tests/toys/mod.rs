//! Operations on plain shared files: some keep their promise, some break it on purpose.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::*};
use testkit::sweep::{Gate, Outcome, Point, Scenario, Style};

/// A shared file of 64-bit words.
pub(crate) struct Words {
    base: *const AtomicU64,
    count: usize,
}

impl Words {
    pub(crate) fn create(path: &Path, count: usize) -> Result<Self, String> {
        let file = File::create_new(path).map_err(|e| e.to_string())?;
        file.set_len(8 * count as u64).map_err(|e| e.to_string())?;
        Self::open(path)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = |e: std::io::Error| format!("{}: {e}", path.display());
        let file = File::options().read(true).write(true).open(path).map_err(text)?;
        let bytes = file.metadata().map_err(text)?.len() as usize;
        let (mode, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping of a file; it is never unmapped.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, mode, libc::MAP_SHARED, fd, 0) };
        match at {
            libc::MAP_FAILED => Err(text(std::io::Error::last_os_error())),
            at => Ok(Self { base: at.cast(), count: bytes / 8 }),
        }
    }

    pub(crate) fn at(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count);
        // SAFETY: within the mapping (checked above), aligned, and only used as atomics.
        unsafe { &*self.base.add(index) }
    }

    pub(crate) fn raw(&self, index: usize) -> *mut u8 {
        self.at(index).as_ptr().cast()
    }
}

/// A message of 40 words in one of two slots, committed by its sequence number (word 0).
///
/// The copy is a loop and a `rep movs`, so a sweep meets both. `torn` commits too early.
pub(crate) struct Publish {
    pub(crate) torn: bool,
    pub(crate) style: Style,
}

const BODY: usize = 40;

fn publish(words: &Words, torn: bool) {
    let seq = words.at(0).load(Relaxed) + 1;
    let slot = 1 + BODY * (seq % 2) as usize;
    let early = if torn { BODY / 2 } else { BODY };
    let source = [seq; 16];
    for i in 0..early - 16 {
        words.at(slot + i).store(seq, Relaxed);
    }
    if torn {
        words.at(0).store(seq, Release);
        for i in early - 16..BODY - 16 {
            words.at(slot + i).store(seq, Relaxed);
        }
    }
    copy_repeating(source.as_ptr().cast(), words.raw(slot + BODY - 16), 16 * 8);
    if !torn {
        words.at(0).store(seq, Release);
    }
}

fn copy_repeating(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's ranges are valid and do not overlap; the direction flag is clear.
    unsafe {
        std::arch::asm!("rep movsb", inout("rcx") bytes => _, inout("rsi") from => _,
            inout("rdi") to => _, options(nostack, preserves_flags))
    };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's ranges are valid and do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, bytes)
    };
}

impl Scenario for Publish {
    /// The mapping, and the last committed sequence number.
    type World = (Words, u64);

    fn name(&self) -> String {
        let how = if self.torn { "torn publish" } else { "publish" };
        let style = &self.style;
        let kept = if style.keep_world { ", kept" } else { "" };
        let stop = if style.act_while_stopped { ", watched" } else { "" };
        let end = if style.finish_op { ", not killed" } else { "" };
        format!("{how}{kept}{stop}{end}")
    }

    fn style(&self) -> Style {
        self.style
    }

    fn setup(&self, dir: &Path) -> Result<Self::World, String> {
        Ok((Words::create(&dir.join("ring"), 1 + 2 * BODY)?, 0))
    }

    fn at_gate(&self, _: &Path, world: &mut Self::World) -> Result<(), String> {
        world.1 += 1; // the warm-up
        check_message(&world.0, world.1).map(|_| ())
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let words = Words::open(&dir.join("ring"))?;
        publish(&words, self.torn);
        gate.enter();
        publish(&words, self.torn);
        gate.leave();
        Ok(())
    }

    fn while_stopped(&self, _: &Path, world: &mut Self::World, _: &Point) -> Result<(), String> {
        check_message(&world.0, world.1).map(|_| ())
    }

    fn survivor(&self, _: &Path, world: &mut Self::World, at: &Point) -> Result<Outcome, String> {
        let after = check_message(&world.0, world.1)?;
        if at.finished && !after {
            return Err("a message that was published is lost".into());
        }
        world.1 += u64::from(after);
        Ok(if after { "after" } else { "before" })
    }
}

/// The newest message must be `seq` or its successor, and whole; true when it is the successor.
fn check_message(words: &Words, seq: u64) -> Result<bool, String> {
    let newest = words.at(0).load(Acquire);
    if newest != seq && newest != seq + 1 {
        return Err(format!("sequence number {newest} after {seq}"));
    }
    let slot = 1 + BODY * (newest % 2) as usize;
    match (0..BODY).find(|i| words.at(slot + i).load(Relaxed) != newest) {
        Some(i) => Err(format!("message {newest} is torn at word {i}")),
        None => Ok(newest == seq + 1),
    }
}

/// Lock, change two words that must stay equal, unlock.
pub(crate) struct Locked {
    /// glibc's robust mutex, else a word that nobody cleans up.
    pub(crate) robust: bool,
    /// The survivor waits for ever instead of a while.
    pub(crate) patient: bool,
}

impl Locked {
    fn lock(&self, words: &Words, tries: u64) -> Result<bool, String> {
        if self.robust {
            // SAFETY: setup made the mutex in words 8.. of the mapping, which stays.
            return match unsafe { libc::pthread_mutex_trylock(words.raw(8).cast()) } {
                0 => Ok(false),
                libc::EOWNERDEAD => Ok(true),
                error => Err(format!("trylock: {error}")),
            };
        }
        for _ in 0..tries {
            if words.at(8).compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return Ok(false);
            }
            std::thread::sleep(std::time::Duration::from_micros(10));
        }
        Err("the lock is stuck".into())
    }

    fn unlock(&self, words: &Words) {
        if self.robust {
            // SAFETY: as in `lock`; the caller holds the mutex.
            unsafe { libc::pthread_mutex_unlock(words.raw(8).cast()) };
        } else {
            words.at(8).store(0, Release);
        }
    }
}

fn update(words: &Words) {
    for i in 0..2 {
        words.at(i).store(words.at(i).load(Relaxed) + 1, Relaxed);
    }
}

impl Scenario for Locked {
    type World = Words;

    fn name(&self) -> String {
        let kind = if self.robust { "robust mutex" } else { "naive lock" };
        format!("{kind}{}", if self.patient { ", patient" } else { "" })
    }

    fn setup(&self, dir: &Path) -> Result<Words, String> {
        let words = Words::create(&dir.join("lock"), 32)?;
        // SAFETY: the attribute lives through the calls; the mutex has 24 zeroed words to itself.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(words.raw(8).cast(), &attributes);
        }
        if !self.robust {
            words.at(8).store(0, Relaxed);
        }
        Ok(words)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let words = Words::open(&dir.join("lock"))?;
        for warm_up in [true, false] {
            if !warm_up {
                gate.enter();
            }
            self.lock(&words, 1)?;
            update(&words);
            self.unlock(&words);
            gate.mark(1 + u64::from(!warm_up));
        }
        gate.leave();
        Ok(())
    }

    fn survivor(&self, _: &Path, words: &mut Words, at: &Point) -> Result<Outcome, String> {
        let died = self.lock(words, if self.patient { u64::MAX } else { 20 })?;
        let (a, b) = (words.at(0).load(Relaxed), words.at(1).load(Relaxed));
        if died {
            words.at(1).store(a, Relaxed);
            // SAFETY: we hold the mutex, as owner of a dead one.
            unsafe { libc::pthread_mutex_consistent(words.raw(8).cast()) };
        } else if a != b {
            return Err(format!("{a} and {b} differ without notice"));
        }
        self.unlock(words);
        if at.finished && (died || a != 2 || at.mark != 2) {
            return Err(format!("a finished update counts {a}, mark {}", at.mark));
        }
        Ok(if died { "owner died" } else { "clean" })
    }
}

/// Makes a file that must be whole when it has its name. `hasty` names it first.
pub(crate) struct Create {
    pub(crate) hasty: bool,
}

const MAGIC: u64 = 0x0123_4567_89ab_cdef;

impl Create {
    fn create(&self, dir: &Path) -> Result<(), String> {
        let (draft, name) = (dir.join("draft"), dir.join("file"));
        let made = if self.hasty { &name } else { &draft };
        let _ = fs::remove_file(made);
        let words = Words::create(made, 64)?;
        for i in 1..64 {
            words.at(i).store(i as u64, Relaxed);
        }
        words.at(0).store(MAGIC, Release);
        if !self.hasty {
            fs::rename(&draft, &name).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

impl Scenario for Create {
    type World = ();

    fn name(&self) -> String {
        if self.hasty { "hasty create" } else { "create" }.into()
    }

    fn setup(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        gate.enter();
        self.create(dir)?;
        gate.leave();
        Ok(())
    }

    fn survivor(&self, dir: &Path, (): &mut (), at: &Point) -> Result<Outcome, String> {
        let name = dir.join("file");
        if name.exists() {
            let size = fs::metadata(&name).map_err(|e| e.to_string())?.len();
            if size != 512 {
                return Err(format!("visible with {size} bytes"));
            }
            let words = Words::open(&name)?;
            if words.at(0).load(Acquire) != MAGIC {
                return Err("visible without its magic number".into());
            }
            return Ok("complete");
        }
        if at.finished {
            return Err("made, but not there".into());
        }
        self.create(dir).map(|()| "absent, made again")
    }
}
