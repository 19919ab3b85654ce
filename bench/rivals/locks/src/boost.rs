//! Boost's `interprocess_sharable_mutex`.

use std::ffi::c_void;
use std::path::Path;

use outlive::{Error, ErrorKind, Result};
use outlive_baselines::{Lock, SharedFile, Told, Use};

unsafe extern "C" {
    fn boost_lock_bytes() -> usize;
    fn boost_lock_make(at: *mut c_void) -> bool;
    fn boost_lock(mutex: *mut c_void) -> bool;
    fn boost_unlock(mutex: *mut c_void);
    fn boost_lock_sharable(mutex: *mut c_void) -> bool;
    fn boost_unlock_sharable(mutex: *mut c_void);
}

/// The lock of Boost.Interprocess.
#[derive(Clone, Copy, Debug)]
pub struct BoostSharable;

/// It, in one process.
#[derive(Debug)]
pub struct OpenBoost {
    mutex: *mut c_void,
    _page: SharedFile,
}

// SAFETY: a mutex is there to be shared; its page is kept mapped.
unsafe impl Send for OpenBoost {}
// SAFETY: as above.
unsafe impl Sync for OpenBoost {}

impl Lock for BoostSharable {
    type Open = OpenBoost;
    type Keeper = OpenBoost;

    fn name(self) -> &'static str {
        "Boost sharable mutex"
    }

    fn shares(self) -> bool {
        true
    }

    fn make(self, dir: &Path) -> Result<OpenBoost> {
        let open = self.open(dir)?;
        // SAFETY: zeroes of a shared page with room for the mutex.
        if unsafe { boost_lock_make(open.mutex) } {
            return Ok(open);
        }
        Err(Error::new(ErrorKind::Unsupported, "make", "Boost's mutex", "Boost refused"))
    }

    fn open(self, dir: &Path) -> Result<OpenBoost> {
        let page = SharedFile::open(dir)?;
        // SAFETY: takes nothing.
        let mutex = page.at(0, unsafe { boost_lock_bytes() }).cast();
        Ok(OpenBoost { mutex, _page: page })
    }
}

impl Use for OpenBoost {
    fn alone(&self, inside: impl FnOnce(Told)) {
        // SAFETY: made by `make`, mapped; unlocked by the thread that locked it.
        if unsafe { boost_lock(self.mutex) } {
            inside(Told::Nothing);
            // SAFETY: as above.
            unsafe { boost_unlock(self.mutex) };
        }
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        // SAFETY: as in `alone`.
        if unsafe { boost_lock_sharable(self.mutex) } {
            inside(Told::Nothing);
            // SAFETY: as above.
            unsafe { boost_unlock_sharable(self.mutex) };
        }
    }
}
