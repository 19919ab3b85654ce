//! What is written for a struct and an enum, and what is refused.

use super::*;

fn expanded(arguments: &str, item: &str) -> String {
    expand(arguments.parse().unwrap(), item.parse().unwrap()).to_string()
}

/// The message for people in what refuses to compile.
fn refusal(arguments: &str, item: &str) -> String {
    let code = expanded(arguments, item);
    assert!(code.contains("compile_error"), "{code}");
    code
}

#[test]
fn every_field_is_described_by_name_offset_and_type() {
    let code = expanded("\"robot/Pose\"", "struct Pose { x: f64, r#type: [u8; 8] }");
    for part in [
        "# [repr (C)] struct Pose",
        "impl :: outlive :: Message for Pose",
        r#""robot/Pose""#,
        r#"field ("x" , :: core :: mem :: offset_of ! (Self , x) , < f64 as"#,
        r#"field ("type" , :: core :: mem :: offset_of ! (Self , r#type) , < [u8 ; 8] as"#,
        "< f64 as :: outlive :: Message > :: VALIDITY . is_any () && < [u8 ; 8]",
        "`Pose` has 3 bytes of padding before field `type`: order",
    ] {
        assert!(code.contains(part), "{part} is missing in {code}");
    }
    assert!(!code.contains("where"), "a number needs no bound: {code}");
}

#[test]
fn the_name_is_that_of_the_type_unless_one_is_given() {
    for (arguments, name) in
        [("", "\"Pose\""), ("\"a/B\",", "\"a/B\""), ("crate = \"x\"", "\"Pose\"")]
    {
        let code = expanded(arguments, "struct Pose { x: f64 }");
        assert!(code.contains(&format!("TYPE_NAME : & 'static str = {name}")), "{code}");
    }
}

