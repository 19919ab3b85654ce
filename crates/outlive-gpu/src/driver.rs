//! The functions of the CUDA driver that this crate calls, found at run time.
//!
//! Signatures as in NVIDIA's CUDA driver API reference; every one answers a `CUresult`, 0 is well.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::NonNull;

use crate::library::Library;
use crate::{Error, ErrorKind, Result};

/// Overrides `libcuda.so.1`: a path or a name.
pub(crate) const LIBRARY_VARIABLE: &str = "OUTLIVE_CUDA_DRIVER";
const LIBRARY: &str = "libcuda.so.1";

pub(crate) type Device = c_int;
pub(crate) type Handle = *mut c_void;
pub(crate) type Address = u64;

pub(crate) const NOT_READY: c_int = 600;
pub(crate) const ALREADY_REGISTERED: c_int = 712;
pub(crate) const INVALID_CONTEXT: c_int = 201;
const NO_DEVICE: c_int = 100;
/// What `cuInit` says in a child of a process that has called it.
const NOT_INITIALIZED: c_int = 3;

/// CU_MEMHOSTREGISTER_*.
pub(crate) mod register {
    pub(crate) const PORTABLE: u32 = 1;
    pub(crate) const DEVICEMAP: u32 = 2;
    pub(crate) const READ_ONLY: u32 = 8;
}

/// CU_DEVICE_ATTRIBUTE_*.
pub(crate) mod attribute {
    pub(crate) const HOST_REGISTER: i32 = 99;
    pub(crate) const READ_ONLY_HOST_REGISTER: i32 = 113;
    pub(crate) const VIRTUAL_MEMORY: i32 = 102;
    pub(crate) const FILE_DESCRIPTORS: i32 = 103;
    pub(crate) const MAJOR: i32 = 75;
    /// CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL.
    pub(crate) const OF_POINTER_ORDINAL: i32 = 9;
    pub(crate) const MINOR: i32 = 76;
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy2D {
    pub(crate) from_x_bytes: usize,
    pub(crate) from_y: usize,
    pub(crate) from_kind: c_int,
    pub(crate) from_host: *const c_void,
    pub(crate) from_device: Address,
    pub(crate) from_array: Handle,
    pub(crate) from_pitch: usize,
    pub(crate) to_x_bytes: usize,
    pub(crate) to_y: usize,
    pub(crate) to_kind: c_int,
    pub(crate) to_host: *mut c_void,
    pub(crate) to_device: Address,
    pub(crate) to_array: Handle,
    pub(crate) to_pitch: usize,
    pub(crate) width_bytes: usize,
    pub(crate) height: usize,
}

/// CU_MEMORYTYPE_*.
pub(crate) const HOST: c_int = 1;
pub(crate) const DEVICE: c_int = 2;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AllocationProperties {
    /// 1: pinned.
    pub(crate) kind: c_int,
    /// 1: POSIX file descriptor.
    pub(crate) handle_kinds: c_int,
    pub(crate) location: Location,
    pub(crate) win32_metadata: usize,
    pub(crate) flags: [u8; 8],
}

/// `CUmemLocation`; kind 1 is a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

/// `CUmemAccessDesc`; 3 is reading and writing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(crate) location: Location,
    pub(crate) flags: c_int,
}

