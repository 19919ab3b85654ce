//! `outlive types`: source code from interface files.
//!
//! The sources made of `tests/types` are kept in `tests/types/golden`, where programs of all four
//! languages use them (`voice.*`); write them anew with
//!
//! ```sh
//! UPDATE_EXPECT=1 cargo test -p outlive-cli --test types
//! ```

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::*;
use expect_test::expect_file;
use proto::{Type, message};
use serde_json::{Value, json};
use testkit::TempDomain;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types")
}

/// A directory with these files.
struct Files(TempDomain);

impl Files {
    fn new(label: &str, files: &[(&str, &str)]) -> Self {
        let temp = TempDomain::new(&format!("types-{label}")).unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(temp)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn names(&self, dir: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0.path().join(dir)).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    }
}

fn is_golden(given: &[&str], options: &str, golden: &str) {
    let (home, files) = (Home::new("types-golden"), Files::new("golden", &[]));
    let paths: Vec<_> = given.iter().map(|dir| here().join(dir).display().to_string()).collect();
    let out = files.path("out");
    home.run(&format!("types import {} -o {out} {options}", paths.join(" "))).expect(DONE);
    let names = files.names("out");
    for name in &names {
        let text = fs::read_to_string(files.path(&format!("out/{name}"))).unwrap();
        expect_file![here().join(golden).join(name)].assert_eq(&text);
    }
    let kept = fs::read_dir(here().join(golden)).unwrap().flatten();
    let kept: BTreeSet<_> = kept.map(|e| e.file_name().into_string().unwrap()).collect();
    let kept: BTreeSet<_> = kept.into_iter().filter(|name| name != "__pycache__").collect();
    assert_eq!(kept, names, "files that nobody writes any more");
}

#[test]
fn sources_are_those_that_programs_of_all_languages_use() {
    is_golden(&["arm_msgs", "geo_msgs"], "", "golden");
    is_golden(&["plan_msgs"], "--msgpack", "golden_msgpack");
    is_golden(&["plan_msgs", "route_msgs"], "--cdr", "golden_cdr");
}

