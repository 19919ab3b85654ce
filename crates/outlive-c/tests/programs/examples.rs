//! The examples in the comments of the headers: each compiles and runs, and no port lacks one.
//!
//! An example is what is indented after a line `Example:` and an empty one. Its parts between empty
//! lines become a function, but for those that begin as a declaration does: these go before all
//! functions, for all examples. tests/c/examples.c and tests/cpp/examples.cpp are around them, and
//! `Peers` sends what they receive.

use std::collections::HashSet;
use std::time::Duration;

use outlive::lock::{RobustCondvar, RobustMutex};
use outlive::msg::{Header, Image, PixelFormat};
use outlive::queue::{Consumer, Producer};
use outlive::service::{Client, Server};
use outlive::{Deadline, Node, Publisher};

use super::*;

const MARK: &str = "Example:";

struct Example {
    /// Header and line.
    header: String,
    line: usize,
    lines: Vec<String>,
}

/// The kind of comment that a line is, and what it says.
fn comment(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//", "*"].into_iter().find_map(|kind| Some((kind, line.strip_prefix(kind)?)))
}

fn examples_of(header: &str, text: &str) -> Vec<Example> {
    let lines: Vec<_> = text.lines().map(|line| comment(line).unwrap_or(("", line))).collect();
    let mut found = Vec::new();
    for (i, (kind, _)) in lines.iter().enumerate().filter(|(_, (_, said))| said.trim() == MARK) {
        let code = lines[i + 1..]
            .iter()
            .take_while(|(of, said)| of == kind && (said.is_empty() || said.starts_with("     ")));
        let mut code: Vec<_> = code.map(|(_, said)| said.get(5..).unwrap_or("")).collect();
        while code.pop_if(|line| line.is_empty()).is_some() {}
        assert!(code.len() > 1 && code[0].is_empty(), "{header}:{}: no example", i + 1);
        let lines = code[1..].iter().map(|line| line.to_string()).collect();
        found.push(Example { header: header.into(), line: i + 3, lines });
    }
    found
}

/// Whether a comment that ends before line `at` has an example.
fn has_example(lines: &[&str], at: usize) -> bool {
    let comment = lines[..at].iter().rev().take_while(|line| line.starts_with("//"));
    comment.into_iter().any(|line| line.trim_start_matches('/').trim() == MARK)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// What of outlive.h should have an example and has none: calls that open, make or list something;
/// and types that no example uses.
fn lacking_in_c(text: &str, examples: &[Example]) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let code = examples.iter().flat_map(|one| &one.lines);
    let used: HashSet<_> = code.flat_map(|line| words(line)).collect();
    let mut lacking = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_prefix("typedef struct ").and_then(|of| words(of).next()) {
            if !used.contains(name) {
                lacking.push(name.to_owned());
            }
        } else if !line.starts_with([' ', '/', '#', '}']) && line.contains('(') {
            let name = words(line.split('(').next().unwrap()).last().unwrap();
            let opens = ["_open", "_open_any", "_new", "_on_signals"];
            let opens = opens.iter().any(|end| name.ends_with(end));
            if (opens || name.starts_with("outlive_domain_")) && !has_example(&lines, i) {
                lacking.push(name.to_owned());
            }
        }
    }
    lacking
}

/// Headers and types of C++ that need no example.
const WITHOUT: [(&str, &str); 3] = [
    ("expected20.hpp", "is std::expected: see expected.hpp"),
    ("unwinding.hpp", "has nothing for users"),
    ("type_label", "is written as text: msgpack<\"robot/Plan\">"),
];

fn needs_none(name: &str) -> bool {
    WITHOUT.iter().any(|(without, _)| name == *without)
}

