//! Payloads of tools' subscribers, which know the type by what the topic says of it: numbers where
//! the elements are numbers, fields where the type is described, MessagePack or of an encoding
//! of others whose schema is known, else hexadecimal.

use std::fmt::Write;

use outlive::MsgPack;
use outlive::describe::{self, FieldType, Kind, Scalar};
use outlive::topic;
use outlive::{Encoding, PayloadType, TypeDescription};
use outlive_record::decode::{Foreign, Key, Path, Tree};
use serde_json::Value;

use crate::exit::plain;

/// Bytes shown unless all are asked for.
const BYTES_SHOWN: usize = 16;
/// Numbers shown unless all are asked for.
const NUMBERS_SHOWN: usize = 8;

/// How the payloads of one topic are to be shown.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    form: Form,
    whole: bool,
}

#[derive(Clone, Debug)]
enum Form {
    /// And how many, where that is fixed.
    Numbers(Number, Option<usize>),
    Described(Box<TypeDescription>),
    MessagePack,
    Foreign(Box<Foreign>),
    /// Of others, and why its payloads cannot be read.
    Unread(String),
    Unknown,
}

/// Elements of each array that a table shows in columns of their own.
const COLUMNS_MAX: usize = 64;

/// A primitive type: its name, its size, and a value of it for text and for JSON.
#[derive(Clone, Copy, Debug)]
struct Number {
    name: &'static str,
    bytes: usize,
    text: fn(&[u8]) -> String,
    json: fn(&[u8]) -> Value,
}

macro_rules! numbers {
    ($($t:ident: $json:ident),*) => {
        [$(Number {
            name: stringify!($t),
            bytes: size_of::<$t>(),
            text: |b| b.try_into().map($t::from_ne_bytes).map(|v| v.to_string())
                .unwrap_or_default(),
            json: |b| b.try_into().map($t::from_ne_bytes).map($json).unwrap_or_default(),
        }),*]
    };
}

fn exact<T: Into<Value>>(value: T) -> Value {
    value.into()
}

/// JSON readers hold no more than 64 bits: wider numbers travel as text.
fn wide<T: ToString>(value: T) -> Value {
    Value::String(value.to_string())
}

static NUMBERS: [Number; 12] = numbers!(u8: exact, u16: exact, u32: exact, u64: exact,
    u128: wide, i8: exact, i16: exact, i32: exact, i64: exact, i128: wide, f32: exact, f64: exact);

impl Decoder {
    /// For the payloads of `topic`; `whole` shows everything.
    pub(crate) fn of(topic: &topic::Info, whole: bool) -> Self {
        Self::of_type(&topic.payload_type(), whole)
    }

    /// For payloads of that type.
    pub(crate) fn of_type(of: &PayloadType, whole: bool) -> Self {
        let plain = Self::new(of.name(), of.encoding(), of.size(), whole);
        let form = match (of.encoding(), of.description(), plain.form) {
            (Encoding::MessagePack, ..) => Form::MessagePack,
            (encoding, ..) if encoding.is_foreign() => {
                Foreign::of(of).map_or_else(Form::Unread, |of| Form::Foreign(Box::new(of)))
            }
            // Numbers are shown as they were before types had descriptions.
            (_, Some(described), Form::Unknown) if !described.is_opaque() => {
                Form::Described(Box::new(described))
            }
            (.., form) => form,
        };
        Self { form, whole }
    }

    /// The type as the topic has it, by its name alone.
    pub(crate) fn new(
        type_name: &str,
        encoding: Encoding,
        element_bytes: usize,
        whole: bool,
    ) -> Self {
        // Many bytes are data of some kind; a single one is a number.
        let data = type_name == "u8" && (encoding != Encoding::Fixed || element_bytes != 1);
        let headed = encoding == Encoding::Headed;
        let number = NUMBERS.iter().find(|n| n.name == type_name && !data && !headed);
        let form = number.map_or(Form::Unknown, |n| {
            let count = (encoding == Encoding::Fixed).then_some(element_bytes / n.bytes);
            Form::Numbers(*n, count)
        });
        Self { form, whole }
    }

    fn most(&self) -> usize {
        if self.whole { usize::MAX } else { NUMBERS_SHOWN }
    }

