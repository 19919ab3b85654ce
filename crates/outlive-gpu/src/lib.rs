//! Device memory in and out of outlive's shared memory: GPU -> shared memory -> GPU without a stop
//! in process memory, and without ever letting a dead process hurt a live one.
//!
//! The driver (`libcuda.so.1`) is opened at run time; without it [`Cuda::open`] fails with
//! [`ErrorKind::NoDriver`] and nothing else changes. `docs/book/gpu.md` has the whole story.
//!
//! | file | what |
//! |---|---|
//! | `driver`, `library` | the driver's functions, found at run time |
//! | `cuda`, `event`, `memory` | a device: its context, streams, events, memory |
//! | `pinned` | host memory that it copies fastest |
//! | `registrar` | data segments known to the driver; copies under way in them |
//! | `aside` | calls that wait for the whole device, made where nobody waits for ever |
//! | `copier` | how bytes travel: by the device, by the processor, by your own |
//! | `fill`, `take` | a loan filled by the device; a sample read by it |
//! | `gate` | a stream that waits for a peer, and never for a dead one |
//! | `share` | one device's memory in several processes |
//!
//! # Examples
//! ```
//! use outlive_gpu::{Cuda, ErrorKind};
//!
//! match Cuda::open(0) {
//!     Ok(cuda) => println!("{}", cuda.name()),
//!     Err(e) if e.kind() == ErrorKind::NoDriver => println!("host copies only: {e}"),
//!     Err(e) => println!("{e}"),
//! }
//! ```
#![deny(unsafe_code)]

mod aside;
mod context;
pub mod copier;
mod cuda;
mod device;
mod driver;
mod error;
mod event;
mod fill;
mod gate;
mod handle;
mod library;
mod memory;
mod pinned;
mod process;
mod registrar;
pub mod share;
mod take;

pub use cuda::{Cuda, StreamGuard};
pub use device::{DeviceInfo, Info};
pub use error::{Error, ErrorKind, Result};
pub use fill::{Fill, LoanExt, Rows};
pub use gate::{Gate, Look, Ticket};
pub use handle::{DevicePtr, Stream};
pub use memory::DeviceBuffer;
pub use pinned::PinnedBuffer;
pub use registrar::Registered;
pub use take::{SampleExt, Take, copy_sample};
