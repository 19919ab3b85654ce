//! Waiting for many things at once.
//!
//! # Why a call with a list, and no registration
//! A set of the epoll kind would keep references to its members or ids of them. References would
//! lock every subscriber for as long as the set lives, since receiving needs it mutably; ids would
//! need the words that a subscriber sleeps on, which change with every message, in a shared place
//! of their own, and cost the hot path. So the list is given again with each wait, as to `poll`: no
//! lifetimes, nothing to take out when a member is dropped, any order, any subset. futex_waitv
//! takes its whole list with each call anyway. The key of a member is its index in the list. In C
//! it becomes an array of handles, in Python a list.
//!
//! # Theory of operation
//! Look at all members; if none is ready, raise the flag of each that writers have to wake, look
//! again, sleep, lower the flags, look. How the sleep is ended is chosen per wait:
//!
//! | members | sleeps on |
//! |---|---|
//! | few | one `futex_waitv`: entry of each publisher, bell of each topic, token of each node |
//! | more | a doorbell that writers ring, and tokens; what is beyond 128 is looked at every 2 ms |
//! | any, without `futex_waitv` | a doorbell, or the one word; the rest is looked at every 2 ms |
//! | any, where no doorbell can be made | the words that one call takes; the rest as before |
//! | with foreign descriptors | `ppoll` on them and on a `bridge` that writers send datagrams to |
//! | any, without `futex_waitv`, after 20 ms without news | the same |
//!
//! Every sleep ends after 1 s at most.

use std::os::fd::AsRawFd;
use std::time::Duration;

use super::member::{Look, Mode, Overslept, Plan, Seat, Waitable};
use super::wake::bells::{DOORBELLS, Doorbells};
use super::wake::bridge::Bridge;
use super::wake::handshake;
use super::wake::handshake::{DOORBELL_SHIFT, Slept, WAITING_DOORBELL, WAITING_WORDS};
use crate::os::process::{fork, sched};
use crate::os::sleep::futex;
use crate::os::sleep::poll;
use crate::os::sleep::poll::{PollFd, READABLE};
use crate::os::sleep::slice::{POLL_NS, slice_ns_max};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{Acquire, Relaxed, SeqCst};
use crate::sync::{AtomicU32, fault};
use crate::{Result, crash_point};

/// Whoever sleeps for less, as a control loop does, has no time to read directories.
const LOOK_SLEEP_NS: u64 = 10_000_000;
/// Looks at all members before sleeping, where they are few.
const SPINS: usize = 50;
/// Members that look again after a long sleep: each may list a directory.
const AGAIN_MAX: usize = 64;
/// Between short sleeps, who lives is asked of a part of the members at a time, all of them within
/// the second: a control loop has no time for all at once.
const ASKS_MAX: usize = 16;
/// Looks every `POLL_NS`, in a row and in vain, after which the sleep is on descriptors: without
/// `futex_waitv` a token can only be looked at, but the kernel tells of the closing of files.
const POLLS_MAX: u32 = 10;
/// Numbers of doorbells; sets that meet at one wake each other needlessly.
static NEXT_DOORBELL: AtomicU32 = AtomicU32::new(0);

fn doorbells() -> u32 {
    if crate::sync::fault("waitset.any_doorbell") { u32::MAX } else { DOORBELLS }
}

