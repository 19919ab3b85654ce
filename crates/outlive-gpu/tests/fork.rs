//! Processes of their own, forked from one that opens no device: what one opens would be
//! everybody's.

mod common;

use std::ffi::{c_int, c_void};

use common::{configure, library, symbol};
use outlive_gpu::{Cuda, DevicePtr, Error, ErrorKind};
use testkit::fork_child;

/// Where a namespace cannot be had.
const NOT_ALLOWED: i32 = 77;

fn code_of(body: impl FnOnce() -> i32) -> i32 {
    match fork_child(body).unwrap().wait() {
        testkit::Exit::Code(code) => code,
        testkit::Exit::Signal(signal) => 1000 + signal,
    }
}

/// Runs `body` as process 1 of a PID namespace; answers what it exits with.
fn as_process_1(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: plain system calls; the child runs `body` alone, and exits.
    unsafe {
        let pids = libc::CLONE_NEWPID;
        if libc::unshare(pids) != 0 && libc::unshare(pids | libc::CLONE_NEWUSER) != 0 {
            return NOT_ALLOWED;
        }
        match libc::fork() {
            -1 => NOT_ALLOWED,
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::_exit(body())
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 100 }
            }
        }
    }
}

fn is_refused<T>(answer: Result<T, Error>) -> bool {
    answer.is_err_and(|e| e.kind() == ErrorKind::Unsupported)
}

/// It was taken for its parent.
#[test]
fn a_child_with_the_process_id_of_its_parent_is_refused() {
    let code = code_of(|| {
        as_process_1(|| {
            let cuda = Cuda::open_library(library(), 0).unwrap();
            as_process_1(|| {
                assert_eq!(std::process::id(), 1);
                let refused = is_refused(cuda.alloc(1))
                    && is_refused(Cuda::open_library(library(), 0))
                    && is_refused(Cuda::open_library(library(), 1));
                i32::from(!refused)
            })
        })
    });
    assert!([0, NOT_ALLOWED].contains(&code), "exit code {code}");
}

/// The first device was opened to ask about memory of the second, and stayed open.
#[test]
fn asking_on_which_device_an_array_lies_opens_no_other_one() {
    let of_ours = code_of(|| {
        name_driver("devices=2");
        let second = Cuda::open(1).unwrap();
        let buffer = second.alloc(1000).unwrap();
        configure("devices=2 fail=cuDevicePrimaryCtxRetain:1:46");
        assert_eq!(Cuda::open_of(buffer.ptr()).unwrap().info().device.ordinal, 1);
        0
    });
    assert_eq!(of_ours, 0);
    let of_another_library = code_of(|| {
        name_driver("devices=2");
        let ptr = alloc_on(1);
        // The first call opens what the array lies on.
        configure("devices=2 fail=cuDevicePrimaryCtxRetain:2:46");
        assert_eq!(Cuda::open_of(ptr).unwrap().info().device.ordinal, 1);
        0
    });
    assert_eq!(of_another_library, 0);
}

/// Without a current context the driver cannot tell.
#[test]
fn on_which_device_an_array_lies_is_asked_in_a_context_of_ours_where_there_is_no_other() {
    let code = code_of(|| {
        name_driver("devices=2");
        let ptr = std::thread::spawn(|| alloc_on(1)).join().unwrap();
        assert_eq!(Cuda::open_of(ptr).unwrap().info().device.ordinal, 1);
        let e = Cuda::open_of(DevicePtr(1)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        0
    });
    assert_eq!(code, 0);
}

fn name_driver(settings: &str) {
    // SAFETY: nobody else reads the environment of this process.
    unsafe { std::env::set_var("OUTLIVE_CUDA_DRIVER", library()) };
    configure(settings);
}

/// Memory of a device as another library allocates it, whose context is current after this.
fn alloc_on(device: c_int) -> DevicePtr {
    type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
    type Push = unsafe extern "C" fn(*mut c_void) -> c_int;
    type Alloc = unsafe extern "C" fn(*mut u64, usize) -> c_int;
    let (mut context, mut at) = (std::ptr::null_mut(), 0);
    // SAFETY: the functions have these signatures; valid pointers.
    unsafe {
        let retain: Retain = std::mem::transmute(symbol("cuDevicePrimaryCtxRetain"));
        let push: Push = std::mem::transmute(symbol("cuCtxPushCurrent_v2"));
        let alloc: Alloc = std::mem::transmute(symbol("cuMemAlloc_v2"));
        assert_eq!((retain(&raw mut context, device), push(context)), (0, 0));
        assert_eq!(alloc(&raw mut at, 1000), 0);
    }
    DevicePtr(at)
}
