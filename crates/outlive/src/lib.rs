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
pub use types::{
    Encoding, Headed, Message, Payload, PayloadType, TypeDescription, Validity, describe, msg,
};
pub use wait::{Descriptor, Interrupt, Ready, Shutdown, Timer, WaitSet, Waitable};
pub use zerocopy;

/// Makes a struct, or an enum without data, a [`Message`]: it fixes the layout (`#[repr(C)]`),
/// has the compiler check that there is no padding, says which bytes are valid, and describes the
/// fields for tools and other languages. Nothing else is needed: neither a derive nor a dependency.
///
/// | written | means |
/// |---|---|
/// | `#[outlive::message("robot/Pose")]` | the type's name, the same in all languages |
/// | `#[outlive::message]` | the name is that of the Rust type, `Pose` |
/// | `#[outlive::message("robot/Pose", crate = "path")]` | this crate is not at `outlive` |
///
/// | field | is |
/// |---|---|
/// | `u8` to `u128`, `i8` to `i128`, `f32`, `f64` | a number; any bytes are one |
/// | `bool`, `char` | checked when received |
/// | `[T; N]`, another message | as its elements and fields |
/// | an enum with this macro and a width, `#[repr(u8)]` | checked; a variant has the number 0 |
/// | [`msg::Text<N>`](msg::Text) | text of at most `N` bytes |
/// | [`msg::Optional<T>`](msg::Optional) | a value that may be absent |
///
/// A message with a value that its type does not have (a `bool` of 2, an enum's number without a
/// variant) is received as the error `Corrupt`, which names the field; the next message is not
/// affected. A type without such fields is not looked at: it costs nothing. Data of locks and
/// values of real-time channels are not checked; they take such types only.
///
/// `Clone`, `Copy`, `Debug` and the like are for you to derive; a few calls ask for them
/// ([`Subscriber::copy_to`] for `Clone`, real-time channels for `Copy`).
///
/// # Examples
/// ```
/// #[outlive::message]
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// #[repr(u8)]
/// enum Mode {
///     Idle,
///     Holding,
/// }
///
/// #[outlive::message("example/Gripper")]
/// struct Gripper {
///     /// Opening, m.
///     opening_m: f32,
///     /// Force at each finger, N.
///     force_n: [f32; 2],
///     mode: Mode,
///     calibrated: bool,
///     reserved: [u8; 2], // else there would be padding: the compiler says so
/// }
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<Gripper>("/gripper")?.publisher()?;
/// let mut subscriber = node.topic::<Gripper>("/gripper")?.subscriber()?;
/// let mut gripper = publisher.loan()?; // zeros: idle, not calibrated
/// gripper.mode = Mode::Holding;
/// gripper.publish()?;
/// assert_eq!(subscriber.receive()?.expect("sent just now").mode, Mode::Holding);
/// # Ok::<(), outlive::Error>(())
/// ```
#[cfg(feature = "derive")]
pub use outlive_derive::message;

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
