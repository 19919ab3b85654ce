//! What is carried, as Python sees it: arrays of a dtype, bytes, or objects as MessagePack.

use numpy::{PyArrayDescr, PyArrayDescrMethods};
use outlive::{Encoding, ErrorKind, PayloadType, TypeDescription};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::array;
use crate::error::{OrRaise, fail};
use crate::objects;

/// What the payloads are.
#[derive(Debug)]
enum Form {
    /// Elements of a dtype; `shape` without a first dimension of any length.
    Array {
        dtype: Py<PyArrayDescr>,
        shape: Vec<usize>,
        any_length: bool,
    },
    Bytes {
        dtype: Py<PyArrayDescr>,
    },
    /// A header and any number of elements: a tuple of two arrays.
    Headed {
        header: Py<PyArrayDescr>,
        element: Py<PyArrayDescr>,
        /// Made from the tuple, if there is one.
        class: Option<Py<PyAny>>,
    },
    /// Decoded into the class, if there is one.
    Object {
        class: Option<Py<PyAny>>,
    },
    /// In a third-party encoding; `by` is an `outlive.Encoded`.
    Encoded {
        by: Py<PyAny>,
    },
}

/// A payload type and how Python sees it. An object, so that all who share it have a reference that
/// the garbage collector can count.
#[pyclass(frozen, module = "outlive._outlive")]
#[derive(Debug)]
pub(crate) struct Codec {
    pub(crate) of: PayloadType,
    form: Form,
}

/// A payload to be sent: bytes of an object that this keeps, or of our own.
pub(crate) enum Encoded<'py> {
    Array(Bound<'py, PyAny>),
    Bytes(Bound<'py, PyBytes>),
    Own(Vec<u8>),
}

/// Bytes that somebody else's encoder returned, or whatever has a buffer of them.
fn bytes_like(made: Bound<'_, PyAny>) -> PyResult<Encoded<'_>> {
    let py = made.py();
    match made.cast_into::<PyBytes>() {
        Ok(bytes) => Ok(Encoded::Bytes(bytes)),
        Err(other) => {
            let numpy = py.import("numpy")?;
            let args = (other.into_inner(), numpy::dtype::<u8>(py));
            Ok(Encoded::Array(numpy.call_method1("frombuffer", args)?))
        }
    }
}

/// A shape as Python writes it; of `any_length`, its first dimension.
fn shown(shape: &[usize], any_length: bool) -> String {
    let first = any_length.then(|| "any".to_owned());
    let mut dims = first.into_iter().chain(shape.iter().map(usize::to_string)).collect::<Vec<_>>();
    if dims.len() == 1 {
        dims.push(String::new());
    }
    format!("({})", dims.join(", ").trim_end())
}

impl Encoded<'_> {
    /// The bytes.
    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        match self {
            Self::Array(array) => Ok(array::parts(array)?.0),
            Self::Bytes(bytes) => Ok(bytes.as_bytes()),
            Self::Own(bytes) => Ok(bytes),
        }
    }
}

#[pymethods]
impl Codec {
    /// No `__clear__`: the class of a cycle has one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.form {
            Form::Object { class: Some(class) } | Form::Headed { class: Some(class), .. } => {
                visit.call(class)
            }
            Form::Encoded { by } => visit.call(by),
            _ => Ok(()),
        }
    }
}

