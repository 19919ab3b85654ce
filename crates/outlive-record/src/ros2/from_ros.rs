//! Messages of ROS as payloads of topics.

use outlive::msg::{
    Header, Image, ImageHeader, Imu, Joint, JointState, JointStateHeader, PixelFormat, PointCloud,
    PointCloudHeader, PointXyzi, Pose, Quaternion, Text, Twist, Vector3,
};
use outlive::msgpack;
use outlive::zerocopy::IntoBytes;
use outlive::{Encoding, PayloadType};

use super::base::Base;
use super::definition::{Definitions, Field, Kind, Schema};
use super::description::describe;
use super::layout::Layout;
use super::value::Value;
use super::{FORMATS, NUMBERS, cdr};

/// How messages of one channel become payloads.
#[derive(Clone, Debug, PartialEq)]
pub struct FromRos {
    schema: Schema,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Image,
    CompressedImage,
    PointCloud,
    Imu,
    JointState,
    Pose,
    Twist,
    /// A number, or numbers one after the other.
    Numbers,
    MessagePack,
    /// A fixed layout that was made for the message.
    Layout(Box<Layout>),
    /// Payloads are messages.
    Cdr,
}

impl FromRos {
    /// For messages `name`, defined by `text` or, if there is none, by this program, and the type
    /// that they become; `native` is the type that they came from.
    ///
    /// # Errors
    /// What the definition lacks.
    pub fn of(
        name: &str,
        text: &str,
        native: Option<PayloadType>,
    ) -> Result<(Self, PayloadType), String> {
        let schema = match text.trim() {
            "" => Schema::embedded(name).ok_or_else(|| format!("{name} is not defined"))?,
            text => Schema::parse(name, text)?,
        };
        Self::with(schema, native)
    }

    /// For messages `name`, defined by `definitions` or by this program, on a topic of type `here`
    /// if it exists already. If that type is named after the message, payloads have that type: the
    /// fixed layout that `outlive types import` makes, or CDR as received. Otherwise payloads are
    /// what [`FromRos::of`] makes.
    ///
    /// # Errors
    /// What the definition lacks, or which field of the topic's type is not that of the message.
    pub fn among(
        name: &str,
        definitions: &Definitions,
        here: Option<&PayloadType>,
    ) -> Result<(Self, PayloadType), String> {
        let schema = definitions.schema(name)?.ok_or_else(|| format!("{name} is not defined"))?;
        let Some(of) = here.filter(|of| of.name() == schema.name) else {
            return Self::with(schema, None);
        };
        let form = match of.encoding() {
            Encoding::Cdr => {
                let theirs = definitions.schema_of(of)?;
                if theirs.is_some_and(|theirs| describe(&theirs) != describe(&schema)) {
                    return Err(format!("the topic's {name} has another definition"));
                }
                Form::Cdr
            }
            Encoding::Fixed => {
                let layout = Layout::bound(&schema, of);
                let wrong = |why| format!("the topic is not laid out as {name}: {why}");
                Form::Layout(Box::new(layout.map_err(wrong)?))
            }
            _ => return Self::with(schema, None),
        };
        Ok((Self { schema, form }, of.clone()))
    }

    fn with(schema: Schema, native: Option<PayloadType>) -> Result<(Self, PayloadType), String> {
        let of_number = |(.., of): &(_, _, &str)| {
            let short = schema.name.strip_prefix("std_msgs/msg/");
            short.is_some_and(|short| short == *of)
        };
        let (form, of) = match schema.name.as_str() {
            "sensor_msgs/msg/Image" => (Form::Image, PayloadType::of::<Image>()),
            "sensor_msgs/msg/CompressedImage" => {
                (Form::CompressedImage, PayloadType::of::<Image>())
            }
            "sensor_msgs/msg/PointCloud2" => (Form::PointCloud, PayloadType::of::<PointCloud>()),
            "sensor_msgs/msg/Imu" => (Form::Imu, PayloadType::of::<Imu>()),
            "sensor_msgs/msg/JointState" => (Form::JointState, PayloadType::of::<JointState>()),
            "geometry_msgs/msg/PoseStamped" => (Form::Pose, PayloadType::of::<Pose>()),
            "geometry_msgs/msg/TwistStamped" => (Form::Twist, PayloadType::of::<Twist>()),
            name => match NUMBERS.iter().find(|of| of_number(of)) {
                Some((_, base, _)) => (Form::Numbers, number(*base)),
                None if name.ends_with("MultiArray") && native.is_some() => {
                    (Form::Numbers, PayloadType::bytes())
                }
                None => {
                    let of = PayloadType::msgpack(name).map_err(|e| e.to_string())?;
                    (Form::MessagePack, of)
                }
            },
        };
        Ok((Self { schema, form }, native.unwrap_or(of)))
    }

    /// Name of the messages, like `sensor_msgs/msg/Image`.
    pub fn name(&self) -> &str {
        &self.schema.name
    }

