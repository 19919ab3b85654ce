//! Payloads of any length with a header: one value of a fixed-size type, then elements of another.
//!
//! # Invariants
//! - The bytes of a [`Headed`] begin at the header's alignment and are as long as a header and a
//!   whole number of elements, and they are valid. Every way to make one checks that.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use zerocopy::IntoBytes;

use super::describe::TypeDescription;
use super::encoding::Encoding;
use super::payload::{Message, Payload, are_elements, is_element, sealed};

/// A header `H` followed by any number of elements `E`, as one payload: an image with its pixels, a
/// scan with its ranges. The type's name is that of the header.
///
/// `E` may not be aligned to more than `H`: then the elements follow the header without a gap.
///
/// # Examples
/// ```
/// use outlive::Headed;
///
/// #[outlive::message("example/Scan")]
/// struct ScanHeader {
///     /// Angle of the first beam, rad.
///     angle_rad: f64,
///     /// Angle between beams, rad.
///     step_rad: f64,
/// }
///
/// /// Ranges in metres.
/// type Scan = Headed<ScanHeader, f32>;
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<Scan>("/scan")?.publisher()?;
/// let mut subscriber = node.topic::<Scan>("/scan")?.subscriber()?;
///
/// let mut scan = publisher.loan_headed(ScanHeader { angle_rad: -1.0, step_rad: 0.01 }, 201)?;
/// scan.tail_mut().fill(4.5);
/// scan.publish()?;
///
/// let scan = subscriber.receive()?.expect("sent just now");
/// assert_eq!((scan.header().step_rad, scan.tail().len(), scan.tail()[200]), (0.01, 201, 4.5));
/// # Ok::<(), outlive::Error>(())
/// ```
#[repr(transparent)]
pub struct Headed<H: Message, E: Message> {
    _types: PhantomData<fn() -> (H, E)>,
    bytes: [u8],
}

impl<H: Message, E: Message> Headed<H, E> {
    /// Evaluated wherever one is made, so that a wrong pair of types does not compile.
    const FITS: () = {
        assert!(align_of::<E>() <= align_of::<H>(), "elements are aligned to more than the header");
        assert!(size_of::<E>() > 0, "elements have no size");
    };

    /// The bytes of any payload as this type; `None` if length, alignment or a value does not fit.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, zerocopy::IntoBytes};
    ///
    /// let words = [7u32, 0x0002_0001]; // a header, then two elements, little-endian
    /// let counts = Headed::<u32, u16>::parse(words.as_bytes()).expect("aligned and whole");
    /// assert_eq!((*counts.header(), counts.tail()), (7, &[1, 2][..]));
    /// let half = &words.as_bytes()[..7];
    /// assert!(Headed::<u32, u16>::parse(half).is_none(), "half an element");
    /// ```
    pub fn parse(bytes: &[u8]) -> Option<&Self> {
        // SAFETY: all that is asked for is checked; the bytes are borrowed for as long.
        Self::is_one(bytes).then(|| unsafe { Self::cast(bytes.as_ptr(), bytes.len()) })
    }

    fn is_one(bytes: &[u8]) -> bool {
        let aligned = bytes.as_ptr().addr() % align_of::<H>() == 0;
        aligned && Self::fits(bytes.len()) && Self::is_valid(bytes)
    }

    /// As [`Headed::parse`], to write.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, zerocopy::IntoBytes};
    ///
    /// let mut words = [7u32, 0];
    /// let counts = Headed::<u32, u16>::parse_mut(words.as_mut_bytes()).expect("aligned");
    /// counts.tail_mut().copy_from_slice(&[1, 2]);
    /// assert_eq!(words, [7, 0x0002_0001]);
    /// ```
    pub fn parse_mut(bytes: &mut [u8]) -> Option<&mut Self> {
        // SAFETY: as in `parse`, and borrowed exclusively.
        Self::is_one(bytes).then(|| unsafe { Self::cast_mut(bytes.as_mut_ptr(), bytes.len()) })
    }