/// The type that a line of C++ outside of functions defines, and whether it is a class.
fn defined(line: &str) -> Option<(bool, &str)> {
    let mut rest = line;
    if let Some(head) = line.strip_prefix("template ") {
        let mut depth = 0;
        let end = head.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        rest = head[end? + 1..].trim_start();
    }
    let class = rest.strip_prefix("class ");
    let named = class.or(rest.strip_prefix("struct "))?;
    let named = named.strip_prefix("[[nodiscard]] ").unwrap_or(named);
    let name = words(named).next()?;
    // Neither declared alone nor specialised.
    let behind = &named[name.len()..];
    (behind.starts_with(" {") || behind.starts_with(" : ")).then_some((class.is_some(), name))
}

/// What of a header of C++ should have an example and has none: classes that are not details; and
/// structs that no example names either.
fn lacking_in_cpp(text: &str, examples: &[Example]) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let mut is_detail = false;
    let mut lacking = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("namespace ") && line.ends_with("detail {") {
            is_detail = true;
        } else if line.starts_with('}') && line.ends_with("detail") {
            is_detail = false;
        } else if let Some((is_class, name)) = defined(line).filter(|_| !is_detail) {
            let named = format!("outlive::{name}");
            let mut code = examples.iter().flat_map(|one| &one.lines);
            let is_named = !is_class && code.any(|line| line.contains(&named));
            if !is_named && !has_example(&lines, i) && !needs_none(name) {
                lacking.push(name.to_owned());
            }
        }
    }
    lacking
}

/// Writes what the program around `examples` includes: their declarations, and the rest as a table
/// of functions.
fn write(examples: &[&Example], includes: &str, parameters: &str, row: &str, temp: &Temp) {
    let begins = ["#include", "struct ", "enum ", "using ", "static ", "template ", "OUTLIVE_"];
    let (mut declared, mut functions) = (includes.to_owned(), String::new());
    let mut rows = String::new();
    for (i, Example { header, line, lines }) in examples.iter().enumerate() {
        let mut body = String::new();
        let mut at = *line;
        for part in lines.chunk_by(|before, _| !before.is_empty()) {
            let is_declaration = begins.iter().any(|begin| part[0].starts_with(begin));
            let to = if is_declaration { &mut declared } else { &mut body };
            *to += &format!("#line {at} \"{header}\"\n{}\n", part.join("\n"));
            at += part.len();
        }
        functions += &format!("static void example_{i}({parameters}) {{\n{{\n{body}}}\n}}\n");
        rows += &format!("    {{\"{header}:{line}\", example_{i}}},\n");
    }
    functions += &format!("static const {row} EXAMPLES[] = {{\n{rows}}};\n");
    std::fs::create_dir_all(temp.0.join("made")).unwrap();
    std::fs::write(temp.0.join("made/declarations.h"), declared).unwrap();
    std::fs::write(temp.0.join("made/examples.h"), functions).unwrap();
}

#[outlive::message("robot/Pose")]
#[derive(Clone, Copy)]
struct Pose {
    x: f64,
    y: f64,
    heading: f64,
}

/// The other ends of what the examples open.
struct Peers {
    node: Node,
    poses: Publisher<Pose>,
    images: Publisher<Image>,
    goals: Producer<Pose>,
    arm_goals: Consumer<Pose>,
    planner: Server<Pose, Pose>,
    reach: Client<Pose, Pose>,
    goal: RobustMutex<Pose>,
    changed: RobustCondvar,
}

impl Peers {
    fn open(root: &Path) -> outlive::Result<Self> {
        let node = Node::builder().root(root).name("peers").open()?;
        Ok(Self {
            poses: node.topic("/robot/pose")?.publisher()?,
            images: node.topic("/camera/front")?.publisher()?,
            goals: node.queue("/robot/goals")?.producer()?,
            arm_goals: node.queue("/arm/goals")?.consumer()?,
            planner: node.service("/planner/next")?.server()?,
            reach: node.service("/arm/reach")?.client()?,
            goal: node.mutex("/robot/goal")?,
            changed: node.condvar("/robot/goal-changed")?,
            node,
        })
    }

