//! A payload of our own, copied out of shared memory: what is read from it cannot change.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::Error;
use crate::os::syserr;
use crate::queue::membership::meta::Meta;
use crate::sync::fault;
use crate::types::Payload;
use crate::types::payload::fault_of;

/// Payloads up to this many words are kept in place.
const WORDS: usize = 8;

enum Store {
    Small([u64; WORDS]),
    Large { at: NonNull<u8>, layout: Layout },
}

/// Why bytes are no payload of ours.
#[derive(Debug)]
pub(in crate::service) enum NoBody {
    /// No value of the type has that length.
    Length,
    /// A field holds what is none of its values, in words.
    Value(String),
    /// `OutOfMemory`.
    Memory(Error),
}

/// An owned payload of type `T`.
pub(in crate::service) struct Body<T: Payload + ?Sized> {
    store: Store,
    bytes: usize,
    _type: PhantomData<fn() -> Box<T>>,
}

// SAFETY: the bytes are owned, and a payload type is `Send` and `Sync`.
unsafe impl<T: Payload + ?Sized> Send for Body<T> {}
// SAFETY: as above.
unsafe impl<T: Payload + ?Sized> Sync for Body<T> {}

impl<T: Payload + ?Sized> Body<T> {
    /// A copy of `bytes` bytes of a message of `meta`.
    ///
    /// # Errors
    /// See [`NoBody`].
    ///
    /// # Safety
    /// `from` is valid for reads of `bytes` bytes.
    pub(in crate::service) unsafe fn copy(
        from: *const u8,
        bytes: usize,
        meta: &Meta,
    ) -> Result<Self, NoBody> {
        if !(T::fits(bytes) && meta.fits(bytes)) {
            return Err(NoBody::Length);
        }
        // The same, unless `T` is bytes that stand for another type.
        let align = align_of::<T::Element>().max(meta.of.align);
        let store = if bytes <= WORDS * 8 && align <= 8 {
            let mut words = [0; WORDS];
            // SAFETY: the source by the caller; the words have room.
            unsafe { std::ptr::copy_nonoverlapping(from, words.as_mut_ptr().cast(), bytes) };
            Store::Small(words)
        } else {
            let none = || {
                let size = format!("{bytes} bytes");
                NoBody::Memory(syserr::from_code("copy a message of", size, 12))
            };
            let layout = Layout::from_size_align(bytes.max(1), align).map_err(|_| none())?;
            // SAFETY: the layout has a size of at least 1.
            let at = NonNull::new(unsafe { alloc(layout) }).ok_or_else(none)?;
            // SAFETY: the source by the caller; just allocated for as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(from, at.as_ptr(), bytes) };
            Store::Large { at, layout }
        };
        let body = Self { store, bytes, _type: PhantomData };
        // SAFETY: just filled with as many bytes.
        let copied = unsafe { std::slice::from_raw_parts(body.at(), bytes) };
        let bad = T::CHECKED && !T::is_valid(copied) && !fault("body.value_unchecked");
        match bad {
            false => Ok(body),
            true => Err(NoBody::Value(fault_of::<T>(copied))),
        }
    }

    fn at(&self) -> *const u8 {
        match &self.store {
            Store::Small(words) => words.as_ptr().cast(),
            Store::Large { at, .. } => at.as_ptr(),
        }
    }
}

impl<T: Payload + ?Sized> Deref for Body<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `copy` checked length and validity, and both stores are aligned for the type; the
        // bytes are initialised, owned, and live as long as `self`.
        unsafe { T::cast(self.at(), self.bytes) }
    }
}

impl<T: Payload + ?Sized> Drop for Body<T> {
    fn drop(&mut self) {
        if let Store::Large { at, layout } = &self.store {
            // SAFETY: allocated with this layout in `copy`, freed once.
            unsafe { dealloc(at.as_ptr(), *layout) };
        }
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for Body<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("bytes", &self.bytes).finish()
    }
}
