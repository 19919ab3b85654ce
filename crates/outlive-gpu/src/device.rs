//! What the driver says about a device.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};

use crate::driver::{Api, Device, attribute};
use crate::{Error, ErrorKind, Result};

/// What the driver says about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its number, from 0.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Memory, bytes.
    pub bytes: usize,
    /// The same in every process, whatever numbers devices have there.
    pub uuid: [u8; 16],
    /// Compute capability.
    pub capability: (i32, i32),
    /// Host memory can be registered.
    pub registers: bool,
    /// Host memory that this process may only read can be registered.
    pub registers_read_only: bool,
    /// Allocations can be handed to other processes as file descriptors.
    pub shares: bool,
    /// Streams can wait for a word of host memory.
    pub waits: bool,
}

/// The driver and one of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Version of the driver's interface, as in 12.4.
    pub version: (i32, i32),
    /// The device.
    pub device: DeviceInfo,
}

/// Device `ordinal`, and what the driver says about it.
pub(crate) fn look_at(api: &Api, ordinal: usize) -> Result<(Device, Info)> {
    let mut count = 0;
    // SAFETY: a valid pointer.
    api.check(unsafe { (api.device_count)(&raw mut count) }, "cuDeviceGetCount")?;
    if ordinal >= count as usize {
        return Err(Error::new(
            ErrorKind::NoDevice,
            format!("opening device {ordinal} of {count}"),
            "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES",
        ));
    }
    let (mut version, mut device, mut bytes) = (0, 0, 0);
    let (mut name, mut uuid) = ([0 as std::ffi::c_char; 128], [0; 16]);
    // SAFETY: valid pointers, of the length given where there is one.
    unsafe {
        api.check((api.version)(&raw mut version), "cuDriverGetVersion")?;
        api.check((api.device)(&raw mut device, ordinal as c_int), "cuDeviceGet")?;
        let code = (api.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, device);
        api.check(code, "cuDeviceGetName")?;
        api.check((api.device_bytes)(&raw mut bytes, device), "cuDeviceTotalMem")?;
        // The older one gives all parts of a divided device (MIG) the number of the whole.
        let uuid_of = api.device_uuid_of_part.unwrap_or(api.device_uuid);
        api.check(uuid_of(&raw mut uuid, device), "cuDeviceGetUuid")?;
    }
    // SAFETY: the last byte of the array is 0 whatever the driver wrote.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let get = |attribute| {
        let mut value = 0;
        // SAFETY: a valid pointer; an attribute the driver does not know is an error, hence 0.
        let code = unsafe { (api.device_attribute)(&raw mut value, attribute, device) };
        if code == 0 { value } else { 0 }
    };
    let has_sharing = api.create.is_some() && api.import.is_some() && api.set_access.is_some();
    let device_info = DeviceInfo {
        ordinal,
        name,
        bytes,
        uuid,
        capability: (get(attribute::MAJOR), get(attribute::MINOR)),
        registers: get(attribute::HOST_REGISTER) != 0,
        registers_read_only: get(attribute::READ_ONLY_HOST_REGISTER) != 0,
        shares: has_sharing
            && get(attribute::VIRTUAL_MEMORY) != 0
            && get(attribute::FILE_DESCRIPTORS) != 0,
        waits: api.await_value.is_some(),
    };
    let version = (version / 1000, version % 1000 / 10);
    Ok((device, Info { version, device: device_info }))
}
