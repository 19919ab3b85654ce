//! An image as a small picture for a browser.
//!
//! Formats as `convert` has them; grey of 16 bits and depths are spread over what the picture has.
//! JPEG and PNG are handed on as they are: the browser makes them small.

use outlive::msg::{Image, PixelFormat};
use png::{BitDepth, ColorType, Compression, Encoder};

use crate::record::rgb;

/// Largest picture, pixels.
const WIDTH_MAX: u32 = 320;
const HEIGHT_MAX: u32 = 240;
/// Largest file that is handed on, bytes.
const FILE_BYTES_MAX: usize = 8 << 20;

/// A file that a browser shows.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Of the image, not of the file.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) format: &'static str,
}

/// Takes only the rows and pixels that it needs; an image may be a stranger's, of any size.
pub(super) fn picture(image: &Image) -> Result<Picture, &'static str> {
    let header = image.header();
    let (width, height, format) = (header.width, header.height, header.format.as_str());
    let done = |kind, bytes| Ok(Picture { kind, bytes, width, height, format });
    let file = image.pixels();
    match header.format {
        PixelFormat::JPEG | PixelFormat::PNG if file.len() > FILE_BYTES_MAX => {
            Err("a file of more than 8 MiB")
        }
        PixelFormat::JPEG if file.starts_with(b"\xff\xd8\xff") => done("image/jpeg", file.to_vec()),
        PixelFormat::PNG if file.starts_with(b"\x89PNG\r\n\x1a\n") => {
            done("image/png", file.to_vec())
        }
        PixelFormat::JPEG | PixelFormat::PNG => Err("not a file of its format"),
        format if format.bytes_per_pixel().is_none() => Err("an unknown format"),
        _ => done("image/png", small(image)?),
    }
}

fn small(image: &Image) -> Result<Vec<u8>, &'static str> {
    let header = image.header();
    let (width, height) = (header.width, header.height);
    if width == 0 || height == 0 {
        return Err("an empty image");
    }
    let scale = (f64::from(width) / f64::from(WIDTH_MAX))
        .max(f64::from(height) / f64::from(HEIGHT_MAX))
        .max(1.0);
    let side = |of: u32| ((f64::from(of) / scale).round() as u32).max(1);
    let (columns, rows) = (side(width), side(height));
    // The middle of what a small pixel covers.
    let from = |at: u32, of: u32| (((f64::from(at) + 0.5) * scale) as u32).min(of - 1) as usize;
    let mut values = Vec::with_capacity((columns * rows) as usize);
    for y in 0..rows {
        let row = image.row(from(y, height) as u32).ok_or("fewer bytes than its header says")?;
        values.extend((0..columns).map(|x| pixel(header.format, row, from(x, width))));
    }
    let data: Vec<u8> = match header.format {
        PixelFormat::MONO16 | PixelFormat::DEPTH_MM16 | PixelFormat::DEPTH_M32 => {
            let greys: Vec<f32> = values.iter().map(Pixel::grey).collect();
            spread(&greys, header.format == PixelFormat::MONO16)
        }
        _ => values.iter().flat_map(Pixel::rgb).collect(),
    };
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, columns, rows);
    let grey = data.len() == values.len();
    encoder.set_color(if grey { ColorType::Grayscale } else { ColorType::Rgb });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let written = encoder.write_header().and_then(|mut to| {
        to.write_image_data(&data)?;
        to.finish()
    });
    written.map_err(|_| "it cannot be written as PNG")?;
    Ok(file)
}

enum Pixel {
    Colour([u8; 3]),
    /// Brightness or distance; NaN is unknown.
    Grey(f32),
}

impl Pixel {
    fn rgb(&self) -> [u8; 3] {
        match self {
            Self::Colour(colour) => *colour,
            Self::Grey(grey) => [*grey as u8; 3],
        }
    }

    fn grey(&self) -> f32 {
        match self {
            Self::Colour(_) => f32::NAN,
            Self::Grey(grey) => *grey,
        }
    }
}

/// Pixel `x` of a row; black where the row has none.
fn pixel(format: PixelFormat, row: &[u8], x: usize) -> Pixel {
    let at = |from: usize| row.get(from).copied().unwrap_or(0);
    let bytes = format.bytes_per_pixel().unwrap_or(1) as usize;
    let first = x * bytes;
    let word = || u16::from_le_bytes([at(first), at(first + 1)]);
    match format {
        PixelFormat::RGB8 | PixelFormat::RGBA8 => {
            Pixel::Colour([at(first), at(first + 1), at(first + 2)])
        }
        PixelFormat::BGR8 | PixelFormat::BGRA8 => {
            Pixel::Colour([at(first + 2), at(first + 1), at(first)])
        }
        PixelFormat::YUYV => {
            let pair = (x & !1) * 2;
            let v = row.get(pair + 3).copied().unwrap_or(128);
            Pixel::Colour(rgb(at(first), at(pair + 1), v))
        }
        PixelFormat::MONO16 => Pixel::Grey(f32::from(word())),
        PixelFormat::DEPTH_MM16 => {
            Pixel::Grey(if word() == 0 { f32::NAN } else { f32::from(word()) })
        }
        PixelFormat::DEPTH_M32 => Pixel::Grey(f32::from_le_bytes([
            at(first),
            at(first + 1),
            at(first + 2),
            at(first + 3),
        ])),
        _ => Pixel::Grey(f32::from(at(first))),
    }
}

