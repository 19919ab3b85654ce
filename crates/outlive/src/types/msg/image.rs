//! Pictures of a camera.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, message};
use crate::types::{Headed, Message, TypeDescription, Validity};
use crate::{Error, ErrorKind, Result};

/// A header and the bytes of a picture, in the camera's optical frame `header.frame_id`.
///
/// The layout, for programs that write it without this type: 64 bytes [`ImageHeader`], then the
/// pixels, row by row from the top, `row_bytes` apart; a compressed picture's bytes as they are.
///
/// # Examples
/// ```
/// use outlive::msg::{Header, Image, ImageHeader, PixelFormat};
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<Image>("/camera/front")?.publisher()?;
/// let mut subscriber = node.topic::<Image>("/camera/front")?.subscriber()?;
///
/// let header = Header::now("camera_front_optical");
/// let mut image = publisher.loan_image(header, 640, 480, PixelFormat::RGB8)?;
/// image.tail_mut().fill(128);
/// image.publish()?;
///
/// let image = subscriber.receive()?.expect("sent just now");
/// image.check()?; // another program may have sent anything
/// let row = image.row(479).expect("the last row");
/// assert_eq!((row.len(), row[0], image.header().format.as_str()), (1920, 128, "rgb8"));
/// # Ok::<(), outlive::Error>(())
/// ```
pub type Image = Headed<ImageHeader, u8>;

/// The header before the pixels; 64 bytes, so that the pixels begin on a cache line.
///
/// # Examples
/// ```
/// use outlive::msg::{Header, ImageHeader, PixelFormat};
///
/// let header = ImageHeader {
///     header: Header::now("camera_front_optical"),
///     width: 638,
///     height: 480,
///     row_bytes: 640, // this camera begins each row at a multiple of 64 bytes
///     format: PixelFormat::MONO8,
///     ..ImageHeader::default()
/// };
/// header.check(640 * 480)?;
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ImageHeader {
    /// When exposure began, and the optical frame of the camera.
    pub header: Header,
    /// Columns, pixels.
    pub width: u32,
    /// Rows, pixels.
    pub height: u32,
    /// From the start of one row to the next, bytes; 0 for a compressed picture.
    pub row_bytes: u32,
    /// What the bytes mean.
    pub format: PixelFormat,
    /// Zero.
    pub reserved: [u32; 2],
}
message!(ImageHeader, "outlive/Image", header, width, height, row_bytes, format, reserved);

/// What the bytes of an image mean. A number, because other programs may write any.
///
/// # Examples
/// ```
/// use outlive::msg::PixelFormat;
///
/// fn channels(format: PixelFormat) -> Option<u32> {
///     match format {
///         PixelFormat::MONO8 | PixelFormat::MONO16 => Some(1),
///         PixelFormat::RGB8 | PixelFormat::BGR8 => Some(3),
///         _ => None, // another program may write any number
///     }
/// }
/// assert_eq!((channels(PixelFormat::BGR8), channels(PixelFormat(77))), (Some(3), None));
/// ```
#[derive(
    FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq, Eq,
)]
#[repr(transparent)]
pub struct PixelFormat(pub u32);

impl Message for PixelFormat {
    const TYPE_NAME: &'static str = "u32";
    const VALIDITY: Validity<Self> = Validity::any();

    fn describe() -> TypeDescription {
        u32::describe()
    }
}

impl PixelFormat {
    /// One byte of brightness, 0 black to 255 white.
    pub const MONO8: Self = Self(1);
    /// Two bytes of brightness, little-endian.
    pub const MONO16: Self = Self(2);
    /// Red, green, blue, a byte each.
    pub const RGB8: Self = Self(3);
    /// Blue, green, red, a byte each.
    pub const BGR8: Self = Self(4);
    /// Red, green, blue, opacity, a byte each.
    pub const RGBA8: Self = Self(5);
    /// Blue, green, red, opacity, a byte each.
    pub const BGRA8: Self = Self(6);
    /// YUV 4:2:2, bytes Y U Y V for two pixels.
    pub const YUYV: Self = Self(7);
    /// Colour filter array, first row red green, second row green blue, a byte each.
    pub const BAYER_RGGB8: Self = Self(8);
    /// Depth along z as u16, mm; 0 unknown.
    pub const DEPTH_MM16: Self = Self(9);
    /// Depth along z as f32, m; NaN unknown.
    pub const DEPTH_M32: Self = Self(10);
    /// A JPEG file.
    pub const JPEG: Self = Self(100);
    /// A PNG file.
    pub const PNG: Self = Self(101);

