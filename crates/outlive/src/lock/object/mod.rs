//! Where an object lies: in a file by name, in a segment, or in memory of your own. `layout` has
//! its bytes, `segment` is a file of the user's with several objects, `admin` looks from outside
//! for tools. All kinds of locks come through here when they are opened.
//! Begin with `Object`, here.
#![allow(unsafe_code)]

pub(crate) mod admin;
pub(crate) mod layout;
pub(super) mod segment;

use std::any::Any;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::domain::header::{FileHeader, FileKind};
use crate::domain::joining::join_until;
use crate::domain::name::TopicName;
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::node::Node;
use crate::node::threads::tokens::{Threads, own_id};
use crate::os::fs::file;
use crate::os::fs::file::{Draft, Expect};
use crate::os::fs::filelock;
use crate::os::fs::map::Mapping;
use crate::os::process::fork::NotInChild;
use crate::os::process::{fork, memory};
use crate::os::sleep::pi::PiWord;
use crate::os::syserr;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{AtomicU64, fault};
use crate::types::payload::require_any_bytes;
use crate::types::{Encoding, Message, PayloadType};
use crate::{Error, ErrorKind, Result};
use layout::{LockKind, file as at, head};

/// What all users of an object must agree on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectType {
    pub(super) kind: LockKind,
    pub(super) type_name: String,
    pub(super) size: usize,
    pub(super) align: usize,
    /// Permits or capacity; 0 where there is no such thing.
    pub(super) count: usize,
    /// Bytes of the whole object.
    pub(super) bytes: usize,
}

impl ObjectType {
    /// Of an object that protects no data of a type.
    pub(super) fn without_data(kind: LockKind, bytes: usize) -> Self {
        Self { kind, type_name: String::new(), size: 0, align: 1, count: 0, bytes }
    }

    /// Of an object that protects a `T`.
    pub(super) fn of<T: Message>(kind: LockKind, bytes: usize) -> Self {
        require_any_bytes::<T>();
        let (size, align) = (size_of::<T>(), align_of::<T>());
        Self { kind, type_name: T::TYPE_NAME.into(), size, align, count: 0, bytes }
    }

    /// Of the object `name`, which protects data of a type known only at run time, `value` at
    /// first.
    ///
    /// # Errors
    /// `InvalidArgument` for a type that is not a single value, or a value of another size.
    pub(super) fn of_data(
        kind: LockKind,
        bytes: usize,
        name: &str,
        of: &PayloadType,
        value: Option<&[u8]>,
    ) -> Result<Self> {
        let bad = |why| Err(Error::new(ErrorKind::InvalidArgument, "opening lock", name, why));
        if of.encoding() != Encoding::Fixed {
            return bad("a lock protects one value of a fixed size: use such a type");
        }
        if value.is_some_and(|value| !of.fits(value.len())) {
            return bad("its first value has another size than its type");
        }
        let (size, align) = (of.size(), of.align());
        Ok(Self { kind, type_name: of.name().into(), size, align, count: 0, bytes })
    }

    pub(super) fn tag(&self) -> u64 {
        layout::tag(self.kind, &self.type_name, self.size, self.align, self.count)
    }

    fn check(&self, name: &str) -> Result<()> {
        let bad = |why: &str| {
            let what = format!("opening {}", self.kind.as_str());
            Err(Error::new(ErrorKind::InvalidArgument, what, name, why))
        };
        if self.type_name.len() > at::NAME_BYTES_MAX {
            return bad("a type name has at most 256 bytes");
        }
        if self.align > layout::ALIGN_MAX {
            return bad("data aligned to more than 4096 bytes cannot be protected");
        }
        Ok(())
    }