    /// The payload's fields and values; `None` if nothing is known of it, or it is no such thing.
    fn tree(&self, payload: &[u8], most: usize) -> Option<Tree> {
        match &self.form {
            Form::Described(described) => Some(Tree::of(&described.decode(payload)?, most)),
            Form::MessagePack => Some(MsgPack::<Tree>::new(payload).decode().ok()?.cut(most)),
            Form::Foreign(of) => Some(of.tree(payload).ok()?.cut(most)),
            _ => None,
        }
    }

    /// Reads a payload once for all parts of it that are wanted; `None` if it is not of its type.
    pub(crate) fn read<'a>(&'a self, payload: &'a [u8]) -> Option<Read<'a>> {
        let view = match &self.form {
            Form::Described(described) => View::Described(described.decode(payload)?),
            Form::MessagePack | Form::Foreign(_) => View::Tree(self.tree(payload, usize::MAX)?),
            Form::Numbers(_, count) => View::Numbers(self.number_of(payload)?, *count, payload),
            Form::Unread(_) | Form::Unknown => View::Unknown,
        };
        Some(Read { view, most: self.most() })
    }

    /// Says why no payload of this type ever has the part that `path` names, if so.
    pub(crate) fn check_path(&self, path: &Path) -> Result<(), String> {
        match &self.form {
            Form::Described(described) => check_path(described.root(), path),
            Form::MessagePack | Form::Foreign(_) => Ok(()),
            Form::Numbers(_, count) => match (path.0.as_slice(), count) {
                ([], _) => Ok(()),
                ([Key::Element(index)], Some(count)) if index >= count => {
                    Err(format!("[{index}] is beyond the array of {count}"))
                }
                ([Key::Element(_)], _) => Ok(()),
                ([Key::Field(_), ..], _) => {
                    Err("it has numbers, not fields: write it like [3]".into())
                }
                _ => Err("its numbers are one row: write it like [3]".into()),
            },
            Form::Unread(why) => Err(format!("its fields are not known: {}", plain(why))),
            Form::Unknown => Err("its type has no description, so its parts have no names".into()),
        }
    }

    /// Columns of a table of payloads, judging by the type or by the first of them.
    pub(crate) fn columns(&self, first: &Read<'_>) -> Vec<Path> {
        match (&self.form, &first.view) {
            (Form::Described(described), _) => {
                let mut out = Vec::new();
                columns(described.root(), described.root().dims(), &Path::default(), &mut out);
                out
            }
            (Form::Foreign(of), View::Tree(tree)) => of.columns().unwrap_or_else(|| tree.leaves()),
            (_, View::Tree(tree)) => tree.leaves(),
            (Form::Numbers(_, Some(n @ 2..=COLUMNS_MAX)), _) => {
                (0..*n).map(|i| Path(vec![Key::Element(i)])).collect()
            }
            // One, or all of them in one cell: of a slice the next message may have more.
            (Form::Numbers(..), _) => vec![Path::default()],
            _ => Vec::new(),
        }
    }

    /// What the payload consists of, if of numbers.
    fn number_of(&self, payload: &[u8]) -> Option<Number> {
        match self.form {
            Form::Numbers(number, _) if payload.len() % number.bytes == 0 => Some(number),
            _ => None,
        }
    }

    fn shown(&self, all: usize, most: usize) -> usize {
        if self.whole { all } else { all.min(most) }
    }

    /// For one line of text.
    pub(crate) fn text(&self, payload: &[u8]) -> String {
        if let Some(tree) = self.tree(payload, self.most()) {
            return tree.to_string();
        }
        let mut out = String::new();
        let (shown, all) = if let Some(number) = self.number_of(payload) {
            let all = payload.len() / number.bytes;
            let shown = self.shown(all, NUMBERS_SHOWN);
            for value in payload.chunks_exact(number.bytes).take(shown) {
                let _ = write!(out, "{} ", (number.text)(value));
            }
            (shown, all)
        } else {
            let shown = self.shown(payload.len(), BYTES_SHOWN);
            for byte in &payload[..shown] {
                let _ = write!(out, "{byte:02x} ");
            }
            (shown, payload.len())
        };
        if shown < all {
            let _ = write!(out, ".. {} more", all - shown);
        }
        out.truncate(out.trim_end().len());
        match &self.form {
            Form::Foreign(of) => {
                if let Err(why) = of.tree(payload) {
                    let _ = write!(out, "  (not of its type: {})", plain(&why));
                }
            }
            Form::Unread(why) => {
                let _ = write!(out, "  (its fields are not known: {})", plain(why));
            }
            _ => {}
        }
        out
    }

