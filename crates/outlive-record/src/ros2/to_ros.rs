//! Payloads of topics as messages of ROS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outlive::MsgPack;
use outlive::msg::{
    Header, Image, Imu, JointState, PixelFormat, PointCloud, Pose, Quaternion, Twist, Vector3,
};
use outlive::zerocopy::{FromBytes, IntoBytes};
use outlive::{Encoding, PayloadType};

use super::base::Base;
use super::definition::{Definitions, Schema};
use super::description::describe;
use super::layout::Layout;
use super::value::{Value, fields};
use super::{EPOCH_NS, FORMATS, NUMBERS, cdr};

/// How payloads of one topic become messages of ROS.
#[derive(Clone, Debug)]
pub struct ToRos {
    form: Form,
    /// A topic of images may have compressed ones, which are another message.
    schemas: Vec<Schema>,
    /// What to add to CLOCK_MONOTONIC for the time since the epoch, ns; the same for clones.
    epoch_ns: Arc<AtomicU64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Image,
    PointCloud,
    Imu,
    JointState,
    Pose,
    Twist,
    Number(Base),
    Numbers(Base),
    MessagePack,
    /// A fixed layout made for the message.
    Layout(Box<Layout>),
    /// Its payloads are messages.
    Cdr,
}

impl ToRos {
    /// For payloads of the type `of`; `None` if ROS has nothing like it. `epoch_ns` is added to
    /// [`outlive::now_ns`] to write stamps as the time since 1970.
    pub fn of(of: &PayloadType, epoch_ns: u64) -> Option<Self> {
        Self::among(of, epoch_ns, &Definitions::default()).ok()?
    }

    /// As [`ToRos::of`], also for what is named after a message among `definitions`: MessagePack,
    /// the fixed layout that `outlive types import` makes of it, CDR.
    ///
    /// # Errors
    /// What is wrong in the definition; the field that differs from the message of that name; a
    /// message name that has no definition.
    pub fn among(
        of: &PayloadType,
        epoch_ns: u64,
        definitions: &Definitions,
    ) -> Result<Option<Self>, String> {
        let name = of.name();
        let made = |form, schemas| {
            let epoch_ns = Arc::new(AtomicU64::new(epoch_ns));
            Ok(Some(Self { form, schemas, epoch_ns }))
        };
        let sort = name.split('/').nth(1).filter(|sort| ["msg", "action"].contains(sort));
        let undefined = || {
            let file = sort.unwrap_or("msg");
            format!("{name} is not defined: give its .{file} file with --types")
        };
        if of.encoding() == Encoding::Cdr {
            let schema = definitions.schema_of(of)?.ok_or_else(undefined)?;
            return made(Form::Cdr, vec![schema]);
        }
        if let Some((form, names)) = form(of) {
            let schema = |name: &String| match form {
                Form::MessagePack => definitions.schema(name),
                _ => Ok(Schema::embedded(name)),
            };
            let schemas: Option<Vec<_>> = names.iter().map(schema).collect::<Result<_, _>>()?;
            if let Some(schemas) = schemas {
                return made(form, schemas);
            }
        }
        // What goes by the name of a message has to be that message.
        let Some(schema) = definitions.schema(name)? else {
            return if sort.is_some() { Err(undefined()) } else { Ok(None) };
        };
        match Layout::bound(&schema, of) {
            Ok(layout) => made(Form::Layout(Box::new(layout)), vec![schema]),
            Err(why) if sort.is_some() => Err(format!("it is not laid out as {name}: {why}")),
            Err(_) => Ok(None),
        }
    }

    /// Stamps from now on: the time of day was set. Clones follow.
    pub fn set_epoch(&self, epoch_ns: u64) {
        self.epoch_ns.store(epoch_ns, Relaxed);
    }

    /// Full name of a message that [`ToRos::message`] returned, like `sensor_msgs/msg/Image`; of 0
    /// on, what it may return.
    pub fn name(&self, which: usize) -> Option<&str> {
        self.schemas.get(which).map(|schema| schema.name.as_str())
    }

    /// Its definition as text (`ros2msg`), with those of all that it consists of.
    pub fn definition(&self, which: usize) -> Option<&str> {
        self.schemas.get(which).map(|schema| schema.text.as_str())
    }

    /// What the hash of its type is taken of, as [`type_description`](super::type_description) has
    /// it.
    pub fn type_description(&self, which: usize) -> Option<String> {
        self.schemas.get(which).map(describe)
    }

