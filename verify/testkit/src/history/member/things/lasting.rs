//! What lies where it is while something borrows from it.

/// A value at an address that lasts until it is dropped here.
pub(crate) struct Lasting<T>(*mut T);

// SAFETY: it is a box whose content is borrowed by hand; it may be sent where the content may.
unsafe impl<T: Send> Send for Lasting<T> {}

impl<T> Lasting<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }

    /// The director sees to it that nothing that borrows from it is used after its end, nor
    /// beside another.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn get(&self) -> &'static mut T {
        // SAFETY: as above; the pointer is a box's.
        unsafe { &mut *self.0 }
    }
}

impl<T> Drop for Lasting<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
