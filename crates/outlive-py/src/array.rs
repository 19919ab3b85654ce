//! Memory of our own as NumPy arrays, and arrays of Python as bytes.

use std::ffi::{c_int, c_void};

use numpy::npyffi::{self, NpyTypes, PY_ARRAY_API};
use numpy::prelude::*;
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::prelude::*;

/// An array of `shape` over `data`, which `base` keeps. Nothing is copied.
///
/// # Safety
/// `data` is valid for as many bytes as dtype and shape have, aligned for the dtype, for as long as
/// `base` lives; for writes as well if `writable`.
pub(crate) unsafe fn over<'py>(
    py: Python<'py>,
    data: *const u8,
    dtype: &Bound<'py, PyArrayDescr>,
    shape: &[usize],
    writable: bool,
    base: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut dims: Vec<npyffi::npy_intp> = shape.iter().map(|n| *n as npyffi::npy_intp).collect();
    let flags: c_int = if writable { npyffi::NPY_ARRAY_WRITEABLE } else { 0 };
    // SAFETY: NewFromDescr steals the reference to the dtype, SetBaseObject that to the base; both
    // are given one of their own. The memory is by the caller.
    unsafe {
        let kind = npyffi::get_type_object(py, NpyTypes::PyArray_Type);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            kind,
            dtype.clone().into_ptr().cast(),
            dims.len() as c_int,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data.cast_mut().cast::<c_void>(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// Whether an object is an array of this dtype whose elements lie one behind the other.
#[inline]
pub(crate) fn is_plain(object: &Bound<'_, PyAny>, dtype: &Bound<'_, PyArrayDescr>) -> bool {
    object.cast::<PyUntypedArray>().is_ok_and(|array| {
        let has = array.dtype();
        array.is_c_contiguous() && (has.is(dtype) || has.is_equiv_to(dtype))
    })
}

/// The elements of an array that `is_plain`, and its shape.
pub(crate) fn parts<'a>(array: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], &'a [usize])> {
    let array = array.cast::<PyUntypedArray>()?;
    let size = array.len() * array.dtype().itemsize();
    // SAFETY: a contiguous array has its elements there; it lives as long as the reference.
    let bytes = unsafe {
        let data = (*array.as_array_ptr()).fields.data.cast::<u8>();
        std::slice::from_raw_parts(if size == 0 { std::ptr::dangling() } else { data }, size)
    };
    Ok((bytes, array.shape()))
}

/// What `__array__` of something whose array this is answers.
pub(crate) fn as_numpy_asks<'py>(
    array: Bound<'py, PyAny>,
    dtype: Option<Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = match dtype {
        Some(dtype) => array.call_method1("astype", (dtype, "K", "unsafe", true, false))?,
        None => array,
    };
    if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
}