impl Codec {
    /// `outlive._types.resolve` knows the ways in which Python names types.
    pub(crate) fn resolve(
        py: Python<'_>,
        of: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
    ) -> PyResult<Self> {
        let types = py.import("outlive._types")?;
        let found = types.call_method1("resolve", (of, shape, type_name))?;
        let found = found.cast_into::<PyTuple>().map_err(PyErr::from)?;
        let form: String = found.get_item(0)?.extract()?;
        let name: String = found.get_item(1)?.extract()?;
        let dtype = || -> PyResult<Py<PyArrayDescr>> {
            Ok(found.get_item(3)?.cast_into::<PyArrayDescr>().map_err(PyErr::from)?.unbind())
        };
        let text: String = found.get_item(2)?.extract()?;
        let described = |text: &str| TypeDescription::parse_argument(text).or_raise();
        let describe = || described(&text);
        let class_at = |at: usize| -> PyResult<Option<Py<PyAny>>> {
            let class = found.get_item(at)?;
            Ok((!class.is_none()).then(|| class.unbind()))
        };
        Ok(match form.as_str() {
            "bytes" => Self { of: PayloadType::bytes(), form: Form::Bytes { dtype: dtype()? } },
            "object" => {
                let class = class_at(3)?;
                let of = PayloadType::msgpack(&name).or_raise()?;
                Self { of, form: Form::Object { class } }
            }
            "encoded" => {
                let (encoding, schema): (String, Vec<u8>) =
                    (found.get_item(4)?.extract()?, found.get_item(5)?.extract()?);
                let Some(encoding) = Encoding::from_name(&encoding) else {
                    let why = format!(
                        "there is no encoding '{encoding}': use cdr, protobuf, \
                                       flatbuffer, json or arrow"
                    );
                    return Err(fail(ErrorKind::InvalidArgument, "naming a type", &name, &why));
                };
                let of = PayloadType::encoded(encoding, &name, &schema).or_raise()?;
                Self { of, form: Form::Encoded { by: found.get_item(3)?.unbind() } }
            }
            "headed" => {
                let (header, element) = found.get_item(3)?.extract()?;
                let tail: String = found.get_item(4)?.extract()?;
                let tail = described(&tail)?;
                let of = PayloadType::headed(&name, &describe()?, &tail).or_raise()?;
                Self { of, form: Form::Headed { header, element, class: class_at(5)? } }
            }
            _ => {
                let any_length = form == "slice";
                let of = match any_length {
                    true => PayloadType::slice(&name, &describe()?),
                    false => PayloadType::fixed(&name, &describe()?),
                };
                let shape = found.get_item(4)?.extract()?;
                let form = Form::Array { dtype: dtype()?, shape, any_length };
                Self { of: of.or_raise()?, form }
            }
        })
    }