    /// Bytes of a pixel; `None` for compressed and unknown formats.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::PixelFormat;
    ///
    /// assert_eq!(PixelFormat::RGB8.bytes_per_pixel(), Some(3));
    /// assert_eq!(PixelFormat::JPEG.bytes_per_pixel(), None); // compressed
    /// assert_eq!(PixelFormat(77).bytes_per_pixel(), None); // another program may write any number
    /// assert_eq!((PixelFormat::JPEG.as_str(), PixelFormat(77).as_str()), ("jpeg", "unknown"));
    /// ```
    pub const fn bytes_per_pixel(self) -> Option<u32> {
        match self {
            Self::MONO8 | Self::BAYER_RGGB8 => Some(1),
            Self::MONO16 | Self::YUYV | Self::DEPTH_MM16 => Some(2),
            Self::RGB8 | Self::BGR8 => Some(3),
            Self::RGBA8 | Self::BGRA8 | Self::DEPTH_M32 => Some(4),
            _ => None,
        }
    }

    /// `rgb8`, `depth_m32`, `jpeg` ...; `unknown` otherwise.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::PixelFormat;
    ///
    /// assert_eq!(PixelFormat::DEPTH_M32.as_str(), "depth_m32");
    /// assert_eq!(PixelFormat(77).as_str(), "unknown");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MONO8 => "mono8",
            Self::MONO16 => "mono16",
            Self::RGB8 => "rgb8",
            Self::BGR8 => "bgr8",
            Self::RGBA8 => "rgba8",
            Self::BGRA8 => "bgra8",
            Self::YUYV => "yuyv",
            Self::BAYER_RGGB8 => "bayer_rggb8",
            Self::DEPTH_MM16 => "depth_mm16",
            Self::DEPTH_M32 => "depth_m32",
            Self::JPEG => "jpeg",
            Self::PNG => "png",
            _ => "unknown",
        }
    }
}

impl ImageHeader {
    /// Checks that `pixel_bytes` bytes after this header hold every row that the header promises.
    ///
    /// # Errors
    /// `Corrupt` when rows overlap or are missing; `Unsupported` for an unknown format.
    ///
    /// # Examples
    /// ```
    /// use outlive::{ErrorKind, msg::{ImageHeader, PixelFormat}};
    ///
    /// let header = ImageHeader { format: PixelFormat::MONO8, ..ImageHeader::default() };
    /// let header = ImageHeader { width: 4, height: 3, row_bytes: 8, ..header };
    /// assert!(header.check(20).is_ok(), "the last row needs no gap behind it");
    /// assert_eq!(header.check(19).unwrap_err().kind(), ErrorKind::Corrupt);
    /// ```
    pub fn check(&self, pixel_bytes: usize) -> Result<()> {
        if matches!(self.format, PixelFormat::JPEG | PixelFormat::PNG) {
            return Ok(());
        }
        let Some(bytes) = self.format.bytes_per_pixel() else {
            let why = format!(
                "pixel format {} is unknown here; update this program, or correct the sender",
                self.format.0
            );
            return Err(Error::new(ErrorKind::Unsupported, "reading", "an image", why));
        };
        // Products of two u32, and a sum of two of those, fit a u128.
        let (row, step) = (u128::from(bytes) * u128::from(self.width), u128::from(self.row_bytes));
        let before = u128::from(self.height.saturating_sub(1)) * step;
        let all = if self.height == 0 { 0 } else { before + row };
        if row <= step && all <= pixel_bytes as u128 {
            return Ok(());
        }
        let why = format!(
            "its header promises {} rows of {} {} pixels ({row} bytes), {step} bytes apart, and \
             {pixel_bytes} bytes follow it; correct the sender",
            self.height,
            self.width,
            self.format.as_str(),
        );
        Err(Error::new(ErrorKind::Corrupt, "reading", "an image", why))
    }
}