    /// What is in it, part by part, and how many parts there are beyond the first `most`; of what
    /// has no parts one row without a name.
    pub(crate) fn rows(&self, payload: &[u8], most: usize) -> (Vec<(String, String)>, usize) {
        let Some(tree) = self.tree(payload, self.most()) else {
            return (vec![(String::new(), self.text(payload))], 0);
        };
        let leaves = tree.leaves();
        // A part is found by looking through those beside it: not for each of a hundred thousand.
        let value = |path: &Path| tree.at(path).map_or(String::new(), Tree::to_string);
        let rows = leaves.iter().take(most).map(|path| (path.to_string(), value(path)));
        (rows.collect(), leaves.len().saturating_sub(most))
    }

    /// For JSON: key, value, and whether it is all of the payload.
    pub(crate) fn json(&self, payload: &[u8]) -> (&'static str, Tree, bool) {
        if let Some(tree) = self.tree(payload, self.most()) {
            let whole = tree.is_whole();
            return ("value", tree, whole);
        }
        let (key, value, whole) = self.plain_json(payload);
        (key, serde_json::from_value(value).unwrap_or(Tree::Nothing), whole)
    }

    fn plain_json(&self, payload: &[u8]) -> (&'static str, Value, bool) {
        if let Some(number) = self.number_of(payload) {
            let all = payload.len() / number.bytes;
            let shown = self.shown(all, NUMBERS_SHOWN);
            let values = payload.chunks_exact(number.bytes).take(shown);
            return ("values", values.map(number.json).collect(), shown == all);
        }
        let shown = self.shown(payload.len(), BYTES_SHOWN);
        let mut hex = String::with_capacity(2 * shown);
        for byte in &payload[..shown] {
            let _ = write!(hex, "{byte:02x}");
        }
        ("hex", Value::String(hex), shown == payload.len())
    }
}

/// A payload that has been read.
#[derive(Debug)]
pub(crate) struct Read<'a> {
    view: View<'a>,
    /// Elements of each array that are shown.
    most: usize,
}

#[derive(Debug)]
enum View<'a> {
    /// And how many, where that is fixed.
    Numbers(Number, Option<usize>, &'a [u8]),
    Described(describe::Value<'a>),
    Tree(Tree),
    Unknown,
}

impl Read<'_> {
    /// The part at `path`.
    pub(crate) fn part(&self, path: &Path) -> Option<Tree> {
        match &self.view {
            View::Described(value) => Some(Tree::of(&part(value, path)?, self.most)),
            View::Tree(tree) => Some(tree.at(path)?.clone().cut(self.most)),
            View::Numbers(number, count, payload) => {
                let index = match path.0.as_slice() {
                    [] if *count == Some(1) => 0,
                    [] => {
                        let values = payload.chunks_exact(number.bytes).map(number.json);
                        return serde_json::from_value(values.collect()).ok();
                    }
                    [Key::Element(index)] => *index,
                    _ => return None,
                };
                let one = payload.chunks_exact(number.bytes).nth(index)?;
                serde_json::from_value((number.json)(one)).ok()
            }
            View::Unknown => None,
        }
    }
}

/// The part of a described value at `path`.
fn part<'a>(value: &describe::Value<'a>, path: &Path) -> Option<describe::Value<'a>> {
    path.0.iter().try_fold(value.clone(), |at, key| match (key, at) {
        (Key::Field(name), describe::Value::Struct(fields)) => fields.get(name),
        (Key::Element(index), describe::Value::Array(elements)) => elements.get(*index),
        _ => None,
    })
}