/// From black to white over the values there are; of distances the near is bright, the unknown
/// black.
fn spread(values: &[f32], is_brightness: bool) -> Vec<u8> {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let most = finite().fold(f32::MIN, f32::max);
    let least = if is_brightness { 0.0 } else { finite().fold(f32::MAX, f32::min) };
    let span = (most - least).max(f32::MIN_POSITIVE);
    let grey = |value: &f32| match (value - least) / span {
        _ if !value.is_finite() => 0,
        share if is_brightness => (share * 255.0) as u8,
        share => (255.0 - share * 215.0) as u8,
    };
    values.iter().map(grey).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlive::msg::ImageHeader;
    use outlive::zerocopy::{FromZeros, IntoBytes};

    fn made(format: PixelFormat, width: u32, height: u32, pixels: &[u8]) -> Vec<u64> {
        let row_bytes = format.bytes_per_pixel().unwrap_or(0) * width;
        let header = ImageHeader { width, height, row_bytes, format, ..ImageHeader::new_zeroed() };
        let mut words = vec![0u64; (64 + pixels.len()).div_ceil(8)];
        words.as_mut_bytes()[..64].copy_from_slice(header.as_bytes());
        words.as_mut_bytes()[64..64 + pixels.len()].copy_from_slice(pixels);
        words
    }

    fn shown(format: PixelFormat, width: u32, height: u32, pixels: &[u8]) -> (u32, u32, Vec<u8>) {
        let words = made(format, width, height, pixels);
        let file = picture(Image::parse(words.as_bytes()).unwrap()).unwrap().bytes;
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut data).unwrap();
        data.truncate(info.buffer_size());
        (info.width, info.height, data)
    }

    #[test]
    fn every_format_has_its_colours() {
        let colour = [200, 100, 50, 200, 100, 50];
        for (format, pixels, wanted) in [
            (PixelFormat::RGB8, &colour[..], &colour[..]),
            (PixelFormat::BGR8, &[50, 100, 200, 50, 100, 200], &colour),
            (PixelFormat::RGBA8, &[200, 100, 50, 9, 200, 100, 50, 9], &colour),
            (PixelFormat::BGRA8, &[50, 100, 200, 9, 50, 100, 200, 9], &colour),
            (PixelFormat::MONO8, &[0, 7], &[0, 0, 0, 7, 7, 7]),
            (PixelFormat::YUYV, &[10, 128, 20, 128], &[10, 10, 10, 20, 20, 20]),
            (PixelFormat::MONO16, &[0, 1, 0, 2], &[127, 255]),
            (PixelFormat::DEPTH_MM16, &[0, 0, 9, 0], &[0, 255]),
        ] {
            assert_eq!(shown(format, 2, 1, pixels), (2, 1, wanted.to_vec()), "{}", format.as_str());
        }
        let depths: Vec<u8> = [1.0f32, 3.0, f32::NAN].map(f32::to_le_bytes).concat();
        assert_eq!(shown(PixelFormat::DEPTH_M32, 3, 1, &depths).2, [255, 40, 0]);
    }

    #[test]
    fn large_ones_become_small_and_keep_their_shape() {
        let pixels = vec![9; 1920 * 1080];
        let (width, height, data) = shown(PixelFormat::MONO8, 1920, 1080, &pixels);
        assert_eq!((width, height), (320, 180));
        assert!(data.iter().all(|v| *v == 9));
        assert_eq!(shown(PixelFormat::MONO8, 1, 2000, &vec![1; 2000]).1, 240);
    }

    #[test]
    fn what_is_no_image_is_told() {
        let mut claims = made(PixelFormat::RGB8, 2, 2, &[0; 12]);
        Image::parse_mut(claims.as_mut_bytes()).unwrap().header_mut().height = u32::MAX;
        let of = |words: &[u64]| picture(Image::parse(words.as_bytes()).unwrap()).unwrap_err();
        assert_eq!(of(&claims), "fewer bytes than its header says");
        assert_eq!(of(&made(PixelFormat::MONO8, 0, 5, &[])), "an empty image");
        assert_eq!(of(&made(PixelFormat(77), 1, 1, &[1])), "an unknown format");
        assert_eq!(of(&made(PixelFormat::JPEG, 1, 1, b"<svg>")), "not a file of its format");
    }
}