/// A label, files, options, and what is said.
type Wrong<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn what_is_wrong_is_told_by_file_and_line_and_nothing_is_written() {
    let (gripper, list) = ("string name \"gripper_left\"\n", "int32[] a [1, 2, 3, 4]\n");
    let items = "bool b\nstring[2] names [\"a\", \"ellipse\"]\n";
    let many: String = (0..65).map(|i| format!("bool b{i}\n")).collect();
    let long: String = (0..5000).map(|i| format!("float64 field_{i}\n")).collect();
    let cases: &[Wrong<'_>] = &[
        ("broken", &[("a/msg/A.msg", "bool a\nx\n")], "", "A.msg:2: 'x' is not a field"),
        ("twice", &[("a/msg/A.msg", "bool a\nint8 a\n")], "", "A.msg:2: the name a is taken"),
        ("range", &[("a/msg/A.msg", "uint8 A=256\n")], "", "A.msg:1: uint8 A: 256 cannot be"),
        ("unknown", &[("a/msg/A.msg", "\nb/B b\n")], "", "A.msg:2: b/B is not known: give"),
        ("self", &[("a/msg/A.msg", "A a\n")], "", "A.msg:1: a/msg/A contains itself: a/msg/A -> "),
        (
            "circle",
            &[("a/msg/A.msg", "b/B b\n"), ("b/msg/B.msg", "bool x\na/A a\n")],
            "",
            "B.msg:2: a/msg/A contains itself: a/msg/A -> b/msg/B -> a/msg/A",
        ),
        (
            "packages",
            &[
                ("a/msg/A.msg", "b/B b\n"),
                ("b/msg/B.msg", "bool x\n"),
                ("b/msg/C.msg", "a/D d\n"),
                ("a/msg/D.msg", "bool x\n"),
            ],
            "",
            "the packages a, b need each other",
        ),
        ("text", &[("a/msg/A.msg", "string s\n")], "", "A.msg:1: s (string) has no bound"),
        ("list", &[("a/msg/A.msg", "int8[] s\n")], "", "A.msg:1: s (int8[]) has no bound"),
        (
            "ways",
            &[("a/msg/A.msg", "std_msgs/Header header\n")],
            "",
            "A.msg:1: header: frame_id of std_msgs/msg/Header (string) has no bound",
        ),
        ("remedy", &[("a/msg/A.msg", "string s\n")], "", "--list-max, --msgpack or --cdr"),
        ("huge", &[("a/msg/A.msg", "float64[200000000] s\n")], "", "A.msg:1: s makes the message"),
        (
            "huger",
            &[("a/msg/A.msg", "B[1000000] s\n"), ("a/msg/B.msg", "int8[1000000] b\n")],
            "",
            "A.msg:1: s makes the message larger than 1 GiB",
        ),
        ("wide", &[("a/msg/A.msg", "wstring s\n")], "", "text of 16-bit characters"),
        ("time", &[("a/msg/A.msg", "time s\n")], "", "use builtin_interfaces/Time"),
        (
            "keyword",
            &[("a/msg/A.msg", "bool ok\nbool default\n")],
            "",
            "A.msg:2: the name default is taken in C++: rename it, or use --language rust,python",
        ),
        ("python", &[("a/msg/A.msg", "bool dtype=true\n")], "", "taken in Python"),
        ("class", &[("a/msg/A.msg", "bool A\n")], "", "the name A is taken in C++"),
        ("std", &[("std/msg/A.msg", "bool a\n")], "", "the name std is taken"),
        ("lower", &[("a/msg/u8.msg", "bool a\n")], "", "'u8' is not a valid type name"),
        ("count", &[("a/msg/A.msg", "int8[<=2] a\nint8 a_count\n")], "", "a_count is needed for"),
        (
            "parts",
            &[("a/srv/A.srv", "bool a\n")],
            "",
            "expected 2 parts separated by '---', found 1",
        ),
        ("ident", &[("a/srv/A.srv", "---\n"), ("a/msg/ARequest.msg", "")], "", "is taken by"),
        (
            "package",
            &[("a-b/msg/A.msg", "bool a\n")],
            "",
            "'a-b' is not a valid package name: give",
        ),
        ("file", &[("a/msg/A-B.msg", "bool a\n")], "", "'A-B' is not a valid type name: rename"),
        ("none", &[("a/msg/A.txt", "bool a\n")], "", "has no .msg, .srv or .action file"),
        (
            "default",
            &[("a/msg/A.msg", gripper)],
            "--text-max 8",
            "A.msg:1: the default of name has 12 bytes, --text-max is 8",
        ),
        (
            "defaults",
            &[("a/msg/A.msg", items)],
            "--text-max 6",
            "A.msg:2: the default of names[1] has 7 bytes, --text-max is 6",
        ),
        (
            "longer",
            &[("a/msg/A.msg", list)],
            "--list-max 2",
            "A.msg:1: the default of a has 4 values, --list-max is 2",
        ),
        (
            "constant",
            &[("a/msg/LED.msg", "bool on\nuint8 LED=1\n")],
            "",
            "LED.msg:2: the name LED is taken in C++",
        ),
        (
            "macro",
            &[
                ("foo/msg/Status.msg", "uint8 CODE_OK=0\n"),
                ("foo/msg/StatusCode.msg", "uint8 OK=7"),
            ],
            "",
            "FOO_STATUS_CODE_OK",
        ),
        ("guard", &[("a/msg/Messages.msg", "uint8 H=1\n")], "", "A_MESSAGES_H"),
        ("function", &[("signal/msg/A.msg", "bool a\n")], "", "the name signal is taken in C++"),
        ("root", &[("mod/msg/A.msg", "bool a\n")], "", "the name mod is taken in Rust"),
        ("many", &[("a/msg/A.msg", &many)], "--msgpack", "A.msg:1: C++ describes at most 64"),
        ("c", &[("a/msg/A.msg", "bool a\n")], "--msgpack --language c", "C has no MessagePack"),
        (
            "cdr",
            &[("a/msg/A.msg", "bool a\n")],
            "--cdr --language rust,c",
            "C has no CDR: leave --cdr",
        ),
        ("shared", &[("outlive_cdr/msg/A.msg", "bool a\n")], "--cdr", "outlive_cdr is taken"),
        ("long", &[("a/msg/A.msg", &long)], "--cdr", "A.msg:1: "),
    ];
    let home = Home::new("types-bad");
    for (label, given, options, why) in cases {
        let files = Files::new(label, given);
        let (dir, out) = (files.path(""), files.path("out"));
        let ran = home.run(&format!("types import {dir} -o {out} {options}")).expect(USAGE);
        assert!(ran.err.contains(why), "{label}: {}", ran.err);
        assert!(!Path::new(&out).exists(), "{label}");
    }
    let files = Files::new("bytes", &[]);
    fs::write(files.path("A.msg"), b"bool a\nbool \xff\n").unwrap();
    let (file, out) = (files.path("A.msg"), files.path("out"));
    let ran = home.run(&format!("types import {file} -o {out} --package a")).expect(USAGE);
    assert!(ran.err.contains("A.msg:2: the text is not UTF-8"), "{}", ran.err);
    let ran = home.run(&format!("types import {} -o {out}", files.path("B.msg")));
    assert!(ran.expect(NOT_FOUND).err.contains("No such file"));
}