    /// The bytes of an object.
    pub(crate) fn encode<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Encoded<'py>> {
        let py = object.py();
        let encoded = match &self.form {
            Form::Encoded { by } => bytes_like(by.bind(py).call_method1("encode", (object,))?)?,
            Form::Array { dtype, .. } => {
                let dtype = dtype.bind(py);
                if array::is_plain(object, dtype) {
                    Encoded::Array(object.clone())
                } else {
                    Encoded::Array(self.converted(object, dtype)?)
                }
            }
            Form::Bytes { dtype } => match object.cast::<PyBytes>() {
                Ok(bytes) => Encoded::Bytes(bytes.clone()),
                Err(_) if array::is_plain(object, dtype.bind(py)) => Encoded::Array(object.clone()),
                Err(_) => {
                    let numpy = py.import("numpy")?;
                    Encoded::Array(numpy.call_method1("frombuffer", (object, dtype))?)
                }
            },
            Form::Headed { header, element, .. } => {
                let Ok((head, tail)) = object.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                else {
                    let why = "send a tuple of the header and the elements";
                    return Err(fail(ErrorKind::InvalidArgument, "sending", self.of.name(), why));
                };
                let mut bytes = Vec::new();
                for (part, dtype) in [(head, header), (tail, element)] {
                    let array = self.converted(&part, dtype.bind(py))?;
                    bytes.extend_from_slice(array::parts(&array)?.0);
                    let is_header = std::ptr::eq(dtype, header);
                    if is_header && bytes.len() != self.of.size() {
                        let why = "its header is one value, not several";
                        let name = self.of.name();
                        return Err(fail(ErrorKind::InvalidArgument, "sending", name, why));
                    }
                }
                Encoded::Own(bytes)
            }
            Form::Object { class } => {
                if let Some(class) = class {
                    // The reader would be told otherwise, who can do nothing about it.
                    let types = py.import("outlive._types")?;
                    types.call_method1("must_be", (class, object, self.of.name()))?;
                }
                Encoded::Own(objects::pack(object)?)
            }
        };
        if let Form::Array { shape, any_length, .. } = &self.form {
            let Encoded::Array(array) = &encoded else { unreachable!("an array") };
            let (bytes, has) = array::parts(array)?;
            let inner = if *any_length { has.get(1..).unwrap_or(&[]) } else { has };
            // A single value may come as an array of one.
            let single = shape.is_empty() && !any_length && self.of.fits(bytes.len());
            if !(single || inner == shape.as_slice()) || !self.of.fits(bytes.len()) {
                let (has, takes) = (shown(has, false), shown(shape, *any_length));
                let text = format!("its shape is {has}, this takes {takes}");
                return Err(fail(ErrorKind::InvalidArgument, "sending", "an array", &text));
            }
        }
        Ok(encoded)
    }

    /// A copy of what is not an array, is strided or of another dtype: the same values, or an
    /// exception.
    fn converted<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyArrayDescr>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let types = object.py().import("outlive._convert")?;
        types.call_method1("convert", (object, dtype, self.of.name()))
    }

    /// The bytes of several objects of a fixed size, one behind the other.
    pub(crate) fn encode_batch<'py>(&self, objects: &Bound<'py, PyAny>) -> PyResult<Encoded<'py>> {
        let py = objects.py();
        let refuse = |why: &str| {
            Err(fail(ErrorKind::InvalidArgument, "sending several of", self.of.name(), why))
        };
        let Form::Array { dtype, shape, any_length: false } = &self.form else {
            return refuse("messages of this type are not all of one size: send each alone");
        };
        let dtype = dtype.bind(py);
        let array = match array::is_plain(objects, dtype) {
            true => objects.clone(),
            false => self.converted(objects, dtype)?,
        };
        let has = array::parts(&array)?.1;
        // That of `[]` does not say what its messages are.
        let fits = |(_, inner): (_, &[usize])| inner == shape.as_slice();
        if has != [0] && !has.split_first().is_some_and(fits) {
            let (has, takes) = (shown(has, false), shown(shape, true));
            return refuse(&format!("its shape is {has}, this takes {takes}"));
        }
        Ok(Encoded::Array(array))
    }

    /// Size of a payload to be filled in place: `count` elements of one of any length.
    pub(crate) fn room(&self, py: Python<'_>, count: Option<usize>) -> PyResult<usize> {
        let size = match (&self.form, count) {
            (Form::Headed { element, .. }, Some(count)) => {
                let tail = element.bind(py).itemsize().checked_mul(count);
                tail.and_then(|tail| tail.checked_add(self.of.size()))
            }
            (Form::Array { any_length: false, .. }, None) => Some(self.of.size()),
            (
                Form::Array { any_length: true, .. } | Form::Bytes { .. } | Form::Encoded { .. },
                Some(count),
            ) => self.of.size().checked_mul(count),
            _ => {
                let why = "give the number of elements of a type of any length, and only of one; \
                       objects are published, not filled";
                return Err(fail(ErrorKind::InvalidArgument, "loaning", self.of.name(), why));
            }
        };
        // What no address space has, the core need not look at.
        size.filter(|size| isize::try_from(*size).is_ok()).ok_or_else(|| {
            let what = format!("{} elements of {}", count.unwrap_or(1), self.of.name());
            fail(ErrorKind::InvalidArgument, "loaning", &what, "too many for any memory: use fewer")
        })
    }

    /// Size of a payload that an array on a device fills, whose element type and shape these are.
    pub(crate) fn room_of(&self, py: Python<'_>, of: &str, dims: &[usize]) -> PyResult<usize> {
        let (dtype, shape, any_length) = match &self.form {
            Form::Array { dtype, shape, any_length } => (dtype, &shape[..], *any_length),
            Form::Bytes { dtype } => (dtype, &[][..], true),
            Form::Headed { .. } | Form::Object { .. } | Form::Encoded { .. } => {
                return self.room(py, None);
            }
        };
        let wanted: String = dtype.bind(py).getattr("str")?.extract()?;
        let (count, rest) = match (any_length, dims) {
            (true, [count, rest @ ..]) => (Some(*count), rest),
            _ => (None, dims),
        };
        if wanted == of && rest == shape && count.is_some() == any_length {
            return self.room(py, count);
        }
        let (has, takes) = (shown(dims, false), shown(shape, any_length));
        let text = format!("it has type {of} and shape {has}, the topic {wanted} and {takes}");
        Err(fail(ErrorKind::TypeMismatch, "sending", "an array on a device", &text))
    }

    /// The payload as an array over its memory.
    ///
    /// # Safety
    /// `data` is valid for `size` bytes for as long as `base` lives; for writes if `writable`.
    pub(crate) unsafe fn view<'py>(
        &self,
        py: Python<'py>,
        data: *const u8,
        size: usize,
        writable: bool,
        base: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut dims = [0; 32];
        let (dtype, dims) = match &self.form {
            Form::Array { dtype, shape, any_length } => {
                let first = usize::from(*any_length);
                dims[0] = size / self.of.size();
                dims[first..first + shape.len()].copy_from_slice(shape);
                (dtype.bind(py).clone(), &dims[..first + shape.len()])
            }
            Form::Bytes { dtype } => {
                dims[0] = size;
                (dtype.bind(py).clone(), &dims[..1])
            }
            Form::Headed { header, element, .. } => {
                let (header, element) = (header.bind(py), element.bind(py));
                let count = (size - self.of.size()) / element.itemsize();
                let tail = data.wrapping_add(self.of.size());
                // SAFETY: by the caller; both lie inside the `size` bytes, which fit the type.
                let parts = unsafe {
                    [
                        array::over(py, data, header, &[], writable, base.clone())?,
                        array::over(py, tail, element, &[count], writable, base)?,
                    ]
                };
                return Ok(PyTuple::new(py, parts)?.into_any());
            }
            Form::Object { .. } | Form::Encoded { .. } => {
                dims[0] = size;
                (numpy::dtype::<u8>(py), &dims[..1])
            }
        };
        // SAFETY: by the caller; the dtype and the dimensions have `size` bytes.
        unsafe { array::over(py, data, &dtype, dims, writable, base) }
    }

    /// The payload as a value: an object, bytes, or the array that `view` gives.
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
        view: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.form {
            Form::Headed { class: Some(class), .. } => class.bind(py).call1((view()?,)),
            Form::Array { .. } | Form::Headed { .. } => view(),
            Form::Bytes { .. } => Ok(PyBytes::new(py, payload).into_any()),
            Form::Encoded { by } => by.bind(py).call_method1("decode", (view()?,)),
            Form::Object { class } => {
                let object = objects::unpack(py, payload);
                let made = object.and_then(|object| match class {
                    Some(class) => {
                        py.import("outlive._types")?.call_method1("build", (class, object))
                    }
                    None => Ok(object),
                });
                made.map_err(|e| self.no_value(py, e))
            }
        }
    }

    /// The error of a payload that is not a value of the type; others stay as they are.
    #[cold]
    fn no_value(&self, py: Python<'_>, why: PyErr) -> PyErr {
        if !why.is_instance_of::<PyValueError>(py) && !why.is_instance_of::<PyTypeError>(py) {
            return why;
        }
        let remedy = format!("{}: correct the program that sent it", why.value(py));
        let corrupt = fail(ErrorKind::Corrupt, "receiving", self.of.name(), &remedy);
        corrupt.set_cause(py, Some(why));
        corrupt
    }

    /// A payload that does not stay where it is, as a value: arrays are copies.
    pub(crate) fn copied<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.form {
            Form::Object { .. } => self.value(py, payload, || unreachable!("an object")),
            _ => self.made_of(PyBytes::new(py, payload)),
        }
    }

    /// As `copied`, of bytes that are a copy already.
    pub(crate) fn made_of<'py>(&self, bytes: Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        if let Form::Bytes { .. } = &self.form {
            return Ok(bytes.into_any());
        }
        let py = bytes.py();
        self.value(py, bytes.as_bytes(), || {
            let numpy = py.import("numpy")?;
            if let Form::Headed { header, element, .. } = &self.form {
                let copy = |dtype: &Py<PyArrayDescr>, count: isize, offset: usize| {
                    let part = (&bytes, dtype.bind(py), count, offset);
                    numpy.call_method1("frombuffer", part)?.call_method0("copy")
                };
                // An array of one as one of no dimensions.
                let head = copy(header, 1, 0)?.call_method1("reshape", (PyTuple::empty(py),))?;
                let tail = copy(element, -1, self.of.size())?;
                return Ok(PyTuple::new(py, [head, tail])?.into_any());
            }
            // Dtypes may be aligned to more than bytes are, so NumPy copies from there.
            let Form::Array { dtype, shape, any_length } = &self.form else {
                return Ok(bytes.clone().into_any());
            };
            let flat = numpy.call_method1("frombuffer", (&bytes, dtype.bind(py)))?;
            let mut dims: Vec<isize> = shape.iter().map(|n| *n as isize).collect();
            if *any_length {
                dims.insert(0, -1);
            }
            flat.call_method1("reshape", (PyTuple::new(py, dims)?,))?.call_method0("copy")
        })
    }

    /// Whether a received payload is one of this type.
    pub(crate) fn check(&self, payload: &[u8]) -> PyResult<()> {
        if self.of.accepts(payload) {
            return Ok(());
        }
        let remedy = "the bytes do not match this type: restart the sender";
        Err(fail(ErrorKind::Corrupt, "receiving", self.of.name(), remedy))
    }
}
