//! The stored form, its reader against garbage, comparison, and values seen through descriptions.

use super::*;
use crate::ErrorKind;
use crate::types::Message;

fn scalar(s: Scalar) -> TypeDescription {
    TypeDescription::scalar(s)
}

/// 64 bytes with everything in it: numbers, text, truth, nesting, arrays of structs, a gap.
fn arm() -> TypeDescription {
    let joint = TypeDescription::struct_of(16, 8)
        .field("angle", 0, scalar(Scalar::F64))
        .field("errors", 8, scalar(Scalar::U16).array(2))
        .field("moving", 12, scalar(Scalar::Bool));
    TypeDescription::struct_of(64, 8)
        .field("stamp", 0, scalar(Scalar::U64))
        .field("name", 8, scalar(Scalar::Char).array(8))
        .field("joints", 16, joint.array(2))
        .field("grid", 48, scalar(Scalar::I8).array(3).array(2))
        .field("raw", 56, TypeDescription::opaque::<[u8; 8]>())
}

const ARM: &str = "\
outlive-type 1 align 8
struct:64
 0 u64 stamp
 8 char[8] name
 16 struct:16[2] joints
  0 f64 angle
  8 u16[2] errors
  12 bool moving
 48 i8[2][3] grid
 56 opaque:8 raw
";

fn arm_bytes() -> Vec<u8> {
    let mut bytes = 7u64.to_le_bytes().to_vec();
    bytes.extend(b"left\0xyz");
    for (angle, errors, moving) in [(0.5f64, [1u16, 2], 1u8), (-1.0, [3, 4], 0)] {
        bytes.extend(angle.to_le_bytes());
        bytes.extend(errors.iter().flat_map(|e| e.to_le_bytes()));
        bytes.extend([moving, 0, 0, 0]);
    }
    bytes.extend([1, 2, 3, 255, 254, 253, 0, 0]);
    bytes.extend([0xde, 0xad, 0, 0, 0, 0, 0, 0xef]);
    bytes
}

#[test]
fn the_stored_form_is_this_text_and_reads_back_as_the_same() {
    assert_eq!(arm().to_text(), ARM);
    assert_eq!(TypeDescription::parse(ARM.as_bytes()).unwrap(), arm());
    for described in [
        scalar(Scalar::F32),
        <[[i16; 3]; 4]>::describe(),
        u8::describe().slice(),
        arm().slice(),
        TypeDescription::struct_of(8, 8).field("n", 0, scalar(Scalar::U64)).field(
            "tail",
            8,
            <[f32; 2]>::describe().slice(),
        ),
        TypeDescription::struct_of(4, 1).field("50 % ö\n", 0, scalar(Scalar::U32)),
        scalar(Scalar::Char32).array(2),
        TypeDescription::enumeration(Scalar::I64, [("a[1]=%,{:}", i64::MIN.into()), ("ö", 0)]),
    ] {
        let text = described.to_text();
        assert_eq!(TypeDescription::parse(text.as_bytes()).unwrap(), described, "{text}");
    }
    assert_eq!(<[[i16; 3]; 4]>::describe().to_text(), "outlive-type 1 align 2\ni16[4][3]\n");
}

/// Values of an enum, so many.
fn many(n: usize) -> String {
    (0..n).map(|i| format!("v{i}={i}")).collect::<Vec<_>>().join(",")
}

#[test]
fn values_of_an_enum_are_stored_by_number_and_shown_by_name() {
    let mode = TypeDescription::enumeration(Scalar::I8, [("Fault", 2), ("Idle", 0), ("Back", -1)]);
    let text = "outlive-type 1 align 1\nenum:i8{Back=-1,Idle=0,Fault=2}[3]\n";
    let modes = mode.array(3);
    assert_eq!(modes.to_text(), text);
    assert_eq!(modes.decode(&[0xff, 2, 1]).unwrap().to_string(), "[Back, Fault, 1]");
    assert_eq!(modes.fault(&[0xff, 2, 0]), None);
    let why = "field `[2]` holds 1, which is not one of Back -1, Idle 0, Fault 2";
    assert_eq!(modes.fault(&[0xff, 2, 1]).as_deref(), Some(why));
    let head = "outlive-type 1 align 2\n";
    let wide = TypeDescription::parse(format!("{head}enum:u16{{{}}}\n", many(1024)).as_bytes());
    let why = wide.unwrap().fault(&[0, 4]).unwrap();
    assert!(why.starts_with("it holds 1024, ") && why.ends_with("v7 7 .."), "{why}");
}

