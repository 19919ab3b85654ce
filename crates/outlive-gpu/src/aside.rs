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

/// Longest wait for the device when something that it may use is dropped.
pub(crate) const DROP_WAIT: Duration = Duration::from_secs(1);

/// Without a context: why.
type Call = Box<dyn FnOnce(&Api, Result<Context>) + Send>;

/// See the module.
#[derive(Debug)]
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

    /// Makes `call`, with the context current, after all that came before it. Not in a forked
    /// child.
    ///
    /// # Errors
    /// `Timeout`: it has not answered within `timeout`, and may be made later. `Driver`: without a
    /// context it is never made.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        timeout: Duration,
        call: impl FnOnce(&Api) -> T + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = sync_channel(1);
        let call: Call = Box::new(move |api, context| {
            // Nobody may wait for the answer any more.
            let _ = answer.send(context.map(|_context| call(api)));
        });
        let _ = self.calls.send(call);
        answered.recv_timeout(timeout).unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Timeout,
                format!("waiting {} ms for the device", timeout.as_millis()),
                "look for what keeps it; what it may touch stays reserved",
            ))
        })
    }

    /// The same for what answers whether it was done; false where that is not known.
    pub(crate) fn does(
        &self,
        timeout: Duration,
        call: impl FnOnce(&Api) -> bool + Send + 'static,
    ) -> bool {
        self.call(timeout, call).unwrap_or(false)
    }
}

/// For as long as the process lives.
fn run(api: &Api, context: ContextHandle, waiting: Receiver<Call>) {
    for call in waiting {
        call(api, Context::enter(api, context.0));
    }
}
