//! A node: one process's membership in a domain, its liveness token and its ports.
//!
//! # Invariants
//! - A node file visible under `nodes/` was complete, locked and its token held when it appeared.
//! - The file lock is held for as long as the process has the node; the kernel frees it at death.
//! - Node ordinals are never reused; a node whose file is gone is dead.
//!
//! | module | what |
//! |---|---|
//! | `token`, `peer` | its own liveness word; those of others, as hint and as proof |
//! | `own` | the nodes of this process, as its own threads sleep on them |
//! | `living` | those that keep a name to its type, as an error names them |
//! | `ports`, `layout` | its publishers, subscribers and so on, in the node's file |
//! | `watch` | waiting for the end of another node |
//! | `threads/` | tokens of threads that hold locks |
//!
//! May use `os`, `domain` and `types`. Begin with `token`, then `peer`.

pub(crate) mod layout;
pub(crate) mod living;
mod own;
pub(crate) mod peer;
mod ports;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
mod token;
mod watch;

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use crate::domain::header::{FileHeader, FileKind};
use crate::domain::name::check_part;
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::os::PAGE;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft};
use crate::os::fs::{filelock, sigbus};
use crate::os::process::fork::NotInChild;
use crate::os::process::{faults, fork, sched};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, Mutex, fault};
use crate::{Error, ErrorKind, Result};
use own::OwnNode;
pub use peer::NodeId;
use peer::{Life, Peer};
pub(crate) use ports::OwnPort;
use ports::Ports;
use threads::tokens::Threads;
use token::Token;
pub(crate) use token::forked_child;
pub use watch::Watch;

static INSTANCES: AtomicU64 = AtomicU64::new(0);
/// Files of nodes that one open looks at, if there are no more: each costs 4 us. A node has up to
/// four, so a robot of everyday size is swept whole by the next open after a death.
const SWEEP_ALL: usize = 256;
/// Where there are more: about so many, those whose turn it is.
const SWEEP_SHARE: usize = 8;

/// A process's membership in a domain. Cheap to clone; the last clone leaves the domain.
///
/// Each open node has a thread, `outlive-token`, which only sleeps: through it the kernel reports
/// the process's death to others. It takes 68 KiB of address space for its stack and about 8 KiB of
/// memory, and inherits the priority and the cores of the thread that opens the node.
///
/// After `fork` the child is not the node: every call on an inherited handle fails with
/// [`ErrorKind::ForkedChild`]. `exec` counts as death.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("camera").open()?;
/// assert_eq!(node.name(), "camera");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    domain: DomainPath,
    id: NodeId,
    name: String,
    token: Arc<Token>,
    own: OwnNode,
    /// Holds the file lock. Closed by the fork handler in a child, so never dropped there.
    fd: NotInChild,
    ports: Ports,
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    /// Made for the first lock.
    threads: Mutex<Option<Arc<Threads>>>,
    generation: u32,
    /// Tells it from every other node this process opens, also from one of the same ordinal.
    instance: u64,
}

/// A reference that does not keep the node open. For interpreters: they exit without dropping every
/// value, and if one of those held the node, others would see it die instead of leave.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct AtExit(Weak<Inner>);

impl AtExit {
    /// Leaves now unless the node already has. Call it only once nothing of the node is used any
    /// more: others treat what it still has open as a dead node's.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # let other = outlive::Node::builder().root(dir.path()).open()?;
    /// let watch = other.watch(node.id())?;
    /// let at_exit = node.at_exit();
    /// at_exit.leave();
    /// assert!(!watch.is_alive(), "to others it left, though `node` is still here");
    /// at_exit.leave(); // does nothing
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn leave(&self) {
        if let Some(inner) = self.0.upgrade()
            && inner.generation == fork::fork_generation()
        {
            inner.leave();
            // The descriptor, which keeps it otherwise, stays with what refers to the node.
            inner.fd.unlock();
        }
    }
}

/// Settings of a [`Node`].
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let settings = outlive::Node::builder().root(dir.path()).domain("arm");
/// let camera = settings.clone().name("camera").open()?;
/// let planner = settings.name("planner").open()?;
/// assert!(planner.watch(camera.id())?.is_alive());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it joins nothing until `open`"]
pub struct NodeBuilder {
    root: Option<PathBuf>,
    domain: Option<String>,
    name: Option<String>,
    group: Option<u32>,
}