macro_rules! functions {
    (
        required { $($name:ident = $symbol:literal ($($arg:ty),*);)* }
        optional { $($oname:ident = $($osymbol:literal)|+ ($($oarg:ty),*);)* }
    ) => {
        /// The driver's functions.
        #[derive(Clone, Copy)]
        #[allow(dead_code)]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> c_int,)*
            $(pub(crate) $oname: Option<unsafe extern "C" fn($($oarg),*) -> c_int>,)*
        }

        impl Api {
            /// All functions, or the names of required ones that are missing.
            fn find(library: &Library) -> std::result::Result<Self, Vec<&'static str>> {
                let symbol = |name: &str| library.symbol(&CString::new(name).ok()?);
                let mut missing = Vec::new();
                $(let $name = symbol($symbol);
                if $name.is_none() {
                    missing.push($symbol);
                })*
                $(let $oname = None$(.or_else(|| symbol($osymbol)))+;)*
                match ($($name,)*) {
                    ($(Some($name),)*) => Ok(Self {
                        // SAFETY: a function of this name has this signature in every driver that
                        // has it (the suffix _v2 exists to keep it so).
                        $($name: unsafe {
                            std::mem::transmute::<
                                NonNull<c_void>,
                                unsafe extern "C" fn($($arg),*) -> c_int,
                            >($name)
                        },)*
                        $($oname: $oname.map(|f: NonNull<c_void>| {
                            // SAFETY: as above.
                            unsafe {
                                std::mem::transmute::<
                                    NonNull<c_void>,
                                    unsafe extern "C" fn($($oarg),*) -> c_int,
                                >(f)
                            }
                        }),)*
                    }),
                    _ => Err(missing),
                }
            }
        }
    };
}

