//! A table of this process. A forked child has one of its own, empty.
//!
//! A plain static mutex that another thread holds at a `fork` is locked for ever in the child, and
//! what it protects may be half changed and is the parent's anyway. Here the child's first look
//! makes a new table, and the inherited one is never touched again.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr;

use crate::os::process::fork;
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::sync::{AtomicPtr, Mutex, fault};

/// Begins with `T::default()`, in each process.
#[derive(Debug)]
pub(crate) struct PerProcess<T: 'static> {
    current: AtomicPtr<Table<T>>,
    _owns: PhantomData<Mutex<T>>,
}

#[derive(Debug)]
struct Table<T> {
    generation: u32,
    value: Mutex<T>,
}

impl<T: Default + Send + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
    }

    /// This process's table, for as long as it lives.
    pub(crate) fn get(&self) -> &'static Mutex<T> {
        fork::install();
        let generation = fork::fork_generation();
        // ORDERING(PER_PROCESS): pairs with the exchange below; carries the table.
        let mut now = self.current.load(Acquire);
        loop {
            // SAFETY: null, or a table of a `Box` below, which is never freed.
            if let Some(table) = unsafe { now.as_ref() }
                && (table.generation == generation || fault("per_process.inherited"))
            {
                return &table.value;
            }
            let new =
                Box::into_raw(Box::new(Table { generation, value: Mutex::new(T::default()) }));
            // ORDERING(PER_PROCESS): pairs with the load above.
            match self.current.compare_exchange(now, new, AcqRel, Acquire) {
                // SAFETY: as above.
                Ok(_) => return unsafe { &(*new).value },
                Err(other) => {
                    // SAFETY: made above, known to nobody.
                    drop(unsafe { Box::from_raw(new) });
                    now = other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::fork_child;

    #[test]
    fn a_child_that_was_forked_inside_a_lock_has_a_table_of_its_own() {
        static NUMBERS: PerProcess<Vec<u64>> = PerProcess::new();
        let mut numbers = NUMBERS.get().lock().unwrap();
        numbers.push(7);
        let child = fork_child(|| match NUMBERS.get().try_lock() {
            Ok(own) => own.len() as i32,
            Err(_) => 100,
        });
        assert_eq!(child.wait(), 0);
        numbers.push(8);
        drop(numbers);
        assert_eq!(*NUMBERS.get().lock().unwrap(), [7, 8]);
    }
}
