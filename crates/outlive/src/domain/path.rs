//! A domain is a directory. Everything here is a slow path and runs under the domain's file lock.
//!
//! # Theory of operation
//! `lock` serialises the making and removing of directories, of `id` and of node files. Whoever
//! takes it compares the inode at the path with the one it locked: a cleaner may have removed the
//! whole domain in between. A process that dies holding it frees it (OFD lock).

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::header::{FileHeader, FileKind, HEADER_BYTES};
use super::name::check_part;
use crate::domain::header::id;
use crate::os::fs::file;
use crate::os::fs::file::{Access, Draft, Expect, TMP_PREFIX};
use crate::os::fs::filelock;
use crate::os::fs::map::Mapping;
use crate::os::process::fork::NotInChild;
use crate::os::process::sched;
use crate::os::syserr;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// How long a slow path may wait for the domain's lock before it says `Timeout`.
pub(crate) const SLOW_PATH_NS_MAX: u64 = 10_000_000_000;

/// Directories inside each other that a domain has at most, in any layout.
const TREE_DEPTH_MAX: usize = 4;

/// Names a domain on disk: its root directory, its name, and who may join.
#[derive(Clone, Debug)]
pub(crate) struct DomainPath {
    pub(crate) root: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) access: Access,
}

impl DomainPath {
    /// `root` overrides `$OUTLIVE_DIR`, which overrides `/dev/shm/outlive-<uid>`; `domain`
    /// overrides `$OUTLIVE_DOMAIN`, which overrides `default`.
    pub(crate) fn new(root: Option<PathBuf>, domain: Option<&str>, access: Access) -> Result<Self> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let domain = match (domain, set("OUTLIVE_DOMAIN")) {
            (Some(domain), _) => domain.into(),
            (None, Some(name)) => name.to_string_lossy().into_owned(),
            (None, None) => "default".to_owned(),
        };
        check_part("domain name", &domain)?;
        let root = match root.or_else(|| set("OUTLIVE_DIR").map(PathBuf::from)) {
            Some(root) => root,
            None => default_root()?,
        };
        if root.as_os_str().is_empty() {
            let remedy = "it is an empty path: name a folder, or give no root";
            return Err(Error::new(ErrorKind::InvalidArgument, "using", "the root ''", remedy));
        }
        // So that it stays the same one after a 'chdir'.
        let root = std::path::absolute(&root)
            .map_err(|e| syserr::from_io("make absolute", syserr::show(&root), e))?;
        let dir = root.join(domain);
        Ok(Self { root, dir, access })
    }

    pub(crate) fn nodes(&self) -> PathBuf {
        self.dir.join("nodes")
    }

    pub(crate) fn topics(&self) -> PathBuf {
        self.dir.join("topics")
    }

    pub(crate) fn queues(&self) -> PathBuf {
        self.dir.join("queues")
    }

    pub(crate) fn services(&self) -> PathBuf {
        self.dir.join("services")
    }

    /// Made with the first lock.
    pub(crate) fn locks(&self) -> PathBuf {
        self.dir.join("locks")
    }

    /// Made with the first real-time channel or board.
    pub(crate) fn realtime(&self) -> PathBuf {
        self.dir.join("rt")
    }

    /// `id`, mapped for handing out thread ordinals; a live member has made sure that it exists.
    pub(crate) fn map_id(&self) -> Result<Mapping> {
        let path = self.dir.join("id");
        let owner = self.access.owner_required();
        let expect = Expect { writable: true, min_len: id::BYTES as u64, owner };
        let (fd, len) = file::open_checked(&path, expect)?;
        let map = Mapping::map_own(&fd, id::BYTES, &path)?;
        FileHeader::read(&map, FileKind::DomainId, len)?;
        Ok(map)
    }

    /// The layout version of the domain; `None` if there is none, or nobody has made its `id` yet.
    /// `VersionMismatch` comes with it where it is not ours.
    pub(crate) fn layout(&self) -> Result<Option<(u32, Result<()>)>> {
        let path = self.dir.join("id");
        let owner = self.access.owner_required();
        let expect = Expect { writable: false, min_len: HEADER_BYTES as u64, owner };
        let (fd, len) = match file::open_checked(&path, expect) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let map = Mapping::map_peer(&fd, HEADER_BYTES, &path)?;
        let read = FileHeader::read(&map, FileKind::DomainId, len).map(drop);
        Ok(Some((FileHeader::layout_of(&map)?, read)))
    }

    /// Makes what is missing and takes the domain's lock.
    pub(crate) fn lock_or_create(&self) -> Result<DomainLock> {
        let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
        loop {
            // `NotFound` is said of what it lies in, or by a file system such as /proc.
            file::make_dir(&self.root, &self.access).map_err(|e| self.no_folder(e))?;
            match self.try_create(deadline) {
                // Somebody removed the directory under us: make it again.
                Err(e) if e.kind() == ErrorKind::NotFound && !deadline.has_passed() => {}
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) if !deadline.has_passed() => continue,
                Ok(None) => return Err(self.timeout()),
                Err(e) => return Err(e),
            }
        }
    }

    /// What lies there is anybody's, and to be removed by nobody because we say so.
    fn no_folder(&self, e: Error) -> Error {
        if e.kind() != ErrorKind::Corrupt {
            return e;
        }
        let remedy = "a file or a symbolic link lies there: name a folder as the root";
        Error::new(ErrorKind::Corrupt, "joining below", syserr::show(&self.root), remedy)
    }

    /// Takes the lock of an existing domain; `None` if there is no domain.
    pub(crate) fn lock_existing(&self) -> Result<Option<DomainLock>> {
        let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
        loop {
            match self.dir.try_exists() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                // A stranger's: not the same as none.
                Err(e) => return Err(syserr::from_io("look for", syserr::show(&self.dir), e)),
            }
            match self.try_create(deadline) {
                Ok(Some(lock)) => return Ok(Some(lock)),
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
            if deadline.has_passed() {
                return Err(self.timeout());
            }
        }
    }

    /// Whether anything of a member, living or dead, is there.
    fn is_in_use(&self) -> Result<bool> {
        for dir in [
            self.nodes(),
            self.topics(),
            self.queues(),
            self.services(),
            self.locks(),
            self.realtime(),
        ] {
            if file::names_in(&dir)?.iter().any(|name| !name.starts_with(TMP_PREFIX)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The counter in `id` named a node that exists.
    #[cold]
    pub(crate) fn next_is_in_use(&self) -> Error {
        let path = self.dir.join("id").display().to_string();
        let remedy = "somebody set it back: stop all members and run 'outlive clean'";
        Error::new(ErrorKind::Corrupt, "taking the next node ordinal from", path, remedy)
    }

    fn timeout(&self) -> Error {
        Error::new(
            ErrorKind::Timeout,
            "locking domain",
            self.dir.display().to_string(),
            "a stopped process may hold it: look with 'fuser' and continue or end that process",
        )
    }

    /// A domain that exists keeps its group: it is not taken from its members by one that names
    /// another. Its `id` tells, which is linked with its group and mode: a directory may be in the
    /// making.
    fn check_group(&self) -> Result<()> {
        let (Some(gid), false) = (self.access.gid, fault("domain.group_taken")) else {
            return Ok(());
        };
        let Ok(id) = self.dir.join("id").symlink_metadata() else { return Ok(()) };
        let whose = match id.mode() & 0o060 == 0o060 {
            true if id.gid() == gid => return Ok(()),
            true => format!("it belongs to group {}", id.gid()),
            false => format!("it is private to user {}", id.uid()),
        };
        let remedy = format!("{whose}, not to group {gid}: open it like that, or another domain");
        Err(Error::new(ErrorKind::NotOwned, "joining", syserr::show(&self.dir), remedy))
    }

    fn try_create(&self, deadline: Deadline) -> Result<Option<DomainLock>> {
        self.check_group()?;
        file::make_dir(&self.dir, &self.access)?;
        let path = self.dir.join("lock");
        let expect = Expect { writable: true, min_len: 1, owner: self.access.owner_required() };
        let mode = self.access.shared_mode;
        let fd = NotInChild::open(|| open_or_create(&path, mode, expect, |_| Ok(())))?;
        match filelock::lock_write_until(&fd, deadline) {
            Err(e) if e.kind() == ErrorKind::Timeout => return Err(self.timeout()),
            locked => locked?,
        }
        if !file::same_file(&fd, &path)? {
            return Ok(None);
        }
        file::make_dir(&self.nodes(), &self.access)?;
        file::make_dir(&self.topics(), &self.access)?;
        Ok(Some(DomainLock { domain: self.clone(), _fd: fd }))
    }
}

/// The domain's lock, held; freed on drop or death.
#[derive(Debug)]
pub(crate) struct DomainLock {
    domain: DomainPath,
    _fd: NotInChild,
}

/// The last ordinal of a node: a word of a lock has 31 bits for it.
const NODE_LAST: u64 = 0x7fff_fffe;

impl DomainLock {
    /// Hands out the next node ordinal. Ordinals are never reused in the life of a domain.
    ///
    /// # Crash safety
    /// **Strict.** One store; an ordinal whose taker dies is skipped.
    pub(crate) fn next_node(&self) -> Result<u64> {
        let path = self.domain.dir.join("id");
        let owner = self.domain.access.owner_required();
        let expect = Expect { writable: true, min_len: id::BYTES as u64, owner };
        // A new one would hand out what is in use: it comes before all else and goes after it.
        if path.symlink_metadata().is_err() && self.domain.is_in_use()? {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "opening",
                path.display().to_string(),
                "somebody removed it: stop all members and run 'outlive clean'",
            ));
        }
        let fd = open_or_create(&path, self.domain.access.shared_mode, expect, |map| {
            let random = sched::random_u128();
            FileHeader {
                kind: FileKind::DomainId,
                total_bytes: id::BYTES as u64,
                node: 0,
                port: 0,
            }
            .write(map)?;
            map.atomic_u64(id::RANDOM_LOW)?.store(random as u64, Relaxed);
            map.atomic_u64(id::RANDOM_HIGH)?.store((random >> 64) as u64, Relaxed);
            map.atomic_u64(id::NEXT_NODE)?.store(1, Relaxed);
            Ok(())
        })?;
        let map = Mapping::map_own(&fd, id::BYTES, &path)?;
        FileHeader::read(&map, FileKind::DomainId, id::BYTES as u64)?;
        let word = map.atomic_u64(id::NEXT_NODE)?;
        let ordinal = word.load(Acquire);
        if ordinal == 0 || ordinal > NODE_LAST {
            let (kind, why) = match ordinal == NODE_LAST + 1 {
                true => (ErrorKind::TooManyMembers, "all numbers of nodes are used up"),
                false => (ErrorKind::Corrupt, "it is out of range"),
            };
            let remedy = format!("{why}: stop all members and run 'outlive clean'");
            let path = path.display().to_string();
            return Err(Error::new(kind, "taking the next node ordinal from", path, remedy));
        }
        word.store(ordinal + 1, Release);
        Ok(ordinal)
    }

    /// Whether another layout made this domain: nobody of this build can join it.
    pub(crate) fn is_of_another_layout(&self) -> bool {
        self.domain.map_id().is_err_and(|e| e.kind() == ErrorKind::VersionMismatch)
    }

    /// Removes all but `id` and `lock`, whatever their layout; the caller has seen that no file of
    /// a node is left. The lock on that file says in every layout whether the node is alive.
    ///
    /// # Crash safety
    /// **Strict.** Each unlink stands alone; `id` still says whose the rest is: the next goes on.
    pub(crate) fn remove_contents(&self) -> Result<()> {
        let dir = &self.domain.dir;
        for name in file::open_dir(dir)?.entries()? {
            if name != "id" && name != "lock" {
                remove_tree(&dir.join(name), TREE_DEPTH_MAX)?;
            }
        }
        Ok(())
    }

    /// Removes the empty domain; the caller has seen that no live node and no topic is left.
    ///
    /// # Crash safety
    /// **Strict.** Each step leaves a domain that `lock_or_create` completes or removes.
    pub(crate) fn remove_domain(self) -> Result<bool> {
        let d = &self.domain;
        if !file::remove_dir(&d.topics())? && d.topics().exists() {
            return Ok(false);
        }
        for dir in [d.queues(), d.services()] {
            if !file::remove_dir(&dir)? && dir.exists() {
                return Ok(false);
            }
        }
        if !file::remove_dir(&d.locks())? && d.locks().exists() {
            return Ok(false);
        }
        if !file::remove_dir(&d.realtime())? && d.realtime().exists() {
            return Ok(false);
        }
        if !file::remove_dir(&d.nodes())? && d.nodes().exists() {
            return Ok(false);
        }
        file::unlink(&d.dir.join("id"))?;
        // Whoever waits for this lock sees that its file is gone and starts again.
        file::unlink(&d.dir.join("lock"))?;
        file::remove_dir(&d.dir)?;
        // A root that cannot go (a mount point, a parent of another user) is nobody's leftover.
        let _ = file::remove_dir(&d.root);
        Ok(true)
    }
}