/// Appends a column for each number or text of `ty` below `path`, whose dimensions `dims` are left;
/// one for all of what is of any length or has very many elements.
fn columns(ty: &FieldType, dims: &[usize], path: &Path, out: &mut Vec<Path>) {
    if ty.is_any_length() || dims.iter().product::<usize>() > COLUMNS_MAX {
        out.push(path.clone());
        return;
    }
    match (dims, ty.kind()) {
        // Text is one value.
        ([], Kind::Struct { fields, .. }) => {
            for field in fields {
                let path = path.below(Key::Field(field.name().into()));
                columns(field.ty(), field.ty().dims(), &path, out);
            }
        }
        ([], _) | ([_], Kind::Scalar(Scalar::Char)) => out.push(path.clone()),
        ([len, inner @ ..], _) => {
            (0..*len).for_each(|i| columns(ty, inner, &path.below(Key::Element(i)), out));
        }
    }
}

fn check_path(root: &FieldType, path: &Path) -> Result<(), String> {
    let (mut ty, mut level) = (root, 0usize);
    for key in &path.0 {
        let levels = usize::from(ty.is_any_length()) + ty.dims().len();
        match key {
            Key::Element(index) => {
                let dim = level.checked_sub(usize::from(ty.is_any_length()));
                let len = dim.map_or(Some(usize::MAX), |dim| ty.dims().get(dim).copied());
                match len {
                    None => return Err(format!("[{index}] needs an array")),
                    Some(len) if *index >= len => {
                        return Err(format!("[{index}] is beyond the array of {len}"));
                    }
                    Some(_) => level += 1,
                }
            }
            Key::Field(name) if level < levels => {
                return Err(format!("'{name}' needs an element of the array: write [0] first"));
            }
            Key::Field(name) => {
                let names: Vec<_> = ty.fields().iter().map(|f| f.name()).collect();
                let Some(field) = ty.fields().iter().find(|f| f.name() == name) else {
                    return Err(match names.as_slice() {
                        [] => format!("'{name}': there are no fields here"),
                        names => format!("no field '{name}' among {}", names.join(", ")),
                    });
                };
                (ty, level) = (field.ty(), 0);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::csv::cell;
    use Encoding::{Bytes, Fixed, Slice};

    fn text(name: &str, encoding: Encoding, element_bytes: usize, payload: &[u8]) -> String {
        Decoder::new(name, encoding, element_bytes, false).text(payload)
    }

    #[test]
    fn a_path_that_no_row_of_numbers_has_is_refused() {
        let row = Decoder::new("f32", Slice, 16, false);
        let four = Decoder::new("f32", Fixed, 16, false);
        let check = |of: &Decoder, path: &str| of.check_path(&Path::typed(path).unwrap()).is_ok();
        assert!(check(&row, "[9]") && check(&four, "[3]"));
        for path in ["[0][1][0]", "x", "[0].x"] {
            assert!(!check(&row, path) && !check(&four, path), "{path}");
        }
        assert!(!check(&four, "[4]"));
    }

    fn names(of: &Decoder, first: &[u8]) -> Vec<String> {
        of.columns(&of.read(first).unwrap()).iter().map(Path::to_string).collect()
    }

    #[test]
    fn primitives_and_their_arrays_and_slices_are_numbers() {
        assert_eq!(text("f64", Fixed, 8, &2.5f64.to_ne_bytes()), "2.5");
        let pair = [(-3i16).to_ne_bytes(), 7i16.to_ne_bytes()].concat();
        assert_eq!(text("i16", Slice, 2, &pair), "-3 7");
        assert_eq!(text("u8", Fixed, 1, &[9]), "9");
        let many: Vec<u8> = (0..10u32).flat_map(u32::to_ne_bytes).collect();
        assert_eq!(text("u32", Fixed, 40, &many), "0 1 2 3 4 5 6 7 .. 2 more");
        assert_eq!(text("u32", Slice, 4, &[]), "");
    }

    #[test]
    fn everything_else_is_hexadecimal() {
        assert_eq!(text("u8", Bytes, 1, &[9]), "09");
        assert_eq!(text("u8", Fixed, 2, &[0, 255]), "00 ff");
        assert_eq!(text("example/Pose", Fixed, 3, &[1, 2, 3]), "01 02 03");
        assert_eq!(text("u32", Slice, 4, &[1, 2, 3]), "01 02 03", "no whole number of elements");
        assert!(text("u8", Bytes, 1, &[7; 100]).ends_with("07 .. 84 more"));
        assert_eq!(Decoder::new("u8", Bytes, 1, true).text(&[7; 100]).len(), 299);
    }

    #[test]
    fn json_keeps_what_its_readers_can_hold() {
        let json = |name: &str, encoding, payload: &[u8]| {
            let (key, value, whole) = Decoder::new(name, encoding, 1, false).json(payload);
            format!("{key} {} {whole}", serde_json::to_string(&value).unwrap())
        };
        assert_eq!(
            json("u64", Fixed, &u64::MAX.to_ne_bytes()),
            format!("values [{}] true", u64::MAX)
        );
        assert_eq!(json("u128", Fixed, &1u128.to_ne_bytes()), "values [\"1\"] true");
        assert_eq!(json("f32", Fixed, &f32::NAN.to_ne_bytes()), "values [null] true");
        assert_eq!(json("u8", Bytes, &[1; 17]), format!("hex \"{}\" false", "01".repeat(16)));
    }

    #[test]
    fn a_table_of_numbers_leaves_none_out() {
        let of = |encoding, count: usize| Decoder::new("f32", encoding, 4 * count, true);
        let payload = |n: usize| [1.5f32.to_ne_bytes()].repeat(n).concat();
        let cell =
            |of: &Decoder, n| cell(&of.read(&payload(n)).unwrap().part(&Path::default()).unwrap());
        assert_eq!(names(&of(Fixed, 1), &payload(1)), [""]);
        assert_eq!(cell(&of(Fixed, 1), 1), "1.5");
        assert_eq!(names(&of(Fixed, 3), &payload(3)), ["[0]", "[1]", "[2]"]);
        // What does not fit into columns, or may be longer the next time, is one cell.
        for (of, n) in [(of(Fixed, 65), 65), (of(Slice, 1), 1), (of(Slice, 1), 360)] {
            assert_eq!(names(&of, &payload(n)), [""]);
            assert_eq!(cell(&of, n).matches("1.5").count(), n);
        }
        assert_eq!(names(&of(Slice, 1), &[]), [""], "also where the first one is empty");
        assert_eq!(cell(&of(Slice, 1), 0), "[]");
    }

    #[test]
    fn described_types_have_columns_and_paths_that_are_checked_before_the_first_message() {
        let f64s = || TypeDescription::scalar(Scalar::F64);
        let pose = TypeDescription::struct_of(24, 8).field("position", 0, f64s().array(2)).field(
            "frame",
            16,
            TypeDescription::scalar(Scalar::Char).array(8),
        );
        let cloud = TypeDescription::struct_of(24, 8).field("pose", 0, pose.clone()).field(
            "tail",
            24,
            f64s().slice(),
        );
        let decoder = |of: &TypeDescription| Decoder {
            form: Form::Described(Box::new(of.clone())),
            whole: false,
        };
        assert_eq!(names(&decoder(&pose), &[0; 24]), ["position[0]", "position[1]", "frame"]);
        assert_eq!(names(&decoder(&cloud), &[0; 24]).last().unwrap(), "tail");
        let mut bytes = [1.5f64, -2.0].map(f64::to_le_bytes).concat();
        bytes.extend(b"map\0\0\0\0\0");
        let text = r#"{position: [1.5, -2.0], frame: "map"}"#;
        assert_eq!(decoder(&pose).text(&bytes), text);
        let part = decoder(&pose).read(&bytes).unwrap().part(&Path::typed("position[1]").unwrap());
        assert_eq!(part, Some(Tree::F64(-2.0)));
        let check = |path| Path::typed(path).and_then(|path| decoder(&cloud).check_path(&path));
        for good in ["", "pose", "pose.position[1]", "tail[1000]"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (wrong, why) in [
            ("pos", "no field 'pos' among pose, tail"),
            ("pose.position[2]", "[2] is beyond the array of 2"),
            ("pose.position.x", "'x' needs an element of the array: write [0] first"),
            ("pose[0]", "[0] needs an array"),
            ("tail[0].x", "'x': there are no fields here"),
        ] {
            assert_eq!(check(wrong), Err(why.into()), "{wrong}");
        }
    }
}