#[test]
fn files_of_others_stay_and_one_that_is_in_the_way_stops_all() {
    let home = Home::new("types-overwrite");
    let files = Files::new("overwrite", &[("a/msg/A.msg", "bool a\n"), ("out/a.py", "mine")]);
    let args = format!("types import {} -o {}", files.path("a"), files.path("out"));
    let ran = home.run(&args).expect(FAILED);
    assert!(ran.err.contains("a.py exists: --overwrite replaces it"), "{}", ran.err);
    assert_eq!(files.names("out"), BTreeSet::from(["a.py".into()]));
    assert_eq!(fs::read_to_string(files.path("out/a.py")).unwrap(), "mine");
    home.run(&format!("{args} --overwrite")).expect(DONE);
    assert_eq!(files.names("out").len(), 6);
    // A directory in the way of the last file: nothing half written stays beside it.
    fs::remove_dir_all(files.path("out")).unwrap();
    fs::create_dir_all(files.path("out/__init__.py")).unwrap();
    home.run(&format!("{args} --overwrite")).expect(FAILED);
    assert_eq!(files.names("out"), BTreeSet::from(["__init__.py".into()]));
}

#[test]
fn a_second_import_into_a_directory_takes_no_types_away() {
    let home = Home::new("types-second");
    let given = [("a/msg/A.msg", "std_msgs/ColorRGBA a\n"), ("b/msg/B.msg", "std_msgs/Bool b\n")];
    let files = Files::new("second", &given);
    let (a, b, out) = (files.path("a"), files.path("b"), files.path("out"));
    let lost = |has_root: bool| {
        let root = if has_root { ", the module a" } else { "" };
        format!("out has std_msgs/msg/ColorRGBA{root}, which would be lost: give all packages in")
    };
    for options in ["", "--msgpack", "--cdr", "--language rust", "--language cpp", "--language c"] {
        home.run(&format!("types import {a} -o {out} {options}")).expect(DONE);
        let before = files.names("out");
        let second = format!("types import {b} -o {out} {options} --overwrite");
        let ran = home.run(&second).expect(FAILED);
        assert!(ran.err.contains(&lost(before.contains("mod.rs"))), "{options}: {}", ran.err);
        assert_eq!(files.names("out"), before, "{options}");
        home.run(&format!("types import {a} {b} -o {out} {options} --overwrite")).expect(DONE);
        assert!(files.names("out").len() > before.len(), "{options}");
        fs::remove_dir_all(&out).unwrap();
    }
    home.run(&format!("types import {a} -o {out} --language python")).expect(DONE);
    let second = format!("types import {b} -o {out} --language python --overwrite");
    let ran = home.run(&second).expect(FAILED);
    assert!(ran.err.contains(&lost(false)), "{}", ran.err);
}

