//! Topics as entities of a file that the Rerun viewer opens.
//!
//! | topic | entity, named like the topic |
//! |---|---|
//! | `Image` | a picture or a depth picture; JPEG and PNG as they are |
//! | `PointCloud` | points, those without an echo left out |
//! | `Pose` | a transform |
//! | everything else | one for each number (a scalar) and each text below it |
//!
//! Time is when a message was published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use outlive::msg::{Image, ImageHeader, PixelFormat, PointCloud, Pose};
use outlive::zerocopy::FromBytes;
use outlive::{Payload, PayloadType};
use re_sdk::{AsComponents, EntityPath, EntityPathPart, RecordingStream, RecordingStreamBuilder};
use re_sdk_types::archetypes::{
    DepthImage, EncodedImage, Image as Picture, Points3D, Scalars, TextDocument, Transform3D,
};
use re_sdk_types::datatypes::{ChannelDatatype, ColorModel, PixelFormat as Packed, Quaternion};
use serde_json::Value;

use crate::json::Json;
use crate::shared::{Failed, say};
use crate::topics::{Output, Shown};

const TIMELINE: &str = "time";
/// Arrays with more elements are left out: nobody plots a thousand lines.
const ELEMENTS_MAX: usize = 64;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Rerun {
    to: RecordingStream,
    path: PathBuf,
    topics: BTreeMap<String, Topic>,
    messages: u64,
}

#[derive(Debug)]
struct Topic {
    form: Form,
    left_out: u64,
}

#[derive(Debug)]
enum Form {
    Image,
    PointCloud,
    Pose,
    Other(Json),
}

impl Rerun {
    pub(crate) fn create(path: &Path, overwrite: bool, domain: &str) -> Result<Self, Failed> {
        let shown = path.display();
        if path.exists() && !overwrite {
            return Err(format!("{shown} exists: take another name, or --overwrite").into());
        }
        let to = RecordingStreamBuilder::new("outlive")
            .recording_name(domain)
            .save(path)
            .map_err(|e| format!("{shown} cannot be written: {e}"))?;
        if !to.is_enabled() {
            return Err("the variable RERUN switches Rerun off: unset it".into());
        }
        to.set_log_time_enabled(false);
        to.set_log_tick_enabled(false);
        say(format_args!("writing {shown}, until SIGTERM or Ctrl-C"));
        Ok(Self { to, path: path.into(), topics: BTreeMap::new(), messages: 0 })
    }
}

impl Output for Rerun {
    fn open(&mut self, name: &str, topic: &Shown, _example: Option<&[u8]>) {
        let of = &topic.payload_type;
        let form = match () {
            () if is::<Image>(of) => Form::Image,
            () if is::<PointCloud>(of) => Form::PointCloud,
            () if is::<Pose>(of) => Form::Pose,
            () => Form::Other(Json::of(of)),
        };
        self.topics.insert(name.into(), Topic { form, left_out: 0 });
    }

    fn close(&mut self, name: &str) {
        self.topics.remove(name);
    }

    fn wanted(&self, _name: &str) -> bool {
        true
    }

    fn show(&mut self, name: &str, _to: Option<u64>, time_ns: u64, payload: &[u8]) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        self.to.set_timestamp_nanos_since_epoch(TIMELINE, i64::try_from(time_ns).unwrap_or(0));
        self.messages += 1;
        if let Err(why) = topic.form.log(&self.to, name, payload) {
            topic.left_out += 1;
            if topic.left_out == 1 {
                say(format_args!("{name}: some messages are left out: {why}"));
            }
        }
    }

    fn wait(&mut self, until: Instant) -> Vec<(String, u64)> {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        Vec::new()
    }

    fn left_out(&self, name: &str) -> u64 {
        self.topics.get(name).map_or(0, |topic| topic.left_out)
    }

    fn figures(&self) -> String {
        format!("file {} messages {}\n", self.path.display(), self.messages)
    }

    fn end(&mut self) -> Result<(), Failed> {
        let shown = self.path.display();
        self.to.flush_blocking().map_err(|e| format!("{shown} is not whole: {e}"))?;
        // Writes the file's end.
        self.to.disconnect();
        say(format_args!("{shown} has {} messages", self.messages));
        Ok(())
    }
}

