//! What a look at an idle subscriber needs, in one cache line.
//!
//! # Theory of operation
//! A full look that finds nothing remembers the words that said so, and their values. While they
//! say the same, the next full look would find nothing either, so a glance at them replaces it:
//!
//! | change | seen in |
//! |---|---|
//! | a message | the word of the entry at our cursor |
//! | a publisher joined or left | the bell |
//! | its process died | its token; `deaths_proved` if the kernel could not mark that |
//! | somebody cut a file | `sigbus::replaced` |
//! | this process is a forked child | its generation |
//! | our cursor moved | `taken` |
//! | a publisher was attached or detached | forgotten then |
//!
//! Nothing is read behind these words, so relaxed loads do. Sleeping does not depend on them: it
//! looks at everything again. For subscribers that read one publisher or none.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::node::peer::deaths_proved;
use crate::os::death::robust;
use crate::os::fs::sigbus;
use crate::os::process::fork;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64, fault};

/// For a subscriber that reads nobody: an entry that stays empty, and a token that stays held.
static NO_ENTRY: AtomicU64 = AtomicU64::new(0);
static NO_TOKEN: AtomicU32 = AtomicU32::new(1);
const FORGOTTEN: u64 = u64::MAX;

/// The words of the last full look that found nothing.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Glance {
    entry: NonNull<AtomicU64>,
    empty: u64,
    token: NonNull<AtomicU32>,
    bell: NonNull<AtomicU64>,
    epoch: u64,
    generation: u32,
    upheavals: u32,
    /// `taken` at that look.
    taken_then: u64,
    /// Calls that receive, so far.
    taken: u64,
}

const _: () = assert!(size_of::<Glance>() == 64);

// SAFETY: the words are atomics in mappings that the reader keeps, or statics; nothing is bound to
// a thread.
unsafe impl Send for Glance {}

/// What changed in this process that no word of a publisher shows.
#[inline]
pub(super) fn upheavals() -> u32 {
    if fault("glance.cut_unseen") {
        return 0;
    }
    // Both only grow.
    sigbus::replaced().wrapping_add(deaths_proved())
}

impl Glance {
    pub(super) fn new() -> Self {
        Self {
            entry: NonNull::from(&NO_ENTRY),
            empty: 0,
            token: NonNull::from(&NO_TOKEN),
            bell: NonNull::from(&NO_ENTRY),
            epoch: 0,
            generation: 0,
            upheavals: 0,
            taken_then: FORGOTTEN,
            taken: 0,
        }
    }

    /// Notes `n` tries to receive; whether they pass a multiple of `every`.
    #[inline]
    pub(super) fn count(&mut self, n: u64, every: u64) -> bool {
        let before = self.taken;
        self.taken += n;
        self.taken / every != before / every
    }