    /// Every field that differs from what the file says.
    fn differences(&self, has: &Self) -> String {
        let mut out = Vec::new();
        let mut differs = |field: &str, has: String, want: String| {
            if has != want {
                out.push(format!("{field} is {has}, this program has {want}"));
            }
        };
        differs("kind", has.kind.as_str().into(), self.kind.as_str().into());
        let named = |name: &str| if name.is_empty() { "none".into() } else { name.to_owned() };
        differs("type", named(&has.type_name), named(&self.type_name));
        differs("size", has.size.to_string(), self.size.to_string());
        differs("alignment", has.align.to_string(), self.align.to_string());
        differs("count", has.count.to_string(), self.count.to_string());
        out.join("; ")
    }
}

/// What keeps the object's memory.
#[derive(Debug)]
enum Memory {
    /// A file of its own, at that path: its map, and its shared lock, which says "in use" to
    /// cleaners, on a descriptor that a forked child loses.
    File(PathBuf, #[expect(dead_code)] Mapping, NotInChild),
    Segment(#[expect(dead_code)] Arc<dyn Kept>),
    /// The user's promise.
    Foreign,
}

/// A segment, whatever its type.
pub(super) trait Kept: Any + Send + Sync + std::fmt::Debug {}

/// An object in shared memory, and the node that uses it.
#[derive(Debug)]
pub(super) struct Object {
    base: NonNull<u8>,
    bytes: usize,
    pub(super) threads: Arc<Threads>,
    key: u64,
    pub(super) generation: u32,
    /// Keeps the threads registered.
    _node: Node,
    memory: Memory,
}

// SAFETY: shared bytes that live as long as `memory`, reached as atomics; data is handed out by
// guards only, whose types say what may be sent.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    fn new(node: &Node, base: NonNull<u8>, ty: &ObjectType, memory: Memory) -> Result<Self> {
        let object = Self::unclaimed(node, base, ty, memory)?;
        object.claim(ty)?;
        Ok(object)
    }

    fn unclaimed(node: &Node, base: NonNull<u8>, ty: &ObjectType, memory: Memory) -> Result<Self> {
        let threads = node.threads()?;
        Ok(Self {
            base,
            bytes: ty.bytes,
            key: threads.key(),
            threads,
            generation: fork::fork_generation(),
            _node: node.clone(),
            memory,
        })
    }

    /// The calling thread's id, if it is at hand and this is no forked child.
    #[inline(always)]
    pub(super) fn own_id(&self) -> Option<u64> {
        if self.generation == fork::fork_generation() { own_id(self.key) } else { None }
    }

    /// The object's 64-bit word at `offset`, which is a multiple of 8 inside it.
    #[inline]
    pub(super) fn word(&self, offset: usize) -> NonNull<AtomicU64> {
        debug_assert!(offset % 8 == 0 && offset + 8 <= self.bytes);
        // SAFETY: `base` starts `bytes` mapped bytes; callers pass offsets of the layout, inside.
        unsafe { self.base.add(offset).cast() }
    }