impl NodeBuilder {
    /// Directory that holds the domains, instead of `$OUTLIVE_DIR` or `/dev/shm/outlive-<uid>`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let node = outlive::Node::builder().root(dir.path()).open()?;
    /// assert!(outlive::Domain::of_node(&node).dir().starts_with(dir.path()));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Name of the domain, instead of `$OUTLIVE_DOMAIN` or `default`. Domains do not see each
    /// other.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let arm = outlive::Node::builder().root(dir.path()).domain("arm").open()?;
    /// let base = outlive::Node::builder().root(dir.path()).domain("base").open()?;
    /// let publisher = arm.topic::<f64>("/speed")?.publisher()?;
    /// let mut subscriber = base.topic::<f64>("/speed")?.subscriber()?;
    /// publisher.publish(&1.5)?;
    /// assert!(subscriber.receive()?.is_none(), "sent in another domain");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Name shown in listings; the program's name unless given. Need not be unique.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let left = outlive::Node::builder().root(dir.path()).name("camera").open()?;
    /// let right = outlive::Node::builder().root(dir.path()).name("camera").open()?;
    /// assert_eq!(left.name(), right.name());
    /// assert_ne!(left.id(), right.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lets the members of group `gid` join: files become 0640, bells 0660. A domain that exists
    /// and is private or of another group is refused with `NotOwned`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// use std::os::unix::fs::MetadataExt;
    ///
    /// let gid = std::fs::metadata("/proc/self").unwrap().gid(); // this process's group
    /// let shared = outlive::Node::builder().root(dir.path()).group(gid);
    /// let node = shared.clone().domain("shared").open()?;
    /// let dir = outlive::Domain::of_node(&node).dir().to_owned();
    /// assert_eq!(std::fs::metadata(dir).unwrap().gid(), gid);
    /// # let dir = outlive::doc_dir();
    ///
    /// let private = outlive::Node::builder().root(dir.path()).open()?;
    /// let refused = shared.root(dir.path()).open().unwrap_err();
    /// assert_eq!(refused.kind(), outlive::ErrorKind::NotOwned);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn group(mut self, gid: u32) -> Self {
        self.group = Some(gid);
        self
    }

    pub(crate) fn domain_path(&self) -> Result<DomainPath> {
        let access = self.group.map_or_else(Access::private, Access::group);
        DomainPath::new(self.root.clone(), self.domain.as_deref(), access)
    }

    /// Joins the domain, creating it if it does not exist.
    ///
    /// # Errors
    /// `InvalidName`; `NotOwned` when the directory is another user's or writable by all; `NoSpace`
    /// on a full RAM disk; `Timeout` after 10 s when a stopped process holds the domain's lock;
    /// `Corrupt` or `VersionMismatch` naming the file; `Io`, `OutOfMemory` or `Permission` when the
    /// node's thread cannot be started (`ulimit -u`, `ulimit -v`, a seccomp filter).
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the node's file. Before it nothing is visible.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let settings = outlive::Node::builder().root(dir.path());
    /// let node = settings.clone().name("camera").open()?;
    /// let other = settings.clone().name("camera").open()?; // any number, in any process
    /// let refused = settings.name("front camera").open().unwrap_err();
    /// assert_eq!(refused.kind(), outlive::ErrorKind::InvalidName);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(self) -> Result<Node> {
        let domain = self.domain_path()?;
        let name = match self.name {
            Some(name) => name,
            None => program_name(),
        };
        check_part("node name", &name)?;
        sigbus::install();
        faults::as_environment_says();
        let lock = domain.lock_or_create()?;
        let id = NodeId(match lock.next_node() {
            Ok(ordinal) => ordinal,
            // Without `id`, and with nobody but the dead, the domain begins again.
            Err(_) => {
                sweep_dead(&domain, Sweep::All)?;
                lock.next_node()?
            }
        });
        // What others have put there keeps nobody out; `clean` tells of it.
        let _ = sweep_dead(&domain, Sweep::TurnOf(id));
        let inner = register(domain, id, name)?;
        drop(lock);
        Ok(Node { inner: Arc::new(inner) })
    }
}

fn program_name() -> String {
    // Not by `self`, of which nothing can be read once the main thread has ended.
    let exe = std::fs::read_link("/proc/thread-self/exe").ok();
    let name = exe.as_deref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy());
    let name: String = name
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' })
        .take(60)
        .collect();
    if check_part("node name", &name).is_ok() { name } else { "unnamed".into() }
}

