//! Calls of the driver that wait for the whole device, for those who must not wait for it for ever.
//!
//! # Theory of operation
//! Whoever frees or unregisters memory waits in the driver until the device is done, and the driver
//! knows no deadline. A thread may hold a stream that it would let go only after that. So the call
//! is made by a thread of ours, and its caller waits a while. The thread is there from the start:
//! where the last memory is to be given back, none may be left to start. A call that takes longer
//! is not taken back: what was given up is freed and unregistered once the device is done.
#![allow(unsafe_code)]

use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;

use crate::context::Context;
use crate::driver::{Api, Handle};
use crate::{Error, ErrorKind, Result};

type Call = Box<dyn FnOnce(&Api) + Send>;

/// See the module.
pub(crate) struct Aside {
    calls: Sender<Call>,
}

struct ContextHandle(Handle);

// SAFETY: the driver's handles may be used from any thread; it locks by itself.
unsafe impl Send for ContextHandle {}

impl Aside {
    /// # Errors
    /// `Io` without a thread.
    pub(crate) fn start(api: Api, context: Handle) -> Result<Self> {
        let (calls, waiting) = channel();
        let context = ContextHandle(context);
        std::thread::Builder::new()
            .name("outlive-gpu-free".into())
            .spawn(move || run(&api, context, waiting))
            .map_err(|e| {
                let what = format!("starting a thread that gives memory back ({e})");
                Error::new(ErrorKind::Io, what, "open the device where threads can be started")
            })?;
        Ok(Self { calls })
    }

    /// Makes `call`, with the context current. Whether it has answered true within `timeout`;
    /// without a context it is never made. Not in a forked child.
    pub(crate) fn call(
        &self,
        timeout: Duration,
        call: impl FnOnce(&Api) -> bool + Send + 'static,
    ) -> bool {
        let (answer, answered) = sync_channel(1);
        let call: Call = Box::new(move |api| {
            // Nobody may wait for the answer any more.
            let _ = answer.send(call(api));
        });
        self.calls.send(call).is_ok() && answered.recv_timeout(timeout).unwrap_or(false)
    }
}

/// For as long as the process lives.
fn run(api: &Api, context: ContextHandle, waiting: Receiver<Call>) {
    for call in waiting {
        if let Ok(_context) = Context::enter(api, context.0) {
            call(api);
        }
    }
}