#[test]
fn a_file_brings_the_messages_beside_it_and_a_package_may_be_named() {
    let home = Home::new("types-beside");
    let given = [("d/A.msg", "B b\n"), ("d/B.msg", "bool b\n"), ("d/C.msg", "broken\n")];
    let files = Files::new("beside", &given);
    let args = format!("types import {} -o {}", files.path("d/A.msg"), files.path("out"));
    home.run(&format!("{args} --language rust")).expect(DONE);
    assert_eq!(files.names("out"), ["d.rs", "mod.rs"].map(String::from).into());
    let text = fs::read_to_string(files.path("out/d.rs")).unwrap();
    assert!(text.contains("d/msg/B") && !text.contains("d/msg/C"), "{text}");
    fs::write(files.path("d/A.msg"), "B b\nC c\nC d\n").unwrap();
    let ran = home.run(&format!("{args} --overwrite")).expect(USAGE);
    let broken = "C.msg:1: 'broken' is not a field";
    assert!(ran.err.matches(broken).count() == 1 && !ran.err.contains("not known"), "{}", ran.err);
    fs::write(files.path("d/A.msg"), "B b\n").unwrap();
    home.run(&format!("{args} --language rust,c --package e")).expect(FAILED);
    home.run(&format!("{args} --language c --package e")).expect(DONE);
    assert!(files.names("out").contains("e.h"));
}

#[test]
fn a_message_may_have_the_name_of_the_trait_that_makes_defaults() {
    let home = Home::new("types-default");
    let given = [("a/msg/A.msg", "string s\nint8 n 3\n"), ("a/msg/Default.msg", "bool a\n")];
    let files = Files::new("default-name", &given);
    let (dir, out) = (files.path("a"), files.path("out"));
    home.run(&format!("types import {dir} -o {out} --msgpack --language rust")).expect(DONE);
    let text = fs::read_to_string(files.path("out/a.rs")).unwrap();
    assert!(text.contains(" s: std::default::Default::default(),"), "{text}");
}

#[test]
fn bounds_given_to_the_command_make_a_fixed_layout() {
    let home = Home::new("types-bounds");
    let given = [("a/msg/A.msg", "std_msgs/Header header\nfloat32[] ranges\n")];
    let files = Files::new("bounds", &given);
    let file = files.path("a/msg/A.msg");
    let show = format!("types show {file} --text-max 30 --list-max 5");
    let said = home.run(&show).expect(DONE);
    let text = "a/msg/A, 64 bytes, aligned to 4\n 0 struct:40 header\n  0 struct:8 stamp\n   \
                0 i32 sec\n   4 u32 nanosec\n  8 char[30] frame_id\n  38 u8[2] reserved\n \
                40 f32[5] ranges\n 60 u32 ranges_count\n";
    assert_eq!(said.text(), text);
}

#[test]
fn a_package_may_have_a_header_of_its_own() {
    let home = Home::new("types-header");
    let given = [("a/msg/A.msg", "Header header\n"), ("a/msg/Header.msg", "int32 id\n")];
    let files = Files::new("header", &given);
    let said = home.run(&format!("types show {}", files.path("a/msg/A.msg"))).expect(DONE);
    let text = "a/msg/A, 4 bytes, aligned to 4\n 0 struct:4 header\n  0 i32 id\n";
    assert_eq!(said.text(), text);
}