/// Builds, locks and links the node's file.
fn register(domain: DomainPath, id: NodeId, name: String) -> Result<Inner> {
    let offset = layout::ports_offset(id.0);
    let bytes = layout::file_bytes(offset, layout::PORTS_FIRST);
    let path = domain.nodes().join(id.0.to_string());
    let draft = Draft::new(&domain.nodes(), bytes as u64, domain.access.own_mode)?;
    // A descriptor of its own: maps are made through the draft's, and a map keeps its file's locks.
    let fd = NotInChild::open_for_life(|| draft.reopen())?;
    let locked = filelock::try_lock_write(&fd)?;
    // Mapped for all ports it may ever have; only the part that exists is ever touched.
    let map = draft.map_reserve(layout::file_bytes(offset, layout::PORTS_MAX), &path)?;
    // The first page is fixed; the ports after it are bounded by the file itself.
    FileHeader { kind: FileKind::Node, total_bytes: PAGE as u64, node: id.0, port: 0 }
        .write(&map)?;
    map.atomic_u32(layout::PID)?.store(sched::pid(), Relaxed);
    map.atomic_u32(layout::PORTS)?.store(offset as u32, Relaxed);
    map.atomic_u64(layout::STARTED)?.store(clock::now_ns(), Relaxed);
    map.atomic_u64(layout::NAME_LEN)?.store(name.len() as u64, Relaxed);
    for (i, part) in name.as_bytes().chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        map.atomic_u64(layout::NAME + 8 * i)?.store(u64::from_le_bytes(word), Relaxed);
    }
    let token = Token::register(map)?;
    let own = OwnNode::enter(fd.file());
    let linked = draft.link(&path).and_then(|_| match locked {
        true => Ok(()),
        // Unfinished files with a name are locked by their maker until they are linked.
        false => filelock::lock_write_until(&fd, Deadline::in_ns(SLOW_PATH_NS_MAX)),
    });
    if let Err(e) = linked {
        token.close();
        own.leave();
        let used = e.kind() == ErrorKind::AlreadyExists;
        return Err(if used { domain.next_is_in_use() } else { e });
    }
    Ok(Inner {
        domain,
        id,
        name,
        token,
        own,
        fd,
        ports: Ports::new(offset),
        peers: Mutex::default(),
        threads: Mutex::default(),
        generation: fork::fork_generation(),
        instance: INSTANCES.fetch_add(1, Relaxed),
    })
}

/// Which files a sweep looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sweep {
    All,
    /// Those whose turn it is when this node opens.
    TurnOf(NodeId),
}

impl Sweep {
    /// How many opens in a row look at all of `files` files: a power of two, so that each file's
    /// turn comes within that many however their number changes meanwhile, if it never exceeds
    /// `files`.
    fn turns(files: usize) -> u64 {
        match files {
            0..=SWEEP_ALL => 1,
            _ => files.div_ceil(SWEEP_SHARE).next_power_of_two() as u64,
        }
    }

    /// Whether it looks at what `owner` has left; at all that is not a node's.
    fn looks_at(self, owner: &str, turns: u64) -> bool {
        match (self, owner.parse::<u64>()) {
            (Self::TurnOf(_), Ok(node)) if fault("sweep.same_turn") => node % turns == 0,
            (Self::TurnOf(opener), Ok(node)) => node % turns == opener.0 % turns,
            _ => true,
        }
    }
}

/// Unlinks the files of nodes that are dead for certain, as far as `sweep` looks at them. The
/// caller holds the domain's lock.
///
/// # Errors
/// The first file that cannot be removed, after all others.
///
/// # Crash safety
/// **Strict.** Each unlink stands alone; the next sweep goes on.
pub(crate) fn sweep_dead(domain: &DomainPath, sweep: Sweep) -> Result<usize> {
    let dir = domain.nodes();
    let (mut removed, mut strange) = (0, None);
    let names = file::open_dir(&dir)?.entries()?;
    let turns = Sweep::turns(names.len());
    for name in names {
        // Doorbells, threads and sockets go with their node; everything else speaks for itself.
        let owner = match name.split_once('.') {
            Some((node, rest)) if is_of_node(rest) => node,
            _ => &name,
        };
        if !sweep.looks_at(owner, turns) {
            continue;
        }
        let path = dir.join(&name);
        let expect = file::Expect { writable: false, min_len: 0, owner: None };
        let held = match file::open_checked(&dir.join(owner), expect) {
            Ok((fd, _)) => filelock::is_locked(&fd)?,
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            // Not a file of ours: leave it to the person who put it there.
            Err(e) if e.is_unreadable() => continue,
            Err(e) => {
                strange = strange.or(Some(e));
                continue;
            }
        };
        if held {
            continue;
        }
        match file::unlink(&path) {
            Ok(done) => removed += usize::from(done),
            Err(e) => strange = strange.or(Some(e)),
        }
    }
    strange.map_or(Ok(removed), Err)
}