impl Headed<ImageHeader, u8> {
    /// Checks the pixels against the header; see [`ImageHeader::check`].
    ///
    /// # Errors
    /// As [`ImageHeader::check`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Image, ImageHeader, PixelFormat};
    ///
    /// let publisher = node.topic::<Image>("/camera")?.publisher()?;
    /// let mut subscriber = node.topic::<Image>("/camera")?.subscriber()?;
    /// let header = ImageHeader { format: PixelFormat::MONO8, ..ImageHeader::default() };
    /// let header = ImageHeader { width: 4, height: 3, row_bytes: 4, ..header };
    /// publisher.publish_headed(header, &[128; 11])?; // one pixel is missing
    /// let image = subscriber.receive()?.expect("sent just now");
    /// assert!(image.check().is_err() && image.row(1).is_some() && image.row(2).is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        self.header().check(self.tail().len())
    }

    /// The pixels, or the file of a compressed picture.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Image, ImageHeader, PixelFormat};
    ///
    /// let publisher = node.topic::<Image>("/camera")?.publisher()?;
    /// let mut subscriber = node.topic::<Image>("/camera")?.subscriber()?;
    /// let header = ImageHeader { format: PixelFormat::PNG, ..ImageHeader::default() };
    /// publisher.publish_headed(header, b"the bytes of a PNG file")?;
    /// let image = subscriber.receive()?.expect("sent just now");
    /// assert_eq!(image.pixels(), b"the bytes of a PNG file");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn pixels(&self) -> &[u8] {
        self.tail()
    }

    /// Row `y` from the top without the gap behind it; `None` outside, in compressed pictures, and
    /// where the header promises more bytes than there are.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Image, ImageHeader, PixelFormat};
    ///
    /// let publisher = node.topic::<Image>("/camera")?.publisher()?;
    /// let header = ImageHeader { format: PixelFormat::MONO8, ..ImageHeader::default() };
    /// let header = ImageHeader { width: 2, height: 2, row_bytes: 3, ..header };
    /// let mut image = publisher.loan_headed(header, 6)?;
    /// image.tail_mut().copy_from_slice(&[1, 2, 0, 3, 4, 0]); // one byte behind each row
    /// assert_eq!(image.row(1), Some(&[3, 4][..]));
    /// assert_eq!((image.row(2), image.pixels().len()), (None, 6));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn row(&self, y: u32) -> Option<&[u8]> {
        let h = self.header();
        let bytes = h.format.bytes_per_pixel()?.checked_mul(h.width)?;
        let from = (y < h.height && bytes <= h.row_bytes)
            .then(|| (y as usize).checked_mul(h.row_bytes as usize))??;
        self.tail().get(from..from.checked_add(bytes as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_header_and_never_outside_the_payload() {
        let mut words = [0u64; 8 + 3];
        let image = Image::parse_mut(words.as_mut_bytes()).unwrap();
        *image.header_mut() = ImageHeader {
            width: 2,
            height: 3,
            row_bytes: 8,
            format: PixelFormat::RGB8,
            ..ImageHeader::default()
        };
        image.tail_mut().copy_from_slice(&std::array::from_fn::<u8, 24, _>(|i| i as u8));
        assert_eq!(image.row(1), Some(&[8, 9, 10, 11, 12, 13][..]));
        assert!(image.row(2).is_some() && image.row(3).is_none());
        let why = |image: &Image| image.check().map_err(|e| e.to_string());
        assert_eq!(why(image), Ok(()));
        image.header_mut().height = 4;
        assert_eq!(image.row(3), None, "promised but not there");
        assert_eq!(
            why(image).unwrap_err(),
            "reading an image: corrupt; its header promises 4 rows of 2 rgb8 pixels (6 bytes), \
             8 bytes apart, and 24 bytes follow it; correct the sender"
        );
        image.header_mut().row_bytes = 5;
        assert_eq!(image.row(0), None, "rows that overlap");
        image.header_mut().height = 1;
        assert!(why(image).is_err());
        image.header_mut().format = PixelFormat::JPEG;
        assert_eq!((image.row(0), why(image)), (None, Ok(())));
        image.header_mut().format = PixelFormat(77);
        assert_eq!((image.row(0), image.header().format.as_str()), (None, "unknown"));
        assert!(why(image).unwrap_err().contains("unsupported; pixel format 77 is unknown here"));
    }

    #[test]
    fn every_header_is_checked_without_overflow() {
        let max = u32::MAX;
        let format = PixelFormat::RGBA8;
        let all =
            ImageHeader { width: max, height: max, row_bytes: max, format, ..Default::default() };
        let of = |header: ImageHeader, bytes| header.check(bytes).is_ok();
        assert!(!of(all, usize::MAX), "a row of 4 * 2^32 bytes is wider than row_bytes");
        assert!(of(ImageHeader { width: max / 4, ..all }, usize::MAX));
        assert!(!of(ImageHeader { width: max / 4, ..all }, 1 << 60));
        assert!(of(ImageHeader { height: 0, width: 1, ..all }, 0), "no rows are all there");
        // The last row needs no gap behind it.
        assert!(of(ImageHeader { height: 2, width: 1, row_bytes: 10, ..all }, 14));
        assert!(!of(ImageHeader { height: 2, width: 1, row_bytes: 10, ..all }, 13));
    }
}