#[test]
fn two_types_are_compared_field_by_field() {
    let home = Home::new("types-diff");
    let (x, y) = ("int8 x\nint8 y\n", "int8 x\nuint8 y\n");
    let given = [
        ("a/msg/A.msg", x),
        ("b/msg/A.msg", y),
        ("b/package.xml", "<name>b</name>"),
        ("old/msg/A.msg", x),
        ("c/package.xml", "<name>c</name>"),
        ("c/msg/A.msg", y),
    ];
    let files = Files::new("diff", &given);
    let [a, b, c, old] = ["a", "b", "c", "old"].map(|dir| files.path(&format!("{dir}/msg/A.msg")));
    let ran = home.run(&format!("types diff {a} {b}")).expect(MISMATCH);
    assert_eq!(ran.text(), "field y is i8 at 1, the second has u8 at 1\n");
    let ran = home.run(&format!("types diff {b} {c}")).expect(MISMATCH);
    assert_eq!(ran.text(), "the name is b/msg/A, in the second c/msg/A\n");
    for other in [&a, &old] {
        let ran = home.run(&format!("types diff {a} {other}")).expect(DONE);
        assert_eq!(ran.text(), "both are the same type\n");
    }
    // There was no such option.
    let ran = home.run(&format!("types diff {a} {b} --json")).expect(MISMATCH);
    let side = |of: &str| json!({ "path": "y", "type": of, "offset": 1 });
    let told = json!([{ "message": "a/msg/A", "first": side("i8"), "second": side("u8") }]);
    assert_eq!(parsed(&ran), told);
    let ran = home.run(&format!("types diff {b} {c} --json")).expect(MISMATCH);
    let side = |of: &str| json!({ "name": of, "bytes": 2, "align": 1 });
    let told =
        json!([{ "message": "b/msg/A", "first": side("b/msg/A"), "second": side("c/msg/A") }]);
    assert_eq!(parsed(&ran), told);
    assert_eq!(home.run(&format!("types diff {a} {old} --json")).json(), json!([]));
    home.run("types show geometry_msgs/Twist").expect(DONE);
    let ran = home.run("types show geometry_msgs/Twirl").expect(NOT_FOUND);
    assert!(ran.err.contains("geometry_msgs/Twirl is neither a file"), "{}", ran.err);
}

fn parsed(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.out).unwrap_or_else(|e| panic!("{e}: {}{}", ran.text(), ran.err))
}