#[test]
fn a_value_of_an_enum_is_found_by_its_own_name_before_one_that_is_written_otherwise() {
    let values = vec![("V1_1".into(), 0), ("V11".into(), 1), ("Idle".into(), 2)];
    let names = Names::new(Scalar::U8, values).unwrap();
    assert_eq!((names.number_of("V1_1"), names.number_of("V11")), (Some(0), Some(1)));
    assert_eq!((names.number_of("IDLE"), names.number_of("v11")), (Some(2), Some(0)));
    assert_eq!(names.number_of("busy"), None);
}

#[test]
fn a_fault_is_found_behind_what_has_none() {
    let (arm, bytes) = (arm(), arm_bytes());
    assert_eq!(arm.fault(&bytes), None);
    let mut wrong = bytes.clone();
    wrong[44] = 5;
    let why = "field `joints[1].moving` holds 5, which is neither 0 (false) nor 1 (true)";
    assert_eq!(arm.fault(&wrong).as_deref(), Some(why));
    assert_eq!(arm.fault(&[]), None, "nothing is read outside");
    let of = scalar(Scalar::Char32);
    assert_eq!(of.decode(&[0xe4, 0, 0, 0]).unwrap().to_string(), "\"ä\"");
    let why = "it holds 0x110000, which is not a Unicode character";
    assert_eq!(of.fault(&[0, 0, 0x11, 0]).as_deref(), Some(why));
}

