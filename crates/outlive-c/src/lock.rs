//! Robust locks, by name or in the user's own shared memory.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use outlive::lock::{Acquired, LockError, LockResult, RawMutex, RawRwLock};
use outlive::{Deadline, ErrorKind, Node, PayloadType};

use crate::node::outlive_node;
use crate::status::{Done, Fail, bytes, need, outlive_status, run, text};
use crate::types::outlive_type;

/// A mutex whose owner may be killed at any instruction. Any number of threads may use one handle;
/// the owner is a thread.
#[derive(Debug)]
pub struct outlive_mutex {
    pub(crate) mutex: RawMutex,
}

/// A reader/writer lock whose holders may be killed at any instruction. Any number of threads may
/// use one handle; at most 64 read at once.
#[derive(Debug)]
pub struct outlive_rwlock {
    lock: RawRwLock,
}

/// How a lock call ended. What is no error leaves no detail.
fn taken<G>(result: LockResult<Acquired, G>) -> Done {
    match result {
        Ok(Acquired::Clean) => Ok(()),
        Ok(Acquired::OwnerDied) => Err(Fail::Quiet(outlive_status::OUTLIVE_OWNER_DIED)),
        Err(e) => Err(refused(e)),
    }
}

pub(crate) fn refused<G>(e: LockError<G>) -> Fail {
    match e.kind() {
        kind @ (ErrorKind::Timeout | ErrorKind::WouldBlock) => Fail::Quiet(kind.into()),
        _ => Fail::Error(e.into()),
    }
}

/// The first value of protected data; NULL is zero bytes.
fn first_value<'a>(of: &PayloadType, value: *const c_void) -> Result<Option<&'a [u8]>, Fail> {
    if value.is_null() { Ok(None) } else { bytes(value, of.size()).map(Some) }
}

/// Opens a lock with data, whose first value may be given.
type WithData<L> = fn(&Node, &str, &PayloadType, Option<&[u8]>) -> outlive::Result<L>;

/// The lock `name` of `node`, as `plain` or, with data, `with_data` opens it.
fn opened<L>(
    node: &outlive_node,
    name: *const c_char,
    of: Option<&outlive_type>,
    value: *const c_void,
    plain: fn(&Node, &str) -> outlive::Result<L>,
    with_data: WithData<L>,
) -> Result<L, Fail> {
    let (node, name) = (&node.node, text(name, "a lock name")?);
    Ok(match of {
        Some(of) => with_data(node, name, &of.of, first_value(&of.of, value)?)?,
        None => plain(node, name)?,
    })
}

/// Opens the mutex `name` of the node's domain, or creates it. `of`: the type of the data it
/// protects, NULL for none; it is the same lock as a Rust `RobustMutex` of that type. The creator
/// stores `value`, which has the type's size; NULL means zeros.
///
/// `OUTLIVE_TYPE_MISMATCH` when the name is of another type or kind of object. The type's name,
/// size and alignment are compared; its fields, unlike those of a port's type, are not.
///
/// Example:
///
///     outlive_mutex *mutex;
///     must(outlive_mutex_open(node, "/robot/goal", type, NULL, &mutex));
///     struct pose *goal = outlive_mutex_data(mutex);
///     outlive_status status = outlive_mutex_lock(mutex, OUTLIVE_FOREVER);
///     if (status == OUTLIVE_OWNER_DIED) {
///         *goal = (struct pose){0}; // repair what the last owner left half done
///         status = outlive_mutex_mark_consistent(mutex);
///     }
///     must(status);
///     goal->x += 1.0;
///     must(outlive_mutex_unlock(mutex));
///     outlive_mutex_free(mutex);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    value: *const c_void,
    out: Option<&mut MaybeUninit<*mut outlive_mutex>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let mutex = opened(node, name, of, value, RawMutex::open, RawMutex::open_with)?;
        out.write(Box::into_raw(Box::new(outlive_mutex { mutex })));
        Ok(())
    })
}

/// Removes the lock, condition variable, semaphore, set or segment `name`; opening it creates it
/// again. `removed`, unless NULL, gets whether there was one.
///
/// `OUTLIVE_WOULD_BLOCK`: somebody has it open. An unrecoverable lock is removed even then: its
/// users get `OUTLIVE_UNRECOVERABLE` until they open it again.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_lock_remove(
    node: Option<&outlive_node>,
    name: *const c_char,
    removed: Option<&mut MaybeUninit<bool>>,
) -> outlive_status {
    run(|| {
        let node = need(node, "a node")?;
        let was_there = node.node.remove_lock(text(name, "a lock name")?)?;
        if let Some(removed) = removed {
            removed.write(was_there);
        }
        Ok(())
    })
}

