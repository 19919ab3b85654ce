//! Waiting for the death of a node, without a thread of ours.

use std::sync::Arc;
use std::time::Duration;

use super::peer::{NodeId, Peer};
use crate::os::sleep::futex;
use crate::os::sleep::futex::{WaitWord, Woken};
use crate::os::sleep::slice::{POLL_NS, slice_ns_max};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;

/// Reports a node's death as it happens.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("guard").open()?;
/// let other = outlive::Node::builder().root(dir.path()).name("camera").open()?;
/// let watch = node.watch(other.id())?;
/// assert!(watch.is_alive());
/// drop(other);
/// assert!(watch.wait(std::time::Duration::from_secs(5)), "reported at once");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it reports nothing until it is asked"]
pub struct Watch {
    peer: Arc<Peer>,
    on_hint: bool,
}

impl Watch {
    pub(crate) fn new(peer: Arc<Peer>) -> Self {
        Self { peer, on_hint: false }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Makes this watch ready in a [`WaitSet`](crate::WaitSet) as soon as [`Watch::seems_alive`]
    /// returns false, not only once the death is certain. For early reactions that do no harm if
    /// the node lives, such as slowing down.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (node, camera) = (settings.clone().open()?, settings.open()?);
    /// use std::time::Duration;
    ///
    /// let mut dead = node.watch(camera.id())?;
    /// let mut perhaps = dead.clone().on_hint();
    /// drop(camera);
    /// let mut set = outlive::WaitSet::new();
    /// let ready = set.wait(&mut [&mut perhaps, &mut dead], Duration::from_secs(5))?;
    /// assert!(ready.contains(0), "slow down; stop once the other one is ready, too");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn on_hint(mut self) -> Self {
        self.on_hint = true;
        self
    }

    /// Whether a wait set would find it ready.
    pub(crate) fn has_news(&self) -> bool {
        if self.on_hint { !self.seems_alive() } else { !self.is_alive() }
    }

    /// The node that is watched.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let node = settings.clone().open()?;
    /// # let (camera, planner) = (settings.clone().open()?, settings.open()?);
    /// let watches = [node.watch(camera.id())?, node.watch(planner.id())?];
    /// let id = camera.id();
    /// drop(camera);
    /// let dead = watches.iter().find(|watch| !watch.is_alive());
    /// assert_eq!(dead.map(|watch| watch.node()), Some(id));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn node(&self) -> NodeId {
        self.peer.id()
    }

    /// Whether the node is alive: one load while it is, a check of its file lock when its word says
    /// dead. A stopped process is alive.
    ///
    /// # Real-time
    /// No system call while the node lives, 0.6 ns.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (node, camera) = (settings.clone().open()?, settings.open()?);
    /// let watch = node.watch(camera.id())?;
    /// assert!(watch.is_alive());
    /// drop(camera); // leaves; a kill does the same
    /// assert!(!watch.is_alive());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.peer.death().is_none()
    }

    /// Whether the node's word says alive, whatever its file lock says: a hint, for reacting early.
    /// A death usually shows within 0.1 ms, later on a loaded machine, however large the process;
    /// `is_alive` shows it only once the kernel has freed the process's memory (about half a second
    /// for 4 GB). Its last threads may still run for a moment after the hint.
    ///
    /// # Real-time
    /// No system call, 0.6 ns.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (node, camera) = (settings.clone().open()?, settings.open()?);
    /// let watch = node.watch(camera.id())?;
    /// let speed = |watch: &outlive::Watch| if watch.seems_alive() { 1.5 } else { 0.1 };
    /// assert_eq!(speed(&watch), 1.5);
    /// drop(camera);
    /// assert_eq!(speed(&watch), 0.1); // slower, in case it is dead
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.hint().is_alive()
    }

    /// As [`Watch::wait`], for the hint: until [`Watch::seems_alive`] returns false. The kernel
    /// gives the hint as soon as a killed process begins to end, however much memory it has to
    /// free, even while one of its threads is in uninterruptible sleep. A process that dumps core
    /// begins to end only after the dump ([`kill_on_faults`](crate::kill_on_faults)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (node, camera) = (settings.clone().open()?, settings.open()?);
    /// use std::time::Duration;
    ///
    /// let watch = node.watch(camera.id())?;
    /// assert!(!watch.wait_hint(Duration::from_millis(1)), "it lives: the time ran out");
    /// drop(camera);
    /// assert!(watch.wait_hint(Duration::from_secs(5)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn wait_hint(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        loop {
            let end = self.peer.end();
            if !self.seems_alive() {
                return true;
            }
            let now = clock::now_ns();
            if deadline.has_passed_by(now) {
                return false;
            }
            let _pending = end.pending_guard();
            let until = deadline.min(Deadline::at_ns(now + slice_ns_max()));
            let woken = futex::wait(end.word, end.seen, until);
            end.pass_on();
            if woken == Woken::Timeout {
                let _ = self.peer.proof_of_death();
            }
        }
    }

    /// Waits until the node dies or leaves; `false` when `timeout` passed first.
    ///
    /// The kernel wakes the caller when the process begins to die. From then on its file lock,
    /// which is released once its memory is freed, is checked every 2 ms.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (node, camera) = (settings.clone().open()?, settings.open()?);
    /// use std::time::Duration;
    ///
    /// let watch = node.watch(camera.id())?;
    /// assert!(!watch.wait(Duration::from_millis(1)), "it lives: the time ran out");
    /// let leaver = std::thread::spawn(move || drop(camera));
    /// assert!(watch.wait(Duration::from_secs(5)));
    /// # leaver.join().unwrap();
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        loop {
            let end = self.peer.end();
            if self.peer.death().is_some() {
                return true;
            }
            let now = clock::now_ns();
            if deadline.has_passed_by(now) {
                return false;
            }
            let slice = if end.has_begun { POLL_NS } else { slice_ns_max() };
            let _pending = end.pending_guard();
            let until = deadline.min(Deadline::at_ns(now + slice));
            let word = WaitWord { word: end.word, expected: end.seen };
            let woken = futex::wait_many(&[word], until)
                .unwrap_or_else(|_| futex::wait(end.word, end.seen, until));
            end.pass_on();
            // The kernel may have been unable to mark the word: ask the file lock now and then.
            if woken == Woken::Timeout {
                let _ = self.peer.proof_of_death();
            }
        }
    }
}
