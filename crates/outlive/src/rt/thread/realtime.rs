//! What a thread of the real-time core asks of the kernel, and what it got.
#![deny(unsafe_code)]

use std::fmt;

use crate::Result;
use crate::os::process::{realtime, sched};

/// What to ask of the kernel. The default asks for nothing.
///
/// # Examples
/// ```
/// use outlive::rt::Realtime;
///
/// let wanted = Realtime { priority: Some(50), lock_memory: true, ..Realtime::default() };
/// let granted = wanted.apply();
/// if let Some(Err(e)) = &granted.priority {
///     eprintln!("runs without SCHED_FIFO: {e}");
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Realtime {
    /// SCHED_FIFO at this priority, 1 to 99. Leave some above it for the kernel's own threads.
    pub priority: Option<u8>,
    /// The one core to run on.
    pub cpu: Option<usize>,
    /// Keep all memory of the process, now and later, in RAM (`mlockall`).
    pub lock_memory: bool,
    /// Stack to touch beforehand, bytes; at most 1 MiB.
    pub stack_bytes: usize,
}

/// What the kernel granted of a [`Realtime`]. Refusals are not errors: check, and decide.
///
/// # Examples
/// ```
/// use outlive::rt::{Granted, Realtime};
///
/// let granted: Granted = Realtime { priority: Some(1), ..Realtime::default() }.apply();
/// match &granted.priority {
///     Some(Ok(())) => println!("runs with SCHED_FIFO"),
///     Some(Err(why)) => println!("runs without SCHED_FIFO: {why}"), // or refuse to start
///     None => unreachable!("it was asked for"),
/// }
/// assert!(granted.cpu.is_none() && granted.lock_memory.is_none()); // not asked for
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Granted {
    /// SCHED_FIFO; `None` if it was not asked for.
    pub priority: Option<Result<()>>,
    /// The core.
    pub cpu: Option<Result<()>>,
    /// Memory in RAM.
    pub lock_memory: Option<Result<()>>,
    /// Stack touched, bytes.
    pub stack_bytes: usize,
}

impl Realtime {
    /// Applies to the calling thread (memory: to the process).
    ///
    /// # Real-time
    /// Call it before the loop only: it blocks, and locking memory takes as long as paging it in.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Realtime;
    ///
    /// let wanted = Realtime { cpu: Some(1 << 20), stack_bytes: 64 << 10, ..Realtime::default() };
    /// let granted = wanted.apply();
    /// assert!(matches!(granted.cpu, Some(Err(_)))); // there is no such core
    /// assert!(granted.priority.is_none()); // not asked for
    /// assert_eq!(granted.stack_bytes, 64 << 10);
    /// ```
    pub fn apply(&self) -> Granted {
        // Memory first: what is touched after it stays.
        let lock_memory = self.lock_memory.then(realtime::lock_memory);
        realtime::no_timer_slack();
        Granted {
            priority: self.priority.map(realtime::fifo),
            cpu: self.cpu.map(sched::pin_current),
            lock_memory,
            stack_bytes: realtime::touch_stack(self.stack_bytes.min(1 << 20)),
        }
    }
}

impl Granted {
    /// Whether everything that was asked for was granted.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Realtime;
    ///
    /// assert!(Realtime::default().apply().is_complete()); // it asks for nothing
    /// let granted = Realtime { cpu: Some(1 << 20), ..Realtime::default() }.apply();
    /// assert!(!granted.is_complete());
    /// println!("{granted}"); // says why
    /// ```
    pub fn is_complete(&self) -> bool {
        [&self.priority, &self.cpu, &self.lock_memory]
            .iter()
            .all(|part| !matches!(part, Some(Err(_))))
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts =
            [("SCHED_FIFO", &self.priority), ("core", &self.cpu), ("mlockall", &self.lock_memory)];
        for (name, part) in parts {
            match part {
                None => write!(f, "{name}: not asked for; ")?,
                Some(Ok(())) => write!(f, "{name}: granted; ")?,
                Some(Err(why)) => write!(f, "{name}: refused ({why}); ")?,
            }
        }
        write!(f, "stack: {} bytes touched", self.stack_bytes)
    }
}