#[test]
fn what_no_member_would_write_is_corrupt_with_the_line_in_the_message() {
    let head = "outlive-type 1 align 8\n";
    for (text, says) in [
        ("", "last line has no end"),
        ("\n", "expected 'outlive-type"),
        ("outlive-type 1\n", "expected 'outlive-type"),
        ("outlive-type 1 align 3\nu8\n", "power of two"),
        ("outlive-type 1 align 8192\nu8\n", "power of two"),
        (head, "has no type"),
        (&format!("{head}u8"), "last line has no end"),
        (&format!("{head}u9\n"), "type is unknown"),
        (&format!("{head}vec:9\n"), "type is unknown"),
        (&format!("{head}struct:+9\n"), "size out of range"),
        (&format!("{head}struct:0\n"), "size or number"),
        (&format!("{head}u8[0]\n"), "size or number"),
        (&format!("{head}u8[1099511627777]\n"), "dimension is out of range"),
        (&format!("{head}u8[1099511627776][1099511627776]\n"), "size or number"),
        (&format!("{head}u8[1][1][1][1][1][1][1][1][1]\n"), "size or number"),
        (&format!("{head}u8[3\n"), "dimension is malformed"),
        (&format!("{head}u8[3][]\n"), "dimension is out of range"),
        (&format!("{head}u8\n 0 u8 x\n"), "only structs have fields"),
        (&format!("{head}struct:4\n0 u8 x\n"), "belongs to no struct"),
        (&format!("{head}struct:4\n  0 u8 x\n"), "belongs to no struct"),
        (&format!("{head}struct:4\n 0 u8\n"), "expected '<offset>"),
        (&format!("{head}struct:4\n 0 u8 \n"), "1 to 128 bytes"),
        (&format!("{head}struct:4\n 0 u8 a b\n"), "name is malformed"),
        (&format!("{head}struct:4\n 0 u8 %4\n"), "name is malformed"),
        (&format!("{head}struct:4\n 0 u8 %FF\n"), "name is malformed"),
        (&format!("{head}struct:4\n 0 u8 {}\n", "x".repeat(129)), "1 to 128 bytes"),
        (&format!("{head}struct:4\n -1 u8 x\n"), "offset is out of range"),
        (&format!("{head}struct:4\n 0 u64 x\n"), "ends after the struct"),
        (&format!("{head}struct:4\n 4 u8 x\n"), "ends after the struct"),
        (&format!("{head}struct:8\n 0 u32 x\n 2 u32 y\n"), "begins before the end"),
        (&format!("{head}struct:8\n 0 u8 x\n 1 u8 x\n"), "name is taken"),
        (&format!("{head}struct:8\n 0 u8[] x\n 1 u8 y\n"), "nothing comes after"),
        (&format!("{head}struct:8\n 0 struct:8 a\n  8 u8[] x\n"), "last field of the outermost"),
        (&format!("{head}struct:8[2]\n 8 u8[] x\n"), "make no array"),
        (&format!("{head}enum:u8\n"), "enum are malformed"),
        (&format!("{head}enum:u8{{}}\n"), "enum are malformed"),
        (&format!("{head}enum:u8{{A}}\n"), "enum are malformed"),
        (&format!("{head}enum:u8{{A=0,}}\n"), "enum are malformed"),
        (&format!("{head}enum:u8{{A=+1}}\n"), "enum are malformed"),
        (&format!("{head}enum:u8{{A=-}}\n"), "enum are malformed"),
        (&format!("{head}enum:x8{{A=0}}\n"), "enum are malformed"),
        (&format!("{head}enum:u128{{A=0}}\n"), "an integer of at most 64 bits"),
        (&format!("{head}enum:u8{{A=256}}\n"), "outside its width"),
        (&format!("{head}enum:i8{{A=-129}}\n"), "outside its width"),
        (&format!("{head}enum:u8{{A=1,B=1}}\n"), "a name is taken"),
        (&format!("{head}enum:u8{{A=1,A=2}}\n"), "a name is taken"),
        (&format!("{head}enum:u8{{=1}}\n"), "1 to 128 bytes"),
        (&format!("{head}enum:u16{{{}}}\n", many(1025)), "1 to 1024 values"),
    ] {
        let e = TypeDescription::parse(text.as_bytes()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{text}");
        assert!(e.to_string().contains(says), "{text:?}: {e}");
    }
    let deep: String = (1..=DEPTH_MAX + 1).map(|i| format!("{:i$}0 struct:8 a\n", "")).collect();
    let e = TypeDescription::parse(format!("{head}struct:8\n{deep}").as_bytes()).unwrap_err();
    assert!(e.to_string().contains("nested too deep"), "{e}");
    let e = TypeDescription::parse(b"outlive-type 2 align 8\nu8\n").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::VersionMismatch);
    assert!(TypeDescription::parse(&[0xff; 8]).is_err());
    assert!(TypeDescription::parse(&vec![b'\n'; DESCRIPTION_BYTES_MAX + 1]).is_err());
}

/// xorshift64: the same garbage in every run.
struct Garbage(u64);