    /// A message as a payload.
    ///
    /// # Errors
    /// What is wrong with its bytes, which may come from anywhere.
    pub fn payload(&self, data: &[u8]) -> Result<Vec<u8>, String> {
        if let Form::Layout(layout) = &self.form {
            return layout.decode(data);
        }
        let value = cdr::decode(&self.schema, data)?;
        let of = |value: Option<Vec<u8>>| {
            value.ok_or_else(|| format!("it has not the fields of {}", self.schema.name))
        };
        match &self.form {
            Form::Image => of(image(&value)),
            Form::CompressedImage => of(compressed(&value)),
            Form::PointCloud => of(cloud(&value)),
            Form::Imu => of(imu(&value)),
            Form::JointState => of(joints(&value)),
            Form::Pose => of(pose(&value)),
            Form::Twist => of(twist(&value)),
            Form::Numbers => of(numbers(&value, self.schema.root())),
            Form::MessagePack => msgpack::encode(&value).map_err(|e| e.to_string()),
            Form::Layout(_) | Form::Cdr => Ok(data.into()),
        }
    }
}

fn number(base: Base) -> PayloadType {
    match base {
        Base::Bool => PayloadType::of::<outlive::msg::Bool>(),
        Base::U8 => PayloadType::of::<u8>(),
        Base::I8 => PayloadType::of::<i8>(),
        Base::U16 => PayloadType::of::<u16>(),
        Base::I16 => PayloadType::of::<i16>(),
        Base::U32 => PayloadType::of::<u32>(),
        Base::I32 => PayloadType::of::<i32>(),
        Base::U64 => PayloadType::of::<u64>(),
        Base::I64 => PayloadType::of::<i64>(),
        Base::F32 => PayloadType::of::<f32>(),
        Base::F64 => PayloadType::of::<f64>(),
    }
}

/// Stamps stay what they are in the file: ns since 1970.
fn header(of: &Value<'_>) -> Option<Header> {
    let header = of.get("header")?;
    let stamp = header.get("stamp")?;
    let (sec, nanosec) = (stamp.get("sec")?.whole()?, stamp.get("nanosec")?.whole()?);
    let stamp_ns = u64::try_from(sec * 1_000_000_000 + nanosec).unwrap_or(0);
    Some(Header { stamp_ns, frame_id: Text::cut(header.get("frame_id")?.as_text()?) })
}

fn u32_of(of: &Value<'_>, name: &str) -> Option<u32> {
    u32::try_from(of.get(name)?.whole()?).ok()
}

fn f64_of(of: &Value<'_>, name: &str) -> Option<f64> {
    of.get(name)?.number()
}

fn image(of: &Value<'_>) -> Option<Vec<u8>> {
    let encoding = of.get("encoding")?.as_text()?;
    let known = FORMATS.iter().find(|(_, name)| *name == encoding).map(|(format, _)| *format);
    let format = match encoding {
        "8UC1" => PixelFormat::MONO8,
        "8UC3" => PixelFormat::BGR8,
        "8UC4" => PixelFormat::BGRA8,
        "yuyv" => PixelFormat::YUYV,
        _ => PixelFormat(known.unwrap_or(0)),
    };
    let header = ImageHeader {
        header: header(of)?,
        width: u32_of(of, "width")?,
        height: u32_of(of, "height")?,
        row_bytes: u32_of(of, "step")?,
        format,
        reserved: [0; 2],
    };
    let data = of.get("data")?.as_bytes()?;
    let mut out = [header.as_bytes(), data].concat();
    let width = match format {
        PixelFormat::MONO16 | PixelFormat::DEPTH_MM16 => 2,
        PixelFormat::DEPTH_M32 => 4,
        _ => 1,
    };
    if of.get("is_bigendian")?.whole()? != 0 && width > 1 {
        let pixels = &mut out[size_of::<ImageHeader>()..];
        pixels.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    Some(out)
}

/// Width and height stay 0: they are in the compressed file.
fn compressed(of: &Value<'_>) -> Option<Vec<u8>> {
    let data = of.get("data")?.as_bytes()?;
    let format = match data {
        [0xff, 0xd8, ..] => PixelFormat::JPEG,
        [0x89, b'P', b'N', b'G', ..] => PixelFormat::PNG,
        _ => PixelFormat(0),
    };
    let header = ImageHeader { header: header(of)?, format, ..ImageHeader::default() };
    Some([header.as_bytes(), data].concat())
}

/// Where a number is in each point, and how it is written.
struct Column {
    offset: usize,
    base: Base,
}

impl Column {
    fn of(cloud: &Value<'_>, name: &str) -> Option<Self> {
        let all = cloud.get("fields")?.items();
        let field = all.iter().find(|f| f.get("name").and_then(Value::as_text) == Some(name))?;
        let base = match field.get("datatype")?.whole()? {
            1 => Base::I8,
            2 => Base::U8,
            3 => Base::I16,
            4 => Base::U16,
            5 => Base::I32,
            6 => Base::U32,
            7 => Base::F32,
            8 => Base::F64,
            _ => return None,
        };
        Some(Self { offset: u32_of(field, "offset")? as usize, base })
    }

    fn read(&self, point: &[u8], big: bool) -> Option<f32> {
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..self.base.size()];
        bytes.copy_from_slice(point.get(self.offset..)?.get(..bytes.len())?);
        if big {
            bytes.reverse();
        }
        self.base.read(bytes).number().map(|v| v as f32)
    }
}