    /// The header.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, zerocopy::IntoBytes};
    ///
    /// let words = [7u32, 0x0002_0001];
    /// let counts = Headed::<u32, u16>::parse(words.as_bytes()).expect("aligned and whole");
    /// assert_eq!(*counts.header(), 7);
    /// ```
    #[inline]
    pub fn header(&self) -> &H {
        // SAFETY: aligned, long enough and a valid `H` (invariant).
        unsafe { &*self.bytes.as_ptr().cast() }
    }

    /// The elements.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, zerocopy::IntoBytes};
    ///
    /// let words = [7u32, 0x0002_0001];
    /// let counts = Headed::<u32, u16>::parse(words.as_bytes()).expect("aligned and whole");
    /// assert_eq!(counts.tail(), [1, 2]);
    /// let none = Headed::<u32, u16>::parse(&words.as_bytes()[..4]).expect("a header alone");
    /// assert!(none.tail().is_empty());
    /// ```
    #[inline]
    pub fn tail(&self) -> &[E] {
        let tail = &self.bytes[size_of::<H>()..];
        // SAFETY: behind the header the alignment of `E` holds, as `H` has at least that and its
        // size is a multiple of it; whole and valid elements (invariant).
        unsafe { std::slice::from_raw_parts(tail.as_ptr().cast(), tail.len() / size_of::<E>()) }
    }

    /// The header, to write.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use outlive::Headed;
    /// let publisher = node.topic::<Headed<u64, f32>>("/scan")?.publisher()?;
    /// let mut scan = publisher.loan_headed(0, 100)?;
    /// *scan.header_mut() = outlive::now_ns(); // once the scan begins
    /// assert_ne!(*scan.header(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn header_mut(&mut self) -> &mut H {
        self.split_mut().0
    }

    /// The elements, to write.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use outlive::Headed;
    /// let publisher = node.topic::<Headed<u64, f32>>("/scan")?.publisher()?;
    /// let mut scan = publisher.loan_headed(0, 100)?;
    /// for (i, range) in scan.tail_mut().iter_mut().enumerate() {
    ///     *range = i as f32 / 100.0;
    /// }
    /// assert_eq!((scan.tail().len(), scan.tail()[50]), (100, 0.5));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn tail_mut(&mut self) -> &mut [E] {
        self.split_mut().1
    }

    /// Header and elements, to write.
    ///
    /// # Examples
    /// ```
    /// use outlive::Headed;
    ///
    /// fn scale(scan: &mut Headed<f32, f32>, by: f32) {
    ///     let (step_rad, ranges) = scan.split_mut(); // both at once
    ///     *step_rad *= by;
    ///     ranges.iter_mut().for_each(|range| *range *= by);
    /// }
    /// # use outlive::zerocopy::IntoBytes;
    /// # let mut floats = [0.5f32, 1.0, 2.0];
    /// # let scan = Headed::parse_mut(floats.as_mut_bytes()).expect("aligned and whole");
    /// scale(scan, 2.0);
    /// assert_eq!((*scan.header(), scan.tail()), (1.0, &[2.0, 4.0][..]));
    /// ```
    #[inline]
    pub fn split_mut(&mut self) -> (&mut H, &mut [E]) {
        let (head, tail) = self.bytes.split_at_mut(size_of::<H>());
        let len = tail.len() / size_of::<E>();
        // SAFETY: as in `header` and `tail`; the two do not overlap; neither type has padding
        // (IntoBytes), so that bytes stay bytes.
        unsafe {
            (
                &mut *head.as_mut_ptr().cast(),
                std::slice::from_raw_parts_mut(tail.as_mut_ptr().cast(), len),
            )
        }
    }

    /// Fills the elements from `from`, of which there are as many.
    pub(crate) fn copy_tail(&mut self, from: &[E]) {
        let to = &mut self.bytes[size_of::<H>()..];
        to.copy_from_slice(from.as_bytes());
    }

    /// Header and elements as bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use outlive::Headed;
    /// let publisher = node.topic::<Headed<u32, u16>>("/counts")?.publisher()?;
    /// let mut counts = publisher.loan_headed(7, 2)?;
    /// counts.tail_mut().copy_from_slice(&[1, 2]);
    /// assert_eq!(counts.as_bytes(), [7, 0, 0, 0, 1, 0, 2, 0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<H: Message, E: Message> sealed::Sealed for Headed<H, E> {}

