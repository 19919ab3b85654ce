//! What ends a wait from another thread or from a signal handler.

use super::{Look, Member, Plan};
use crate::os::sleep::event::Event;

/// Ends waits of this process when another thread or a signal handler raises it.
///
/// It stays raised until it is cleared: later waits end at once. Any number of threads may wait for
/// it. A forked child gets its own, in the state in which its parent left it.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// static STOP: outlive::Interrupt = outlive::Interrupt::new();
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// let mut set = outlive::WaitSet::new();
/// # let stopper =
/// std::thread::spawn(|| STOP.raise()); // or a handler of SIGUSR1
/// while !STOP.is_raised() {
///     set.wait(&mut [&mut poses, &mut &STOP], Duration::from_secs(60))?;
///     while let Some(pose) = poses.receive()? {
///         println!("{}", *pose);
///     }
/// }
/// # stopper.join().unwrap();
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Interrupt {
    event: Event,
}

impl Interrupt {
    /// An interrupt that is not raised.
    ///
    /// # Examples
    /// ```
    /// use outlive::Interrupt;
    ///
    /// static STOP: Interrupt = Interrupt::new(); // for a signal handler
    /// let stop = std::sync::Arc::new(Interrupt::new()); // or shared among threads
    /// assert!(!STOP.is_raised() && !stop.is_raised());
    /// ```
    pub const fn new() -> Self {
        Self { event: Event::new() }
    }

    /// Ends all waits for it. **Async-signal-safe**: a signal handler may call it; it preserves
    /// `errno`.
    ///
    /// # Real-time
    /// Two system calls at most. Does not block, does not allocate.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let stop = outlive::Interrupt::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| stop.raise());
    ///     let mut set = outlive::WaitSet::new();
    ///     let ready = set.wait(&mut [&mut &stop], Duration::from_secs(60))?;
    ///     assert!(ready.contains(0) && stop.is_raised());
    ///     Ok::<(), outlive::Error>(())
    /// })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn raise(&self) {
        self.event.raise(1);
    }

    /// Whether it is raised. Async-signal-safe.
    ///
    /// # Real-time
    /// One load.
    ///
    /// # Examples
    /// ```
    /// static STOP: outlive::Interrupt = outlive::Interrupt::new();
    /// let mut cycles = 0;
    /// while !STOP.is_raised() {
    ///     cycles += 1;
    ///     if cycles == 3 {
    ///         STOP.raise(); // as a signal handler would
    ///     }
    /// }
    /// assert_eq!(cycles, 3);
    /// ```
    pub fn is_raised(&self) -> bool {
        self.event.raised() != 0
    }

    /// Resets it for the next use. Call it from the one thread that waits for it; a raise during
    /// the call may count as one before it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let wake = outlive::Interrupt::new();
    /// let mut set = outlive::WaitSet::new();
    /// wake.raise();
    /// assert!(set.wait(&mut [&mut &wake], Duration::ZERO)?.contains(0));
    /// assert!(wake.is_raised()); // and so until it is cleared
    /// wake.clear();
    /// assert!(set.wait(&mut [&mut &wake], Duration::ZERO)?.is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn clear(&self) {
        self.event.clear();
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::new()
    }
}

impl Member for &Interrupt {
    fn is_ready(&mut self, _look: &mut Look) -> bool {
        self.is_raised()
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        plan.event(&self.event)
    }
}
