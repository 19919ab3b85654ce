//! The data segments that this process has mapped, for those who must know of memory before it
//! goes: a device driver that has it registered, say.
//!
//! A segment holds the chunks of one publisher: writable in its own process, read-only in those of
//! its subscribers. It is mapped for as long as the publisher or the subscriber lives, or a sample
//! in it. Whoever holds a loan or a borrowed sample therefore knows that its segment stays.
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::topic::segments;
//!
//! let publisher = node.topic::<[u8]>("/image")?.publisher()?;
//! let loan = publisher.loan_slice(1 << 16)?;
//! let segment = segments::segment_at(loan.as_ptr().addr()).expect("it holds the loan");
//! assert!(segment.is_writable() && segment.bytes() >= 1 << 16);
//! # Ok::<(), outlive::Error>(())
//! ```
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

use crate::os::fs::map::Mapping;
use crate::os::process::fork;
use crate::os::process::fork::per_process::PerProcess;
use crate::sync::MutexGuard;

/// A data segment mapped in this process.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::segments;
///
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// let mut subscriber = node.topic::<[u8]>("/image")?.subscriber()?;
/// publisher.publish(&[7; 100_000])?;
/// let image = subscriber.receive()?.expect("sent just now");
/// let address = image.as_ptr().addr();
/// let segment = segments::segment_at(address).expect("it holds the sample");
/// assert!(segment.holds(address, image.len()) && !segment.holds(address, usize::MAX));
/// assert!(!segment.is_writable(), "a subscriber only reads");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    start: usize,
    bytes: usize,
    writable: bool,
    serial: u64,
}

impl Segment {
    /// Address of its first byte; page aligned.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
    /// let image = publisher.loan_slice(100_000)?;
    /// let address = image.as_ptr().addr();
    /// let segment = outlive::topic::segments::segment_at(address).expect("it holds the loan");
    /// let offset = address - segment.start(); // what a device needs
    /// assert!(offset + image.len() <= segment.bytes());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn start(&self) -> usize {
        self.start
    }

    /// Length, bytes.
    ///
    /// Example: [`Segment::start`].
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is a publisher's own; a store to a subscriber's faults.
    ///
    /// Example: [`Segment`].
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Distinguishes it from every other segment this process ever maps, even at the same address.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::topic::segments;
    ///
    /// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/image")?.subscriber()?;
    /// publisher.publish(&[7; 100_000])?;
    /// let _image = subscriber.receive()?.expect("sent just now");
    /// let [own, peers] = segments::segments()[..] else { panic!("both ends are here") };
    /// assert_ne!(own.serial(), peers.serial()); // one file, mapped twice
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether `bytes` bytes from `address` on lie in it.
    ///
    /// Example: [`Segment`].
    pub fn holds(&self, address: usize, bytes: usize) -> bool {
        let offset = address.checked_sub(self.start);
        offset.and_then(|o| o.checked_add(bytes)).is_some_and(|end| end <= self.bytes)
    }
}

/// What to do with a segment that this process no longer needs.
///
/// Example: [`SegmentWatcher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmap {
    /// Unmap it.
    Now,
    /// Leave it mapped for as long as the process lives: somebody may still write there.
    Never,
}

/// Is notified of segments before they are unmapped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::segments::{self, Segment, SegmentWatcher, Unmap};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Driver {
///     released: Mutex<Vec<u64>>,
/// }
///
/// impl SegmentWatcher for Driver {
///     fn unmapping(&self, segment: &Segment) -> Unmap {
///         self.released.lock().unwrap().push(segment.serial()); // end the device's access
///         Unmap::Now // `Never` if the device may still write there
///     }
/// }
///
/// let driver = Arc::new(Driver::default());
/// segments::watch(&driver);
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// drop(publisher.loan_slice(100_000)?); // maps a segment, which stays for the next loan
/// drop(publisher);
/// assert_eq!(driver.released.lock().unwrap().len(), 1);
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait SegmentWatcher: Send + Sync {
    /// `segment` is about to be unmapped. Called once for each, by whichever thread lets the last
    /// user go; must not call into the topic. In a forked child nobody is called.
    ///
    /// Example: [`SegmentWatcher`].
    fn unmapping(&self, segment: &Segment) -> Unmap;
}

/// Notifies `watcher`, while it lives, of every segment before it is unmapped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::segments::{self, Segment, SegmentWatcher, Unmap};
/// use std::sync::Arc;
///
/// struct Driver; // its device keeps access to the memory
///
/// impl SegmentWatcher for Driver {
///     fn unmapping(&self, _segment: &Segment) -> Unmap {
///         Unmap::Never
///     }
/// }
///
/// let driver = Arc::new(Driver); // watches until it is dropped
/// segments::watch(&driver);
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// drop(publisher.loan_slice(100_000)?);
/// drop(publisher);
/// assert!(segments::segments().is_empty()); // not listed any more, but still mapped
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn watch(watcher: &Arc<impl SegmentWatcher + 'static>) {
    let watcher = Arc::downgrade(watcher);
    let mut table = lock();
    table.watchers.retain(|w| w.strong_count() > 0);
    table.watchers.push(watcher);
}