impl Form {
    fn log(&self, to: &RecordingStream, name: &str, payload: &[u8]) -> Result<(), String> {
        const NONE: &str = "its bytes do not match its type";
        let at = EntityPath::new(name.split('/').filter(|p| !p.is_empty()).map(part).collect());
        match self {
            Self::Image => image(to, at, Image::parse(payload).ok_or(NONE)?),
            Self::PointCloud => {
                let cloud = PointCloud::parse(payload).ok_or(NONE)?;
                let echoes = cloud.points().iter().filter(|p| !p.x.is_nan());
                log(to, at, &Points3D::new(echoes.map(|p| [p.x, p.y, p.z])))
            }
            Self::Pose => {
                let pose = Pose::ref_from_bytes(payload).map_err(|_| NONE)?;
                let (p, q) = (&pose.position, &pose.orientation);
                let turn = [q.x, q.y, q.z, q.w].map(|v| v as f32);
                let place = [p.x, p.y, p.z].map(|v| v as f32);
                let turn = Quaternion::from_xyzw(turn);
                log(to, at, &Transform3D::from_translation_rotation(place, turn))
            }
            Self::Other(json) => leaves(to, at, &json.value(payload)?),
        }
    }
}

fn part(name: &str) -> EntityPathPart {
    EntityPathPart::new(name)
}

fn log(to: &RecordingStream, at: EntityPath, what: &dyn AsComponents) -> Result<(), String> {
    to.log(at, what).map_err(|e| e.to_string())
}

/// Numbers and text below `at`, each at its own place.
fn leaves(to: &RecordingStream, at: EntityPath, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) => log(to, at, &Scalars::new([number.as_f64().unwrap_or(f64::NAN)])),
        Value::Bool(v) => log(to, at, &Scalars::new([f64::from(u8::from(*v))])),
        Value::String(text) => log(to, at, &TextDocument::new(text.as_str())),
        Value::Array(items) if items.len() > ELEMENTS_MAX => Ok(()),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| {
            // Joints and their like have names.
            let name = item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let name = name.map_or_else(|| i.to_string(), str::to_owned);
            leaves(to, at.clone() / part(&name), item)
        }),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            // What is no struct has its value under this name.
            let lone = fields.len() == 1 && name == "value";
            let below = if lone { at.clone() } else { at.clone() / part(name) };
            leaves(to, below, field)
        }),
        Value::Null => Ok(()),
    }
}

fn image(to: &RecordingStream, at: EntityPath, image: &Image) -> Result<(), String> {
    let h = image.header();
    let size = [h.width, h.height];
    let media = match h.format {
        PixelFormat::JPEG => Some("image/jpeg"),
        PixelFormat::PNG => Some("image/png"),
        _ => None,
    };
    if let Some(media) = media {
        let encoded = EncodedImage::from_file_contents(image.pixels().to_vec());
        return log(to, at, &encoded.with_media_type(media));
    }
    let pixels = packed(h, image)?;
    let plain = |pixels, model, of| Picture::from_color_model_and_bytes(pixels, size, model, of);
    let picture = match h.format {
        PixelFormat::DEPTH_MM16 => {
            return log(to, at, &DepthImage::from_gray16(pixels, size).with_meter(1000.0));
        }
        PixelFormat::DEPTH_M32 => {
            let depth = DepthImage::from_data_type_and_bytes(pixels, size, ChannelDatatype::F32);
            return log(to, at, &depth.with_meter(1.0));
        }
        // The viewer knows no colour filters.
        PixelFormat::MONO8 | PixelFormat::BAYER_RGGB8 => {
            plain(pixels, ColorModel::L, ChannelDatatype::U8)
        }
        PixelFormat::MONO16 => plain(pixels, ColorModel::L, ChannelDatatype::U16),
        PixelFormat::RGB8 => plain(pixels, ColorModel::RGB, ChannelDatatype::U8),
        PixelFormat::BGR8 => plain(pixels, ColorModel::BGR, ChannelDatatype::U8),
        PixelFormat::RGBA8 => plain(pixels, ColorModel::RGBA, ChannelDatatype::U8),
        PixelFormat::BGRA8 => plain(pixels, ColorModel::BGRA, ChannelDatatype::U8),
        PixelFormat::YUYV => Picture::from_pixel_format(size, Packed::YUY2, pixels),
        PixelFormat(other) => return Err(format!("Rerun has no pixels of format {other}")),
    };
    log(to, at, &picture)
}

/// Rows without gaps.
fn packed(h: &ImageHeader, image: &Image) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(image.pixels().len());
    for y in 0..h.height {
        let row = image.row(y).ok_or_else(|| format!("it has no row {y} of {}", h.height))?;
        out.extend_from_slice(row);
    }
    Ok(out)
}

/// Whether it is that type; programs in other languages may not have described it.
fn is<T: Payload + ?Sized>(of: &PayloadType) -> bool {
    let want = PayloadType::of::<T>();
    let key = |of: &PayloadType| (of.encoding(), of.name().to_owned(), of.size(), of.align());
    key(of) == key(&want)
}