/// As `outlive_mutex_open`, with priority inheritance, for threads with real-time priorities: while
/// a thread waits, the holder runs with that thread's priority. It is the same lock as a Rust
/// `PiMutex`; all calls on an `outlive_mutex` work on it, but it has no condition variable
/// (`OUTLIVE_UNSUPPORTED`), cannot lie in memory of your own, and must be released through the
/// handle that took it.
///
/// `OUTLIVE_UNSUPPORTED`: its members are in another PID namespace.
///
/// Example:
///
///     outlive_mutex *bus;
///     must(outlive_pi_mutex_open(node, "/motors/bus", NULL, NULL, &bus));
///     outlive_status status = outlive_mutex_lock(bus, outlive_now_ns() + 1000000); // 1 ms
///     if (status == OUTLIVE_OWNER_DIED) {
///         status = outlive_mutex_mark_consistent(bus); // it has no data to repair
///     }
///     if (status == OUTLIVE_OK) {
///         must(outlive_mutex_unlock(bus));
///     }
///     outlive_mutex_free(bus);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_pi_mutex_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    value: *const c_void,
    out: Option<&mut MaybeUninit<*mut outlive_mutex>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let mutex = opened(node, name, of, value, RawMutex::open_pi, RawMutex::open_pi_with)?;
        out.write(Box::into_raw(Box::new(outlive_mutex { mutex })));
        Ok(())
    })
}

/// Bytes a mutex takes in memory of your own, with data of type `of`, or NULL for none.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_bytes(of: Option<&outlive_type>) -> usize {
    of.map_or(RawMutex::BYTES, |of| RawMutex::bytes_with(&of.of))
}

/// Places the mutex in zeroed shared memory of your own, or finds it there. `memory` is aligned to
/// 64 or to the type, has `size` bytes, at least `outlive_mutex_bytes`, is mapped MAP_SHARED, and
/// stays mapped until the handle is freed.
///
/// Example:
///
///     size_t size = outlive_mutex_bytes(type);
///     void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
///     outlive_mutex *mutex;
///     must(outlive_mutex_place(node, memory, size, type, &mutex));
///     must(outlive_mutex_lock(mutex, OUTLIVE_FOREVER)); // then as at outlive_mutex_open
///     must(outlive_mutex_unlock(mutex));
///     outlive_mutex_free(mutex);
///     munmap(memory, size);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_place(
    node: Option<&outlive_node>,
    memory: *mut c_void,
    size: usize,
    of: Option<&outlive_type>,
    out: Option<&mut MaybeUninit<*mut outlive_mutex>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        // SAFETY: the caller's part, as the header says.
        let mutex = unsafe {
            match of {
                Some(of) => RawMutex::place_with(&node.node, memory.cast(), size, &of.of)?,
                None => RawMutex::place(&node.node, memory.cast(), size)?,
            }
        };
        out.write(Box::into_raw(Box::new(outlive_mutex { mutex })));
        Ok(())
    })
}

/// Takes the lock, waiting until `deadline_ns` for as long as its owner lives and holds it.
///
/// `OUTLIVE_OWNER_DIED`: it is taken, and its last owner died inside. Repair the data and call
/// `outlive_mutex_mark_consistent`, or leave that to the next one with `outlive_mutex_abandon`;
/// unlocking it as it is makes it unrecoverable. Otherwise it is not taken: `OUTLIVE_WOULD_BLOCK`,
/// `OUTLIVE_TIMEOUT`, `OUTLIVE_DEADLOCK` when this thread holds it already,
/// `OUTLIVE_UNRECOVERABLE` (see `outlive_lock_remove`).
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_lock(
    mutex: Option<&outlive_mutex>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let mutex = &need(mutex, "a mutex")?.mutex;
        taken(mutex.lock_until(Deadline::at_ns(deadline_ns)))
    })
}

/// Releases the lock. `OUTLIVE_NOT_OWNED` when the calling thread does not hold it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_unlock(mutex: Option<&outlive_mutex>) -> outlive_status {
    run(|| Ok(need(mutex, "a mutex")?.mutex.unlock()?))
}

/// Releases the lock with its data inconsistent, left so by the caller or inherited from a dead
/// owner: the next one to lock gets `OUTLIVE_OWNER_DIED`. Else as `outlive_mutex_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_abandon(mutex: Option<&outlive_mutex>) -> outlive_status {
    run(|| Ok(need(mutex, "a mutex")?.mutex.unlock_in_disorder()?))
}

/// Declares the data inherited from a dead owner consistent again. Data that is consistent already
/// stays so. `OUTLIVE_NOT_OWNED` when the calling thread does not hold the lock.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_mark_consistent(mutex: Option<&outlive_mutex>) -> outlive_status {
    run(|| Ok(need(mutex, "a mutex")?.mutex.mark_consistent()?))
}

/// The protected data, for the thread that holds the lock; none without a type. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_data(mutex: Option<&outlive_mutex>) -> *mut c_void {
    mutex.map_or(std::ptr::null_mut(), |mutex| mutex.mutex.data().cast())
}

