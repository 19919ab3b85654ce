//! Payload types made from descriptions.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;

use outlive::{Encoding, PayloadType, TypeDescription};

use crate::status::{Done, Fail, bytes, invalid, need, outlive_status, run, text};

/// A payload type: name, size, alignment, encoding, and the fields. May be freed once the ports
/// opened with it are open.
#[derive(Debug)]
pub struct outlive_type {
    pub(crate) of: PayloadType,
    name: CString,
}

pub(crate) fn description(from: *const c_char) -> Result<TypeDescription, Fail> {
    Ok(TypeDescription::parse_argument(text(from, "a description")?)?)
}

pub(crate) fn give(out: Option<&mut MaybeUninit<*mut outlive_type>>, of: PayloadType) -> Done {
    let name = CString::new(of.name()).unwrap_or_default();
    need(out, "out")?.write(Box::into_raw(Box::new(outlive_type { of, name })));
    Ok(())
}

/// Raw bytes: `[u8]` of Rust, `bytes` of Python.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_bytes(
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| give(out, PayloadType::bytes()))
}

/// One value of a fixed-size type, whose fields `description_text` lists in the form of
/// docs/internals/SHM_LAYOUT.md: `"outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n"`.
///
/// `name` is the same in all languages, such as `robot/Pose`; that of a number or of an array of
/// numbers is the number's, such as `f64`. `OUTLIVE_INVALID_ARGUMENT` where name, size and
/// alignment contradict each other: `f32` for what is not that, an `f64` aligned to 4.
///
/// Values are not checked when they are received, nor those under a lock: another program may have
/// written any bytes, so a `bool` may be neither 0 nor 1.
///
/// Example:
///
///     struct pose {
///         double x, y, heading; // m, m, rad
///     };
///     static const char *const POSE = "outlive-type 1 align 8\nstruct:24\n"
///                                     " 0 f64 x\n 8 f64 y\n 16 f64 heading\n";
///
///     outlive_type *type;
///     must(outlive_type_fixed("robot/Pose", POSE, &type));
///     outlive_type_free(type);
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_fixed(
    name: *const c_char,
    description_text: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| {
        let of = PayloadType::fixed(text(name, "a name")?, &description(description_text)?)?;
        give(out, of)
    })
}

/// Any number of values of the described type.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_slice(
    name: *const c_char,
    description_text: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| {
        let of = PayloadType::slice(text(name, "a name")?, &description(description_text)?)?;
        give(out, of)
    })
}

/// A header followed by any number of elements. The name is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_headed(
    name: *const c_char,
    header_text: *const c_char,
    element_text: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| {
        let (header, element) = (description(header_text)?, description(element_text)?);
        give(out, PayloadType::headed(text(name, "a name")?, &header, &element)?)
    })
}

/// One MessagePack value, which outlive carries without reading it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_msgpack(
    name: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| give(out, PayloadType::msgpack(text(name, "a name")?)?))
}

/// One value in an encoding that others define: `cdr`, `protobuf`, `flatbuffer`, `json` or `arrow`.
/// outlive carries it unread, and compares the schemas of all members: the definition of ROS, the
/// `FileDescriptorSet`, the binary schema, JSON Schema, Arrow's schema message. At most 64 KiB,
/// without what the message does not need; NULL or 0 bytes say nothing about it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_encoded(
    encoding: *const c_char,
    name: *const c_char,
    schema: *const c_void,
    schema_bytes: usize,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| {
        let encoding = text(encoding, "an encoding")?;
        let why = "use cdr, protobuf, flatbuffer, json or arrow";
        let encoding = Encoding::from_name(encoding);
        let encoding = encoding.ok_or_else(|| invalid("an encoding", why))?;
        let schema = bytes(schema, schema_bytes)?;
        give(out, PayloadType::encoded(encoding, text(name, "a name")?, schema)?)
    })
}

/// Size of the value, of an element or of the header, bytes. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_size(of: Option<&outlive_type>) -> usize {
    of.map_or(0, |of| of.of.size())
}

/// Its alignment, bytes. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_align(of: Option<&outlive_type>) -> usize {
    of.map_or(0, |of| of.of.align())
}

/// Its name; stays as long as the type. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_name(of: Option<&outlive_type>) -> *const c_char {
    of.map_or(std::ptr::null(), |of| of.name.as_ptr())
}

/// Frees the type. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_free(of: Option<Box<outlive_type>>) {
    drop(of);
}

/// NULL is raw bytes.
pub(crate) fn payload_type(of: Option<&outlive_type>) -> PayloadType {
    of.map_or_else(PayloadType::bytes, |of| of.of.clone())
}