    /// Its bytes from `offset` on.
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.bytes);
        // SAFETY: as in `word`.
        unsafe { self.base.add(offset) }
    }

    /// The word at the end of the object's file.
    pub(super) fn pi_word(&self, ty: &ObjectType) -> Result<PiWord> {
        let Memory::File(path, _, lock) = &self.memory else {
            unreachable!("it has a file of its own")
        };
        // Not the lock's descriptor: a forked child keeps this map, and with it the lock.
        let (fd, _) = file::open_checked(path, Expect { writable: true, min_len: 0, owner: None })?;
        if file::identity(&fd, path)? != lock.file() {
            let remedy = "somebody removed its file: open it again";
            return Err(Error::new(ErrorKind::NotFound, "opening", syserr::show(path), remedy));
        }
        PiWord::map(&fd, layout::file_bytes(ty.kind, ty.bytes), path)
    }

    /// Places the object into zeroed memory, or finds it there.
    ///
    /// # Crash safety
    /// **Strict.** Two CAS, each complete by itself; whoever comes next does what is missing.
    fn claim(&self, ty: &ObjectType) -> Result<()> {
        self.agree(ty, |word, value| {
            word.compare_exchange(0, value, AcqRel, Acquire).map_or_else(|has| has, |_| value)
        })
    }

    /// As `claim`, without placing it.
    fn look(&self, ty: &ObjectType) -> Result<()> {
        self.agree(ty, |word, value| match word.load(Acquire) {
            0 => value,
            has => has,
        })
    }

    /// Whether the two words that mark the object, as `get` has them, are those of `ty`.
    fn agree(&self, ty: &ObjectType, get: impl Fn(&AtomicU64, u64) -> u64) -> Result<()> {
        // SAFETY: inside the object; all access is atomic.
        let claim = |offset, value| get(unsafe { self.word(offset).as_ref() }, value);
        let wrong = |kind, why: String| {
            let what = format!("opening {}", ty.kind.as_str());
            Err(Error::new(kind, what, format!("shared memory at {:p}", self.base), why))
        };
        let (domain, tag) = (self.threads.domain_id(), ty.tag());
        if claim(head::DOMAIN, domain) != domain {
            return wrong(
                ErrorKind::OtherDomain,
                "it was placed by a node of another domain, or is not a lock: zero it first".into(),
            );
        }
        let has = claim(head::TAG, tag);
        if has == tag {
            return Ok(());
        }
        if has >> 8 & 0xff != tag >> 8 & 0xff {
            let why = "it was placed by another version: use one version of outlive".into();
            return wrong(ErrorKind::VersionMismatch, why);
        }
        let there = LockKind::from_raw(has & 0xff).map_or("something else", LockKind::as_str);
        wrong(
            ErrorKind::TypeMismatch,
            format!("it holds a {there} of another type or size: use the same, or other memory"),
        )
    }

    /// Opens `locks/<name>`, or makes it, with `value` at its offset in the object.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(super) fn named(
        node: &Node,
        name: &str,
        ty: &ObjectType,
        value: Option<(usize, &[u8])>,
    ) -> Result<Self> {
        let name = TopicName::of("lock name", name)?;
        ty.check(name.as_str())?;
        let threads = node.threads()?;
        // Else there is no directory to make one in.
        node.must_be_listed()?;
        let domain = node.domain();
        let path = domain.locks().join(name.file());
        let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
        join_until(&format!("opening {}", ty.kind.as_str()), &name, deadline, || {
            let opened = match open(domain, &path, ty, name.as_str()) {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    create(domain, &path, ty, &threads, value)
                }
                other => other,
            };
            match opened {
                Ok(Some((map, lock))) => {
                    let base = map.bytes(at::OBJECT, ty.bytes)?.cast_mut();
                    let Some(base) = NonNull::new(base) else { unreachable!("inside a mapping") };
                    Self::new(node, base, ty, Memory::File(path.clone(), map, lock)).map(Some)
                }
                // A cleaner has it, or was quicker.
                Ok(None) => Ok(None),
                Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
                    Ok(None)
                }
                Err(e) => Err(e),
            }
        })
    }

    /// Runs `body` if nobody else has it open, here or in another process; nobody opens it
    /// meanwhile. Whether it was.
    pub(super) fn if_alone(&self, body: impl FnOnce()) -> Result<bool> {
        let Memory::File(_, _, lock) = &self.memory else { return Ok(false) };
        let alone = filelock::try_lock_write(lock)?;
        if alone {
            body();
            // Back to the shared one: it turns into that.
            filelock::try_lock_read(lock)?;
        }
        Ok(alone)
    }

    /// An object inside a segment, if `register` has nothing against it.
    pub(super) fn in_segment(
        node: &Node,
        segment: Arc<dyn Kept>,
        base: NonNull<u8>,
        len: usize,
        offset: usize,
        ty: &ObjectType,
        register: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let end = offset.checked_add(ty.bytes);
        if end.is_none_or(|end| end > len) {
            return Err(too_small(ty, len.saturating_sub(offset)));
        }
        // SAFETY: inside the segment, as just checked.
        let base = unsafe { base.add(offset) };
        check_place(ty, base)?;
        let object = Self::unclaimed(node, base, ty, Memory::Segment(segment))?;
        object.look(ty)?;
        register()?;
        object.claim(ty)?;
        Ok(object)
    }

    /// An object in memory of your own.
    ///
    /// # Safety
    /// - `base` starts `len` bytes that stay mapped for as long as the object lives.
    /// - Nobody writes there but through objects of this crate, by the same layout.
    pub(super) unsafe fn placed(
        node: &Node,
        base: *mut u8,
        len: usize,
        ty: &ObjectType,
    ) -> Result<Self> {
        let Some(base) = NonNull::new(base) else { return Err(too_small(ty, 0)) };
        if len < ty.bytes {
            return Err(too_small(ty, len));
        }
        check_place(ty, base)?;
        if !memory::is_shared(base.addr().get(), ty.bytes)? {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("placing {}", ty.kind.as_str()),
                format!("memory at {base:p}"),
                "other processes cannot see it: map it MAP_SHARED, readable and writable",
            ));
        }
        Self::new(node, base, ty, Memory::Foreign)
    }
}

