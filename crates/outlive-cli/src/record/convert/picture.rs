//! An image as a PNG file.
//!
//! | format | in the file |
//! |---|---|
//! | `rgb8`, `bgr8`, `rgba8`, `bgra8` | colours, opacity |
//! | `mono8`, `mono16`, `depth_mm16` | grey, as the numbers are |
//! | `depth_m32` | grey of 16 bits, mm; 0 unknown |
//! | `yuyv` | colours by BT.601 |
//! | `bayer_rggb8` | grey, as the sensor gives it |
//! | `jpeg`, `png` | the file as it is |

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use outlive::msg::{Image, PixelFormat};
use png::{BitDepth, ColorType};

use crate::exit::{Code, Failure};

/// Writes `image`; the name of the file, or `None` for formats that are not known and images that
/// have not all their rows.
pub(super) fn write(base: &Path, image: &Image) -> Result<Option<String>, Failure> {
    let ending = if image.header().format == PixelFormat::JPEG { "jpg" } else { "png" };
    let path = base.with_extension(ending);
    let as_it_is = [PixelFormat::JPEG, PixelFormat::PNG].contains(&image.header().format);
    let converted = if as_it_is { None } else { Some(pixels(image)) };
    if matches!(converted, Some(None)) {
        return Ok(None);
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|e| Failure::io_at("make", dir, &e))?;
    }
    match converted.flatten() {
        None => fs::write(&path, image.pixels()).map_err(|e| Failure::io_at("write", &path, &e))?,
        Some((color, depth, data)) => {
            let file = File::create(&path).map_err(|e| Failure::io_at("create", &path, &e))?;
            let header = image.header();
            let mut to = png::Encoder::new(BufWriter::new(file), header.width, header.height);
            to.set_color(color);
            to.set_depth(depth);
            let written = to.write_header().and_then(|mut to| {
                to.write_image_data(&data)?;
                to.finish()
            });
            let wrong = |e| Failure::new(Code::Failed, format!("write {}: {e}", path.display()));
            written.map_err(wrong)?;
        }
    }
    Ok(path.file_name().map(|name| name.to_string_lossy().into_owned()))
}

/// All rows as PNG has them.
fn pixels(image: &Image) -> Option<(ColorType, BitDepth, Vec<u8>)> {
    let header = image.header();
    let (depth, color) = match header.format {
        PixelFormat::MONO8 | PixelFormat::BAYER_RGGB8 => (BitDepth::Eight, ColorType::Grayscale),
        PixelFormat::MONO16 | PixelFormat::DEPTH_MM16 | PixelFormat::DEPTH_M32 => {
            (BitDepth::Sixteen, ColorType::Grayscale)
        }
        PixelFormat::RGB8 | PixelFormat::BGR8 | PixelFormat::YUYV => {
            (BitDepth::Eight, ColorType::Rgb)
        }
        PixelFormat::RGBA8 | PixelFormat::BGRA8 => (BitDepth::Eight, ColorType::Rgba),
        _ => return None,
    };
    if header.width == 0 || header.height == 0 {
        return None;
    }
    let mut data = Vec::new();
    for y in 0..header.height {
        let row = image.row(y)?;
        match header.format {
            PixelFormat::BGR8 => {
                row.as_chunks::<3>().0.iter().for_each(|[b, g, r]| data.extend([r, g, b]));
            }
            PixelFormat::BGRA8 => {
                row.as_chunks::<4>().0.iter().for_each(|[b, g, r, a]| data.extend([r, g, b, a]));
            }
            PixelFormat::MONO16 | PixelFormat::DEPTH_MM16 => {
                row.as_chunks::<2>().0.iter().for_each(|[low, high]| data.extend([high, low]));
            }
            PixelFormat::DEPTH_M32 => row.as_chunks::<4>().0.iter().for_each(|m| {
                // NaN becomes 0, what is too far 65535.
                let mm = (f32::from_le_bytes(*m) * 1000.0).round() as u16;
                data.extend(mm.to_be_bytes());
            }),
            PixelFormat::YUYV => {
                row.as_chunks::<4>().0.iter().for_each(|[y0, u, y1, v]| {
                    data.extend(rgb(*y0, *u, *v));
                    data.extend(rgb(*y1, *u, *v));
                });
                // An odd column has no partner to share its colour with.
                if let [y, u] = row.as_chunks::<4>().1 {
                    data.extend(rgb(*y, *u, 128));
                }
            }
            _ => data.extend_from_slice(row),
        }
    }
    Some((color, depth, data))
}

/// BT.601, of the whole range as cameras give it.
pub(crate) fn rgb(y: u8, u: u8, v: u8) -> [u8; 3] {
    let (y, u, v) = (f32::from(y), f32::from(u) - 128.0, f32::from(v) - 128.0);
    [y + 1.402 * v, y - 0.344_136 * u - 0.714_136 * v, y + 1.772 * u].map(|c| c.round() as u8)
}