fn cloud(of: &Value<'_>) -> Option<Vec<u8>> {
    let (width, height) = (u32_of(of, "width")?, u32_of(of, "height")?);
    let (step, row) = (u32_of(of, "point_step")? as usize, u32_of(of, "row_step")? as usize);
    let big = of.get("is_bigendian")?.whole()? != 0;
    let data = of.get("data")?.as_bytes()?;
    let columns = ["x", "y", "z", "intensity"].map(|name| Column::of(of, name));
    let (points, rows) = (width as usize, height as usize);
    if points > 0 && rows > 0 {
        let row_least = points.checked_mul(step)?;
        let least = (rows - 1).checked_mul(row)?.checked_add(row_least)?;
        if step == 0 || row < row_least || data.len() < least {
            return None;
        }
    }
    let header = PointCloudHeader { header: header(of)?, width, height, reserved: [0; 4] };
    let mut out = header.as_bytes().to_vec();
    for y in 0..if points > 0 { rows } else { 0 } {
        for x in 0..points {
            let point = data.get(y * row + x * step..)?.get(..step)?;
            let [x, y, z, intensity] = &columns;
            let number = |column: &Option<Column>, none: f32| match column {
                Some(column) => column.read(point, big),
                None => Some(none),
            };
            let point = PointXyzi {
                x: number(x, 0.0)?,
                y: number(y, 0.0)?,
                z: number(z, 0.0)?,
                intensity: number(intensity, 0.0)?,
            };
            out.extend_from_slice(point.as_bytes());
        }
    }
    Some(out)
}

fn vector(of: &Value<'_>) -> Option<Vector3> {
    Some(Vector3 { x: f64_of(of, "x")?, y: f64_of(of, "y")?, z: f64_of(of, "z")? })
}

fn rotation(of: &Value<'_>) -> Option<Quaternion> {
    let Vector3 { x, y, z } = vector(of)?;
    Some(Quaternion { x, y, z, w: f64_of(of, "w")? })
}

fn nine(of: &Value<'_>, name: &str) -> Option<[f64; 9]> {
    let all: Option<Vec<f64>> = of.get(name)?.items().iter().map(|v| v.number()).collect();
    all?.try_into().ok()
}

fn imu(of: &Value<'_>) -> Option<Vec<u8>> {
    let imu = Imu {
        header: header(of)?,
        orientation: rotation(of.get("orientation")?)?,
        angular_velocity: vector(of.get("angular_velocity")?)?,
        linear_acceleration: vector(of.get("linear_acceleration")?)?,
        orientation_covariance: nine(of, "orientation_covariance")?,
        angular_velocity_covariance: nine(of, "angular_velocity_covariance")?,
        linear_acceleration_covariance: nine(of, "linear_acceleration_covariance")?,
    };
    Some(imu.as_bytes().into())
}

fn pose(of: &Value<'_>) -> Option<Vec<u8>> {
    let inner = of.get("pose")?;
    let pose = Pose {
        header: header(of)?,
        position: vector(inner.get("position")?)?,
        orientation: rotation(inner.get("orientation")?)?,
    };
    Some(pose.as_bytes().into())
}

fn twist(of: &Value<'_>) -> Option<Vec<u8>> {
    let inner = of.get("twist")?;
    let twist = Twist {
        header: header(of)?,
        linear: vector(inner.get("linear")?)?,
        angular: vector(inner.get("angular")?)?,
    };
    Some(twist.as_bytes().into())
}

fn joints(of: &Value<'_>) -> Option<Vec<u8>> {
    let header = JointStateHeader { header: header(of)? };
    let names = of.get("name")?.items();
    let numbers =
        |name| -> Option<Vec<f64>> { of.get(name)?.items().iter().map(|v| v.number()).collect() };
    let (position, velocity, effort) =
        (numbers("position")?, numbers("velocity")?, numbers("effort")?);
    let mut out = header.as_bytes().to_vec();
    for (i, name) in names.iter().enumerate() {
        // What ROS leaves out was not measured.
        let number = |of: &[f64]| of.get(i).copied().unwrap_or(f64::NAN);
        let joint = Joint {
            name: Text::cut(name.as_text()?),
            position: number(&position),
            velocity: number(&velocity),
            effort: number(&effort),
        };
        out.extend_from_slice(joint.as_bytes());
    }
    Some(out)
}

/// The field `data`, without what is before it.
fn numbers(of: &Value<'_>, fields: &[Field]) -> Option<Vec<u8>> {
    let kind = fields.iter().find(|f| f.name == "data").map(|f| &f.kind);
    let Some(Kind::Base(base)) = kind else { return None };
    match of.get("data")? {
        Value::Numbers(_, bytes) | Value::Bytes(bytes) => Some(bytes.to_vec()),
        one => Some(base.write(one)?[..base.size()].to_vec()),
    }
}
