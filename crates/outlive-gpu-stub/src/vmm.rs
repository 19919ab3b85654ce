//! Allocations that are files: exported as descriptors, mapped by whoever has one.

use std::collections::HashMap;
use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::{Mutex, MutexGuard};

use crate::options::options;
use crate::{Answer, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, SUCCESS, answer};

#[derive(Default)]
struct Vmm {
    /// Handle to descriptor and length.
    handles: HashMap<u64, (c_int, usize)>,
    reserved: HashMap<usize, usize>,
    mapped: HashMap<usize, usize>,
    next: u64,
}

static VMM: Mutex<Option<Vmm>> = Mutex::new(None);

const GRANULE: usize = 1 << 16;

fn with<T>(f: impl FnOnce(&mut Vmm) -> T) -> T {
    let mut vmm: MutexGuard<'_, _> = VMM.lock().unwrap_or_else(|e| e.into_inner());
    f(vmm.get_or_insert_default())
}

pub(crate) fn allocations() -> usize {
    with(|v| v.handles.len() + v.mapped.len() + v.reserved.len())
}

pub(crate) fn is_mapped(at: usize) -> bool {
    with(|v| v.mapped.iter().any(|(start, bytes)| (*start..start + bytes).contains(&at)))
}

fn insert(fd: c_int, bytes: usize) -> u64 {
    with(|v| {
        v.next += 1;
        v.handles.insert(v.next, (fd, bytes));
        v.next
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    _properties: *const c_void,
    _option: c_int,
) -> Answer {
    // SAFETY: a valid pointer by the caller, here and below.
    unsafe { *bytes = GRANULE };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    bytes: usize,
    _properties: *const c_void,
    _flags: c_ulonglong,
) -> Answer {
    answer!(cuMemCreate);
    if options().no_vmm {
        return NOT_SUPPORTED;
    }
    if bytes == 0 || bytes % GRANULE != 0 {
        return INVALID_VALUE;
    }
    // SAFETY: system calls without pointers but a literal; the descriptor is ours alone.
    unsafe {
        let fd = libc::memfd_create(c"stub-device".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 || libc::ftruncate(fd, bytes as libc::off_t) != 0 {
            return OUT_OF_MEMORY;
        }
        *handle = insert(fd, bytes);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemRelease(handle: u64) -> Answer {
    let Some((fd, _)) = with(|v| v.handles.remove(&handle)) else { return INVALID_VALUE };
    // SAFETY: the descriptor that the handle owned.
    unsafe { libc::close(fd) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemExportToShareableHandle(
    out: *mut c_void,
    handle: u64,
    _kind: c_int,
    _flags: c_ulonglong,
) -> Answer {
    answer!(cuMemExportToShareableHandle);
    let Some(fd) = with(|v| v.handles.get(&handle).map(|h| h.0)) else { return INVALID_VALUE };
    // As the driver's, it stays open over an exec.
    // SAFETY: an int for this kind, by the caller; the descriptor is open.
    unsafe { *out.cast::<c_int>() = libc::fcntl(fd, libc::F_DUPFD, 0) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemImportFromShareableHandle(
    handle: *mut u64,
    os_handle: *mut c_void,
    _kind: c_int,
) -> Answer {
    answer!(cuMemImportFromShareableHandle);
    // SAFETY: the descriptor itself travels in the pointer's bits; `stat` is plain bytes.
    unsafe {
        let fd = libc::fcntl(os_handle.addr() as c_int, libc::F_DUPFD_CLOEXEC, 0);
        let mut stat: libc::stat = std::mem::zeroed();
        if fd < 0 || libc::fstat(fd, &raw mut stat) != 0 {
            return INVALID_VALUE;
        }
        *handle = insert(fd, stat.st_size as usize);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAddressReserve(
    at: *mut u64,
    bytes: usize,
    _alignment: usize,
    _wish: u64,
    _flags: c_ulonglong,
) -> Answer {
    answer!(cuMemAddressReserve);
    // SAFETY: a new mapping touches nothing of anybody.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let got = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        if got == libc::MAP_FAILED {
            return OUT_OF_MEMORY;
        }
        *at = got.expose_provenance() as u64;
        with(|v| v.reserved.insert(got.addr(), bytes));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAddressFree(at: u64, bytes: usize) -> Answer {
    if with(|v| v.reserved.remove(&(at as usize))) != Some(bytes) {
        return INVALID_VALUE;
    }
    // SAFETY: reserved with this length; freed once.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(at as usize), bytes) };
    SUCCESS
}

fn replace(at: u64, bytes: usize, fd: c_int) -> bool {
    let prot = if fd < 0 { libc::PROT_NONE } else { libc::PROT_READ | libc::PROT_WRITE };
    let kind = if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
    let pointer = std::ptr::with_exposed_provenance_mut(at as usize);
    // SAFETY: over a range that `cuMemAddressReserve` gave.
    let got = unsafe { libc::mmap(pointer, bytes, prot, kind | libc::MAP_FIXED, fd, 0) };
    got != libc::MAP_FAILED
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemMap(
    at: u64,
    bytes: usize,
    _offset: usize,
    handle: u64,
    _flags: c_ulonglong,
) -> Answer {
    answer!(cuMemMap);
    let known = with(|v| {
        let reserved = v.reserved.get(&(at as usize)).is_some_and(|r| *r >= bytes);
        v.handles.get(&handle).copied().filter(|h| reserved && h.1 >= bytes)
    });
    let Some((fd, _)) = known else { return INVALID_VALUE };
    if !replace(at, bytes, fd) {
        return OUT_OF_MEMORY;
    }
    with(|v| v.mapped.insert(at as usize, bytes));
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemUnmap(at: u64, bytes: usize) -> Answer {
    if with(|v| v.mapped.remove(&(at as usize))) != Some(bytes) {
        return INVALID_VALUE;
    }
    if replace(at, bytes, -1) { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemSetAccess(
    at: u64,
    _bytes: usize,
    _access: *const c_void,
    _count: usize,
) -> Answer {
    answer!(cuMemSetAccess);
    if with(|v| v.mapped.contains_key(&(at as usize))) { SUCCESS } else { INVALID_VALUE }
}