/// All segments mapped now, over all topics and nodes of the process.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::segments;
///
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// let _image = publisher.loan_slice(100_000)?;
/// let mapped: usize = segments::segments().iter().map(|segment| segment.bytes()).sum();
/// assert!(mapped >= 100_000);
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn segments() -> Vec<Segment> {
    lock().mapped.clone()
}

/// The segment that `address` lies in. It stays mapped for as long as the caller holds the loan or
/// the sample that the address came from.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::topic::segments;
///
/// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
/// let image = publisher.loan_slice(100_000)?;
/// assert!(segments::segment_at(image.as_ptr().addr()).is_some());
/// let elsewhere = [0u8; 16];
/// assert!(segments::segment_at(elsewhere.as_ptr().addr()).is_none());
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn segment_at(address: usize) -> Option<Segment> {
    lock().mapped.iter().find(|s| s.holds(address, 1)).copied()
}

#[derive(Default)]
struct Table {
    mapped: Vec<Segment>,
    serials: u64,
    watchers: Vec<Weak<dyn SegmentWatcher>>,
}

static TABLE: PerProcess<Table> = PerProcess::new();

fn lock() -> MutexGuard<'static, Table> {
    TABLE.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// A mapped data segment that is listed here until it is dropped.
#[derive(Debug)]
pub(crate) struct DataMapping {
    map: ManuallyDrop<Mapping>,
    listed: Segment,
    generation: u32,
}

impl DataMapping {
    pub(crate) fn new(map: Mapping, writable: bool) -> Self {
        let (start, bytes) = (map.base().addr(), map.len());
        let mut table = lock();
        table.serials += 1;
        let listed = Segment { start, bytes, writable, serial: table.serials };
        table.mapped.push(listed);
        drop(table);
        Self { map: ManuallyDrop::new(map), listed, generation: fork::fork_generation() }
    }
}

impl std::ops::Deref for DataMapping {
    type Target = Mapping;

    #[inline]
    fn deref(&self) -> &Mapping {
        &self.map
    }
}

impl Drop for DataMapping {
    fn drop(&mut self) {
        let mut unmap = Unmap::Now;
        let segment = self.listed;
        if self.generation == fork::fork_generation() {
            let mut table = lock();
            table.mapped.retain(|s| s.serial != segment.serial);
            let watchers = table.watchers.clone();
            drop(table);
            // Outside the lock: a driver takes its time.
            for watcher in watchers.iter().filter_map(Weak::upgrade) {
                if watcher.unmapping(&segment) == Unmap::Never {
                    unmap = Unmap::Never;
                }
            }
        }
        if unmap == Unmap::Now {
            // SAFETY: dropped here once; nothing uses it after.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::os::fixture::TempDir;
    use crate::sync::Mutex;

    struct Log(Mutex<Vec<Segment>>, Unmap);

    impl SegmentWatcher for Log {
        fn unmapping(&self, segment: &Segment) -> Unmap {
            self.0.lock().unwrap().push(*segment);
            self.1
        }
    }

    /// A thread of another test may have mapped something of its own there since.
    fn is_mapped(dir: &TempDir, segment: &Segment) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (start, dir) = (format!("{:x}-", segment.start()), dir.path().display().to_string());
        maps.lines().any(|line| line.starts_with(&start) && line.contains(&dir))
    }

    #[test]
    fn a_segment_is_listed_while_mapped_and_told_of_before_it_goes() {
        let dir = TempDir::new("segments");
        let node = Node::builder().root(dir.path()).open().unwrap();
        for answer in [Unmap::Now, Unmap::Never] {
            let log = Arc::new(Log(Mutex::new(Vec::new()), answer));
            watch(&log);
            let publisher = node.topic::<[u8]>("/t").unwrap().publisher().unwrap();
            let mut subscriber = node.topic::<[u8]>("/t").unwrap().subscriber().unwrap();
            publisher.publish(&[7; 9000]).unwrap();
            let sample = subscriber.receive().unwrap().unwrap();
            let own = publisher.loan_slice(9000).unwrap().as_ptr().addr();
            let own = segment_at(own).unwrap();
            let peers = segment_at(sample.as_ptr().addr()).unwrap();
            assert!(own.is_writable() && !peers.is_writable() && own.serial() != peers.serial());
            assert!(own.holds(own.start(), own.bytes()) && !own.holds(own.start() - 1, 1));
            assert!(
                !own.holds(own.start() + 1, own.bytes()) && !own.holds(own.start(), usize::MAX)
            );
            drop((publisher, subscriber));
            let mine = || log.0.lock().unwrap().iter().filter(|s| [own, peers].contains(s)).count();
            assert_eq!(mine(), 1, "the sample keeps the subscriber's");
            assert_eq!(segment_at(peers.start()), Some(peers));
            drop(sample);
            assert_eq!((mine(), segment_at(peers.start())), (2, None));
            let kept = answer == Unmap::Never;
            assert_eq!((is_mapped(&dir, &own), is_mapped(&dir, &peers)), (kept, kept));
        }
    }
}