    /// The layout, if payloads have a fixed one that was made for the message.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        if let Form::Layout(layout) = &self.form { Some(layout) } else { None }
    }

    /// The definition of a message that [`ToRos::message`] returned.
    pub(crate) fn schema(&self, which: usize) -> &Schema {
        &self.schemas[which]
    }

    /// A payload as CDR, and which of the names it has: a topic of images has two.
    ///
    /// # Errors
    /// What ROS cannot express, and bytes that are not a payload of the type.
    pub fn message(&self, payload: &[u8]) -> Result<(usize, Vec<u8>), String> {
        match &self.form {
            Form::Layout(layout) => {
                let mut message = Vec::new();
                layout.encode(payload, &mut message)?;
                return Ok((0, message));
            }
            Form::Cdr => {
                return cdr::decode(&self.schemas[0], payload).map(|_| (0, payload.into()));
            }
            _ => {}
        }
        let (which, value) = self.value(payload).ok_or("its bytes do not match its type")??;
        Ok((which, cdr::encode(&self.schemas[which], &value)?))
    }

    /// `None` if it is no payload of the type.
    fn value<'a>(&self, payload: &'a [u8]) -> Option<Result<(usize, Value<'a>), String>> {
        let value = match &self.form {
            Form::Image => return Some(self.image(Image::parse(payload)?)),
            Form::PointCloud => self.cloud(PointCloud::parse(payload)?),
            Form::Imu => self.imu(Imu::ref_from_bytes(payload).ok()?),
            Form::JointState => self.joints(JointState::parse(payload)?),
            Form::Pose => {
                let pose = Pose::ref_from_bytes(payload).ok()?;
                let position = vector(&pose.position);
                let inner = [("position", position), ("orientation", rotation(&pose.orientation))];
                fields([("header", self.header(&pose.header)), ("pose", fields(inner))])
            }
            Form::Twist => {
                let twist = Twist::ref_from_bytes(payload).ok()?;
                let (linear, angular) = (vector(&twist.linear), vector(&twist.angular));
                let inner = fields([("linear", linear), ("angular", angular)]);
                fields([("header", self.header(&twist.header)), ("twist", inner)])
            }
            Form::Number(base) if payload.len() == base.size() => {
                fields([("data", base.read(payload))])
            }
            Form::Numbers(base) if payload.len() % base.size() == 0 => {
                fields([("data", Value::Numbers(*base, payload.into()))])
            }
            Form::Number(_) | Form::Numbers(_) | Form::Layout(_) | Form::Cdr => return None,
            Form::MessagePack => {
                let decoded = MsgPack::<()>::new(payload).decode_as::<Value<'a>>();
                return Some(decoded.map(|value| (0, value)).map_err(|e| e.to_string()));
            }
        };
        Some(Ok((0, value)))
    }

    fn time(&self, stamp_ns: u64) -> Value<'static> {
        let ns = match stamp_ns {
            0 | EPOCH_NS.. => stamp_ns,
            since_start => self.epoch_ns.load(Relaxed) + since_start,
        };
        let (sec, nanosec) = (ns / 1_000_000_000, ns % 1_000_000_000);
        fields([("sec", Value::Unsigned(sec)), ("nanosec", Value::Unsigned(nanosec))])
    }

    fn header<'a>(&self, header: &'a Header) -> Value<'a> {
        let frame = Value::text(header.frame_id.as_str());
        fields([("stamp", self.time(header.stamp_ns)), ("frame_id", frame)])
    }

    fn image<'a>(&self, image: &'a Image) -> Result<(usize, Value<'a>), String> {
        let h = image.header();
        let (header, data) = (self.header(&h.header), Value::bytes(image.pixels()));
        if [PixelFormat::JPEG, PixelFormat::PNG].contains(&h.format) {
            let format = Value::text(h.format.as_str());
            return Ok((1, fields([("header", header), ("format", format), ("data", data)])));
        }
        let encoding = FORMATS.iter().find(|(format, _)| *format == h.format.0);
        let no = || format!("ROS has no name for pixels of format {}", h.format.0);
        let (_, encoding) = encoding.ok_or_else(no)?;
        let message = fields([
            ("header", header),
            ("height", Value::Unsigned(h.height.into())),
            ("width", Value::Unsigned(h.width.into())),
            ("encoding", Value::text(encoding)),
            ("is_bigendian", Value::Unsigned(0)),
            ("step", Value::Unsigned(h.row_bytes.into())),
            ("data", data),
        ]);
        Ok((0, message))
    }

    fn cloud<'a>(&self, cloud: &'a PointCloud) -> Value<'a> {
        /// `sensor_msgs/msg/PointField.FLOAT32`.
        const FLOAT32: u64 = 7;
        let h = cloud.header();
        let (rows, width) = (u64::from(h.height), u64::from(h.width));
        let field = |(i, name): (u64, &'static str)| {
            let number = Value::Unsigned;
            fields([
                ("name", Value::text(name)),
                ("offset", number(4 * i)),
                ("datatype", number(FLOAT32)),
                ("count", number(1)),
            ])
        };
        let names = (0..).zip(["x", "y", "z", "intensity"]);
        fields([
            ("header", self.header(&h.header)),
            ("height", Value::Unsigned(rows)),
            ("width", Value::Unsigned(width)),
            ("fields", Value::List(names.map(field).collect())),
            ("is_bigendian", Value::Bool(false)),
            ("point_step", Value::Unsigned(16)),
            ("row_step", Value::Unsigned(16 * width)),
            ("data", Value::bytes(cloud.points().as_bytes())),
            ("is_dense", Value::Bool(cloud.points().iter().all(|p| !p.x.is_nan()))),
        ])
    }

    fn imu<'a>(&self, imu: &'a Imu) -> Value<'a> {
        fields([
            ("header", self.header(&imu.header)),
            ("orientation", rotation(&imu.orientation)),
            ("orientation_covariance", Value::f64s(&imu.orientation_covariance)),
            ("angular_velocity", vector(&imu.angular_velocity)),
            ("angular_velocity_covariance", Value::f64s(&imu.angular_velocity_covariance)),
            ("linear_acceleration", vector(&imu.linear_acceleration)),
            ("linear_acceleration_covariance", Value::f64s(&imu.linear_acceleration_covariance)),
        ])
    }

    fn joints<'a>(&self, state: &'a JointState) -> Value<'a> {
        let joints = state.tail();
        let names = joints.iter().map(|j| Value::text(j.name.as_str())).collect();
        // ROS leaves out what no joint measures.
        let numbers = |of: fn(&outlive::msg::Joint) -> f64| {
            let all: Vec<f64> = joints.iter().map(of).collect();
            Value::f64s(if all.iter().all(|v| v.is_nan()) { &[] } else { &all })
        };
        fields([
            ("header", self.header(&state.header().header)),
            ("name", Value::List(names)),
            ("position", numbers(|j| j.position)),
            ("velocity", numbers(|j| j.velocity)),
            ("effort", numbers(|j| j.effort)),
        ])
    }
}

