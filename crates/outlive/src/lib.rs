//! Shared-memory messaging and locks for the processes of a robot on one Linux machine. Kill any
//! process at any instruction: nobody else hangs, nothing torn is read, nothing committed is
//! lost, and nothing is left behind.
//!
//! | to | use | guide |
//! |---|---|---|
//! | publish the newest data to many | [`Publisher`], [`Subscriber`] | [`topic`] |
//! | send work to one consumer | [`Producer`], [`Consumer`] | [`queue`] |
//! | send requests, get replies | [`Client`], [`Server`] | [`service`] |
//! | share data under a lock | [`lock::RobustMutex`] and others | [`lock`] |
//! | detect a process's death | [`Node::watch`] | [`Watch`] |
//! | wait for several of these | [`WaitSet`] | [`WaitSet`] |
//! | run a control loop | channels, stages, lifelines | [`rt`] |
//! | inspect a domain from outside | [`Domain`] | [`Domain`] |
//!
//! # Node and topics
//!
//! A process joins a domain, a directory of the RAM disk, by opening a [`Node`]; the node opens
//! everything else by name. The examples below open theirs in a directory of their own; programs
//! write `Node::open("planner")`. [`message`](macro@message) turns a struct into a message.
//!
//! ```
//! #[outlive::message("robot/Pose")]
//! struct Pose {
//!     x_m: f64,
//!     y_m: f64,
//! }
//!
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! let publisher = node.topic::<Pose>("/pose")?.publisher()?;
//! let mut subscriber = node.topic::<Pose>("/pose")?.subscriber()?;
//! publisher.publish(&Pose { x_m: 1.5, y_m: 0.0 })?;
//! let pose = subscriber.receive()?.expect("sent just now");
//! assert_eq!((pose.x_m, pose.lost_before()), (1.5, 0));
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Queues
//!
//! Many producers, one consumer. Nothing is overwritten: a full lane grows, then senders wait. A
//! message counts as received when it is dropped; if the consumer dies first, the next one gets it.
//!
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! let mut consumer = node.queue::<u32>("/orders")?.consumer()?;
//! let mut producer = node.queue::<u32>("/orders")?.producer()?;
//! producer.send(&7)?;
//! drop(consumer); // leaves before it receives; a kill does the same
//! let mut successor = node.queue::<u32>("/orders")?.consumer()?;
//! assert_eq!(*successor.receive()?.expect("waiting here"), 7);
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Services
//!
//! Requests and answers, with deadlines. A client whose server dies gets an error at once.
//!
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use std::time::Duration;
//!
//! let mut server = node.service::<f64, f64>("/root")?.server()?;
//! let mut client = node.service::<f64, f64>("/root")?.client()?;
//! std::thread::scope(|scope| -> outlive::Result<()> {
//!     scope.spawn(move || {
//!         let request = server.receive_timeout(Duration::from_secs(5))?.expect("sent below");
//!         let root = request.sqrt();
//!         server.respond(request, &root)
//!     });
//!     assert_eq!(*client.call_timeout(&2.25, Duration::from_secs(5))?, 1.5);
//!     Ok(())
//! })?;
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Locks
//!
//! A lock outlives its owner: the next thread gets it with the data and `OwnerDied`.
//!
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::lock::LockError;
//!
//! let battery = node.mutex::<f64>("/battery")?;
//! let mut charge = match battery.lock() {
//!     Ok(guard) => guard,
//!     Err(LockError::OwnerDied(mut left)) => {
//!         *left = 0.0; // it may be half written: repair it
//!         left.mark_consistent()
//!     }
//!     Err(e) => return Err(e.into()),
//! };
//! *charge += 0.5;
//! # drop(charge);
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Who is alive, and waiting
//!
//! A [`WaitSet`] waits for messages, deaths, timers, file descriptors and signals together. A
//! publisher that is killed wakes it, too.
//!
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! # let planner = outlive::Node::builder().root(dir.path()).name("planner").open()?;
//! use std::time::Duration;
//!
//! let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
//! let mut watch = node.watch(planner.id())?;
//! drop(planner); // leaves; a kill wakes the set, too
//! let mut set = outlive::WaitSet::new();
//! let ready = set.wait(&mut [&mut poses, &mut watch], Duration::from_secs(5))?;
//! assert!(ready.contains(1));
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Real time
//!
//! Channels that never wait, between threads or processes; stages with absolute release times; a
//! lifeline that stops the robot when one of them dies or is late.
//!
//! ```
//! use outlive::rt;
//!
//! let (mut plan, mut planned) = rt::latest::<[f64; 6]>();
//! plan.write(&[0.1; 6])?;
//! plan.write(&[0.2; 6])?;
//! assert_eq!(planned.read()?.map(|newest| newest.value), Some([0.2; 6]));
//! # Ok::<(), outlive::rt::Lost>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `derive` | yes | [`message`](macro@message) |
//! | `msgpack` | yes | [`MsgPack`]: any serde type on topics and services |
//! | `async` | no | [`Subscriber`] as a `futures::Stream`, on any executor |
#![cfg_attr(docsrs, feature(doc_cfg))]
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
#[doc(hidden)]
pub use node::AtExit;
pub use node::{Node, NodeBuilder, NodeId, Watch};
pub use os::time::deadline::Deadline;
pub use queue::consumer::{Consumer, received::Received};
pub use queue::producer::Producer;
pub use service::{client::Client, server::Server};
pub use topic::publisher::{Publisher, loan::Loan};
pub use topic::subscriber::{Subscriber, sample::Sample};
#[cfg(feature = "msgpack")]
#[doc(inline)]
pub use topic::values::msgpack;
#[cfg(feature = "msgpack")]
pub use types::value::msgpack::MsgPack;
pub use types::{
    Codec, DecodeValue, EncodeValue, Encoded, Encoding, Headed, Message, Payload, PayloadType,
    TypeDescription, Validity, describe, msg,
};
pub use wait::{Descriptor, Interrupt, Ready, Shutdown, Timer, WaitSet, Waitable};
pub use zerocopy;

