//! Everything that wakes a sleeper, behind one file descriptor.
//!
//! # Theory of operation
//! A futex and a descriptor cannot be waited for together, so here everything becomes a descriptor:
//!
//! | news | by |
//! |---|---|
//! | a message; a publisher joins or leaves | it sends a datagram to `nodes/<node>.wake.<n>` |
//! | a watched node dies, also before that datagram | the kernel closes its file (`deaths`) |
//! | a token says dead while the file is still open | a timer, every 2 ms |
//! | what they missed | a timer, `backstop_ns`: 100 ms, or 10 ms without inotify |
//!
//! They lie in an epoll set, and its descriptor is what is waited for. A dying process cannot send,
//! which is why its node's file is watched; no process id is trusted. Missed are: a commit whose
//! writer looked at our flag before it could see it raised; a call that failed for lack of memory
//! or descriptors in the writer. The kernel tells of the closing of a file right before it frees
//! the lock on it, so a look at once may still find the lock: then the timer runs fast.
//!
//! Costs: three descriptors (epoll, socket, timer; a fourth per process for deaths), a socket file
//! on the RAM disk, and for each writer one datagram per time that we run dry.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use super::handshake::{Request, WAITING_FD};
use crate::Result;
use crate::domain::path::DomainPath;
use crate::node::peer::Peer;
use crate::node::{Node, NodeId};
use crate::os::death::deaths::Deaths;
use crate::os::process::sched;
use crate::os::sleep::poll::{Epoll, Ticker};
use crate::os::sleep::slice::{POLL_NS, slice_ns_max};
use crate::os::sleep::socket::WakeSocket;
use crate::os::time::clock;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// The file of socket `number` of a node.
pub(crate) fn socket_path(domain: &DomainPath, node: NodeId, number: u64) -> PathBuf {
    domain.nodes().join(format!("{node}.wake.{number}"))
}

const DEATH: u32 = 0;
const TICK: u32 = 1;
const SOCKETS: u32 = 2;

/// Between two looks without news, while the kernel does not tell of deaths.
const BLIND_NS: u64 = 10_000_000;

/// How long a descriptor that was just armed looks on: longer than a store takes to become visible.
/// Its owner sleeps elsewhere, so there is no short first sleep.
const ARMED_LOOK_NS: u64 = 5_000;

/// Generations of all bridges of this process, so that no request ever sees one twice.
static GENERATIONS: AtomicU64 = AtomicU64::new(0);

/// See the module's theory of operation.
#[derive(Debug)]
pub(crate) struct Bridge {
    set: Epoll,
    /// One for each node that a sleeper belongs to.
    sockets: Vec<Socket>,
    next_key: u32,
    deaths: Option<Arc<Deaths>>,
    ticker: Option<Ticker>,
    /// The ticker runs fast.
    hasty: bool,
    generation: u64,
    /// Something was taken since `generation` began.
    stale: bool,
}

#[derive(Debug)]
struct Socket {
    key: u32,
    /// `Node::instance` of the node in whose name it is.
    node: u64,
    node_file: PathBuf,
    number: u64,
    socket: WakeSocket,
}

impl Bridge {
    /// `ticking`: others wait for its descriptor, so it must be ready now and then by itself.
    pub(crate) fn new(ticking: bool) -> Result<Self> {
        let set = Epoll::new()?;
        // Without it deaths are noticed at the next tick.
        let deaths = Deaths::of_process().ok();
        if let Some(deaths) = &deaths {
            set.add(deaths.as_fd(), DEATH)?;
        }
        let mut bridge = Self {
            set,
            sockets: Vec::new(),
            next_key: SOCKETS,
            deaths,
            ticker: None,
            hasty: false,
            generation: 0,
            stale: true,
        };
        if ticking {
            let ticker = Ticker::every(bridge.backstop_ns())?;
            bridge.set.add(ticker.as_fd(), TICK)?;
            bridge.ticker = Some(ticker);
        }
        Ok(bridge)
    }

    /// Longest time without a look.
    pub(crate) fn backstop_ns(&self) -> u64 {
        let slice = slice_ns_max() / 10;
        if self.deaths.is_some() { slice } else { slice.min(BLIND_NS) }
    }

    /// Whether nobody has closed its descriptor, by number.
    pub(crate) fn is_open(&self) -> bool {
        self.set.is_open()
    }

    /// Ready when something is to be looked at, until `take`.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    /// As `new`, ready at first, for one sleeper of `node` whose owner waits for it elsewhere.
    pub(crate) fn of_one(node: &Node) -> Result<Self> {
        let mut bridge = Self::new(true)?;
        bridge.open_socket(node)?;
        bridge.trip();
        Ok(bridge)
    }