functions! {
    required {
        init = "cuInit" (c_uint);
        version = "cuDriverGetVersion" (*mut c_int);
        device_count = "cuDeviceGetCount" (*mut c_int);
        device = "cuDeviceGet" (*mut Device, c_int);
        device_name = "cuDeviceGetName" (*mut c_char, c_int, Device);
        device_bytes = "cuDeviceTotalMem_v2" (*mut usize, Device);
        device_uuid = "cuDeviceGetUuid" (*mut [u8; 16], Device);
        device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, Device);
        retain_context = "cuDevicePrimaryCtxRetain" (*mut Handle, Device);
        push_context = "cuCtxPushCurrent_v2" (Handle);
        pop_context = "cuCtxPopCurrent_v2" (*mut Handle);
        synchronize = "cuCtxSynchronize" ();
        allocate = "cuMemAlloc_v2" (*mut Address, usize);
        free = "cuMemFree_v2" (Address);
        register = "cuMemHostRegister_v2" (Handle, usize, c_uint);
        unregister = "cuMemHostUnregister" (Handle);
        registered_address = "cuMemHostGetDevicePointer_v2" (*mut Address, Handle, c_uint);
        to_host = "cuMemcpyDtoHAsync_v2" (Handle, Address, usize, Handle);
        to_device = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
        on_device = "cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
        copy_2d = "cuMemcpy2DAsync_v2" (*const Copy2D, Handle);
        create_stream = "cuStreamCreate" (*mut Handle, c_uint);
        destroy_stream = "cuStreamDestroy_v2" (Handle);
        synchronize_stream = "cuStreamSynchronize" (Handle);
        create_event = "cuEventCreate" (*mut Handle, c_uint);
        destroy_event = "cuEventDestroy_v2" (Handle);
        record_event = "cuEventRecord" (Handle, Handle);
        query_event = "cuEventQuery" (Handle);
    }
    optional {
        device_uuid_of_part = "cuDeviceGetUuid_v2" (*mut [u8; 16], Device);
        is_capturing = "cuStreamIsCapturing" (Handle, *mut c_int);
        stream_context = "cuStreamGetCtx" (Handle, *mut Handle);
        pointer_attribute = "cuPointerGetAttribute" (Handle, c_int, Address);
        exchange_capture_mode = "cuThreadExchangeStreamCaptureMode" (*mut c_int);
        error_name = "cuGetErrorName" (c_int, *mut *const c_char);
        await_value = "cuStreamWaitValue32_v2" | "cuStreamWaitValue32"
            (Handle, Address, u32, c_uint);
        write_value = "cuStreamWriteValue32_v2" | "cuStreamWriteValue32"
            (Handle, Address, u32, c_uint);
        granularity = "cuMemGetAllocationGranularity"
            (*mut usize, *const AllocationProperties, c_int);
        create = "cuMemCreate" (*mut u64, usize, *const AllocationProperties, c_ulonglong);
        release = "cuMemRelease" (u64);
        export = "cuMemExportToShareableHandle" (*mut c_int, u64, c_int, c_ulonglong);
        import = "cuMemImportFromShareableHandle" (*mut u64, Handle, c_int);
        reserve = "cuMemAddressReserve" (*mut Address, usize, usize, Address, c_ulonglong);
        free_reserved = "cuMemAddressFree" (Address, usize);
        map = "cuMemMap" (Address, usize, usize, u64, c_ulonglong);
        unmap = "cuMemUnmap" (Address, usize);
        set_access = "cuMemSetAccess" (Address, usize, *const Access, usize);
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

/// Name or path of the driver's library.
pub(crate) fn library_name() -> OsString {
    std::env::var_os(LIBRARY_VARIABLE).unwrap_or_else(|| LIBRARY.into())
}

impl Api {
    /// Opens and initialises the driver.
    ///
    /// # Errors
    /// `NoDriver`, `DriverTooOld`, `NoDevice`, or `Driver` with the answer of `cuInit`.
    pub(crate) fn open(name: &OsString) -> Result<Self> {
        let shown = name.to_string_lossy().into_owned();
        let library = Library::open(name).map_err(|why| {
            Error::new(
                ErrorKind::NoDriver,
                format!("opening {shown} ({why})"),
                "install NVIDIA's driver, in a container start it with --gpus; all else works \
                 without",
            )
        })?;
        let api = Self::find(&library).map_err(|missing| {
            Error::new(
                ErrorKind::DriverTooOld,
                format!("{shown} lacks {}", missing.join(", ")),
                "install a driver of CUDA 11.1 or later",
            )
        })?;
        // SAFETY: the first call of the driver's interface, as it wants it.
        match unsafe { (api.init)(0) } {
            0 => {}
            NO_DEVICE => return Err(no_device(&shown)),
            NOT_INITIALIZED => return Err(forked()),
            code => return Err(api.refused(code, "cuInit", init_remedy(code))),
        }
        let mut count = 0;
        // SAFETY: a valid pointer.
        api.check(unsafe { (api.device_count)(&raw mut count) }, "cuDeviceGetCount")?;
        if count == 0 { Err(no_device(&shown)) } else { Ok(api) }
    }

    /// `Ok` for 0, else the driver's answer by name.
    pub(crate) fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.refused(code, what, remedy(code))) }
    }

    #[cold]
    fn refused(&self, code: c_int, what: &str, remedy: &str) -> Error {
        let mut name = std::ptr::null();
        // SAFETY: a valid pointer; the answer is a string of the driver's that stays.
        let name = unsafe {
            match self.error_name {
                Some(error_name) if error_name(code, &raw mut name) == 0 && !name.is_null() => {
                    CStr::from_ptr(name).to_string_lossy().into_owned()
                }
                _ => String::new(),
            }
        };
        Error::new(ErrorKind::Driver(code), format!("{what} ({name})"), remedy)
    }
}

#[cold]
pub(crate) fn forked() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "using a device in a forked child",
        "CUDA does not survive a fork: open it in the child, before the parent does; in Python, \
         multiprocessing.set_start_method('spawn')",
    )
}

#[cold]
fn no_device(library: &str) -> Error {
    Error::new(
        ErrorKind::NoDevice,
        format!("asking {library} for devices"),
        "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES; in a container start it with --gpus",
    )
}

fn init_remedy(code: c_int) -> &'static str {
    match code {
        34 => "this is the stub library of the CUDA toolkit: install the driver itself",
        803 => "the driver's library and its kernel module differ: restart the machine",
        _ => "look at `nvidia-smi` and at the kernel's log",
    }
}

fn remedy(code: c_int) -> &'static str {
    match code {
        2 => "the device or the memory that can be pinned is exhausted",
        700 | 714..=719 => {
            "an earlier operation of this process spoilt the device's context: restart the process"
        }
        _ => "",
    }
}