#[cold]
fn too_small(ty: &ObjectType, len: usize) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("placing {}", ty.kind.as_str()),
        format!("{len} bytes"),
        format!("it takes {} bytes", ty.bytes),
    )
}

fn check_place(ty: &ObjectType, base: NonNull<u8>) -> Result<()> {
    let align = ty.align.max(layout::OBJECT_ALIGN);
    ty.check("shared memory")?;
    if base.addr().get() % align == 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!("placing {}", ty.kind.as_str()),
        format!("memory at {base:p}"),
        format!("align it to {align} bytes"),
    ))
}

type Opened = Option<(Mapping, NotInChild)>;

/// The shared lock on the file at `path`, which must still be that of `fd`; `None` when a cleaner
/// is at it.
fn in_use(fd: &OwnedFd, path: &Path, expect: Expect) -> Result<Option<NotInChild>> {
    let lock = match NotInChild::open_for_life(|| Ok(file::open_checked(path, expect)?.0)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    let same = file::identity(&lock, path)? == file::identity(fd, path)?;
    if same { hold(lock, path) } else { Ok(None) }
}

/// `lock` with the shared lock, if no cleaner is at its file, which still lies at `path`.
fn hold(lock: NotInChild, path: &Path) -> Result<Option<NotInChild>> {
    let held = filelock::try_lock_read(&lock)? && file::same_file(&lock, path)?;
    Ok(held.then_some(lock))
}

/// Opens and checks an existing file; `None` when a cleaner is at it.
fn open(domain: &DomainPath, path: &Path, ty: &ObjectType, name: &str) -> Result<Opened> {
    let owner = domain.access.owner_required();
    let min_len = (at::OBJECT + head::BYTES) as u64;
    let expect = Expect { writable: true, min_len, owner };
    let (fd, len) = file::open_checked(path, expect)?;
    let Some(lock) = in_use(&fd, path, expect)? else { return Ok(None) };
    let map = Mapping::map_own(&fd, len as usize, path)?;
    let has = read_type(&map, len)?;
    if has.kind != ty.kind || has.tag() != ty.tag() || has.bytes != ty.bytes {
        return Err(Error::new(
            ErrorKind::TypeMismatch,
            format!("opening {}", ty.kind.as_str()),
            name,
            format!("{}: use the same type, or another name", ty.differences(&has)),
        ));
    }
    Ok(Some((map, lock)))
}

/// What a lock file says it holds. The object lies inside the map.
pub(super) fn read_type(map: &Mapping, len: u64) -> Result<ObjectType> {
    let corrupt = |field: &str| {
        let why = format!("its {field} is out of range: stop the users and run 'outlive clean'");
        Error::new(ErrorKind::Corrupt, "opening", map.name(), why)
    };
    let header = FileHeader::read(map, FileKind::Lock, len)?;
    let u64_at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed));
    let kind = LockKind::from_raw(u64_at(at::KIND)?).ok_or_else(|| corrupt("kind"))?;
    let name_len = u64_at(at::NAME_LEN)? as usize;
    if name_len > at::NAME_BYTES_MAX {
        return Err(corrupt("type name"));
    }
    let type_name =
        String::from_utf8(map.copy_out(at::NAME, name_len)?).map_err(|_| corrupt("type name"))?;
    let (size, align) = (u64_at(at::SIZE)? as usize, u64_at(at::ALIGN)? as usize);
    if !align.is_power_of_two() || align > layout::ALIGN_MAX {
        return Err(corrupt("alignment"));
    }
    let count = u64_at(at::COUNT)? as usize;
    let bytes = match kind {
        LockKind::Mutex | LockKind::PiMutex => layout::mutex_data(align).checked_add(size),
        LockKind::Segment => layout::segment_bytes(size, align),
        LockKind::RwLock => layout::rwlock_data(align).checked_add(size),
        LockKind::Condvar => Some(head::BYTES),
        LockKind::Semaphore if count <= layout::PERMITS_MAX => Some(layout::words_bytes(count)),
        LockKind::Set if count <= layout::SET_MAX => Some(layout::words_bytes(count)),
        LockKind::Semaphore | LockKind::Set => None,
    };
    let fits = |bytes: &usize| {
        *bytes as u64 <= header.total_bytes
            && layout::file_bytes(kind, *bytes) as u64 <= header.total_bytes
    };
    let bytes = bytes.filter(fits).ok_or_else(|| corrupt("size"))?;
    Ok(ObjectType { kind, type_name, size, align, count, bytes })
}

