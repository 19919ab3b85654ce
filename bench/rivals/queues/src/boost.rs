//! Boost's queues between processes, see `src/boost.cpp`.

use crate::stage::Failed;

#[cfg(not(boost))]
mod missing {
    use super::Failed;

    pub fn spsc<const W: usize>(_: u64) -> Result<f64, Failed> {
        Err("no Boost headers: apt-get install libboost-dev".into())
    }

    pub fn message_queue<const W: usize>(_: u64) -> Result<f64, Failed> {
        Err("no Boost headers: apt-get install libboost-dev".into())
    }
}
#[cfg(not(boost))]
pub use missing::{message_queue, spsc};

#[cfg(boost)]
mod linked {
    use std::ffi::{CString, c_char, c_int, c_void};

    use super::Failed;
    use crate::queues::fresh;
    use crate::stage::{Shared, race};

    unsafe extern "C" {
        fn boost_spsc_bytes() -> usize;
        fn boost_spsc_make(at: *mut c_void, words: c_int);
        fn boost_spsc_send(at: *mut c_void, words: c_int, count: u64);
        fn boost_spsc_receive(at: *mut c_void, words: c_int, count: u64) -> u64;
        fn boost_mq_open(name: *const c_char, make: c_int, bytes: usize) -> *mut c_void;
        fn boost_mq_send(queue: *mut c_void, bytes: usize, count: u64) -> c_int;
        fn boost_mq_receive(queue: *mut c_void, bytes: usize, count: u64) -> u64;
        fn boost_mq_close(queue: *mut c_void, name: *const c_char);
    }

    /// `spsc_queue` in shared memory: it knows nothing of deaths.
    pub fn spsc<const W: usize>(count: u64) -> Result<f64, Failed> {
        // SAFETY: room for the queue, made before the fork, one producer, one consumer.
        unsafe {
            let map = Shared::new(boost_spsc_bytes().next_multiple_of(4096))?;
            let (at, words) = (map.at.cast::<c_void>(), W as c_int);
            boost_spsc_make(at, words);
            race(
                count,
                |ready| {
                    ready();
                    Ok(boost_spsc_receive(at, words, count))
                },
                || Ok(()),
                |()| {
                    boost_spsc_send(at, words, count);
                    Ok(())
                },
            )
        }
    }

    /// `message_queue`: a lock around a heap of messages.
    pub fn message_queue<const W: usize>(count: u64) -> Result<f64, Failed> {
        let (name, bytes) = (CString::new(fresh("mq"))?, 8 * W);
        // SAFETY: each end opens and closes its own handle of a queue of that message size.
        unsafe {
            let made = race(
                count,
                |ready| {
                    let queue = boost_mq_open(name.as_ptr(), 1, bytes);
                    if queue.is_null() {
                        return Err("Boost cannot make the queue".into());
                    }
                    ready();
                    Ok(boost_mq_receive(queue, bytes, count))
                },
                || Ok(boost_mq_open(name.as_ptr(), 0, bytes)),
                |queue| match queue.is_null() || boost_mq_send(*queue, bytes, count) != 0 {
                    true => Err("Boost cannot send".into()),
                    false => Ok(()),
                },
            );
            boost_mq_close(std::ptr::null_mut(), name.as_ptr());
            made
        }
    }
}
#[cfg(boost)]
pub use linked::{message_queue, spsc};
