//! The code stays loaded.
#![allow(unsafe_code)]

use crate::sync::{AtomicU32, Ordering};

/// Keeps the program or library that contains this code in memory until the process ends: threads
/// of ours run in it, and the kernel and the C library call into it when a thread ends, a process
/// forks, a mapped file is cut. A host that unloads its plugins otherwise crashes at the next of
/// these.
///
/// # Real-time
/// The first call in a process asks the dynamic linker; a child that was forked in that call does
/// without.
pub(crate) fn stay() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    if DONE.swap(1, Ordering::Relaxed) == 0 {
        ask();
    }
}

/// Other C libraries than GNU's unload nothing.
#[cfg(target_env = "gnu")]
fn ask() {
    // SAFETY: a Dl_info is pointers, filled by the call; the name is the linker's and stays while
    // the code is loaded, as it is here. Nothing is loaded that was not, and no code runs.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let here = (stay as fn()) as *const libc::c_void;
        if libc::dladdr(here, &mut info) != 0 && !info.dli_fname.is_null() {
            let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(info.dli_fname, flags);
        }
    }
}

#[cfg(not(target_env = "gnu"))]
fn ask() {}