#[test]
fn json_of_types_has_what_is_shown_and_every_difference() {
    let home = Home::new("types-json");
    let more: String = (0..40).map(|i| format!("int8 n{i}\n")).collect();
    let (first, second) = ("P p\nP[2] list\nint8 z\n", "P p\nP[3] list\nint8 z\n");
    let files = Files::new(
        "json",
        &[
            ("a/msg/A.msg", first),
            ("a/msg/P.msg", "int8 x\n"),
            ("b/msg/A.msg", second),
            ("b/msg/P.msg", "int16 x\nint16 y\n"),
            ("a/msg/Many.msg", &more),
            ("b/msg/Many.msg", &more.replace("int8", "uint8")),
            ("a/srv/S.srv", "int8 x\n---\nint8 y\n"),
        ],
    );
    let shown = |of: &str| home.run(&format!("types show {} --json", files.path(of))).json();
    let field = |path: &str, of: &str, at: u64| json!({ "path": path, "type": of, "offset": at });
    let fields = json!([
        field("p", "struct:1", 0),
        field("p.x", "i8", 0),
        field("list", "struct:1[2]", 1),
        field("list.x", "i8", 1),
        field("z", "i8", 3),
    ]);
    let told = json!([{ "name": "a/msg/A", "bytes": 4, "align": 1, "fields": fields }]);
    assert_eq!(shown("a/msg/A.msg"), told);
    let parts = shown("a/srv/S.srv");
    let names: Vec<_> = parts.as_array().unwrap().iter().map(|part| &part["name"]).collect();
    assert_eq!(names, ["a/srv/S_Request", "a/srv/S_Response"]);

    let differences = |of: &str, with: &str| {
        let (of, with) = (files.path(of), files.path(with));
        parsed(&home.run(&format!("types diff {of} {with} --json")).expect(MISMATCH))
    };
    let told = differences("a/msg/A.msg", "b/msg/A.msg");
    let paths = |side: &str| {
        let all = told.as_array().unwrap().iter();
        all.map(|one| one[side]["path"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    let first = ["-", "p.x", "-", "list", "list.x", "-", "z", "-"];
    let second = ["-", "p.x", "p.y", "list", "list.x", "list.y", "z", "reserved"];
    assert_eq!(paths("first"), first, "{told:#}");
    assert_eq!(paths("second"), second, "{told:#}");
    assert_eq!(told[0]["first"], json!({ "name": "a/msg/A", "bytes": 4, "align": 1 }));
    // The text ends after some.
    let many = differences("a/msg/Many.msg", "b/msg/Many.msg");
    assert_eq!(many.as_array().unwrap().len(), 40);
    let parts = differences("a/srv/S.srv", "a/msg/P.msg");
    let last = parts.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["message"], &last["second"]), (&json!("a/srv/S_Response"), &Value::Null));
}

/// It said that they are neither files nor messages of ROS.
#[test]
fn two_descriptor_sets_are_compared_message_by_message() {
    let home = Home::new("types-diff-sets");
    let given = [("Pose.msg", "int8 x\n"), ("noise", "\x01")];
    let files = Files::new("diff-sets", &given);
    let set = |name: &str, messages: &[(&str, Type)]| {
        let message = |(name, of): &(&str, Type)| message(name, &[("x", *of, "")]);
        let path = files.path(name);
        fs::write(&path, proto::set(messages.iter().map(message).collect())).unwrap();
        path
    };
    let a = set("a.bin", &[("Goal", Type::Double), ("Old", Type::Bool)]);
    let b = set("b.bin", &[("Goal", Type::Int32), ("New", Type::Bool)]);
    let text = "robot.Goal has 'double x = 1', the second has 'int32 x = 1'\n\
                message robot.Old is missing in the second\n\
                message robot.New is in the second only\n";
    assert_eq!(home.run(&format!("types diff {a} {b}")).expect(MISMATCH).text(), text);
    let field = |of: &str| json!({ "path": "x", "type": of, "number": 1 });
    let goal = json!({ "name": "robot.Goal", "fields": [field("double")] });
    let old = json!({ "name": "robot.Old", "fields": [field("bool")] });
    assert_eq!(home.run(&format!("types show {a} --json")).json(), json!([goal, old]));
    let ran = home.run(&format!("types diff {a} {b} --json")).expect(MISMATCH);
    let (goal, old, new) = ("robot.Goal", "robot.Old", "robot.New");
    let told = json!([
        { "message": goal, "first": field("double"), "second": field("int32") },
        { "message": old, "first": { "name": old }, "second": null },
        { "message": new, "first": null, "second": { "name": new } },
    ]);
    assert_eq!(parsed(&ran), told);
    let same = home.run(&format!("types diff {a} {a}")).expect(DONE);
    assert_eq!(same.text(), "both are the same type\n");
    let (msg, noise) = (files.path("Pose.msg"), files.path("noise"));
    let ran = home.run(&format!("types diff {a} {msg}")).expect(USAGE);
    assert!(
        ran.err.contains("only one is a descriptor set: compare it with another"),
        "{}",
        ran.err
    );
    let ran = home.run(&format!("types diff {a} {noise}")).expect(USAGE);
    assert!(ran.err.contains("noise is neither a .msg file nor a descriptor set"), "{}", ran.err);
}