/// Waits until one of several things is ready: a message, the death of a node, a timer, a foreign
/// file descriptor.
///
/// Each wait takes the list of members and reports what is ready by its index in the list. Ready
/// means that a call on the member returns something now; it stays ready until that call
/// (level-triggered):
///
/// | member | ready while |
/// |---|---|
/// | [`Subscriber`](crate::Subscriber) | there is a message; and once for each event that is new |
/// | [`Consumer`](crate::Consumer) | there is a message; and once for each event that is new |
/// | [`Server`](crate::Server) | there is a request that somebody waits for |
/// | [`Client`](crate::Client) | there is a reply, or the news that one fails |
/// | [`Watch`](crate::Watch) | the node is dead: take it out of the list then |
/// | [`Timer`](crate::Timer) | it is due, until [`fired`](crate::Timer::fired) is called |
/// | [`Descriptor`](crate::Descriptor) | `poll` says so |
/// | [`Shutdown`](crate::Shutdown) | the process was asked to end |
/// | `&`[`Interrupt`](crate::Interrupt) | it is raised |
///
/// All ready members are reported, starting each time with another one, so handling only the first
/// starves nobody.
///
/// A publisher killed at any instruction wakes the set: by its message if that was committed, and
/// by its death. Any number of threads may wait, each with a set and members of its own.
///
/// # Real-time
/// No allocation once the list has had this length before, and no system call while something is
/// ready, unless foreign descriptors or deaths must be checked. A sleep is one system call per
/// wake.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// # let other = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// let mut images = node.topic::<[u8]>("/image")?.subscriber()?;
/// let mut planner = node.watch(other.id())?;
/// let mut tick = outlive::Timer::every(Duration::from_millis(100));
/// let mut set = outlive::WaitSet::new();
///
/// let publisher = node.topic::<f64>("/pose")?.publisher()?;
/// publisher.publish(&1.5)?;
/// let mut seen = 0.0;
/// while seen == 0.0 {
///     let timeout = Duration::from_secs(5);
///     for i in set.wait(&mut [&mut poses, &mut images, &mut planner, &mut tick], timeout)? {
///         match i {
///             0 => while let Some(pose) = poses.receive()? { seen = *pose },
///             1 => while let Some(image) = images.receive()? { println!("{}", image.len()) },
///             2 => println!("the planner died"),
///             _ => println!("{} ticks", tick.fired()),
///         }
///     }
/// }
/// assert_eq!(seen, 1.5);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct WaitSet {
    /// One after the member that was named first last time.
    turn: usize,
    /// Which member is the next to look again after a long sleep, and to ask after short ones.
    again: [usize; 2],
    /// When it does, unless news come first; 0: news came.
    look_ns: u64,
    /// When it asks who lives, whatever comes; 0: it has not slept yet.
    ask_ns: u64,
    ready: Vec<usize>,
    fds: Vec<PollFd>,
    /// The members that asked for these.
    asking: Vec<usize>,
    /// Doorbells of the members' nodes, by `Node::instance`.
    bells: Vec<(u64, Doorbells)>,
    doorbell: u32,
    bridge: Option<Bridge>,
    /// Looks in vain so far, see `POLLS_MAX`.
    polls: u32,
    /// Of the process whose all this is.
    generation: u32,
}

/// The indices of what is ready; none when the time ran out. See [`WaitSet::wait`].
///
/// # Examples
/// ```
/// use outlive::{Interrupt, Timer, WaitSet};
/// use std::time::Duration;
///
/// let (mut tick, stop) = (Timer::at(0), Interrupt::new());
/// stop.raise();
/// let mut set = WaitSet::new();
/// let mut indices: Vec<usize> =
///     set.wait(&mut [&mut tick, &mut &stop], Duration::from_secs(5))?.collect();
/// indices.sort(); // each wait starts with another member
/// assert_eq!(indices, [0, 1]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ready<'a>(std::iter::Copied<std::slice::Iter<'a, usize>>);

impl Ready<'_> {
    /// Whether the time ran out first.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
    /// let mut set = outlive::WaitSet::new();
    /// let ready = set.wait(&mut [&mut poses], Duration::from_millis(1))?;
    /// assert!(ready.is_empty(), "it timed out");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Whether the member at `index` is ready.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Timer, WaitSet};
    /// use std::time::Duration;
    ///
    /// let (mut soon, mut late) = (Timer::at(0), Timer::after(Duration::from_secs(3600)));
    /// let mut set = WaitSet::new();
    /// let ready = set.wait(&mut [&mut soon, &mut late], Duration::from_secs(5))?;
    /// assert!(ready.contains(0) && !ready.contains(1));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn contains(&self, index: usize) -> bool {
        self.0.clone().any(|i| i == index)
    }
}

impl Iterator for Ready<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Ready<'_> {}

impl Default for WaitSet {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitSet {
    /// Makes a set. It takes no resources until a wait needs a doorbell or a descriptor.
    ///
    /// # Examples
    /// ```
    /// let mut set = outlive::WaitSet::new(); // one for each thread that waits, for all its waits
    /// let ready = set.wait(&mut [], std::time::Duration::from_millis(1))?;
    /// assert!(ready.is_empty(), "without members it sleeps");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn new() -> Self {
        Self {
            turn: 0,
            again: [0, 0],
            look_ns: 0,
            ask_ns: 0,
            ready: Vec::new(),
            fds: Vec::new(),
            asking: Vec::new(),
            bells: Vec::new(),
            // What its number has room for in a flag is far less than there may be sets.
            doorbell: NEXT_DOORBELL.fetch_add(1, Relaxed) % doorbells(),
            bridge: None,
            polls: 0,
            generation: fork::fork_generation(),
        }
    }

