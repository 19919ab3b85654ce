//! A shared library opened at run time; never closed, since a driver has threads of its own.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::NonNull;

#[derive(Debug)]
pub(crate) struct Library(NonNull<c_void>);

impl Library {
    /// Opens the library of this name or path, or says why not.
    pub(crate) fn open(name: &OsStr) -> Result<Self, String> {
        let Ok(name) = CString::new(name.as_bytes()) else {
            return Err("a NUL in its name".into());
        };
        // SAFETY: runs the library's initialisers: it is the driver that the user asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Self).ok_or_else(last_error)
    }

    /// The address of a function.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle that is never closed.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

fn last_error() -> String {
    // SAFETY: a string of C of this thread, copied before the next call.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "unknown".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
