//! Objects of Python as MessagePack and back: None, bool, int, float, str, bytes, list, tuple,
//! dict, dataclasses.

use outlive::ErrorKind;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple,
};
use rmp::Marker;
use rmp::encode as put;

use crate::error::fail;

/// Deepest nesting: neither garbage nor a list that holds itself may exhaust the stack.
const DEPTH_MAX: usize = 128;

/// The MessagePack of an object. Tuples come back as lists; in keys of dicts, as tuples.
///
/// >>> outlive.unpackb(outlive.packb({"a": [1, 2.5, None]}))
/// {'a': [1, 2.5, None]}
#[pyfunction]
pub(crate) fn packb<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(value.py(), &pack(value)?))
}

/// The object of a MessagePack value. ValueError for other bytes.
///
/// >>> outlive.unpackb(bytes([0x92, 1, 0xc0]))
/// [1, None]
#[pyfunction]
pub(crate) fn unpackb<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    unpack(py, data)
}

pub(crate) fn pack(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    encode(value, &mut out, Place::ROOT)?;
    Ok(out)
}

/// Where in a value another one is.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// In the key of a dict, which has to be hashable: its arrays are tuples, and it has no maps.
    in_key: bool,
}

impl Place {
    const ROOT: Self = Self { depth: 0, in_key: false };

    fn inner(self) -> PyResult<Self> {
        let depth = self.depth + 1;
        if depth > DEPTH_MAX {
            return Err(PyValueError::new_err(format!("nested more than {DEPTH_MAX} deep")));
        }
        Ok(Self { depth, ..self })
    }

    fn key(self) -> PyResult<Self> {
        Ok(Self { in_key: true, ..self.inner()? })
    }
}

fn full(_: impl std::fmt::Debug) -> PyErr {
    PyValueError::new_err("the value is too large for MessagePack")
}

fn length(n: usize) -> PyResult<u32> {
    u32::try_from(n).map_err(full)
}

fn encode(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, at: Place) -> PyResult<()> {
    if value.is_none() {
        return put::write_nil(out).map_err(full);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return put::write_bool(out, flag.is_true()).map_err(full);
    }
    if value.is_instance_of::<PyInt>() {
        if let Ok(n) = value.extract::<i64>() {
            put::write_sint(out, n).map_err(full)?;
        } else if let Ok(n) = value.extract::<u64>() {
            put::write_uint(out, n).map_err(full)?;
        } else {
            return Err(PyOverflowError::new_err("MessagePack has integers of 64 bits"));
        }
        return Ok(());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return put::write_f64(out, number.value()).map_err(full);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return put::write_str(out, text.to_cow()?.as_ref()).map_err(full);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return put::write_bin(out, bytes.as_bytes()).map_err(full);
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return put::write_bin(out, &bytes.to_vec()).map_err(full);
    }
    if let Ok(list) = value.cast::<PyList>() {
        put::write_array_len(out, length(list.len())?).map_err(full)?;
        return list.iter().try_for_each(|item| encode(&item, out, at.inner()?));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        put::write_array_len(out, length(tuple.len())?).map_err(full)?;
        return tuple.iter().try_for_each(|item| encode(&item, out, at.inner()?));
    }
    if let Ok(map) = value.cast::<PyDict>() {
        must_not_be_key(value, at)?;
        put::write_map_len(out, length(map.len())?).map_err(full)?;
        for (key, item) in map.iter() {
            encode(&key, out, at.key()?)?;
            encode(&item, out, at.inner()?)?;
        }
        return Ok(());
    }
    if value.hasattr("__dataclass_fields__")? {
        must_not_be_key(value, at)?;
        return encode_fields(value, out, at);
    }
    // Single numbers of NumPy.
    if value.hasattr("dtype")? && value.getattr("ndim").is_ok_and(|n| n.eq(0).unwrap_or(false)) {
        return encode(&value.call_method0("item")?, out, at.inner()?);
    }
    Err(PyTypeError::new_err(format!(
        "{} has no MessagePack: use None, bool, int, float, str, bytes, list, tuple, dict or a \
         dataclass of them",
        value.get_type().name()?
    )))
}

/// Class variables and what only `__init__` takes are not fields.
fn encode_fields(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, at: Place) -> PyResult<()> {
    static FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = FIELDS.import(value.py(), "dataclasses", "fields")?.call1((value,))?;
    let fields = fields.cast_into::<PyTuple>().map_err(PyErr::from)?;
    put::write_map_len(out, length(fields.len())?).map_err(full)?;
    for field in fields.iter() {
        let name = field.getattr(intern!(value.py(), "name"))?;
        let name = name.cast_into::<PyString>().map_err(PyErr::from)?;
        put::write_str(out, name.to_cow()?.as_ref()).map_err(full)?;
        encode(&value.getattr(&name)?, out, at.inner()?)?;
    }
    Ok(())
}

