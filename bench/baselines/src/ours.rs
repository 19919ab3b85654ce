//! outlive's.

use std::path::Path;

use outlive::lock::{Guard, Inherited, LockError, LockResult, RobustMutex, RobustRwLock};
use outlive::{Message, Node, Result};

use crate::{Lock, Told, Use};

/// outlive's mutex.
#[derive(Clone, Copy, Debug)]
pub struct OursMutex;

/// outlive's reader/writer lock.
#[derive(Clone, Copy, Debug)]
pub struct OursRwLock;

fn node(dir: &Path) -> Result<Node> {
    let node = Node::builder().root(dir.join("root")).name("lock").open()?;
    // The thread's registration is not part of what is measured.
    drop(node.mutex::<u64>("/warm-up")?.lock());
    Ok(node)
}

/// A turn of who is alone inside, and may repair.
#[inline(always)]
fn turn<G: Guard>(taken: LockResult<G, Inherited<G>>, inside: impl FnOnce(Told)) {
    match taken {
        Ok(guard) => {
            inside(Told::Nothing);
            drop(guard);
        }
        Err(LockError::OwnerDied(left)) => {
            inside(Told::OwnerDied);
            drop(left.mark_consistent());
        }
        Err(_) => {}
    }
}

impl Lock for OursMutex {
    type Open = RobustMutex<u64>;
    type Keeper = RobustMutex<u64>;

    fn name(self) -> &'static str {
        "outlive mutex"
    }

    fn shares(self) -> bool {
        false
    }

    fn make(self, dir: &Path) -> Result<Self::Keeper> {
        self.open(dir)
    }

    fn open(self, dir: &Path) -> Result<Self::Open> {
        node(dir)?.mutex("/mutex")
    }
}

impl<T: Message> Use for RobustMutex<T> {
    #[inline(always)]
    fn alone(&self, inside: impl FnOnce(Told)) {
        turn(self.lock(), inside);
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        self.alone(inside);
    }
}

impl Lock for OursRwLock {
    type Open = RobustRwLock<u64>;
    type Keeper = RobustRwLock<u64>;

    fn name(self) -> &'static str {
        "outlive rwlock"
    }

    fn shares(self) -> bool {
        true
    }

    fn make(self, dir: &Path) -> Result<Self::Keeper> {
        self.open(dir)
    }

    fn open(self, dir: &Path) -> Result<Self::Open> {
        node(dir)?.rwlock("/rwlock")
    }
}

impl<T: Message> Use for RobustRwLock<T> {
    #[inline(always)]
    fn alone(&self, inside: impl FnOnce(Told)) {
        turn(self.write(), inside);
    }

    #[inline(always)]
    fn shared(&self, inside: impl FnOnce(Told)) {
        match self.read() {
            Ok(guard) => {
                inside(Told::Nothing);
                drop(guard);
            }
            // Only who is alone inside can repair.
            Err(LockError::OwnerDied(_)) => self.alone(inside),
            Err(_) => {}
        }
    }
}
