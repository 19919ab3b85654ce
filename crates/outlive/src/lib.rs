//! Shared-memory messaging for robots on one Linux machine: kill any process at any instruction,
//! and nobody else hangs, nothing committed is lost, nothing torn is read.
//!
//! Start with [`Node::open`], then [`Node::topic`], [`Node::queue`] or [`Node::service`]. What is
//! used most is here; the rest is in the modules: builders, events, ids and listings of topics in
//! [`topic`], those of queues in [`queue`], and so on.
#![deny(unsafe_code)]

// Lets derived code name this crate in here as it does elsewhere.
extern crate self as outlive;

mod admin;
#[doc(hidden)]
pub mod crash;
mod domain;
mod error;
pub mod lock;
mod node;
mod os;
pub mod queue;
pub mod rt;
pub mod service;
mod sync;
pub mod topic;
mod types;
mod wait;

pub use admin::{AuditReport, CleanReport, Domain, NodeInfo};
pub use domain::header::LAYOUT_VERSION;
pub use domain::name::NAME_BYTES_MAX;
pub use error::{Error, ErrorKind, Refusal, Result};
pub use node::{Node, NodeBuilder, NodeId, Watch};
pub use os::time::deadline::Deadline;
pub use queue::consumer::{Consumer, received::Received};
pub use queue::producer::Producer;
pub use service::{client::Client, server::Server};
#[cfg(feature = "msgpack")]
#[doc(inline)]
pub use topic::msgpack;
pub use topic::publisher::{Publisher, loan::Loan};
pub use topic::subscriber::{Subscriber, sample::Sample};
#[cfg(feature = "msgpack")]
pub use types::msgpack::MsgPack;
pub use types::{Encoding, Headed, Message, Payload, PayloadType, TypeDescription, describe, msg};
pub use wait::{Descriptor, Interrupt, Ready, Shutdown, Timer, WaitSet, Waitable};
pub use zerocopy;

/// Implements [`trait@Message`] for a struct, with a description of its fields.
///
/// The layout must be fixed: `#[repr(C)]` or `#[repr(transparent)]`. Every field is itself a
/// message: a number, an array, another message, [`msg::Text`], [`msg::Bool`]. That every bit
/// pattern is valid and nothing is padding is for `zerocopy` to check, whose traits are derived
/// beside it; `#[zerocopy(crate = ...)]` makes its derives find it inside this crate, so that a
/// program needs no dependency but this one.
///
/// | attribute | means |
/// |---|---|
/// | `#[message(name = "robot/Pose")]` | the type's name, the same in all languages; required |
/// | `#[message(crate = "path")]` | where this crate is, if not at `outlive` |
///
/// # Examples
/// ```
/// use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy)]
/// #[zerocopy(crate = "outlive::zerocopy")]
/// #[message(name = "example/Gripper")]
/// #[repr(C)]
/// struct Gripper {
///     /// Opening, m.
///     opening_m: f32,
///     /// Force at each finger, N.
///     force_n: [f32; 2],
/// }
/// ```
///
/// What is no struct of fixed layout does not compile, and the message says why:
/// ```compile_fail
/// #[derive(outlive::Message)]
/// #[message(name = "example/Mode")]
/// #[repr(u8)]
/// enum Mode {
///     Idle,
///     Driving,
/// }
/// ```
/// ```compile_fail
/// #[derive(outlive::Message)]
/// #[message(name = "example/Loose")]
/// struct Loose {
///     order_of_fields_is_up_to_the_compiler: u8,
/// }
/// ```
/// ```compile_fail
/// #[derive(outlive::Message)]
/// #[repr(C)]
/// struct Nameless {
///     x: f64,
/// }
/// ```
#[cfg(feature = "derive")]
pub use outlive_derive::Message;

/// From here on a fatal fault in any thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
/// SIGTRAP, so also `abort`) kills the process at once, as SIGKILL does. A process that may write
/// a core does that first, and until it is written its locks stay held and its death untold: 17 s
/// for 1 GB. The price: no core, no message of a handler.
///
/// The environment variable `OUTLIVE_KILL_ON_FAULTS=1` does the same when a node is opened, in
/// every language. Whoever installs a handler later has the signal again. A thread that overflows
/// its stack needs an alternate signal stack (Rust's threads have one), else its core is written.
///
/// # Real-time
/// Seven system calls, once.
pub fn kill_on_faults() {
    os::process::faults::kill_on_faults();
}

/// Now, ns of CLOCK_MONOTONIC: the clock of all deadlines and time stamps.
pub fn now_ns() -> u64 {
    os::time::clock::now_ns()
}

// Ends may move to another thread; what describes things may be shared.
const _: fn() = || {
    fn moves<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    moves::<(Publisher<u64>, Subscriber<u64>, Sample<u64>)>();
    moves::<(Producer<u64>, Consumer<u64>, Client<u64, u64>, Server<u64, u64>, WaitSet)>();
    is_shared::<(Node, Watch, Domain, Interrupt, Shutdown, Error, TypeDescription, PayloadType)>();
};

/// What tests and tools of this repository need of the inside; no promise to anybody else.
#[doc(hidden)]
pub mod internals {
    /// Every kind of error, for tests that each language knows it.
    pub const ERROR_KINDS: &[crate::ErrorKind] = &crate::ErrorKind::ALL;

    /// Forces the path without `futex_waitv` (false) or lets the kernel decide (true).
    pub fn set_waitv(on: bool) {
        crate::os::sleep::futex::set_waitv_for_tests(on);
    }

    /// Longest sleep before everything is looked at again, ns; long enough, a lost wake shows.
    pub fn set_slice_ns_max(ns: u64) {
        crate::node::set_slice_ns_max(ns);
    }

    /// Pins the calling thread to one core.
    ///
    /// # Errors
    /// When the core does not exist or is not allowed.
    pub fn pin(cpu: usize) -> crate::Result<()> {
        crate::os::process::sched::pin_current(cpu)
    }
}

/// A directory of its own for each example, removed at the end.
#[doc(hidden)]
pub fn doc_dir() -> DocDir {
    let name =
        format!("outlive-doc-{}-{:x}", std::process::id(), os::process::sched::random_u128());
    DocDir(std::env::temp_dir().join(name))
}

/// See [`doc_dir`].
#[doc(hidden)]
#[derive(Debug)]
pub struct DocDir(std::path::PathBuf);

impl DocDir {
    /// The directory.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for DocDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