    /// Waits until a member is ready, at most `timeout`; 0 only looks.
    ///
    /// # Errors
    /// `NoSpace` or `Io` when a socket is needed and cannot be made: for foreign descriptors. A
    /// problem with a member makes that member ready, and the call on it returns the error.
    ///
    /// # Crash safety
    /// **Strict.** Dying asleep leaves raised flags; the next wake finds the process dead.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
    /// let mut set = outlive::WaitSet::new();
    /// assert!(set.wait(&mut [&mut poses], Duration::from_millis(1))?.is_empty());
    /// let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// publisher.publish(&1.5)?;
    /// assert!(set.wait(&mut [&mut poses], Duration::from_secs(5))?.contains(0));
    /// assert_eq!(*poses.receive()?.expect("ready"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait(
        &mut self,
        members: &mut [&mut dyn Waitable],
        timeout: Duration,
    ) -> Result<Ready<'_>> {
        let deadline = if timeout.is_zero() { Deadline::AT_ONCE } else { Deadline::after(timeout) };
        self.wait_until(members, deadline)
    }

    /// As [`WaitSet::wait`], until `deadline`.
    ///
    /// # Errors
    /// As [`WaitSet::wait`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
    /// let mut set = outlive::WaitSet::new();
    /// let deadline = Deadline::after(Duration::from_millis(5)); // however often it is woken
    /// while !set.wait_until(&mut [&mut poses], deadline)?.is_empty() {
    ///     while poses.receive()?.is_some() {}
    /// }
    /// assert!(deadline.has_passed());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_until(
        &mut self,
        members: &mut [&mut dyn Waitable],
        deadline: Deadline,
    ) -> Result<Ready<'_>> {
        loop {
            let now = clock::now_ns();
            let due = self.look(members, now);
            if !self.ready.is_empty() || deadline.has_passed_by(now) {
                break;
            }
            self.sleep(members, deadline.min(due))?;
        }
        if fault("wait_set.names_one") {
            self.ready.truncate(1);
        }
        let first = self.ready.iter().position(|i| *i >= self.turn).unwrap_or(0);
        self.ready.rotate_left(first);
        for &i in &self.ready {
            members[i].told();
        }
        self.turn = self.ready.first().map_or(self.turn, |i| i + 1);
        Ok(Ready(self.ready.iter().copied()))
    }

    /// Notes who is ready; returns when the next timer is due.
    fn look(&mut self, members: &mut [&mut dyn Waitable], now: u64) -> Deadline {
        self.fds.clear();
        self.asking.clear();
        self.ready.clear();
        let mut look = Look::at(now);
        for (i, member) in members.iter_mut().enumerate() {
            if member.is_ready(&mut look) {
                self.ready.push(i);
            }
            if let Some((fd, events)) = look.asked {
                look.asked = None;
                self.fds.push(PollFd::new(fd, events));
                self.asking.push(i);
            }
        }
        if !self.fds.is_empty() {
            self.ask(members);
        }
        look.due
    }

    /// Looks at the foreign descriptors among the members.
    fn ask(&mut self, members: &mut [&mut dyn Waitable]) {
        poll::poll(&mut self.fds, Deadline::AT_ONCE);
        for (&i, fd) in self.asking.iter().zip(&self.fds) {
            if members[i].found(fd.found()) {
                self.ready.push(i);
            }
        }
        self.ready.sort_unstable();
    }

    /// Sleeps until something may have changed, at most until `until`.
    pub(crate) fn sleep(
        &mut self,
        members: &mut [&mut dyn Waitable],
        until: Deadline,
    ) -> Result<()> {
        self.leave_to_parent();
        if self.polls >= POLLS_MAX && !self.can_rest(members) {
            self.polls = 0;
        }
        let Some(mode) = self.choose(members) else {
            self.look_ns = 0;
            return Ok(());
        };
        let (mode, slice_ns) = self.raise(members, mode)?;
        crash_point!("waitset.flags_raised");
        let now = clock::now_ns;
        let begin = now();
        // Short sleeps without news add up to a long one.
        let asks = members.len().clamp(1, ASKS_MAX);
        let ask_ns = slice_ns_max() / asks as u64;
        for (at, after_ns) in [(&mut self.look_ns, slice_ns_max()), (&mut self.ask_ns, ask_ns)] {
            if *at == 0 {
                *at = begin + after_ns;
            }
        }
        let long_enough = Deadline::at_ns(begin + LOOK_SLEEP_NS);
        let may_look = until > long_enough || fault("wait_set.looks_always");
        let done = handshake::in_slices(until, slice_ns, now, |slice_end| {
            let at = now();
            let looks = may_look && at >= self.look_ns;
            if looks || at >= self.ask_ns {
                self.ask_ns = at + ask_ns;
                let (how, most) = match looks {
                    true => (Overslept::Look, AGAIN_MAX),
                    false => (Overslept::Ask, members.len().div_ceil(asks)),
                };
                self.look_ns = if looks { at + slice_ns_max() } else { self.look_ns };
                if self.overslept(members, how, most) {
                    return Ok(None);
                }
            }
            let is_long = slice_end > Deadline::in_ns(POLL_NS);
            let is_poll = is_long && mode != Mode::Fd && !futex::has_waitv();
            let slept = self.sleep_once(members, mode, slice_end)?;
            match slept {
                Some(Slept::Slice) => self.polls += u32::from(is_poll),
                _ => (self.polls, self.look_ns) = (0, 0),
            }
            let goes_to_rest = is_poll && self.polls >= POLLS_MAX;
            Ok(slept.filter(|_| !goes_to_rest))
        });
        for member in members.iter_mut() {
            if let Some(seat) = member.seat() {
                seat.request.flag.store(0, Relaxed);
                member.awake();
            }
        }
        done
    }

    /// In a forked child: lets go of what it shares with its parent, whose calls it would take.
    fn leave_to_parent(&mut self) {
        let generation = fork::fork_generation();
        if self.generation != generation && !fault("wait_set.parents_bridge") {
            self.bridge = None;
            self.bells.clear();
            self.polls = 0;
            self.generation = generation;
        }
    }

    /// `most` members, in turn, look at what no wake tells of: all of them, whatever the first
    /// ones find.
    fn overslept(
        &mut self,
        members: &mut [&mut dyn Waitable],
        how: Overslept,
        most: usize,
    ) -> bool {
        let n = members.len();
        let again = &mut self.again[usize::from(how == Overslept::Ask)];
        let first = *again;
        *again = first.wrapping_add(most.min(n));
        let mut looks = |news: bool, i: usize| {
            let skipped = news && fault("wait_set.first_hides_others");
            !skipped && members[first.wrapping_add(i) % n].overslept(how) || news
        };
        (0..n.min(most)).fold(false, &mut looks)
    }

    /// How to sleep; `None` when there is something to look at.
    fn choose(&self, members: &[&mut dyn Waitable]) -> Option<Mode> {
        let rounds = if sched::allowed_cpus() > 1 { SPINS / members.len().max(1) } else { 0 };
        let mut look = Plan::new(Mode::Look, None);
        for _ in 0..rounds {
            if !members.iter().all(|m| m.plan(&mut look)) {
                return None;
            }
            std::hint::spin_loop();
        }
        if !self.fds.is_empty() || self.polls >= POLLS_MAX {
            return Some(Mode::Fd);
        }
        let mut plan = Plan::new(Mode::Words, None);
        if !members.iter().all(|m| m.plan(&mut plan)) {
            return None;
        }
        let seats = members.iter().filter(|m| m.seat().is_some()).count();
        let one_call = !plan.set.overflows() && (futex::has_waitv() || plan.writers() <= 1);
        // With nobody who would ring, tokens are looked at every so often.
        Some(if one_call || seats == 0 { Mode::Words } else { Mode::Doorbell })
    }

    /// Raises the flags; returns how to sleep, and the longest time without a look.
    fn raise(&mut self, members: &[&mut dyn Waitable], mode: Mode) -> Result<(Mode, u64)> {
        let seats = || members.iter().filter_map(|m| m.seat());
        let mode = match mode {
            Mode::Fd => return Ok((mode, self.arm(seats())?)),
            Mode::Doorbell => match self.open_bells(seats()) {
                Err(e) if fault("wait_set.bell_or_nothing") => return Err(e),
                // What is beyond the first words is looked at, until there is room.
                Err(_) => Mode::Words,
                Ok(()) => mode,
            },
            _ => mode,
        };
        let request = match mode {
            Mode::Doorbell => WAITING_DOORBELL | self.doorbell << DOORBELL_SHIFT,
            _ => WAITING_WORDS,
        };
        for seat in seats() {
            // ORDERING(WAITING): pairs with `handshake::is_wanted`.
            seat.request.flag.swap(request, SeqCst);
        }
        Ok((mode, slice_ns_max()))
    }

    fn open_bells<'a>(&mut self, seats: impl Iterator<Item = Seat<'a>> + Clone) -> Result<()> {
        self.bells.retain(|(i, _)| seats.clone().any(|seat| seat.node.instance() == *i));
        for Seat { node, .. } in seats {
            let instance = node.instance();
            if !self.bells.iter().any(|(i, _)| *i == instance) {
                self.bells.push((instance, Doorbells::open_own(node.domain(), node.id())?));
            }
        }
        Ok(())
    }

    /// Opens what a sleep on descriptors needs; `false`: there is no room for it.
    fn can_rest(&mut self, members: &[&mut dyn Waitable]) -> bool {
        let Ok(mut bridge) = self.bridge.take().map_or_else(|| Bridge::new(false), Ok) else {
            return false;
        };
        let opened = |seat: Seat<'_>| bridge.open_socket(seat.node).is_ok();
        let all = members.iter().filter_map(|m| m.seat()).all(opened);
        self.bridge = Some(bridge);
        all
    }

    fn arm<'a>(&mut self, seats: impl Iterator<Item = Seat<'a>> + Clone) -> Result<u64> {
        // A program that closed all descriptors closed its own, too: it would be ready for ever.
        let is_whole = |bridge: &Bridge| bridge.is_open() || fault("wait_set.bridge_closed");
        if !self.bridge.as_ref().is_some_and(is_whole) {
            // Before the next one, which may get its number.
            self.bridge = None;
            self.bridge = Some(Bridge::new(false)?);
        }
        let Some(bridge) = &mut self.bridge else { return Ok(slice_ns_max()) };
        bridge.take();
        bridge.renew();
        for seat in seats.clone() {
            bridge.open_socket(seat.node)?;
        }
        seats.for_each(|seat| bridge.arm(seat.node, seat.request));
        Ok(bridge.backstop_ns())
    }

    /// For tests: the set that is made next is the `n`-th of the process.
    #[cfg(test)]
    pub(super) fn set_next_for_tests(n: u32) {
        NEXT_DOORBELL.store(n, Relaxed);
    }

    /// For tests: makes the first of its sockets readable.
    #[cfg(test)]
    pub(super) fn call_for_tests(&self) {
        self.bridge.as_ref().unwrap().trip();
    }

    /// For tests: the number of its descriptor.
    #[cfg(test)]
    pub(super) fn bridge_for_tests(&self) -> i32 {
        self.bridge.as_ref().unwrap().fd().as_raw_fd()
    }

    /// For tests: whether that is readable.
    #[cfg(test)]
    pub(super) fn is_called_for_tests(&self) -> bool {
        self.bridge.as_ref().unwrap().is_called_for_tests()
    }

    /// For tests: raises the flags as for a sleep by doorbell, lets `ring` answer one of them, and
    /// says whether that reached us.
    #[cfg(test)]
    pub(super) fn rings_for_tests(
        &mut self,
        members: &mut [&mut dyn Waitable],
        ring: impl FnOnce(u32),
    ) -> bool {
        self.raise(members, Mode::Doorbell).unwrap();
        let word = self.bells[0].1.word(self.doorbell).unwrap();
        let before = word.load(Acquire);
        ring(members.iter().find_map(|m| m.seat()).unwrap().request.flag.load(Acquire));
        word.load(Acquire) != before
    }

    /// Looks, and sleeps until `until` if there is nothing to look at.
    fn sleep_once(
        &mut self,
        members: &[&mut dyn Waitable],
        mode: Mode,
        until: Deadline,
    ) -> Result<Option<Slept>> {
        let bridge = self.bridge.as_ref().filter(|_| mode == Mode::Fd);
        let mut plan = Plan::new(mode, bridge);
        if mode == Mode::Doorbell {
            for (_, bells) in &self.bells {
                let word = bells.word(self.doorbell)?;
                plan.set.word(word, word.load(Acquire));
            }
        }
        if !members.iter().all(|m| m.plan(&mut plan)) {
            return Ok(None);
        }
        let Some(bridge) = bridge else {
            if plan.set.overflows() {
                plan.set.set_poll();
            }
            return Ok(Some(plan.set.sleep(until)));
        };
        let len = self.fds.len();
        let own = plan.own_fds.into_iter().flatten().chain([bridge.fd()]);
        self.fds.extend(own.map(|fd| PollFd::new(fd.as_raw_fd(), READABLE)));
        let soon = Deadline::in_ns(POLL_NS);
        let ready = poll::poll(&mut self.fds, if plan.in_doubt { until.min(soon) } else { until });
        self.fds.truncate(len);
        Ok(Some(if ready == 0 { Slept::Slice } else { Slept::Woken }))
    }
}