/// Nobody could read a map there.
fn must_not_be_key(value: &Bound<'_, PyAny>, at: Place) -> PyResult<()> {
    if !at.in_key {
        return Ok(());
    }
    let key = format!("a key of type {}", value.get_type().name()?);
    let remedy =
        "it would be read as a dict, which cannot be a key: use a str, a number or a tuple";
    Err(fail(ErrorKind::InvalidArgument, "packing", &key, remedy))
}

/// Bytes that are yet to be decoded.
struct Rest<'a>(&'a [u8]);

#[cold]
fn broken() -> PyErr {
    PyValueError::new_err("the bytes are not valid MessagePack")
}

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> PyResult<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(broken)?;
        self.0 = rest;
        Ok(head)
    }

    fn number<const N: usize>(&mut self) -> PyResult<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| broken())
    }

    /// A length of 1, 2 or 4 bytes.
    fn len(&mut self, bytes: usize) -> PyResult<usize> {
        Ok(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }
}

pub(crate) fn unpack<'py>(py: Python<'py>, from: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut rest = Rest(from);
    let value = decode(py, &mut rest, Place::ROOT)?;
    if rest.0.is_empty() { Ok(value) } else { Err(broken()) }
}

fn decode<'py>(py: Python<'py>, from: &mut Rest<'_>, at: Place) -> PyResult<Bound<'py, PyAny>> {
    let int = |n: i64| Ok(n.into_pyobject(py)?.into_any());
    let uint = |n: u64| Ok(n.into_pyobject(py)?.into_any());
    let float = |n: f64| Ok(PyFloat::new(py, n).into_any());
    match Marker::from_u8(from.number::<1>()?[0]) {
        Marker::Null => Ok(py.None().into_bound(py)),
        Marker::True => Ok(PyBool::new(py, true).to_owned().into_any()),
        Marker::False => Ok(PyBool::new(py, false).to_owned().into_any()),
        Marker::FixPos(n) => uint(n.into()),
        Marker::FixNeg(n) => int(n.into()),
        Marker::U8 => uint(u8::from_be_bytes(from.number()?).into()),
        Marker::U16 => uint(u16::from_be_bytes(from.number()?).into()),
        Marker::U32 => uint(u32::from_be_bytes(from.number()?).into()),
        Marker::U64 => uint(u64::from_be_bytes(from.number()?)),
        Marker::I8 => int(i8::from_be_bytes(from.number()?).into()),
        Marker::I16 => int(i16::from_be_bytes(from.number()?).into()),
        Marker::I32 => int(i32::from_be_bytes(from.number()?).into()),
        Marker::I64 => int(i64::from_be_bytes(from.number()?)),
        Marker::F32 => float(f32::from_be_bytes(from.number()?).into()),
        Marker::F64 => float(f64::from_be_bytes(from.number()?)),
        Marker::FixStr(n) => text(py, from, n.into()),
        Marker::Str8 => from.len(1).and_then(|n| text(py, from, n)),
        Marker::Str16 => from.len(2).and_then(|n| text(py, from, n)),
        Marker::Str32 => from.len(4).and_then(|n| text(py, from, n)),
        Marker::Bin8 => from.len(1).and_then(|n| bytes(py, from, n)),
        Marker::Bin16 => from.len(2).and_then(|n| bytes(py, from, n)),
        Marker::Bin32 => from.len(4).and_then(|n| bytes(py, from, n)),
        Marker::FixArray(n) => list(py, from, n.into(), at),
        Marker::Array16 => from.len(2).and_then(|n| list(py, from, n, at)),
        Marker::Array32 => from.len(4).and_then(|n| list(py, from, n, at)),
        Marker::FixMap(n) => map(py, from, n.into(), at),
        Marker::Map16 => from.len(2).and_then(|n| map(py, from, n, at)),
        Marker::Map32 => from.len(4).and_then(|n| map(py, from, n, at)),
        _ => Err(broken()),
    }
}

fn text<'py>(py: Python<'py>, from: &mut Rest<'_>, n: usize) -> PyResult<Bound<'py, PyAny>> {
    let text = std::str::from_utf8(from.take(n)?).map_err(|_| broken())?;
    Ok(PyString::new(py, text).into_any())
}

fn bytes<'py>(py: Python<'py>, from: &mut Rest<'_>, n: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyBytes::new(py, from.take(n)?).into_any())
}

fn list<'py>(
    py: Python<'py>,
    from: &mut Rest<'_>,
    n: usize,
    at: Place,
) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    for _ in 0..n {
        list.append(decode(py, from, at.inner()?)?)?;
    }
    Ok(if at.in_key { list.to_tuple().into_any() } else { list.into_any() })
}

fn map<'py>(
    py: Python<'py>,
    from: &mut Rest<'_>,
    n: usize,
    at: Place,
) -> PyResult<Bound<'py, PyAny>> {
    if at.in_key {
        return Err(broken());
    }
    let map = PyDict::new(py);
    for _ in 0..n {
        let key = decode(py, from, at.key()?)?;
        map.set_item(key, decode(py, from, at.inner()?)?)?;
    }
    Ok(map.into_any())
}