/// Makes a struct, or an enum without data, a [`Message`]: it fixes the layout (`#[repr(C)]`),
/// has the compiler check that there is no padding, defines which bytes are valid, and describes
/// the fields for tools and other languages. You need no other derive and no other dependency.
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
/// affected. A type without such fields is not checked, which costs nothing. Data of locks and
/// values of real-time channels are never checked; only such types are allowed there.
///
/// Derive `Clone`, `Copy`, `Debug` and the like yourself; a few calls need them
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

/// From now on a fatal fault in any thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
/// SIGTRAP, so also `abort`) kills the process at once, as SIGKILL does. A process that may write
/// a core does that first, and until it is written its locks stay held and nobody learns of its
/// death: 17 s for 1 GB. The price: no core, no message from a handler.
///
/// The environment variable `OUTLIVE_KILL_ON_FAULTS=1` does the same when a node is opened, in
/// every language. A handler installed later gets the signal again. A thread that overflows its
/// stack needs an alternate signal stack (Rust's threads have one), else its core is written.
///
/// # Real-time
/// Seven system calls, once.
///
/// # Examples
/// Compiled but not run: it ends its process.
/// ```no_run
/// outlive::kill_on_faults(); // first thing in `main`
/// let node = outlive::Node::open("arm")?;
/// let brake = node.mutex::<f64>("/brake")?;
/// let held = brake.lock()?;
/// std::process::abort(); // writes no core, so the next owner gets `OwnerDied` at once
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn kill_on_faults() {
    os::process::faults::kill_on_faults();
}

/// Now, ns of CLOCK_MONOTONIC: the clock of all deadlines and time stamps.
///
/// # Examples
/// ```
/// let start_ns = outlive::now_ns();
/// let header = outlive::msg::Header::now("base_link"); // stamped by the same clock
/// assert!((start_ns..=outlive::now_ns()).contains(&header.stamp_ns));
/// ```
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

    /// Differs between a process and its forked children, whose number may be the same in a PID
    /// namespace of their own.
    pub fn fork_generation() -> u32 {
        crate::os::process::fork::fork_generation()
    }

    /// Forces the path without `futex_waitv` (false) or lets the kernel decide (true).
    pub fn set_waitv(on: bool) {
        crate::os::sleep::futex::set_waitv_for_tests(on);
    }

    /// Longest sleep before everything is looked at again, ns; long enough, a lost wake shows.
    pub fn set_slice_ns_max(ns: u64) {
        crate::os::sleep::slice::set_slice_ns_max(ns);
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