/// Whether `<node>.<rest>` is a file that goes with its node.
fn is_of_node(rest: &str) -> bool {
    matches!(rest, "bells" | "threads") || rest.starts_with("wake.")
}

impl Node {
    /// Joins the default domain under `name`.
    ///
    /// # Errors
    /// As [`NodeBuilder::open`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # // SAFETY: no other thread runs yet.
    /// # unsafe { std::env::set_var("OUTLIVE_DIR", dir.path()) };
    /// let node = outlive::Node::open("camera")?;
    /// assert_eq!(node.name(), "camera");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(name: impl Into<String>) -> Result<Self> {
        Self::builder().name(name).open()
    }

    /// Settings before joining.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let node = outlive::Node::builder().root(dir.path()).domain("arm").name("gripper").open()?;
    /// assert_eq!(outlive::Domain::of_node(&node).name(), "arm");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// This node's ordinal in its domain; no other node ever gets it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// let first = settings.clone().open()?.id(); // joins, and leaves at once
    /// let second = settings.open()?;
    /// assert!(second.id() > first, "a number is never used again");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// The name given at opening.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// let camera = settings.clone().name("camera").open()?;
    /// assert_eq!(camera.name(), "camera");
    /// let unnamed = settings.open()?;
    /// assert!(!unnamed.name().is_empty()); // the program's name
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Watches another node of the domain.
    ///
    /// # Errors
    /// `NotFound` when no such node file exists: the node left, or it died and was cleaned up. If
    /// this process has dealt with that node before, it may get a watch of a dead node instead.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (camera, planner) = (settings.clone().open()?, settings.open()?);
    /// use outlive::{ErrorKind, NodeId};
    ///
    /// let watch = planner.watch(camera.id())?;
    /// drop(camera); // leaves; a kill does the same
    /// assert!(!watch.is_alive());
    /// let nobody = planner.watch(NodeId::from_raw(99)).unwrap_err();
    /// assert_eq!(nobody.kind(), ErrorKind::NotFound);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn watch(&self, node: NodeId) -> Result<Watch> {
        self.tend()?;
        Ok(Watch::new(self.peer(node)?))
    }

    pub(crate) fn domain(&self) -> &DomainPath {
        &self.inner.domain
    }

    /// Every entry point calls this: refuses in a forked child.
    ///
    /// # Real-time
    /// Two loads.
    #[inline]
    pub(crate) fn tend(&self) -> Result<()> {
        if self.is_own_process() { Ok(()) } else { Err(token::forked_child()) }
    }

    /// A number that no other node of this process ever has.
    pub(crate) fn instance(&self) -> u64 {
        self.inner.instance
    }

    /// The word of its own token, for tests of what only looks at the word.
    #[cfg(test)]
    pub(crate) fn token_word(&self) -> &crate::sync::AtomicU32 {
        self.inner.token.map().atomic_u32(layout::TOKEN_WORD).expect("it lies in the first page")
    }

    /// Lets the node leave when the process exits, whatever still refers to it then.
    #[doc(hidden)]
    pub fn at_exit(&self) -> AtExit {
        AtExit(Arc::downgrade(&self.inner))
    }

    /// Whether this process is the one that opened the node.
    pub(crate) fn is_own_process(&self) -> bool {
        self.inner.generation == fork::fork_generation()
    }

    /// Whether the node's file is where others look for it: who finds none takes us for dead. If it
    /// is not, the domain may have been removed and made anew, and all names in it are others'.
    pub(crate) fn is_listed(&self) -> bool {
        match self.inner.found() {
            // In a domain that was made anew another node has this number.
            Ok(found) => found == self.inner.fd.file(),
            Err(e) => e.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Asked *after* a file was opened by its name: if we are listed then, it is of our domain.
    ///
    /// # Errors
    /// `Corrupt` when we are not: the node is to be opened again.
    pub(crate) fn must_be_listed(&self) -> Result<()> {
        if self.is_listed() {
            return Ok(());
        }
        let path = self.inner.path();
        Err(Error::new(
            ErrorKind::Corrupt,
            "using node file",
            path.display().to_string(),
            "somebody removed it, so that others take this node for dead: open the node again",
        ))
    }

    /// Whether what lies under the names of this node's files is another node's.
    pub(crate) fn is_replaced(&self) -> bool {
        self.inner.is_replaced()
    }

    /// The peer `id`, mapped once per process.
    pub(crate) fn peer(&self, id: NodeId) -> Result<Arc<Peer>> {
        let mut peers = self.inner.peers.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(peer) = peers.get(&id.0) {
            return Ok(Arc::clone(peer));
        }
        // Forget the dead that nobody here refers to any more.
        peers.retain(|_, p| Arc::strong_count(p) > 1 || p.hint().is_alive());
        let peer = Arc::new(Peer::open(&self.domain().nodes(), id, &self.domain().access)?);
        if !fault("peer.namesake") {
            self.must_be_listed()?;
        }
        peers.insert(id.0, Arc::clone(&peer));
        Ok(peer)
    }

    /// Writes over the word that others take for a hint.
    #[cfg(test)]
    pub(crate) fn scribble_token(&self, word: u32) {
        self.inner.token.map().atomic_u32(layout::TOKEN_WORD).unwrap().store(word, Relaxed);
    }

    /// As the kernel does at a death, which else marks words, too.
    #[cfg(test)]
    pub(crate) fn unlock_file(&self) {
        self.inner.fd.unlock();
    }

    /// The node `id`, or the proof that it is dead because its file is gone.
    ///
    /// # Errors
    /// When that cannot be found out: then nobody may take it for dead.
    pub(crate) fn life(&self, id: NodeId) -> Result<Life> {
        peer::life(id, || self.peer(id))
    }

    /// The tokens of this node's threads, for locks.
    pub(crate) fn threads(&self) -> Result<Arc<Threads>> {
        self.tend()?;
        let mut threads = self.inner.threads.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(threads) = &*threads {
            return Ok(Arc::clone(threads));
        }
        let opened = Arc::new(Threads::open(self.domain(), self.inner.id)?);
        *threads = Some(Arc::clone(&opened));
        Ok(opened)
    }

    pub(crate) fn allocate_port(&self, borrows: usize, reliable: bool) -> Result<u64> {
        self.inner.ports.allocate(&self.inner.fd, &self.inner.token, borrows, reliable)
    }

    pub(crate) fn next_port_serial(&self) -> u64 {
        self.inner.ports.next_serial()
    }

    pub(crate) fn own_port(&self, id: u64) -> Result<OwnPort> {
        OwnPort::new(&self.inner.token, &self.inner.ports, id)
    }

    /// Room for more publishers in port `id`; `false` when it has all that there may be.
    pub(crate) fn extend_port(&self, id: u64) -> Result<bool> {
        self.inner.ports.extend(&self.inner.fd, &self.inner.token, id)
    }

    pub(crate) fn release_port(&self, id: u64) {
        self.inner.ports.release(&self.inner.token, id);
    }
}

impl Inner {
    fn path(&self) -> PathBuf {
        self.domain.nodes().join(self.id.0.to_string())
    }

    /// Device and inode of what lies under the name of our file.
    fn found(&self) -> std::io::Result<(u64, u64)> {
        self.path().symlink_metadata().map(|found| (found.dev(), found.ino()))
    }

    /// Whether another node has our number: somebody removed the domain, and it was made anew.
    /// Then the names of all our files are that node's.
    fn is_replaced(&self) -> bool {
        self.found().is_ok_and(|found| found != self.fd.file()) && !fault("leave.anothers_files")
    }

    /// Leaves in order; again it does nothing.
    ///
    /// # Crash safety
    /// **Strict.** Dying here: the file stays and is dead; the next sweep unlinks it.
    fn leave(&self) {
        let (file, replaced) = (self.path(), self.is_replaced());
        if !replaced && !fault("node.no_unlink") {
            let _ = file::unlink(&file);
        }
        if !replaced {
            let _ = file::unlink(&file.with_extension("bells"));
        }
        if let Some(threads) = self.threads.lock().unwrap_or_else(|e| e.into_inner()).take() {
            threads.close(replaced);
        }
        self.token.close();
        self.own.leave();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.generation != fork::fork_generation() {
            // A forked child: the lock's descriptor is closed already, the token is the parent's.
            std::mem::forget(Arc::clone(&self.token));
            return;
        }
        self.leave();
    }
}
