//! The C interface of outlive: `include/outlive.h` is made from these files.
//!
//! # Theory of operation
//! Handles are boxes behind opaque pointers; what a caller gets with every message (samples, loans)
//! lies in structs of the caller's own, so that the hot path does not allocate. Pointers come as
//! `Option<&T>`: NULL is an `OUTLIVE_INVALID_ARGUMENT`. That handles are valid, and used by one
//! thread at a time where the header says so, is the C caller's part of the contract.
//!
//! No panic crosses the boundary: it becomes `OUTLIVE_INTERNAL`.
//!
//! | file | what |
//! |---|---|
//! | `status` | error numbers, details, panics |
//! | `types` | payload types made from descriptions |
//! | `msg` | ready-made messages |
//! | `options` | settings of other versions |
//! | `node` | nodes, watching them |
//! | `publisher`, `subscriber` | topics |
//! | `queue`, `service`, `server`, `lock`, `sync`, `wait`, `shutdown` | the rest |
//! | `domain` | a domain seen from outside |
#![allow(non_camel_case_types)]

mod domain;
mod lock;
mod msg;
mod node;
mod options;
mod publisher;
mod queue;
mod server;
mod service;
mod shutdown;
mod status;
mod subscriber;
mod sync;
mod types;
mod wait;

pub use domain::*;
pub use lock::*;
pub use msg::*;
pub use node::*;
pub use publisher::*;
pub use queue::*;
pub use server::*;
pub use service::*;
pub use shutdown::*;
pub use status::*;
pub use subscriber::*;
pub use sync::*;
pub use types::*;
pub use wait::*;
