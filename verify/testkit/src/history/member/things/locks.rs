//! Locks, and what a thread holds of one.

use std::sync::Arc;

use outlive::lock::{
    Inherited, MutexGuard, PiGuard, PiMutex, ReadGuard, RobustMutex, RobustRwLock, WriteGuard,
};

use crate::history::step::Step;

/// What a lock of a history protects: equal words, where nobody was stopped half way.
pub(crate) type Data = [u64; 4];

/// A lock of either kind.
#[derive(Clone)]
pub(crate) enum Lock {
    Mutex(Arc<RobustMutex<Data>>),
    Rw(Arc<RobustRwLock<Data>>),
    Pi(Arc<PiMutex<Data>>),
}

pub(crate) enum Held {
    Mutex(MutexGuard<'static, Data>),
    MutexLeft(Inherited<MutexGuard<'static, Data>>),
    Read(ReadGuard<'static, Data>),
    Write(WriteGuard<'static, Data>),
    WriteLeft(Inherited<WriteGuard<'static, Data>>),
    Pi(PiGuard<'static, Data>),
    PiLeft(Inherited<PiGuard<'static, Data>>),
}

/// What a thread holds; it goes before the lock that is kept for it.
pub(crate) struct Guard(pub(crate) Held, pub(crate) Lock);

impl Guard {
    pub(crate) fn write(&mut self, step: &Step) {
        let words = if step.arg("half") == 1 { 2 } else { 4 };
        let data: &mut Data = match &mut self.0 {
            Held::Mutex(guard) => guard,
            Held::MutexLeft(guard) => guard,
            Held::Write(guard) => guard,
            Held::WriteLeft(guard) => guard,
            Held::Pi(guard) => guard,
            Held::PiLeft(guard) => guard,
            Held::Read(_) => panic!("a reader does not write"),
        };
        data[..words].fill(step.arg("value"));
    }

    /// What it protects, as it is.
    pub(crate) fn data(&self) -> Vec<u64> {
        match &self.0 {
            Held::Mutex(guard) => guard.to_vec(),
            Held::MutexLeft(guard) => guard.to_vec(),
            Held::Read(guard) => guard.to_vec(),
            Held::Write(guard) => guard.to_vec(),
            Held::WriteLeft(guard) => guard.to_vec(),
            Held::Pi(guard) => guard.to_vec(),
            Held::PiLeft(guard) => guard.to_vec(),
        }
    }

    pub(crate) fn forget(self) {
        let Self(held, lock) = self;
        std::mem::forget(held);
        drop(lock);
    }
}
