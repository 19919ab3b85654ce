//! Settings that callers allocate, of this version's size or of another's.
//!
//! # Theory of operation
//! Each begins with `size`, the `sizeof` of the caller's header. A program that was compiled with
//! an older, shorter one leaves the rest at its default; one with a newer, longer one is served as
//! long as what this library does not know is zero, and else refused, rather than run without what
//! it asked for. So settings may be added, and nothing is reserved for them.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use crate::status::{Done, Fail, invalid};

/// More than any settings will ever take: a `size` beyond was not set.
const SIZE_MAX: usize = 4096;

/// Settings that begin with their size.
///
/// # Safety
/// `repr(C)`; the first field is `size: usize`; zero bytes are a value.
pub(crate) unsafe trait SizedOptions: Sized {
    /// What a caller calls it.
    const NAME: &'static str;
    /// Bytes of the first version that had a size: none is shorter.
    const FIRST_BYTES: usize;
}

/// What lies at `at`, in this version's form; `None` for NULL.
pub(crate) fn read_options<T: SizedOptions>(at: *const T) -> Result<Option<T>, Fail> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's part: its `size` lies there.
    let size = unsafe { at.cast::<usize>().read() };
    if !(T::FIRST_BYTES..=SIZE_MAX).contains(&size) {
        return Err(invalid(
            T::NAME,
            &format!("its size is {size}: set it to sizeof({})", T::NAME),
        ));
    }
    let known = size.min(size_of::<T>());
    let mut own = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's part: `size` bytes lie there; `own` has room for `known`, and is a value
    // before and after, as the trait promises.
    let (own, rest) = unsafe {
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), known);
        (own.assume_init(), std::slice::from_raw_parts(at.cast::<u8>().add(known), size - known))
    };
    match rest.iter().all(|byte| *byte == 0) {
        true => Ok(Some(own)),
        false => Err(invalid(
            T::NAME,
            "it sets what this liboutlive does not know: install its newer version",
        )),
    }
}

/// A setting that is 0 or 1.
pub(crate) fn flag(value: u32, name: &str) -> Result<bool, Fail> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(invalid(name, &format!("it is {value}; use 0 or 1"))),
    }
}

/// What is reserved is 0, so that it may mean something one day.
pub(crate) fn reserved(value: u64) -> Done {
    if value == 0 { Ok(()) } else { Err(invalid("a reserved field", "it is not 0")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct New {
        size: usize,
        first: u64,
        second: u64,
    }
    // SAFETY: as the trait wants it.
    unsafe impl SizedOptions for New {
        const NAME: &'static str = "new";
        const FIRST_BYTES: usize = 16;
    }

    fn of(bytes: &[u64]) -> Result<Option<New>, Fail> {
        read_options(bytes.as_ptr().cast::<New>())
    }

    #[test]
    fn shorter_and_longer_settings_are_understood_unless_they_want_what_is_unknown() {
        assert!(read_options(std::ptr::null::<New>()).is_ok_and(|none| none.is_none()));
        let old = of(&[16, 7, 8]).ok().flatten().unwrap();
        assert_eq!((old.size, old.first, old.second), (16, 7, 0));
        let same = of(&[24, 7, 8]).ok().flatten().unwrap();
        assert_eq!((same.first, same.second), (7, 8));
        let newer = of(&[40, 7, 8, 0, 0]).ok().flatten().unwrap();
        assert_eq!(newer.second, 8);
        assert!(of(&[40, 7, 8, 0, 1]).is_err());
        for never_set in [0, 8, 15, 1 << 40] {
            assert!(of(&[never_set, 7, 8]).is_err());
        }
    }
}