impl Garbage {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Whatever parses is sound: it writes back what it is, and any payload of its length decodes to
/// the last element without a panic or a read outside.
fn is_sound(text: &[u8], garbage: &mut Garbage) -> bool {
    let Ok(described) = TypeDescription::parse(text) else { return false };
    let again = TypeDescription::parse(described.to_text().as_bytes()).unwrap();
    assert_eq!(again, described);
    if described.size() <= 4096 {
        let payload: Vec<u8> = (0..described.size()).map(|_| garbage.next() as u8).collect();
        if let Some(value) = described.decode(&payload) {
            assert!(!format!("{value} {value:.2}").is_empty());
            let _ = described.fault(&payload);
        }
    }
    let _ = arm().differences(&described);
    true
}

#[test]
fn garbage_is_refused_or_sound_but_never_a_panic() {
    let mut garbage = Garbage(0x5eed);
    let alphabet = b"outlive-type 1 align 8\nstruct:opaque:enum:u8f64[]{=,}-0123456789 %\n";
    for _ in 0..20_000 {
        let len = garbage.below(200);
        let noise: Vec<u8> = (0..len).map(|_| garbage.next() as u8).collect();
        assert!(!is_sound(&noise, &mut garbage));
        let likely: Vec<u8> = (0..len).map(|_| alphabet[garbage.below(alphabet.len())]).collect();
        is_sound(&[b"outlive-type 1 align 8\n", &likely[..]].concat(), &mut garbage);
    }
    let mut accepted = 0;
    for _ in 0..50_000 {
        let mut text = ARM.as_bytes().to_vec();
        for _ in 0..1 + garbage.below(3) {
            let at = garbage.below(text.len());
            match garbage.below(4) {
                0 => text[at] = garbage.next() as u8,
                1 => text[at] = alphabet[garbage.below(alphabet.len())],
                2 => drop(text.remove(at)),
                _ => text.insert(at, alphabet[garbage.below(alphabet.len())]),
            }
        }
        accepted += usize::from(is_sound(&text, &mut garbage));
    }
    assert!(accepted > 1000, "{accepted} mutants parse: the test reaches what comes after");
}

#[test]
fn differences_name_every_field_from_both_sides() {
    let joint = TypeDescription::struct_of(24, 8)
        .field("angle", 0, scalar(Scalar::F32))
        .field("errors", 8, scalar(Scalar::U16).array(2))
        .field("current", 16, scalar(Scalar::F64));
    let ours = TypeDescription::struct_of(88, 8)
        .field("stamp", 0, scalar(Scalar::I64))
        .field("label", 8, scalar(Scalar::Char).array(8))
        .field("joints", 16, joint.array(2))
        .field("grid", 64, scalar(Scalar::I8).array(2).array(3))
        .field("raw", 72, scalar(Scalar::F64).array(2));
    assert_eq!(
        arm().differences(&ours).join("\n"),
        "field stamp is u64 at 0, this program has i64 at 0\n\
         field name (char[8] at 8) is missing in this program\n\
         field joints[].angle is f64 at 0, this program has f32 at 0\n\
         field joints[].moving (bool at 12) is missing in this program\n\
         field joints[].current (f64 at 16) is in this program only\n\
         field grid is i8[2][3] at 48, this program has i8[3][2] at 64\n\
         field raw is opaque:8 at 56, this program has f64[2] at 72\n\
         field label (char[8] at 8) is in this program only"
    );
    assert!(arm().differences(&arm()).is_empty());
    let moved = TypeDescription::struct_of(16, 8).field("a", 8, scalar(Scalar::F64));
    let there = TypeDescription::struct_of(16, 8).field("a", 0, scalar(Scalar::F64));
    assert_eq!(there.differences(&moved), ["field a is at 0, this program has it at 8"]);
    let padded = TypeDescription::struct_of(24, 8).field("a", 0, scalar(Scalar::F64));
    assert_eq!(
        there.differences(&padded),
        ["the payload is struct:16, this program has struct:24"]
    );
    assert_eq!(
        u8::describe().slice().differences(&<[u8; 2]>::describe()),
        ["the payload is u8[], this program has u8[2]"]
    );
}

#[test]
fn what_is_not_described_agrees_with_everything_of_its_size() {
    let plain = TypeDescription::opaque::<[u64; 8]>();
    assert!(arm().differences(&plain).is_empty() && plain.differences(&arm()).is_empty());
    assert!(!arm().differences(&TypeDescription::opaque::<[u64; 7]>()).is_empty());
    assert!(differences(ARM.as_bytes(), b"").is_empty());
    assert!(differences(b"", ARM.as_bytes()).is_empty());
    assert!(differences(b"a schema", b"a schema").is_empty());
    assert_eq!(differences(b"a schema", ARM.as_bytes()), ["the schema differs"]);
}

#[test]
fn many_differences_are_counted_instead_of_shown() {
    let mut wide = TypeDescription::struct_of(64, 1);
    for i in 0..64 {
        wide = wide.field(&format!("f{i}"), i, scalar(Scalar::U8));
    }
    let lines = wide.differences(&TypeDescription::struct_of(64, 1));
    assert_eq!((lines.len(), lines[32].as_str()), (33, "32 more fields differ"));
}

#[test]
fn a_payload_is_shown_field_by_field() {
    let (arm, bytes) = (arm(), arm_bytes());
    let value = arm.decode(&bytes).unwrap();
    assert_eq!(
        value.to_string(),
        "{stamp: 7, name: \"left\", joints: [{angle: 0.5, errors: [1, 2], moving: true}, \
         {angle: -1.0, errors: [3, 4], moving: false}], grid: [[1, 2, 3], [-1, -2, -3]], \
         raw: [de, ad, 00, 00, 00, 00, 00, ef]}"
    );
    assert!(format!("{value:.1}").contains("grid: [[1, .. 2 more], .. 1 more]"), "{value:.1}");
    let at = |path: &str| value.at(path).map(|v| v.to_string());
    assert_eq!(at("joints[1].errors[0]").as_deref(), Some("3"));
    assert_eq!(at("grid[1][2]").as_deref(), Some("-3"));
    assert_eq!(at("name").as_deref(), Some("\"left\""));
    assert_eq!(at("").as_deref(), Some(value.to_string().as_str()));
    for path in ["nothing", "joints[2]", "joints.angle", "stamp.x", "joints[", "joints[x]", "[0]"] {
        assert!(at(path).is_none(), "{path}");
    }
    assert!(arm.decode(&bytes[1..]).is_none());
}

#[test]
fn slices_and_headed_payloads_have_as_many_elements_as_bytes() {
    let slice = <[u16; 2]>::describe().slice();
    assert_eq!(slice.decode(&[1, 0, 2, 0, 3, 0, 4, 0]).unwrap().to_string(), "[[1, 2], [3, 4]]");
    assert_eq!(slice.decode(&[]).unwrap().to_string(), "[]");
    assert!(slice.decode(&[1, 0, 2]).is_none());
    assert_eq!(slice.decode(&[1, 0, 2, 0]).unwrap().at("[0][1]").unwrap().to_string(), "2");

    let headed = TypeDescription::struct_of(2, 2).field("n", 0, u16::describe());
    let headed = headed.field("tail", 2, u16::describe().slice());
    assert_eq!(headed.decode(&[9, 0]).unwrap().to_string(), "{n: 9, tail: []}");
    assert_eq!(headed.decode(&[9, 0, 1, 0, 2, 0]).unwrap().to_string(), "{n: 9, tail: [1, 2]}");
    assert!(headed.decode(&[9]).is_none() && headed.decode(&[9, 0, 1]).is_none());
    assert_eq!(u8::describe().slice().decode(b"ab").unwrap().to_string(), "[97, 98]");
    let text = scalar(Scalar::Char).slice();
    assert_eq!(text.decode(b"a\0").unwrap().to_string(), "[\"a\", \"\"]");
}

#[test]
fn arrays_of_numbers_can_be_read_as_a_whole() {
    let described = <[f32; 3]>::describe();
    let bytes: Vec<u8> = [1f32, 2.0, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
    let Some(Value::Array(array)) = described.decode(&bytes) else { panic!("an array") };
    assert_eq!((array.len(), array.scalar(), array.bytes()), (3, Some(Scalar::F32), &bytes[..]));
    assert_eq!(Value::Array(array).to_string(), "[1.0, 2.0, NaN]");
    assert_eq!(array.iter().count(), 3);
    assert!(array.get(3).is_none() && array.get(usize::MAX).is_none());
}

#[test]
#[should_panic(expected = "field b of a described type: it begins before the end")]
fn a_description_by_hand_that_contradicts_itself_is_a_mistake_of_the_program() {
    let _ = TypeDescription::struct_of(8, 4).field("a", 0, u32::describe()).field(
        "b",
        2,
        u32::describe(),
    );
}