fn vector(v: &Vector3) -> Value<'static> {
    fields([("x", Value::F64(v.x)), ("y", Value::F64(v.y)), ("z", Value::F64(v.z))])
}

fn rotation(q: &Quaternion) -> Value<'static> {
    let (x, y) = (Value::F64(q.x), Value::F64(q.y));
    fields([("x", x), ("y", y), ("z", Value::F64(q.z)), ("w", Value::F64(q.w))])
}

/// Whether it is that type; programs in other languages may not have described it.
fn is<T: outlive::Payload + ?Sized>(of: &PayloadType) -> bool {
    let want = PayloadType::of::<T>();
    let key = |of: &PayloadType| (of.encoding(), of.name().to_owned(), of.size(), of.align());
    key(of) == key(&want)
}

/// Whether its payloads are pixels or points.
pub(crate) fn is_large(of: &PayloadType) -> bool {
    is::<Image>(of) || is::<PointCloud>(of)
}

fn form(of: &PayloadType) -> Option<(Form, Vec<String>)> {
    if of.encoding().is_foreign() {
        return None;
    }
    let named = |form, names: &[&str]| Some((form, names.iter().map(|n| (*n).into()).collect()));
    if is::<Image>(of) {
        let names = ["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"];
        return named(Form::Image, &names);
    }
    if is::<PointCloud>(of) {
        return named(Form::PointCloud, &["sensor_msgs/msg/PointCloud2"]);
    }
    if is::<Imu>(of) {
        return named(Form::Imu, &["sensor_msgs/msg/Imu"]);
    }
    if is::<JointState>(of) {
        return named(Form::JointState, &["sensor_msgs/msg/JointState"]);
    }
    if is::<Pose>(of) {
        return named(Form::Pose, &["geometry_msgs/msg/PoseStamped"]);
    }
    if is::<Twist>(of) {
        return named(Form::Twist, &["geometry_msgs/msg/TwistStamped"]);
    }
    // A part of a service is no message of a topic.
    if of.encoding() == Encoding::MessagePack && !of.name().contains("/srv/") {
        return named(Form::MessagePack, &[of.name()]);
    }
    let (_, base, name) = NUMBERS.iter().find(|(name, ..)| *name == of.name())?;
    let one = of.encoding() == Encoding::Fixed && of.size() == base.size();
    match of.encoding() {
        _ if one => named(Form::Number(*base), &[&format!("std_msgs/msg/{name}")]),
        // There is no array of them.
        _ if *base == Base::Bool => None,
        Encoding::Headed => None,
        _ => named(Form::Numbers(*base), &[&format!("std_msgs/msg/{name}MultiArray")]),
    }
}
