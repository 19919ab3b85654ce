//! The Python interface of outlive: classes around the public types of the core.
//!
//! # Theory of operation
//! Every object is frozen; what changes lies behind a mutex that is only ever tried, never waited
//! for: a second thread in the same port is told so instead of deadlocking with the interpreter's
//! lock. Other mutexes are let go of before anything that may hand that lock over, such as making
//! an exception. It is released wherever a call may wait or copy much; long waits look for signals
//! every 100 ms.
//!
//! A node keeps weak references to what was opened with it, and closes that with itself. What
//! refers to objects of Python tells the garbage collector; a reference that several share lies in
//! an object of its own (`codec::Codec`), so that each is counted once.
//!
//! At the end of the interpreter all is closed, calls of other threads end, and every node leaves,
//! whatever still refers to it: not every object is freed then.
//!
//! Arrays have an object as their base that keeps the memory: a sample its chunk, a loan its
//! publisher, a lock its mapping.
//!
//! | file | what |
//! |---|---|
//! | `error` | errors of the core as exceptions |
//! | `codec` | what is carried: arrays, bytes, objects |
//! | `array`, `dlpack`, `objects` | memory as NumPy arrays and DLPack tensors; MessagePack |
//! | `msg` | whether ready-made messages are what their headers say |
//! | `gpu` | arrays on a device |
//! | `node` | nodes, watches |
//! | `port`, `process` | what is opened, how it is closed and waited for; the interpreter's end |
//! | `publisher`, `sender`, `loan`, `subscriber`, `sample` | topics |
//! | `queue`, `service`, `lock`, `sync`, `wait`, `domain` | the other classes |

mod array;
mod codec;
mod dlpack;
mod domain;
mod error;
mod gpu;
mod loan;
mod lock;
mod msg;
mod node;
mod objects;
mod port;
mod process;
mod publisher;
mod queue;
mod sample;
mod sender;
mod service;
mod subscriber;
mod sync;
mod wait;

use pyo3::prelude::*;

/// The compiled half of the package `outlive`. It counts on the interpreter's lock, which a
/// free-threaded Python turns on for it.
#[pymodule(gil_used = true)]
fn _outlive(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<node::Node>()?;
    module.add_class::<node::Watch>()?;
    module.add_class::<codec::Codec>()?;
    module.add_class::<publisher::Publisher>()?;
    module.add_class::<loan::Loan>()?;
    module.add_class::<subscriber::Subscriber>()?;
    module.add_class::<sample::Sample>()?;
    module.add_class::<queue::Producer>()?;
    module.add_class::<queue::Consumer>()?;
    module.add_class::<queue::Received>()?;
    module.add_class::<service::Client>()?;
    module.add_class::<service::Reply>()?;
    module.add_class::<service::Server>()?;
    module.add_class::<service::Request>()?;
    module.add_class::<lock::RobustMutex>()?;
    module.add_class::<lock::RobustRwLock>()?;
    module.add_class::<lock::Guard>()?;
    module.add_class::<sync::RobustCondition>()?;
    module.add_class::<sync::RobustSemaphore>()?;
    module.add_class::<sync::Permit>()?;
    module.add_class::<sync::LocklessSet>()?;
    module.add_class::<wait::WaitSet>()?;
    module.add_class::<wait::Timer>()?;
    module.add_class::<domain::Domain>()?;
    module.add_function(wrap_pyfunction!(node::now_ns, module)?)?;
    module.add_function(wrap_pyfunction!(process::_close_all, module)?)?;
    module.add_function(wrap_pyfunction!(lock::_after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(gpu::devices, module)?)?;
    module.add_function(wrap_pyfunction!(dlpack::_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(dlpack::check_place, module)?)?;
    module.add_function(wrap_pyfunction!(msg::_check_image, module)?)?;
    module.add_function(wrap_pyfunction!(msg::_check_point_cloud, module)?)?;
    module.add_function(wrap_pyfunction!(objects::packb, module)?)?;
    module.add_function(wrap_pyfunction!(objects::unpackb, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