fn create(
    domain: &DomainPath,
    path: &Path,
    ty: &ObjectType,
    threads: &Threads,
    value: Option<(usize, &[u8])>,
) -> Result<Opened> {
    file::make_dir(&domain.locks(), &domain.access)?;
    let bytes = layout::file_bytes(ty.kind, ty.bytes);
    let draft = Draft::new(&domain.locks(), bytes as u64, domain.access.shared_mode)?;
    let map = draft.map()?;
    FileHeader { kind: FileKind::Lock, total_bytes: bytes as u64, node: 0, port: 0 }.write(&map)?;
    for (offset, value) in [
        (at::KIND, ty.kind as usize),
        (at::ALIGN, ty.align),
        (at::SIZE, ty.size),
        (at::COUNT, ty.count),
        (at::NAME_LEN, ty.type_name.len()),
    ] {
        map.atomic_u64(offset)?.store(value as u64, Relaxed);
    }
    map.copy_in(at::NAME, ty.type_name.as_bytes())?;
    map.atomic_u64(at::OBJECT + head::DOMAIN)?.store(threads.domain_id(), Relaxed);
    map.atomic_u64(at::OBJECT + head::TAG)?.store(ty.tag(), Relaxed);
    if let Some((offset, bytes)) = value {
        map.copy_in(at::OBJECT + offset, bytes)?;
    }
    if fault("lock.link_first") {
        let expect = Expect { writable: true, min_len: bytes as u64, owner: None };
        return Ok(in_use(&draft.link(path)?, path, expect)?.map(|lock| (map, lock)));
    }
    // Before the link: who lacks a descriptor for it must leave no file behind.
    let lock = NotInChild::open_for_life(|| draft.reopen())?;
    let _fd = draft.link(path)?;
    // Only now: on some file systems linking gives the draft's own lock back.
    let lock = hold(lock, path)?;
    Ok(lock.map(|lock| (map, lock)))
}