#[test]
fn tuple_structs_generics_other_layouts_and_renamed_crates_work() {
    let code = expanded(
        r#""a/B", crate = "crate::other""#,
        "#[repr(C, align(8))] struct B<const N: usize>([u8; N], u16) where [u8; N]: Sized;",
    );
    assert!(code.contains("crate :: other :: Message for B < N > where"), "{code}");
    assert!(code.contains(r#"field ("1" , :: core :: mem :: offset_of ! (Self , 1)"#), "{code}");
    assert!(!code.contains("# [repr (C)]"), "it has one: {code}");
    let code = expanded("", "#[repr(align(64))] struct B { of: other::Message }");
    assert!(code.contains("# [repr (C)]"), "{code}");
    assert!(code.contains("where for < 'any > other :: Message : :: outlive :: Message"), "{code}");
}

#[test]
fn an_enum_is_described_by_its_width_and_its_values() {
    let code = expanded("", "#[repr(i16)] enum Mode { Idle, r#Driving = 5 }");
    assert!(code.contains("Scalar :: I16"), "{code}");
    assert!(code.contains(r#"("Idle" , Self :: Idle as i128) , ("Driving" , "#), "{code}");
    assert!(!code.contains("VALIDITY"), "checked, as nobody says otherwise: {code}");
    for zero in ["A = 1, B = 0", "A = -1, B", "A = FIRST", "A = 3, B = NEXT"] {
        expanded("", &format!("#[repr(i8)] enum E {{ {zero} }}"));
    }
}

#[test]
fn what_cannot_be_a_message_is_refused_with_a_reason_and_a_remedy() {
    for (arguments, item, says) in [
        ("", "fn f() {}", "belongs above a struct or an enum"),
        ("", "union U { a: u8 }", "use a struct"),
        ("", "struct S;", "at least one field"),
        ("\"\"", "struct S { a: u8 }", "1 to 256 bytes"),
        ("nam = \"a\"", "struct S { a: u8 }", "write #[outlive::message("),
        ("name = \"a\"", "struct S { a: u8 }", "write #[outlive::message("),
        ("", "enum E { A }", "add #[repr(u8)]"),
        ("", "#[repr(usize)] enum E { A }", "add #[repr(u8)]"),
        ("", "#[repr(u8)] enum E { A, B(u8) }", "outlive::MsgPack<T>"),
        ("", "#[repr(u8)] enum E { A = 1, B }", "Unknown = 0"),
        ("", "struct S { a: String }", "outlive::msg::Text<N>"),
        ("", "struct S { a: &'static str }", "outlive::msg::Text<N>"),
        ("", "struct S { a: Vec<f64> }", "an array [f64; N]"),
        ("", "struct S { a: Option<f64> }", "outlive::msg::Optional<f64>"),
        ("", "struct S { a: [Option<Mode>; 3] }", "outlive::msg::Optional<Mode>"),
        ("", "struct S { a: Box<f64> }", "the value itself"),
        ("", "struct S { a: HashMap<u8, u8> }", "outlive::MsgPack<T>"),
        ("", "struct S { a: usize }", "use u64"),
        ("", "struct S { a: (u8, u8) }", "#[outlive::message]"),
        ("", "struct S { #[cfg(test)] a: u8, b: u8 }", "above the whole type"),
        ("", "#[repr(u8)] enum E { A, #[cfg(test)] B }", "above the whole type"),
        ("", "struct S { a: [u8] }", "an array [T; N]"),
        ("", "struct S { a: std::time::Duration }", "nanoseconds"),
    ] {
        let refused = refusal(arguments, item);
        assert!(refused.contains(says), "{item}: {refused}");
    }
}

#[test]
fn no_type_beside_the_message_hides_that_of_a_field() {
    let code = expanded("", "struct S { a: Asked }");
    assert!(
        code.contains("Asked : :: outlive :: Message") && !code.contains("struct Asked"),
        "{code}"
    );
}

#[test]
fn a_path_says_whose_type_it_is_and_only_those_of_std_are_refused() {
    for ty in ["super::builtin_interfaces::Duration", "self::Duration", "[own::Option; 2]", "Cell"]
    {
        let code = expanded("", &format!("struct S {{ a: {ty} }}"));
        assert!(!code.contains("compile_error"), "{ty}: {code}");
    }
    for ty in ["::std::time::Duration", "core::cell::Cell<u8>", "alloc::string::String", "Duration"]
    {
        refusal("", &format!("struct S {{ a: {ty} }}"));
    }
}

#[test]
fn what_no_description_has_room_for_is_refused() {
    let (fits, long) = ("a".repeat(128), "a".repeat(129));
    let variants = |n: usize| (0..n).map(|i| format!("V{i}, ")).collect::<String>();
    for (item, says) in [
        (format!("struct S {{ {long}: u8 }}"), "at most 128 bytes"),
        (format!("#[repr(u8)] enum E {{ {long} }}"), "at most 128 bytes"),
        (format!("#[repr(u16)] enum E {{ {} }}", variants(1025)), "at most 1024 variants"),
    ] {
        let refused = refusal("", &item);
        assert!(refused.contains(says), "{says}: {}", &refused[..200]);
    }
    for item in [
        format!("struct S {{ {fits}: u8 }}"),
        format!("#[repr(u8)] enum E {{ r#{fits} }}"),
        format!("#[repr(u16)] enum E {{ {} }}", variants(1024)),
    ] {
        assert!(!expanded("", &item).contains("compile_error"));
    }
}

#[test]
fn padding_between_numbers_is_refused_where_it_is() {
    for (fields, says) in [
        ("(bool, f64)", "7 bytes of padding before field `1`"),
        ("(f64, [char; 1])", "4 bytes of padding at its end"),
        ("(u16, u8)", "1 byte of padding at its end"),
    ] {
        let refused = refusal("", &format!("struct S {fields};"));
        assert!(refused.contains(says), "{fields}: {refused}");
    }
    for fields in
        ["{ x: f64, a: [[u8; 4]; 2] }", "{ on: bool, x: Other, y: f64 }", "{ a: u8, b: [u16; N] }"]
    {
        assert!(!expanded("", &format!("struct S {fields}")).contains("compile_error"), "{fields}");
    }
    let packed = expanded("", "#[repr(C, packed)] struct S(u8, u16);");
    assert!(!packed.contains("compile_error"), "{packed}");
}

#[test]
fn each_field_that_is_none_is_named_at_once() {
    let code = refusal("", "struct S { a: String, b: u8, c: Vec<u8> }");
    assert_eq!(code.matches("compile_error").count(), 2, "{code}");
}
