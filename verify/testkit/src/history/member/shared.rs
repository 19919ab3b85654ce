//! What the threads of a member share.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use outlive::{Interrupt, Node, NodeBuilder};

use super::things::Thing;
use crate::history::step::{Handle, Step};

/// By thread and handle.
type Lent = BTreeMap<(usize, Handle), Arc<Interrupt>>;

#[derive(Clone)]
pub(super) struct Shared {
    root: PathBuf,
    pub(super) things: Arc<Mutex<BTreeMap<Handle, Thing>>>,
    /// A limit was lowered before: what could not be opened is tried again.
    pub(super) was_limited: Arc<AtomicBool>,
    /// How often somebody was about to wait for a notification.
    pub(super) sleeps: Arc<AtomicU64>,
    /// Shares of interrupts, for the threads that are to wait for them.
    lent: Arc<Mutex<Lent>>,
    /// Messages sent, by handle.
    pub(super) sent: Arc<Mutex<BTreeMap<Handle, u64>>>,
}

impl Shared {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            things: Arc::default(),
            was_limited: Arc::default(),
            sleeps: Arc::default(),
            lent: Arc::default(),
            sent: Arc::default(),
        }
    }

    pub(super) fn take(&self, handle: Handle) -> Thing {
        let taken = self.things.lock().unwrap().remove(&handle);
        taken.unwrap_or_else(|| panic!("there is no handle {handle}"))
    }

    /// Of what others may use meanwhile, and drop, a share is kept for who is to wait for it.
    pub(super) fn lend(&self, step: &Step) {
        let things = self.things.lock().unwrap();
        for handle in step.waited_for() {
            if let Some(Thing::Interrupt(it)) = things.get(&handle) {
                self.lent.lock().unwrap().insert((step.thread, handle), it.clone());
            }
        }
    }

    /// That share, or the thing itself.
    pub(super) fn borrow(&self, thread: usize, handle: Handle) -> Thing {
        let lent = self.lent.lock().unwrap().remove(&(thread, handle));
        lent.map_or_else(|| self.take(handle), Thing::Interrupt)
    }

    /// Puts back what `borrow` gave.
    pub(super) fn give_back(&self, handle: Handle, thing: Thing) {
        if !matches!(thing, Thing::Interrupt(_)) {
            self.put(handle, thing);
        }
    }

    pub(super) fn put(&self, handle: Handle, thing: Thing) {
        self.things.lock().unwrap().insert(handle, thing);
    }

    pub(super) fn node(&self, handle: Handle) -> Node {
        match self.things.lock().unwrap().get(&handle) {
            Some(Thing::Node(node)) => node.clone(),
            _ => panic!("handle {handle} is not a node"),
        }
    }

    pub(super) fn settings(&self) -> NodeBuilder {
        let here = if MOVED.load(Relaxed) { std::env::current_dir().ok() } else { None };
        let root = here.map_or_else(|| self.root.clone(), |here| relative(&self.root, &here));
        Node::builder().root(root).domain("h")
    }

    pub(super) fn change_directory(&self, to: u64) -> io::Result<()> {
        MOVED.store(true, Relaxed);
        match to {
            0 => std::env::set_current_dir("/"),
            1 => std::env::set_current_dir(self.root.parent().unwrap_or(&self.root)),
            _ => {
                let gone = std::env::temp_dir().join(format!("gone-{}", std::process::id()));
                std::fs::create_dir(&gone)?;
                std::env::set_current_dir(&gone)?;
                std::fs::remove_dir(&gone)
            }
        }
    }
}

/// The process has changed its directory.
static MOVED: AtomicBool = AtomicBool::new(false);

/// The way from `here` to `to`, both absolute.
fn relative(to: &Path, here: &Path) -> PathBuf {
    let common = to.components().zip(here.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}