    /// Sends one of each, and answers what there is. Most have nobody at the other end.
    fn act(&mut self) -> outlive::Result<()> {
        let pose = Pose { x: 1.0, y: 2.0, heading: 0.5 };
        self.poses.publish(&pose)?;
        let mut image =
            self.images.loan_image(Header::now("front_optical"), 4, 3, PixelFormat::RGB8)?;
        image.tail_mut().fill(128);
        image.publish()?;
        let _ = self.goals.try_send(&pose);
        while self.arm_goals.receive()?.is_some() {}
        while let Some(request) = self.planner.receive()? {
            let next = *request;
            let _ = self.planner.respond(request, &next);
        }
        let _ = self.reach.send_until(&pose, Deadline::after(Duration::from_secs(10)));
        while self.reach.receive()?.is_some() {}
        if let Ok(mut goal) = self.goal.try_lock() {
            goal.x += 1.0;
        }
        self.changed.notify_all();
        Ok(())
    }
}

/// Compiles the program around what was written, and runs it among peers.
fn run_among_peers(compiler: &str, options: &str, source: &str, count: usize, temp: &Temp) {
    let program = temp.0.join("examples");
    let options = format!("{options} -I{}", temp.0.display());
    compile(compiler, &options, &here().join(source), &program);
    let root = temp.0.join("root");
    let _ = std::fs::remove_dir_all(&root);
    let mut peers = Peers::open(&root).unwrap();
    let mut started = Command::new(&program);
    started.arg(peers.node.id().get().to_string()).env("OUTLIVE_DIR", &root);
    started.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = started.spawn().unwrap();
    while started.try_wait().unwrap().is_none() {
        peers.act().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let out = started.wait_with_output().unwrap();
    let (said, cried) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{compiler} {options}: {}\n{said}{cried}", out.status);
    assert!(said.ends_with(&format!("{count} examples\n")), "{said}");
}

fn text_of(header: &str) -> String {
    std::fs::read_to_string(here().join("include").join(header)).unwrap()
}

#[test]
fn examples_in_the_headers_of_c_run_and_no_port_lacks_one() {
    let text = text_of("outlive.h");
    let mut examples = examples_of("outlive.h", &text);
    let lacking = lacking_in_c(&text, &examples);
    assert!(lacking.is_empty(), "outlive.h has no example of {lacking:?}");
    examples.extend(examples_of("outlive/msg.h", &text_of("outlive/msg.h")));
    assert_eq!(examples.last().unwrap().header, "outlive/msg.h", "it has no example");

    let temp = Temp::new("examples-c");
    let parameters = "outlive_node *node, outlive_type *type, uint64_t camera_id";
    let row = "struct { const char *where; example *run; }";
    let examples: Vec<_> = examples.iter().collect();
    write(&examples, "#include <outlive/msg.h>\n", parameters, row, &temp);
    let options = format!("{} -Wno-unused-parameter", sanitized("cc", "c11"));
    run_among_peers("cc", &options, "tests/c/examples.c", examples.len(), &temp);
}

/// All examples of the headers of C++, none of which lacks one.
fn examples_of_cpp() -> Vec<Example> {
    let folder = std::fs::read_dir(here().join("include/outlive")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".hpp")).collect();
    names.retain(|name| !needs_none(name));
    names.sort();
    let texts: Vec<_> = names.iter().map(|name| text_of(&format!("outlive/{name}"))).collect();
    let mut examples = examples_of("outlive.hpp", &text_of("outlive.hpp"));
    for (name, text) in names.iter().zip(&texts) {
        let found = examples_of(name, text);
        assert!(!found.is_empty(), "{name} has no example");
        examples.extend(found);
    }
    for (name, text) in names.iter().zip(&texts) {
        let lacking = lacking_in_cpp(text, &examples);
        assert!(lacking.is_empty(), "{name} has no example of {lacking:?}");
    }
    examples
}

