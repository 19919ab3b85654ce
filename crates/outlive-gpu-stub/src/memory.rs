//! Device memory that is host memory, and registrations.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use crate::{
    ALREADY_REGISTERED, Answer, FIRST_CONTEXT, INVALID_CONTEXT, INVALID_VALUE, NOT_REGISTERED,
    NOT_SUPPORTED, OUT_OF_MEMORY, SUCCESS, answer, not_beside_a_capture, options,
};

/// What is allocated: length and device.
#[derive(Clone, Copy, Debug)]
struct Allocated {
    bytes: usize,
    device: usize,
}

/// A registration: length, and the file or memory that was mapped there.
#[derive(Clone, Debug)]
struct Registration {
    bytes: usize,
    backing: String,
}

static ALLOCATED: Mutex<BTreeMap<usize, Allocated>> = Mutex::new(BTreeMap::new());
static REGISTERED: Mutex<BTreeMap<usize, Registration>> = Mutex::new(BTreeMap::new());
/// Registrations that do not return yet.
static HELD: AtomicUsize = AtomicUsize::new(0);

const READ_ONLY: c_uint = 8;
const PAGE: usize = 4096;

fn lock<T>(ranges: &'static Mutex<T>) -> MutexGuard<'static, T> {
    ranges.lock().unwrap_or_else(|e| e.into_inner())
}

pub(crate) fn held() -> usize {
    HELD.load(SeqCst)
}

pub(crate) fn is_registered(at: usize) -> bool {
    let registered = lock(&REGISTERED);
    registered.range(..=at).next_back().is_some_and(|(start, r)| at < start + r.bytes)
}

pub(crate) fn registered() -> usize {
    lock(&REGISTERED).len()
}

/// Ranges that were unmapped, in part or in whole, while registered: what is mapped there next
/// would be taken for them, and a device would go on with the old pages.
pub(crate) fn registered_unmapped() -> usize {
    let ranges: Vec<_> = lock(&REGISTERED).iter().map(|(at, r)| (*at, r.clone())).collect();
    ranges.into_iter().filter(|(at, range)| backing(*at).as_ref() != Some(&range.backing)).count()
}

pub(crate) fn allocations() -> usize {
    lock(&ALLOCATED).len()
}

/// Whether a copy may touch host bytes `[at, at + len)`: as the real driver, not across the border
/// of a registration. A device would go on with the pages of before where a registered range was
/// unmapped: wrong data, told to nobody, so the stub ends the program.
pub(crate) fn host_range_is_whole(at: usize, len: usize) -> bool {
    let end = at + len;
    let found = {
        let registered = lock(&REGISTERED);
        registered.range(..end.max(at + 1)).next_back().map(|(start, r)| (*start, r.clone()))
    };
    match found {
        Some((start, range)) if start + range.bytes > at => {
            if backing(start).as_ref() != Some(&range.backing) {
                eprintln!("outlive-gpu-stub: a copy where a registered range was unmapped");
                std::process::abort();
            }
            start <= at && end <= start + range.bytes
        }
        _ => true,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) -> Answer {
    answer!(cuMemAlloc_v2);
    not_beside_a_capture!();
    if bytes == 0 {
        return INVALID_VALUE;
    }
    // Shared: the copying process of `engine=process` writes it too.
    // SAFETY: a new mapping touches nothing of anybody.
    let at = unsafe {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), bytes, prot, flags, -1, 0)
    };
    if at == libc::MAP_FAILED {
        return OUT_OF_MEMORY;
    }
    let device = crate::context().saturating_sub(FIRST_CONTEXT);
    lock(&ALLOCATED).insert(at.addr(), Allocated { bytes, device });
    // SAFETY: a valid pointer by the caller.
    unsafe { *pointer = at.expose_provenance() as u64 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFree_v2(pointer: u64) -> Answer {
    not_beside_a_capture!();
    crate::streams::finish_all();
    let Some(allocated) = lock(&ALLOCATED).remove(&(pointer as usize)) else {
        return INVALID_VALUE;
    };
    let bytes = allocated.bytes;
    // SAFETY: mapped by `cuMemAlloc_v2` with this length; freed once.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(pointer as usize), bytes) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostRegister_v2(
    at: *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    answer!(cuMemHostRegister_v2);
    not_beside_a_capture!();
    let s = options::options();
    if bytes == 0 || at.addr() % PAGE != 0 {
        return INVALID_VALUE;
    }
    if s.refuse_register || bytes > s.register_bytes_max {
        return OUT_OF_MEMORY;
    }
    if flags & READ_ONLY != 0 && s.no_read_only {
        return NOT_SUPPORTED;
    }
    let Some(backing) = backing(at.addr()) else { return INVALID_VALUE };
    let Some(rights) = rights(at.addr()) else { return INVALID_VALUE };
    if !rights.is_writable && flags & READ_ONLY == 0 {
        return INVALID_VALUE;
    }
    // After a fork who writes there first gets a copy, and the device keeps the page of before.
    if rights.is_writable && rights.is_private {
        eprintln!("outlive-gpu-stub: private memory is registered, which a fork takes away");
        std::process::abort();
    }
    let mut registered = lock(&REGISTERED);
    let before = registered.range(..at.addr() + bytes).next_back();
    if before.is_some_and(|(start, range)| start + range.bytes > at.addr()) {
        return ALREADY_REGISTERED;
    }
    registered.insert(at.addr(), Registration { bytes, backing });
    drop(registered);
    HELD.fetch_add(1, SeqCst);
    while options::options().hold_register {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    HELD.fetch_sub(1, SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostUnregister(at: *mut c_void) -> Answer {
    answer!(cuMemHostUnregister);
    not_beside_a_capture!();
    let Some(range) = lock(&REGISTERED).get(&at.addr()).cloned() else { return NOT_REGISTERED };
    // The stub's copies touch the pages themselves.
    if crate::streams::copies_touch(at.addr(), range.bytes) {
        eprintln!("outlive-gpu-stub: unregistered under a copy");
        std::process::abort();
    }
    // Until then it is registered, and must be mapped.
    crate::streams::finish_all();
    if backing(at.addr()).as_ref() != Some(&range.backing) {
        eprintln!("outlive-gpu-stub: unregistered after it was unmapped");
        std::process::abort();
    }
    lock(&REGISTERED).remove(&at.addr()).map_or(NOT_REGISTERED, |_| SUCCESS)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    pointer: *mut u64,
    at: *mut c_void,
    _flags: c_uint,
) -> Answer {
    // SAFETY: a valid pointer by the caller.
    unsafe { *pointer = at.expose_provenance() as u64 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(
    data: *mut c_void,
    attribute: c_int,
    pointer: u64,
) -> Answer {
    if crate::context() == 0 {
        return INVALID_CONTEXT;
    }
    let at = pointer as usize;
    let inside = |(start, a): (&usize, &Allocated)| (start + a.bytes > at).then_some(a.device);
    let allocated = lock(&ALLOCATED).range(..=at).next_back().and_then(inside);
    let device = allocated.or_else(|| crate::vmm::is_mapped(at).then_some(0));
    match (attribute, device) {
        // The memory type is that of a device.
        (2, Some(_)) => {
            // SAFETY: an unsigned int for this attribute, by the caller.
            unsafe { *data.cast::<c_uint>() = 2 };
            SUCCESS
        }
        (9, Some(device)) => {
            // SAFETY: an int for this attribute, by the caller.
            unsafe { *data.cast::<c_int>() = device as c_int };
            SUCCESS
        }
        _ => INVALID_VALUE,
    }
}

/// Device and inode of what is mapped at `at`; a new map of the same file is the same pages.
fn backing(at: usize) -> Option<String> {
    // Behind the rights and the offset.
    map_at(at, |fields| Some(format!("{} {}", fields.nth(2)?, fields.next()?)))
}

/// How the page at `at` is mapped.
fn rights(at: usize) -> Option<Rights> {
    map_at(at, |fields| {
        let text = fields.next()?;
        Some(Rights { is_writable: text.contains('w'), is_private: text.contains('p') })
    })
}

#[derive(Clone, Copy)]
struct Rights {
    is_writable: bool,
    is_private: bool,
}

/// What `read` makes of the fields, behind the addresses, of the map that `at` lies in.
fn map_at<T>(
    at: usize,
    read: impl Fn(&mut std::str::SplitWhitespace<'_>) -> Option<T>,
) -> Option<T> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        if (start..end).contains(&at) { read(&mut fields) } else { None }
    })
}