    /// Makes the socket for sleepers of `node`, if there is none yet.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the making of the socket file; it goes with its node.
    pub(crate) fn open_socket(&mut self, node: &Node) -> Result<()> {
        if self.socket_of(node).is_some() {
            return Ok(());
        }
        // Those of nodes that have left.
        self.sockets.retain(|s| s.node_file.exists());
        let number = node.next_port_serial();
        let domain = node.domain();
        let path = socket_path(domain, node.id(), number);
        let socket = WakeSocket::bind(&path, domain.access.shared_mode)?;
        crate::crash_point!("bridge.socket_made");
        let key = self.next_key;
        self.set.add(socket.as_fd(), key)?;
        self.next_key = key.checked_add(1).unwrap_or(SOCKETS);
        let node_file = domain.nodes().join(node.id().to_string());
        self.sockets.push(Socket { key, node: node.instance(), node_file, number, socket });
        Ok(())
    }

    fn socket_of(&self, node: &Node) -> Option<u64> {
        self.sockets.iter().find(|s| s.node == node.instance()).map(|s| s.number)
    }

    /// The death of `peer` is news from here on; look at it after this.
    pub(crate) fn watch(&self, peer: &Peer) {
        if let Some(deaths) = &self.deaths {
            peer.tell_death_to(deaths);
        }
    }

    /// Whether the life of somebody is in doubt: then only looking tells.
    pub(crate) fn set_hasty(&mut self, hasty: bool) {
        if self.hasty == hasty {
            return;
        }
        let period = if hasty { POLL_NS } else { self.backstop_ns() };
        if self.ticker.as_ref().is_some_and(|ticker| ticker.set(period).is_ok()) {
            self.hasty = hasty;
        }
    }

    /// Takes the news: until there are more, the descriptor is not ready. Look after this.
    pub(crate) fn take(&mut self) {
        let Self { set, sockets, ticker, stale, .. } = self;
        let ticker = ticker.as_ref();
        set.take(|key| match (key, ticker) {
            (DEATH, _) => {}
            (TICK, Some(ticker)) => ticker.read(),
            _ => {
                sockets.iter().filter(|s| s.key == key).for_each(|s| s.socket.drain());
                *stale = true;
            }
        });
    }

    /// Begins a new generation if something was taken. `true`: requests must be armed
    /// with it.
    pub(crate) fn renew(&mut self) -> bool {
        let stale = std::mem::take(&mut self.stale);
        if stale {
            self.generation = GENERATIONS.fetch_add(1, Relaxed) + 1;
        }
        stale
    }

    /// From here on the writers that look at `request`, of a sleeper of `node`, call us once.
    pub(crate) fn arm(&self, node: &Node, request: Request<'_>) {
        if let Some(number) = self.socket_of(node) {
            request.arm(number, self.generation);
        }
    }

    /// The sleeper, of `node`, found nothing: makes the descriptor quiet. `true` when there is
    /// something after all; make it ready then.
    ///
    /// # Crash safety
    /// **Strict.** Dying here leaves a raised flag: the next call finds nobody.
    pub(crate) fn rest<'a>(
        &mut self,
        node: &Node,
        request: Request<'_>,
        peers: impl Iterator<Item = &'a Arc<Peer>>,
        mut in_doubt: bool,
        is_quiet: impl Fn() -> bool,
    ) -> bool {
        self.take();
        // The flag may have been lowered by another way of waiting.
        let anew = self.renew() || request.flag.load(Relaxed) != WAITING_FD;
        if anew {
            self.arm(node, request);
        }
        for peer in peers {
            self.watch(peer);
            in_doubt |= !peer.hint().is_alive();
        }
        self.set_hasty(in_doubt);
        crate::crash_point!("reader.rest.armed");
        let mut found = !is_quiet();
        if anew && sched::allowed_cpus() > 1 {
            let until = clock::now_ns() + ARMED_LOOK_NS;
            while !found && clock::now_ns() < until {
                std::hint::spin_loop();
                found = !is_quiet();
            }
        }
        found
    }

    /// For tests: whether somebody called the first of its sockets.
    #[cfg(test)]
    pub(in crate::wait) fn is_called_for_tests(&self) -> bool {
        use std::os::fd::AsRawFd;

        use crate::os::sleep::poll::{PollFd, READABLE, poll};
        use crate::os::time::deadline::Deadline;

        let fd = self.sockets[0].socket.as_fd().as_raw_fd();
        poll(&mut [PollFd::new(fd, READABLE)], Deadline::AT_ONCE) == 1
    }

    /// Makes the descriptor ready by ourselves.
    pub(crate) fn trip(&self) {
        if let Some(s) = self.sockets.first() {
            s.socket.call_self();
        }
    }
}