/// Headers over libraries of others, and the options to compile with those that are installed.
fn foreign(temp: &Temp) -> [(&'static str, Option<String>); 6] {
    let cdr = "-I../outlive-cli/tests/types/golden_cdr -Wl,--no-as-needed -lfastcdr".to_owned();
    [
        ("arrow.hpp", arrow()),
        ("cdr.hpp", Path::new("/usr/include/fastcdr/Cdr.h").exists().then_some(cdr)),
        ("eigen.hpp", has_eigen().then(|| format!("-isystem {EIGEN}"))),
        ("flatbuffers.hpp", flatbuffers(temp)),
        ("msgpack.hpp", has_msgpack().then(String::new)),
        ("protobuf.hpp", protobuf(temp)),
    ]
}

#[test]
fn examples_in_the_headers_of_cpp_run_and_no_class_lacks_one() {
    let all = examples_of_cpp();
    let temp = Temp::new("examples-cpp");
    let foreign = foreign(&temp);
    for (name, _) in foreign.iter().filter(|(_, options)| options.is_none()) {
        eprintln!("{name}: its example is not compiled, the library is not installed");
    }
    let is_foreign = |one: &Example| foreign.iter().any(|(name, _)| one.header == *name);
    let parameters =
        "[[maybe_unused]] outlive::node &node, [[maybe_unused]] std::uint64_t camera_id";
    for (i, (compiler, standard)) in cpp_ways().into_iter().enumerate() {
        let mut examples: Vec<_> = all.iter().filter(|one| !is_foreign(one)).collect();
        let mut includes = "#include <outlive.hpp>\n#include <outlive/msg.hpp>\n".to_owned();
        let mut options = format!("{standard} -O0");
        // The libraries were made for the first compiler's.
        let installed =
            foreign.iter().filter_map(|(name, options)| Some((name, options.as_ref()?)));
        for (name, more) in installed.filter(|_| i == 0) {
            examples.extend(all.iter().filter(|one| one.header == *name));
            includes += &format!("#include <outlive/{name}>\n");
            if *name == "protobuf.hpp" {
                includes += "#include <plan.pb.cc>\n";
            }
            if !more.is_empty() {
                options = format!("{options} {more}");
            }
        }
        write(&examples, &includes, parameters, "example", &temp);
        run_among_peers(compiler, &options, "tests/cpp/examples.cpp", examples.len(), &temp);
    }
}

#[test]
fn a_port_without_an_example_is_noticed() {
    let c = "// Opens.\n//\n// Example:\n//\n//     outlive_a *a;\n//\n//     outlive_a_open(&a);\n\
             int outlive_a_open(void);\n// Opens.\nint outlive_b_new(int x,\n    int y);\n\
             int outlive_a_close(void);\ntypedef struct outlive_a outlive_a;\n\
             typedef struct outlive_b {\n";
    let examples = examples_of("c.h", c);
    assert_eq!(examples[0].lines, ["outlive_a *a;", "", "outlive_a_open(&a);"]);
    assert_eq!(examples[0].line, 5);
    assert_eq!(lacking_in_c(c, &examples), ["outlive_b_new", "outlive_b"]);

    let cpp = "class c {\n/// Example:\n///\n///     outlive::d one;\n\
               template <class T> class a {\nenum class b {\nclass e;\n\
               template <f<int> T> struct d {\n\
               template <class H> class g<H> {\ntemplate <> struct outlive::h<int> {\n\
               template <class T, int N = 1> struct [[nodiscard]] i : k {};\nnamespace detail {\n\
               class j {\n} // namespace detail\nstruct type_label {\n";
    assert_eq!(lacking_in_cpp(cpp, &examples_of("cpp.hpp", cpp)), ["c", "i"]);
}

#[test]
#[should_panic(expected = "c.h:1: no example")]
fn a_mark_without_an_example_is_noticed() {
    examples_of("c.h", "// Example:\n// text\n");
}