// SAFETY: `fits` is a header and whole elements; `is_valid` looks at both.
unsafe impl<H: Message, E: Message> Payload for Headed<H, E> {
    type Element = H;
    const ENCODING: Encoding = Encoding::Headed;
    const CHECKED: bool = !(H::VALIDITY.is_any() && E::VALIDITY.is_any());

    fn describe_payload() -> TypeDescription {
        TypeDescription::headed(H::describe(), E::describe())
    }

    fn bytes_of(len: usize) -> Option<usize> {
        len.checked_mul(size_of::<E>())?.checked_add(size_of::<H>())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    fn fits(bytes: usize) -> bool {
        let () = Self::FITS;
        bytes.checked_sub(size_of::<H>()).is_some_and(|tail| tail % size_of::<E>() == 0)
    }

    #[inline]
    fn is_valid(bytes: &[u8]) -> bool {
        let (head, tail) = bytes.split_at(size_of::<H>());
        (H::VALIDITY.is_any() || is_element::<H>(head)) && are_elements::<E>(tail)
    }

    #[inline(always)]
    unsafe fn clear(ptr: *mut u8, bytes: usize) {
        // Not the pixels behind a header with a `bool` in it.
        let from = if H::VALIDITY.is_any() { size_of::<H>() } else { 0 };
        let to = if E::VALIDITY.is_any() { size_of::<H>() } else { bytes };
        if Self::CHECKED {
            // SAFETY: by the caller; both are within `bytes`, which hold a header at least, and
            // `from <= to` as one of the two is checked; zeros are a value (FromZeros).
            unsafe { ptr.add(from).write_bytes(0, to - from) };
        }
    }

    #[inline]
    unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self {
        // SAFETY: length, alignment, validity and lifetime by the caller; transparent over
        // `[u8]`.
        unsafe { &*(std::ptr::slice_from_raw_parts(ptr, bytes) as *const Self) }
    }

    #[inline]
    unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self {
        // SAFETY: as in `cast`, and exclusive by the caller.
        unsafe { &mut *(std::ptr::slice_from_raw_parts_mut(ptr, bytes) as *mut Self) }
    }
}

impl<H, E> fmt::Debug for Headed<H, E>
where
    H: Message + fmt::Debug,
    E: Message + fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headed").field("header", self.header()).field("tail", &self.tail()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Scan = Headed<[f64; 2], u16>;

    #[repr(align(8))]
    struct Aligned([u8; 32]);

    #[test]
    fn only_a_header_and_whole_elements_at_the_right_alignment_are_one() {
        let mut bytes = Aligned([0; 32]);
        assert!(Scan::parse(&bytes.0[..15]).is_none(), "no whole header");
        assert!(Scan::parse(&bytes.0[..16]).is_some_and(|s| s.tail().is_empty()));
        assert!(Scan::parse(&bytes.0[..17]).is_none(), "half an element");
        assert!(Scan::parse(&bytes.0[1..17]).is_none(), "not aligned");
        let scan = Scan::parse_mut(&mut bytes.0[..22]).unwrap();
        *scan.header_mut() = [1.0, 2.0];
        scan.tail_mut().copy_from_slice(&[3, 4, 5]);
        assert_eq!((scan.header(), scan.tail()), (&[1.0, 2.0], &[3, 4, 5][..]));
        assert_eq!(
            (&bytes.0[8..16], &bytes.0[16..22]),
            (&2f64.to_le_bytes()[..], &[3u8, 0, 4, 0, 5, 0][..])
        );
    }

    #[test]
    fn its_description_has_the_elements_as_a_last_field_of_any_length() {
        let text = "outlive-type 1 align 8\nstruct:16\n 0 f64[2] header\n 16 u16[] tail\n";
        assert_eq!(Scan::describe_payload().to_text(), text);
    }
}
