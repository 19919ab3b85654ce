//! Being asked to end, as a member of a wait.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Look, Member, Plan};
use crate::Result;
use crate::os::process::stop;
use crate::os::sleep::futex;
use crate::os::time::deadline::Deadline;

/// Turns SIGTERM and SIGINT into a request to exit.
///
/// A program that then returns from `main` drops its nodes: others see that it left, not that it
/// died. `outlive stop`, a terminal's Ctrl-C and service managers ask this way.
///
/// The first signal of each kind is noted. A second one has its usual effect: by default it ends
/// the process. Within 250 ms it counts as the same request, because `timeout` and others signal
/// the process and then its group. A handler installed earlier is called as well; an ignored signal
/// stays ignored. Dropping the last `Shutdown` restores everything. Blocking system calls are
/// restarted (SA_RESTART): wait with a [`WaitSet`](crate::WaitSet), or check
/// [`is_asked`](Self::is_asked) now and then. None of this applies in a forked child: until it
/// calls [`on_signals`](Self::on_signals) itself it is not asked, and an inherited `Shutdown` does
/// nothing.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let mut shutdown = outlive::Shutdown::on_signals()?;
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// let mut set = outlive::WaitSet::new();
/// # shutdown.ask();
/// while !shutdown.is_asked() {
///     set.wait(&mut [&mut poses, &mut shutdown], Duration::from_secs(1))?;
///     while let Some(pose) = poses.receive()? {
///         println!("{}", *pose);
///     }
/// }
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Shutdown {
    /// The process that installed it, as of the fork generation.
    of: u32,
}

impl Shutdown {
    /// From now on SIGTERM and SIGINT ask this process to end.
    ///
    /// # Errors
    /// `Io` when the process is out of descriptors.
    ///
    /// # Examples
    /// ```
    /// # const SIGTERM: i32 = 15;
    /// # unsafe extern "C" { safe fn raise(signal: i32) -> i32; }
    /// let shutdown = outlive::Shutdown::on_signals()?;
    /// raise(SIGTERM); // as `kill`, `outlive stop` and service managers do
    /// assert!(shutdown.is_asked(), "this program still runs, and may end in order");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn on_signals() -> Result<Self> {
        Ok(Self { of: stop::install()? })
    }

    /// Whether this process was asked to end; it stays so.
    ///
    /// # Real-time
    /// One load.
    ///
    /// # Examples
    /// ```
    /// let shutdown = outlive::Shutdown::on_signals()?;
    /// let mut cycles = 0;
    /// while !shutdown.is_asked() {
    ///     cycles += 1;
    ///     # if cycles == 3 { shutdown.ask() }
    /// }
    /// assert_eq!(cycles, 3);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_asked(&self) -> bool {
        stop::asked() != 0
    }

    /// The number of the first signal that asked; `None` if none has.
    ///
    /// # Examples
    /// ```
    /// # const SIGTERM: i32 = 15;
    /// # unsafe extern "C" { safe fn raise(signal: i32) -> i32; }
    /// let shutdown = outlive::Shutdown::on_signals()?;
    /// assert_eq!(shutdown.signal(), None);
    /// raise(SIGTERM); // as `kill` does
    /// assert_eq!(shutdown.signal(), Some(SIGTERM));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn signal(&self) -> Option<i32> {
        Some(stop::asked()).filter(|by| !matches!(*by, 0 | stop::BY_ITSELF)).map(|by| by as i32)
    }

    /// Asks this process to end, as a signal does, and wakes all that wait for it.
    ///
    /// # Examples
    /// ```
    /// let shutdown = outlive::Shutdown::on_signals()?;
    /// shutdown.ask(); // for instance after a fault that the program cannot handle
    /// assert!(shutdown.is_asked());
    /// assert_eq!(shutdown.signal(), None); // no signal asked
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn ask(&self) {
        stop::ask(stop::BY_ITSELF);
    }

    /// Waits until this process is asked to end, at most `timeout`; returns whether it was.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let shutdown = outlive::Shutdown::on_signals()?;
    /// assert!(!shutdown.wait(Duration::from_millis(1)), "it timed out");
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| shutdown.ask()); // a signal does the same
    ///     assert!(shutdown.wait(Duration::from_secs(60)));
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        while !self.is_asked() && !deadline.has_passed() {
            futex::wait(stop::event().word(), 0, deadline);
        }
        self.is_asked()
    }
}

/// Readable once it was asked. Do not read from it.
impl AsFd for Shutdown {
    fn as_fd(&self) -> BorrowedFd<'_> {
        stop::fd()
    }
}

impl Drop for Shutdown {
    fn drop(&mut self) {
        stop::remove(self.of);
    }
}

impl Member for Shutdown {
    fn is_ready(&mut self, _look: &mut Look) -> bool {
        self.is_asked()
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        plan.event(stop::event())
    }
}

impl Member for &Shutdown {
    fn is_ready(&mut self, _look: &mut Look) -> bool {
        self.is_asked()
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        plan.event(stop::event())
    }
}