    /// Whether a full look would find nothing; `false` where only that can tell.
    ///
    /// # Real-time
    /// Six loads.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        if self.taken_then != self.taken {
            return false;
        }
        // SAFETY: not forgotten, so as in `remember`.
        let (entry, token, bell) =
            unsafe { (self.entry.as_ref(), self.token.as_ref(), self.bell.as_ref()) };
        entry.load(Relaxed) == self.empty
            && robust::is_alive_word(token.load(Relaxed))
            && bell.load(Relaxed) == self.epoch
            && upheavals() == self.upheavals
            && fork::fork_generation() == self.generation
    }

    /// A full look found nothing. `source`: the word of the entry at the cursor of the only
    /// publisher, what it said, and that publisher's token; `bell`: where it was at `epoch`;
    /// `before`: the `upheavals` before that look.
    ///
    /// # Safety
    /// The words live until `forget`, or until the glance is dropped.
    pub(super) unsafe fn remember(
        &mut self,
        source: Option<(&AtomicU64, u64, &AtomicU32)>,
        (bell, epoch): (&AtomicU64, u64),
        before: u32,
    ) {
        let (entry, empty, token) = source.unwrap_or((&NO_ENTRY, 0, &NO_TOKEN));
        *self = Self {
            entry: NonNull::from(entry),
            empty,
            token: NonNull::from(token),
            bell: NonNull::from(bell),
            epoch,
            generation: fork::fork_generation(),
            upheavals: before,
            taken_then: self.taken,
            taken: self.taken,
        };
    }

    /// The next look is a full one.
    pub(super) fn forget(&mut self) {
        self.taken_then = FORGOTTEN;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::OpenOptions;
    use std::time::Duration;

    use crate::node::Node;
    use crate::os::fixture::TempDir;
    use crate::topic::membership::entry::ring_path;
    use crate::topic::{Event, Subscriber};
    use crate::{Publisher, WaitSet};

    fn node(dir: &TempDir) -> Node {
        Node::builder().root(dir.join("root")).name("test").open().unwrap()
    }

    fn publisher(node: &Node) -> Publisher<u64> {
        node.topic::<u64>("/a").unwrap().publisher().unwrap()
    }

    fn is_ready(subscriber: &mut Subscriber<u64>) -> bool {
        !WaitSet::new().wait(&mut [subscriber], Duration::ZERO).unwrap().is_empty()
    }

    /// Whether two looks find nothing, and the second needs only a glance.
    fn is_glanced_at(subscriber: &mut Subscriber<u64>) -> bool {
        !is_ready(subscriber) && subscriber.reader.glance.is_idle() && !is_ready(subscriber)
    }

    #[test]
    fn an_idle_subscriber_is_glanced_at_until_something_changes() {
        let dir = TempDir::new("glance");
        let n = node(&dir);
        let mut subscriber = n.topic::<u64>("/a").unwrap().subscriber().unwrap();
        assert!(is_glanced_at(&mut subscriber), "without a publisher");
        let one = publisher(&n);
        assert!(is_ready(&mut subscriber));
        assert!(matches!(subscriber.next_event(), Some(Event::PublisherJoined(_))));
        for value in 0..100 {
            assert!(is_glanced_at(&mut subscriber), "before {value}");
            one.publish(&value).unwrap();
            assert!(is_ready(&mut subscriber));
            assert_eq!(*subscriber.receive().unwrap().unwrap(), value);
        }
        assert!(is_glanced_at(&mut subscriber));
        drop(one);
        assert!(is_ready(&mut subscriber));
        assert!(matches!(subscriber.next_event(), Some(Event::PublisherLeft(_))));
        assert!(is_glanced_at(&mut subscriber), "without a publisher again");
    }

    #[test]
    fn a_subscriber_of_several_publishers_is_looked_at_fully() {
        let dir = TempDir::new("glance-two");
        let n = node(&dir);
        let (one, two) = (publisher(&n), publisher(&n));
        let mut subscriber = n.topic::<u64>("/a").unwrap().subscriber().unwrap();
        while subscriber.next_event().is_some() {}
        for publisher in [&one, &two, &one] {
            assert!(!is_ready(&mut subscriber) && !subscriber.reader.glance.is_idle());
            publisher.publish(&1).unwrap();
            assert!(is_ready(&mut subscriber));
            subscriber.receive().unwrap().unwrap();
        }
    }

    #[test]
    fn a_ring_that_is_cut_while_nothing_was_sent_is_noticed() {
        let dir = TempDir::new("glance-cut");
        let n = node(&dir);
        let one = publisher(&n);
        let mut subscriber = n.topic::<u64>("/a").unwrap().subscriber().unwrap();
        while subscriber.next_event().is_some() {}
        assert!(is_glanced_at(&mut subscriber));
        let ring = ring_path(&subscriber.reader.topic().dir, subscriber.publishers()[0]);
        OpenOptions::new().write(true).open(ring).unwrap().set_len(0).unwrap();
        assert!(is_ready(&mut subscriber));
        assert!(matches!(subscriber.next_event(), Some(Event::PublisherCorrupt { .. })));
        drop(one);
    }
}