/// Frees the handle. The lock stays. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_mutex_free(mutex: Option<Box<outlive_mutex>>) {
    run(|| {
        drop(mutex);
        Ok(())
    });
}

/// Opens the reader/writer lock `name`, or creates it; as `outlive_mutex_open`.
///
/// Example:
///
///     outlive_rwlock *lock;
///     must(outlive_rwlock_open(node, "/map/origin", type, NULL, &lock));
///     struct pose *origin = outlive_rwlock_data(lock);
///     outlive_status status = outlive_rwlock_write(lock, OUTLIVE_FOREVER);
///     if (status == OUTLIVE_OWNER_DIED) {
///         *origin = (struct pose){0}; // repair what the last writer left half done
///         status = outlive_rwlock_mark_consistent(lock);
///     }
///     must(status);
///     origin->x += 1.0;
///     must(outlive_rwlock_unlock_write(lock)); // readers: outlive_rwlock_read, _unlock_read
///     outlive_rwlock_free(lock);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_open(
    node: Option<&outlive_node>,
    name: *const c_char,
    of: Option<&outlive_type>,
    value: *const c_void,
    out: Option<&mut MaybeUninit<*mut outlive_rwlock>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        let lock = opened(node, name, of, value, RawRwLock::open, RawRwLock::open_with)?;
        out.write(Box::into_raw(Box::new(outlive_rwlock { lock })));
        Ok(())
    })
}

/// Bytes a reader/writer lock takes in memory of your own; as `outlive_mutex_bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_bytes(of: Option<&outlive_type>) -> usize {
    of.map_or(RawRwLock::BYTES, |of| RawRwLock::bytes_with(&of.of))
}

/// Places the lock in zeroed shared memory of your own; as `outlive_mutex_place`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_place(
    node: Option<&outlive_node>,
    memory: *mut c_void,
    size: usize,
    of: Option<&outlive_type>,
    out: Option<&mut MaybeUninit<*mut outlive_rwlock>>,
) -> outlive_status {
    run(|| {
        let (node, out) = (need(node, "a node")?, need(out, "out")?);
        // SAFETY: the caller's part, as the header says.
        let lock = unsafe {
            match of {
                Some(of) => RawRwLock::place_with(&node.node, memory.cast(), size, &of.of)?,
                None => RawRwLock::place(&node.node, memory.cast(), size)?,
            }
        };
        out.write(Box::into_raw(Box::new(outlive_rwlock { lock })));
        Ok(())
    })
}

/// Takes the lock for reading, waiting until `deadline_ns` while a living writer holds it.
///
/// `OUTLIVE_OWNER_DIED`: not taken; a writer died inside, and somebody must take it for writing and
/// repair the data. A dead reader keeps nobody out. Else as `outlive_mutex_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_read(
    lock: Option<&outlive_rwlock>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let lock = &need(lock, "a lock")?.lock;
        lock.read_until(Deadline::at_ns(deadline_ns)).map_err(refused)
    })
}

/// Ends reading. `OUTLIVE_NOT_OWNED` when the calling thread does not read.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_unlock_read(lock: Option<&outlive_rwlock>) -> outlive_status {
    run(|| Ok(need(lock, "a lock")?.lock.unlock_read()?))
}

/// Takes the lock for writing, waiting until `deadline_ns` for living readers and writers. Returns
/// the same as `outlive_mutex_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_write(
    lock: Option<&outlive_rwlock>,
    deadline_ns: u64,
) -> outlive_status {
    run(|| {
        let lock = &need(lock, "a lock")?.lock;
        taken(lock.write_until(Deadline::at_ns(deadline_ns)))
    })
}

/// Ends writing. `OUTLIVE_NOT_OWNED` when the calling thread does not write.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_unlock_write(lock: Option<&outlive_rwlock>) -> outlive_status {
    run(|| Ok(need(lock, "a lock")?.lock.unlock_write()?))
}

/// Ends writing with the data inconsistent; as `outlive_mutex_abandon`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_abandon(lock: Option<&outlive_rwlock>) -> outlive_status {
    run(|| Ok(need(lock, "a lock")?.lock.unlock_in_disorder()?))
}

/// Declares the data inherited from a dead writer consistent again. Data that is consistent already
/// stays so. `OUTLIVE_NOT_OWNED` when the calling thread does not write.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_mark_consistent(lock: Option<&outlive_rwlock>) -> outlive_status {
    run(|| Ok(need(lock, "a lock")?.lock.mark_consistent()?))
}

/// The protected data, for the thread that holds the lock; none without a type. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_data(lock: Option<&outlive_rwlock>) -> *mut c_void {
    lock.map_or(std::ptr::null_mut(), |lock| lock.lock.data().cast())
}

/// Frees the handle. The lock stays. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_rwlock_free(lock: Option<Box<outlive_rwlock>>) {
    run(|| {
        drop(lock);
        Ok(())
    });
}
