//! Publishing payloads with a header, and the pictures among them.

use super::Publisher;
use super::loan::Loan;
use crate::types::msg::{Header, Image, ImageHeader, PixelFormat};
use crate::types::{Headed, Message};
use crate::{Error, ErrorKind, Result};

impl<H: Message, E: Message> Publisher<Headed<H, E>> {
    /// A slot in shared memory with `header` written and `len` elements to fill, which hold
    /// whatever was there before; zeros if they have a `bool`, `char` or enum in them.
    ///
    /// # Errors
    /// As [`Publisher::loan_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Headed;
    ///
    /// let publisher = node.topic::<Headed<f64, u16>>("/ranges")?.publisher()?;
    /// let mut subscriber = node.topic::<Headed<f64, u16>>("/ranges")?.subscriber()?;
    /// let mut ranges = publisher.loan_headed(0.25, 3)?;
    /// ranges.tail_mut().copy_from_slice(&[7, 8, 9]);
    /// ranges.publish()?;
    /// let ranges = subscriber.receive()?.expect("sent just now");
    /// assert_eq!((*ranges.header(), ranges.tail()), (0.25, &[7, 8, 9][..]));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn loan_headed(&self, header: H, len: usize) -> Result<Loan<'_, Headed<H, E>>> {
        let mut loan = self.loan_slice(len)?;
        *loan.header_mut() = header;
        Ok(loan)
    }

    /// Copies header and elements in and publishes them; returns the message's `seq`.
    ///
    /// # Errors
    /// As [`Publisher::publish`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Image, ImageHeader, PixelFormat};
    ///
    /// let publisher = node.topic::<Image>("/camera")?.publisher()?;
    /// let mut subscriber = node.topic::<Image>("/camera")?.subscriber()?;
    /// let header = ImageHeader { format: PixelFormat::JPEG, ..ImageHeader::default() };
    /// publisher.publish_headed(header, b"the bytes of a JPEG file")?;
    /// let image = subscriber.receive()?.expect("sent just now");
    /// assert_eq!((image.pixels().len(), image.row(0)), (24, None)); // compressed: no rows
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publish_headed(&self, header: H, tail: &[E]) -> Result<u64> {
        let mut loan = self.loan_headed(header, tail.len())?;
        loan.copy_tail(tail);
        loan.publish()
    }
}

impl Publisher<Image> {
    /// A slot for an uncompressed picture without gaps between its rows: header written, pixels
    /// whatever was there before. For a compressed one use [`Publisher::publish_headed`].
    ///
    /// # Errors
    /// `InvalidArgument` for formats whose pixels have no fixed size, and for pictures with rows of
    /// 4 GiB; else as [`Publisher::loan_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Header, Image, PixelFormat};
    ///
    /// let publisher = node.topic::<Image>("/camera")?.publisher()?;
    /// let header = Header::now("camera_optical");
    /// let mut image = publisher.loan_image(header, 640, 480, PixelFormat::RGB8)?;
    /// assert_eq!((image.header().row_bytes, image.tail_mut().len()), (1920, 921_600));
    /// image.tail_mut().fill(128);
    /// image.publish()?;
    /// assert!(publisher.loan_image(header, 640, 480, PixelFormat::JPEG).is_err());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn loan_image(
        &self,
        header: Header,
        width: u32,
        height: u32,
        format: PixelFormat,
    ) -> Result<Loan<'_, Image>> {
        let bytes_per_pixel = format.bytes_per_pixel();
        let Some(row_bytes) = bytes_per_pixel.and_then(|bytes| bytes.checked_mul(width)) else {
            let why = match bytes_per_pixel {
                Some(_) => "are too large; a row has less than 4 GiB",
                None => "have no size; use an uncompressed format",
            };
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "loaning on",
                self.topic(),
                format!("rows of {width} pixels of format {} {why}", format.as_str()),
            ));
        };
        let header = ImageHeader { header, width, height, row_bytes, format, reserved: [0; 2] };
        // A product of two u32 fits a usize of 64 bits.
        self.loan_headed(header, row_bytes as usize * height as usize)
    }
}
