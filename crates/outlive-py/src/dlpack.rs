//! DLPack: arrays for other libraries, at the same address.

use std::ffi::{CStr, c_void};

use numpy::PyUntypedArray;
use numpy::prelude::*;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The processor's memory, as DLPack names devices.
pub(crate) const CPU: (i32, i32) = (1, 0);

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const READ_ONLY: u64 = 1;

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// What a tensor refers to.
struct Context {
    _array: Py<PyAny>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: made by `capsule` below, and deleted once, by whom it was given to.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    unsafe { let_go(managed.context) };
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    unsafe { let_go(managed.context) };
}

/// Frees the context, unless the interpreter has ended, or ends: a library may let go of its
/// tensors in a destructor of its own. The process is about to give the memory back then.
///
/// # Safety
/// It was made by `capsule`, and nobody uses it any more.
unsafe fn let_go(context: *mut c_void) {
    // SAFETY: by the caller.
    let free = || drop(unsafe { Box::from_raw(context.cast::<Context>()) });
    let _ = Python::try_attach(|_| free());
}

/// A capsule that nobody has taken.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: capsules of this file hold what their names say; a taken one has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}

/// Refuses to put an array of this memory elsewhere, or to wait for a stream of a device.
#[pyfunction(name = "_dlpack_place")]
pub(crate) fn check_place(
    stream: Option<&Bound<'_, PyAny>>,
    dl_device: Option<(i32, i32)>,
) -> PyResult<()> {
    if let Some(device) = dl_device.filter(|device| *device != CPU) {
        let why = format!("this is memory of the CPU, {CPU:?}, and stays there: not {device:?}");
        return Err(PyBufferError::new_err(why));
    }
    match stream {
        Some(_) => Err(PyBufferError::new_err("memory of the CPU has no stream: leave it out")),
        None => Ok(()),
    }
}

/// The tensor of an array. Libraries of DLPack before version 1 cannot be told that it is
/// read-only: do not write to what they make of it.
pub(crate) fn capsule<'py>(
    array: &Bound<'py, PyAny>,
    max_version: Option<(u32, u32)>,
    read_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let of = array.cast::<PyUntypedArray>()?;
    let dtype = of.dtype();
    let code = match dtype.kind() {
        b'i' => 0,
        b'u' => 1,
        b'f' => 2,
        b'c' => 5,
        b'b' => 6,
        _ => return Err(PyBufferError::new_err("DLPack has numbers only, no structs")),
    };
    let itemsize = dtype.itemsize();
    let shape: Vec<i64> = of.shape().iter().map(|n| *n as i64).collect();
    let strides = of.strides().iter().map(|s| *s as i64 / itemsize as i64).collect();
    let mut context = Box::new(Context { _array: array.clone().unbind(), shape, strides });
    // SAFETY: the array lives as long as the context.
    let data = unsafe { (*of.as_array_ptr()).fields.data.cast() };
    let tensor = Tensor {
        data,
        device: CPU.into(),
        ndim: context.shape.len() as i32,
        code,
        bits: (itemsize * 8) as u8,
        lanes: 1,
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(context).cast();
    let (made, name) = if max_version.is_some_and(|(major, _)| major >= 1) {
        let flags = if read_only { READ_ONLY } else { 0 };
        let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut ManagedVersioned));
        let made = ManagedVersioned { version: [1, 0], context, deleter, flags, tensor };
        (Box::into_raw(Box::new(made)).cast(), NAME_VERSIONED)
    } else {
        let made = Managed { tensor, context, deleter: Some(delete) };
        (Box::into_raw(Box::new(made)).cast(), NAME)
    };
    // SAFETY: `forget` frees what nobody takes; the name stays for ever.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(made, name.as_ptr(), Some(forget)))
    }
}

/// For `outlive.msg`: as `capsule`.
#[pyfunction]
pub(crate) fn _dlpack<'py>(
    array: Bound<'py, PyAny>,
    max_version: Option<(u32, u32)>,
    read_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    capsule(&array, max_version, read_only)
}
