//! A context of the driver, made current.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::Result;
use crate::driver::{Api, Handle};

/// CU_STREAM_CAPTURE_MODE_RELAXED.
const RELAXED: c_int = 2;

/// A context that is current; the one before is current again when it is dropped.
///
/// Meanwhile nothing that this thread asks of the driver spoils a capture of somebody else's
/// stream.
pub(crate) struct Context {
    api: Api,
    capture_mode: Option<c_int>,
}

impl Context {
    pub(crate) fn enter(api: &Api, handle: Handle) -> Result<Self> {
        // SAFETY: a context that is never given back.
        api.check(unsafe { (api.push_context)(handle) }, "cuCtxPushCurrent")?;
        let capture_mode = api.exchange_capture_mode.and_then(|exchange| {
            let mut mode = RELAXED;
            // SAFETY: a valid pointer; holds for this thread, until `drop`.
            (unsafe { exchange(&raw mut mode) } == 0).then_some(mode)
        });
        Ok(Self { api: *api, capture_mode })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut before = std::ptr::null_mut();
        // SAFETY: exchanged and pushed in `enter` by this thread.
        unsafe {
            if let (Some(exchange), Some(mut mode)) =
                (self.api.exchange_capture_mode, self.capture_mode)
            {
                exchange(&raw mut mode);
            }
            (self.api.pop_context)(&raw mut before);
        }
    }
}
