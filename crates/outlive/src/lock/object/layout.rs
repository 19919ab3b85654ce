//! Bytes of a lock, as named offsets: the file by name, and the object itself wherever it lies.

use crate::domain::header::{HEADER_BYTES, LAYOUT_VERSION, round_up};
use crate::os::PAGE;

/// `locks/<name>`: what all users must agree on, and the object.
pub(crate) mod file {
    use super::{HEADER_BYTES, PAGE};
    pub(crate) const KIND: usize = HEADER_BYTES;
    pub(crate) const ALIGN: usize = HEADER_BYTES + 8;
    pub(crate) const SIZE: usize = HEADER_BYTES + 16;
    /// Permits of a semaphore, capacity of a set.
    pub(crate) const COUNT: usize = HEADER_BYTES + 24;
    pub(crate) const NAME_LEN: usize = HEADER_BYTES + 32;
    pub(crate) const NAME: usize = HEADER_BYTES + 64;
    pub(crate) const NAME_BYTES_MAX: usize = 256;
    pub(crate) const OBJECT: usize = PAGE;
}

/// The first line of every object. All zero but for the first two words is a free object.
pub(crate) mod head {
    /// Kind, layout version and type; 0 until the first user has placed the object.
    pub(crate) const TAG: usize = 0;
    /// Random identity of the domain whose thread ids the object holds.
    pub(crate) const DOMAIN: usize = 8;
    /// Lock word; change count of a condition variable; bell of a semaphore; reach of a set.
    pub(crate) const WORD: usize = 16;
    pub(crate) const HEIR: usize = 24;
    /// Reader/writer lock: lines in use. Mutex with priority inheritance: the PID namespace.
    pub(crate) const BITMAP: usize = 32;
    /// Reader/writer lock: a writer sleeps on a line. Semaphore, condition variable: somebody
    /// sleeps.
    pub(crate) const DRAIN: usize = 40;
    /// Mutex, reader/writer lock: since when an heir keeps out who does not wait.
    pub(crate) const REFUSED_AT: usize = 48;
    pub(crate) const BYTES: usize = 64;
}

/// Alignment of every object: lines of readers must not share a cache line.
pub(crate) const OBJECT_ALIGN: usize = 64;
/// Largest alignment of protected data: files are mapped at pages.
pub(crate) const ALIGN_MAX: usize = PAGE;
/// Most permits of a semaphore.
pub(crate) const PERMITS_MAX: usize = 1024;
/// Most ids in a set.
pub(crate) const SET_MAX: usize = 1 << 24;

/// What an object is.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let settings = outlive::Node::builder().root(dir.path());
/// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
/// use outlive::lock::LockKind;
///
/// let (_gpu, _map) = (node.semaphore("/gpu", 2)?, node.mutex::<u64>("/map")?);
/// let locks = domain.locks()?;
/// let mutexes: Vec<_> = locks.iter().filter(|lock| lock.kind == LockKind::Mutex).collect();
/// assert_eq!(mutexes.len(), 1);
/// assert_eq!(mutexes[0].name, "/map");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum LockKind {
    /// [`RobustMutex`](crate::lock::RobustMutex).
    Mutex = 1,
    /// [`RobustRwLock`](crate::lock::RobustRwLock).
    RwLock = 2,
    /// [`RobustCondvar`](crate::lock::RobustCondvar).
    Condvar = 3,
    /// [`RobustSemaphore`](crate::lock::RobustSemaphore).
    Semaphore = 4,
    /// [`LocklessSet`](crate::lock::LocklessSet).
    Set = 5,
    /// [`Segment`](crate::lock::Segment).
    Segment = 6,
    /// [`PiMutex`](crate::lock::PiMutex).
    PiMutex = 7,
}

impl LockKind {
    /// Whether its lock word names an owner.
    pub(crate) fn has_owner(self) -> bool {
        matches!(self, Self::Mutex | Self::RwLock | Self::PiMutex)
    }

    pub(crate) fn from_raw(raw: u64) -> Option<Self> {
        use LockKind::{Condvar, Mutex, PiMutex, RwLock, Segment, Semaphore, Set};
        let all = [Mutex, RwLock, Condvar, Semaphore, Set, Segment, PiMutex];
        all.into_iter().find(|k| *k as u64 == raw)
    }

    /// Its name, one word.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(outlive::lock::LockKind::RwLock.as_str(), "rwlock");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
            Self::Condvar => "condvar",
            Self::Semaphore => "semaphore",
            Self::Set => "set",
            Self::Segment => "segment",
            Self::PiMutex => "pi-mutex",
        }
    }
}

/// Bytes of the file of an object of `bytes` bytes. A word of the kernel's ends that of a mutex
/// with priority inheritance, in a line of its own.
pub(crate) const fn file_bytes(kind: LockKind, bytes: usize) -> usize {
    let word = if matches!(kind, LockKind::PiMutex) { 2 * OBJECT_ALIGN } else { 0 };
    round_up(file::OBJECT + bytes + word, PAGE)
}

/// Where the protected data begins in a mutex.
pub(crate) const fn mutex_data(align: usize) -> usize {
    round_up(head::BYTES, if align > OBJECT_ALIGN { align } else { OBJECT_ALIGN })
}

/// Most objects that may be placed in one segment.
pub(crate) const PLACED_MAX: usize = 16384;

/// Where the table of a segment's objects begins: a word for each, in the order of their coming.
pub(crate) const fn placed(size: usize, align: usize) -> Option<usize> {
    match mutex_data(align).checked_add(size) {
        Some(end) if end <= usize::MAX - OBJECT_ALIGN => Some(round_up(end, OBJECT_ALIGN)),
        _ => None,
    }
}

/// Words of that table.
pub(crate) const fn placed_count(size: usize) -> usize {
    let room = size / OBJECT_ALIGN;
    if room < PLACED_MAX { room } else { PLACED_MAX }
}

/// Bytes of a whole segment.
pub(crate) fn segment_bytes(size: usize, align: usize) -> Option<usize> {
    placed(size, align)?.checked_add(8 * placed_count(size))
}

/// The readers' lines of a reader/writer lock.
pub(crate) const LINES: usize = head::BYTES;

/// Where the protected data begins in a reader/writer lock.
pub(crate) const fn rwlock_data(align: usize) -> usize {
    let lines = LINES + crate::lock::rwlock::readers::LINES_MAX * OBJECT_ALIGN;
    round_up(lines, if align > OBJECT_ALIGN { align } else { OBJECT_ALIGN })
}

/// Holders of a semaphore's permits, or ids of a set.
pub(crate) const WORDS: usize = head::BYTES;

/// Bytes of a semaphore or set with `count` words.
pub(crate) const fn words_bytes(count: usize) -> usize {
    round_up(WORDS + 8 * count, OBJECT_ALIGN)
}

/// The first word of an object: kind, layout version and a hash of what users must agree on.
pub(crate) fn tag(kind: LockKind, type_name: &str, size: usize, align: usize, count: usize) -> u64 {
    // FNV-1a: a fingerprint against mistakes, not against forgery.
    let fields = [size as u64, align as u64, count as u64].map(u64::to_le_bytes);
    let bytes = type_name.bytes().chain(fields.into_iter().flatten());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash ^ hash >> 48) << 16 | u64::from(LAYOUT_VERSION as u8) << 8 | kind as u64
}

const _: () = assert!(file::NAME + file::NAME_BYTES_MAX <= file::OBJECT);
const _: () = assert!(head::REFUSED_AT + 8 <= head::BYTES);
