//! The node's own liveness token: who holds it, and how it passes from thread to thread.
//!
//! # Theory of operation
//! The token is a robust libc mutex inside the node's file, locked by one thread for good. The
//! kernel marks its futex word when that thread dies. When the thread merely ends, a thread-local
//! destructor unlocks it after setting `HAND_OFF`; the next call of any thread adopts it. A raw
//! `exit` skips the destructor: the word then says dead, the file lock says alive, and the next
//! call adopts it just the same.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use super::layout;
use crate::os::map::Mapping;
use crate::os::{fork, futex, robust};
use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicU32, Mutex};
use crate::{Error, ErrorKind, Result};

/// The token of this process's node, kept mapped for as long as a thread holds it.
#[derive(Debug)]
pub(crate) struct Token {
    /// In strict mode the thread that holds the token; before `map`, which it uses.
    helper: Mutex<Option<robust::StrictHelper>>,
    map: Mapping,
    word_offset: usize,
    strict: bool,
    generation: u32,
    holder: Mutex<Holder>,
}

#[derive(Debug, PartialEq)]
enum Holder {
    /// A thread, by kernel thread id.
    Thread(u32),
    /// The holder ended, or the node is closed.
    Nobody,
    Closed,
}

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held(Vec::new())) };
}

struct Held(Vec<Arc<Token>>);

impl Drop for Held {
    fn drop(&mut self) {
        for token in self.0.drain(..) {
            token.thread_ends();
        }
    }
}

impl Token {
    /// Locks the token of a node file that nobody else can see yet, in the calling thread.
    pub(crate) fn register(map: Mapping, strict: bool) -> Result<Arc<Self>> {
        let mut helper = None;
        let word_offset = if strict {
            let page = map.bytes(layout::STRICT, robust::STRICT_BYTES)?;
            // SAFETY: zeroed bytes of our own writable mapping, which `helper` does not outlive
            // (`close` and `Drop` end it first).
            let spawned = unsafe { robust::StrictHelper::spawn(page.cast_mut())? };
            let word = spawned.word_offset();
            helper = Some(spawned);
            layout::STRICT + word as usize
        } else {
            let bytes = map.bytes(layout::TOKEN, robust::TOKEN_BYTES)?;
            // SAFETY: 64 zeroed bytes of our own writable mapping; the `Arc` in `HELD` keeps it
            // mapped until this thread has unlocked it.
            layout::TOKEN + unsafe { robust::init_and_lock(bytes.cast_mut())? } as usize
        };
        map.atomic_u32(layout::TOKEN_WORD)?.store(word_offset as u32, Relaxed);
        let token = Arc::new(Self {
            helper: Mutex::new(helper),
            map,
            word_offset,
            strict,
            generation: fork::fork_generation(),
            holder: Mutex::new(Holder::Thread(robust::gettid())),
        });
        if !strict {
            token.remember();
        }
        Ok(token)
    }

    pub(crate) fn map(&self) -> &Mapping {
        &self.map
    }

    fn remember(self: &Arc<Self>) {
        // Fails only while this thread's destructors run: then the kernel marks the word.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            // Those of nodes that another thread closed would pile up in a thread that never ends.
            held.0.retain(|token| !token.unlock_if_closed());
            held.0.push(Arc::clone(self));
        });
    }

    /// Lets go of what the calling thread holds of a closed node.
    fn unlock_if_closed(self: &Arc<Self>) -> bool {
        // Not to be had only while another thread closes it: next time, then.
        let closed = self.holder.try_lock().is_ok_and(|holder| *holder == Holder::Closed);
        let own_process = self.generation == fork::fork_generation();
        if closed && own_process {
            self.unlock();
        }
        closed && own_process
    }

    /// By the thread that locked it and has not unlocked it since.
    fn unlock(self: &Arc<Self>) {
        let ours = self.word().is_ok_and(robust::is_ours);
        // SAFETY: made by `register` in this process (callers check), and mapped through `self`.
        unsafe { robust::unlock(self.bytes()) };
        if !ours || self.map.is_poisoned() {
            std::mem::forget(Arc::clone(self)); // mapped for ever: neighbours may lead there
        }
    }

    /// The futex word that peers look at.
    pub(crate) fn word(&self) -> Result<&AtomicU32> {
        self.map.atomic_u32(self.word_offset)
    }

    fn bytes(&self) -> *mut u8 {
        self.map.base().wrapping_add(layout::TOKEN).cast_mut()
    }

    /// Whether peers see this node alive by its word.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.word().is_ok_and(|w| robust::is_alive_word(w.load(Relaxed)))
    }

    /// Takes the token over for the calling thread after its holder ended.
    #[cold]
    pub(crate) fn adopt(self: &Arc<Self>) -> Result<()> {
        let mut holder = self.holder.lock().unwrap_or_else(|e| e.into_inner());
        if self.strict || *holder == Holder::Closed || self.is_held() {
            return Ok(());
        }
        // SAFETY: the 64 bytes were initialised by `register` and stay mapped through `self`.
        if !unsafe { robust::relock(self.bytes())? } {
            return Ok(());
        }
        *holder = Holder::Thread(robust::gettid());
        self.remember();
        self.map.atomic_u32(layout::HAND_OFF)?.store(0, Release);
        Ok(())
    }

    /// What the end of the calling thread would do to the token.
    pub(crate) fn hand_off(self: &Arc<Self>) {
        let _ = HELD.try_with(|held| held.borrow_mut().0.retain(|t| !Arc::ptr_eq(t, self)));
        Arc::clone(self).thread_ends();
    }

    /// The destructor of the holding thread: hands the token to whoever calls next.
    fn thread_ends(self: Arc<Self>) {
        if self.generation != fork::fork_generation() {
            return std::mem::forget(self);
        }
        let mut holder = self.holder.lock().unwrap_or_else(|e| e.into_inner());
        if let Ok(hand_off) = self.map.atomic_u32(layout::HAND_OFF)
            && *holder == Holder::Thread(robust::gettid())
        {
            hand_off.store(1, Release);
            *holder = Holder::Nobody;
        }
        self.unlock();
    }

    /// Ends the token for good: the node leaves in order.
    pub(crate) fn close(self: &Arc<Self>) {
        drop(self.helper.lock().unwrap_or_else(|e| e.into_inner()).take());
        if self.strict {
            return;
        }
        let mut holder = self.holder.lock().unwrap_or_else(|e| e.into_inner());
        let own = *holder == Holder::Thread(robust::gettid());
        *holder = Holder::Closed;
        if own {
            self.unlock();
            let _ = HELD.try_with(|held| held.borrow_mut().0.retain(|t| !Arc::ptr_eq(t, self)));
        }
        // Another thread holds the mutex and only that thread can unlock it, when it ends or opens
        // another node. Until then the word says dead, with the holder in it for that unlock.
        if !own && let Ok(word) = self.word() {
            word.fetch_or(robust::OWNER_DIED, Release);
            futex::wake(word, i32::MAX);
        }
    }
}

/// The error of every call on a handle that a forked child inherited.
#[cold]
pub(crate) fn forked_child() -> Error {
    Error::new(
        ErrorKind::ForkedChild,
        "using",
        "a node of the parent process",
        "after fork the child is not the node: open a node of its own",
    )
}