/// Removes a file, or a directory with what is in it.
fn remove_tree(path: &Path, depth: usize) -> Result<()> {
    if !path.symlink_metadata().is_ok_and(|of| of.is_dir()) {
        return file::unlink(path).map(drop);
    }
    if depth > 0 {
        for name in file::open_dir(path)?.entries()? {
            remove_tree(&path.join(name), depth - 1)?;
        }
    }
    file::remove_dir(path).map(drop)
}

/// Opens a file that any member may have made, or makes it complete.
pub(crate) fn open_or_create(
    path: &Path,
    mode: u32,
    expect: Expect,
    fill: impl FnOnce(&Mapping) -> Result<()>,
) -> Result<OwnedFd> {
    match file::open_checked(path, expect) {
        Ok((fd, _)) => return Ok(fd),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let len = expect.min_len.max(1);
    let draft = Draft::new(path.parent().unwrap_or(Path::new("/")), len, mode)?;
    if fault("file.linked_first") {
        let map = draft.map()?;
        let fd = draft.link(path)?;
        fill(&map)?;
        return Ok(fd);
    }
    fill(&draft.map()?)?;
    match draft.link(path) {
        Ok(fd) => Ok(fd),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            file::open_checked(path, expect).map(|(fd, _)| fd)
        }
        Err(e) => Err(e),
    }
}

/// `/dev/shm/outlive-<uid>`, or the first numbered name that is ours or free.
fn default_root() -> Result<PathBuf> {
    let base = format!("/dev/shm/outlive-{}", sched::uid());
    let names = || {
        std::iter::once(base.clone())
            .chain((1..10).map(|i| format!("{base}.{i}")))
            .map(PathBuf::from)
    };
    // One of ours wins over a free name: all members must meet in the same place.
    if let Some(own) = names().find(|p| file::is_own_dir(p)) {
        return Ok(own);
    }
    names().find(|p| p.symlink_metadata().is_err()).ok_or_else(|| {
        Error::new(
            ErrorKind::NotOwned,
            "choosing the directory of the RAM disk",
            base.clone(),
            "others own it and its nine alternatives: set OUTLIVE_DIR to a directory of yours",
        )
    })
}
