//! Installs the library as users do, and compiles and runs programs against it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

#[path = "programs/examples.rs"]
mod examples;

/// A folder of its own under the system's temporary one, removed at the end.
struct Temp(PathBuf);

impl Temp {
    fn new(label: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outlive-c-{label}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the library of this build was installed.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let prefix = deps.parent().unwrap().join("c-prefix");
        let script = here().join("../../scripts/install");
        let mut install = Command::new(script);
        succeeds(install.arg(&prefix).env("OUTLIVE_BUILT", &deps));
        prefix
    })
}

fn succeeds(command: &mut Command) -> Output {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (said, cried) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {}\n{said}{cried}", out.status);
    out
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Compiles one source file; strict about warnings. `standard` may have further options behind it.
fn compile(compiler: &str, standard: &str, source: &Path, to: &Path) {
    let prefix = prefix();
    let mut cc = Command::new(compiler);
    cc.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]);
    cc.args(format!("-std={standard}").split(' '));
    cc.args(["-D_GNU_SOURCE", "-pthread"]).arg(source).arg("-o").arg(to);
    cc.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib")).arg("-loutlive");
    succeeds(cc.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())));
}

/// Compiles `source` and runs it in a domain of its own; what it said.
fn run(compiler: &str, standard: &str, source: &str) -> String {
    let source = here().join(source);
    let stem = source.file_stem().unwrap().to_string_lossy().into_owned();
    // Options with paths in them make a name too long for a file.
    let options: Vec<_> = standard.split(' ').filter(|option| !option.contains('/')).collect();
    let label = format!("{compiler}-{}-{stem}", options.join("-"));
    let temp = Temp::new(&label.replace(|c: char| !c.is_alphanumeric(), "_"));
    let program = temp.0.join(&stem);
    compile(compiler, standard, &source, &program);
    let out = succeeds(
        Command::new(&program)
            .env("OUTLIVE_DIR", temp.0.join("root"))
            .env("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1"),
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn every_call_of_c_does_what_the_header_says() {
    for part in ["api", "types", "structs", "locks"] {
        let (source, says) = (format!("tests/c/{part}.c"), format!("{part}: every call"));
        assert!(run("cc", "c11", &source).contains(&says));
        for compiler in ["gcc", "clang"].into_iter().filter(|cc| has(cc)) {
            let said = run(compiler, &sanitized(compiler, "c11"), &source);
            assert!(said.contains(&says), "{compiler} said: {said}");
        }
    }
}

#[test]
fn a_forked_child_that_asks_for_signals_gets_its_own() {
    let said = run("cc", &sanitized("cc", "c11"), "tests/c/shutdown.c");
    assert!(said.contains("shutdown: asked"), "{said}");
}

#[test]
fn a_host_of_plugins_survives_that_it_unloads_the_library() {
    // Only asked for by the plugin.
    assert_eq!(run("cc", "c11 -Wl,--as-needed", "tests/c/unload.c"), "unloaded\n");
}

#[test]
fn ready_made_messages_of_c_and_cpp_are_checked() {
    let said = run("cc", &sanitized("cc", "c11"), "tests/c/msg.c");
    assert!(said.contains("msg: types and payloads"), "{said}");
    says_in_every_way("tests/cpp/msg.cpp", "msg: sent and read");
}

/// What `outlive types import` wrote; crates/outlive-py/tests/test_types.py lets them talk.
#[test]
fn messages_from_interface_files_compile_without_a_warning() {
    let with = |standard: &str| format!("{standard} -I../outlive-cli/tests/types/golden");
    let said = run("cc", &with(&sanitized("cc", "c11")), "../outlive-cli/tests/types/voice.c");
    assert!(said.contains("arm_msgs/srv/Reach_Request 0000"), "{said}");
    for (compiler, standard) in cpp_ways() {
        let standard = with(&sanitized(compiler, standard));
        let said = run(compiler, &standard, "../outlive-cli/tests/types/voice.cpp");
        assert!(said.contains("geo_msgs/msg/Flag outlive-type 1 align 1|struct:1| 0 bool on| 00"));
    }
}

#[test]
fn the_examples_in_c_run() {
    for (name, says) in [
        ("hello", "hello: x 1.0 m, y 2.0 m"),
        ("camera", "camera: 3 frames, without a copy"),
        ("many_producers", "many producers: 300 messages of 3 producers"),
        ("request_response", "request/response: 7.0 m, then server died"),
        ("watching_a_death", "watching: the camera died; its last words were 'still here'"),
        ("robust_lock", "robust lock: left 50, right 50"),
    ] {
        let said = run("cc", "c11", &format!("examples/c/{name}.c"));
        assert!(said.contains(says), "{name} said: {said}");
    }
}

/// The C++ compilers of this machine.
fn cpp_compilers() -> Vec<&'static str> {
    let found: Vec<_> = ["g++", "clang++"].into_iter().filter(|cc| has(cc)).collect();
    assert!(!found.is_empty(), "there is no C++ compiler: run scripts/setup");
    found
}

/// Address and undefined behaviour, of what is compiled into the program: all of the headers.
const SANITIZED: &str = " -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all";

/// With the sanitizers, where their libraries are installed: gcc brings them, and scripts/setup
/// gets those of clang.
fn sanitized(compiler: &str, standard: &str) -> String {
    static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let has_them = *known.entry(compiler.to_owned()).or_insert_with(|| links_sanitizers(compiler));
    if has_them { format!("{standard}{SANITIZED}") } else { standard.to_owned() }
}

fn links_sanitizers(compiler: &str) -> bool {
    let temp = Temp::new(&format!("sanitizers-{}", compiler.replace('+', "p")));
    let mut probe = Command::new(compiler);
    probe.args(["-fsanitize=address,undefined", "-x", "c", "-o"]).arg(temp.0.join("probe"));
    probe.arg("-").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = probe.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"int main(void) { return 0; }").unwrap();
    let has_them = child.wait().unwrap().success();
    assert!(has_them || compiler.starts_with("clang"), "no sanitizers: run scripts/setup");
    if !has_them {
        eprintln!("{compiler}: not under sanitizers, whose libraries are not installed");
    }
    has_them
}

/// Set where programs of C++ are built by every compiler with every standard, which takes minutes.
const EVERY_WAY: &str = "OUTLIVE_EVERY_COMPILER";

/// What C++17 removed is still there, for Boost's headers behind MessagePack's.
const LIBCPP: &str = "c++2b -stdlib=libc++ -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION";

/// Compilers and standards: the first compiler with the oldest standard and the last with the
/// newest, or all of them. The last has a `std::expected` that is whole, where one is installed.
fn cpp_ways() -> Vec<(&'static str, &'static str)> {
    let compilers = cpp_compilers().into_iter();
    let mut ways: Vec<_> = compilers.flat_map(|cc| [(cc, "c++20"), (cc, "c++2b")]).collect();
    let newest = ["clang++-21", "clang++-20", "clang++-19", "clang++-18"];
    let whole = |cc: &str| {
        let mut probe = Command::new(cc);
        probe.args(["-std=c++2b", "-stdlib=libc++", "-fsyntax-only", "-x", "c++", "-include"]);
        probe.args(["expected", "/dev/null"]).output().is_ok_and(|out| out.status.success())
    };
    if let Some(cc) = newest.into_iter().find(|cc| whole(cc)) {
        ways.push((cc, LIBCPP));
    }
    if std::env::var_os(EVERY_WAY).is_none() {
        ways.drain(1..ways.len() - 1);
    }
    ways
}

/// Builds a program of C++ in each way, under sanitizers where there are, and looks for `words`.
fn says_in_every_way(program: &str, words: &str) {
    for (compiler, standard) in cpp_ways() {
        let said = run(compiler, &sanitized(compiler, standard), program);
        assert!(said.contains(words), "{compiler} {standard} said: {said}");
    }
}

#[test]
fn every_class_of_cpp_does_what_it_says_without_a_warning() {
    says_in_every_way("tests/cpp/api.cpp", "api: every class");
}

#[test]
fn a_wait_of_cpp_ends_by_messages_deaths_signals_and_stop_tokens() {
    says_in_every_way("tests/cpp/waiting.cpp", "waiting: woken by all");
}

#[test]
fn locks_of_cpp_repair_what_was_torn_and_hold_nothing_when_they_throw() {
    says_in_every_way("tests/cpp/locks.cpp", "locks: what was torn");
}

#[test]
fn expected_is_that_of_the_standard_or_as_that() {
    for (compiler, standard) in cpp_ways() {
        let said = run(compiler, &sanitized(compiler, standard), "tests/cpp/expected.cpp");
        let is = if standard.contains("libc++") { "that of the standard" } else { "expected:" };
        assert!(said.contains(is), "{compiler} {standard} said: {said}");
    }
}

#[test]
fn static_destructors_of_cpp_send_what_has_to_be_packed() {
    says_in_every_way("tests/cpp/exit.cpp", "exit: the last words");
}

#[test]
fn what_handles_of_cpp_lend_keeps_them_open() {
    says_in_every_way("tests/cpp/handles.cpp", "handles: open until");
}

#[test]
fn without_exceptions_the_headers_compile_as_well() {
    let temp = Temp::new("no-exceptions");
    let source = temp.0.join("plain.cpp");
    let text =
        "#include <outlive.hpp>\nint main() { return outlive::node::open(\"x\").value().id(); }\n";
    std::fs::write(&source, text).unwrap();
    for (compiler, standard) in cpp_ways() {
        compile(compiler, &format!("{standard} -fno-exceptions"), &source, &temp.0.join("plain"));
    }
}

#[test]
fn objects_with_and_without_exceptions_keep_their_own_functions() {
    let temp = Temp::new("mixed");
    let text = |name: &str| {
        format!(
            "#include <outlive.hpp>\nunsigned {name}() {{ return \
             outlive::detail::exceptions_in_flight(); }}\n"
        )
    };
    let main = "unsigned with(); unsigned without();\nstruct it { int &got; ~it() \
                { got = with() * 10 + without(); } };\nint main() { int got = 0; \
                try { it in{got}; throw 1; } catch (int) {} return got == 10 ? 0 : 1; }\n";
    let sources = [("without", text("without")), ("with", text("with")), ("main", main.into())];
    for (compiler, standard) in cpp_ways() {
        let mut objects = Vec::new();
        for (name, text) in &sources {
            let (source, object) =
                (temp.0.join(format!("{name}.cpp")), temp.0.join(format!("{name}.o")));
            std::fs::write(&source, text).unwrap();
            let mut cc = Command::new(compiler);
            cc.args(["-O0", "-D_GNU_SOURCE"]).args(format!("-std={standard}").split(' '));
            cc.args((*name == "without").then_some("-fno-exceptions"));
            cc.arg("-I").arg(prefix().join("include")).arg("-c").arg(&source);
            succeeds(cc.arg("-o").arg(&object));
            objects.push(object);
        }
        let program = temp.0.join("mixed");
        let mut link = Command::new(compiler);
        link.args(format!("-std={standard}").split(' ')).args(&objects).arg("-o").arg(&program);
        link.arg("-L").arg(prefix().join("lib")).arg("-loutlive");
        succeeds(link.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display())));
        succeeds(&mut Command::new(&program));
    }
}

#[test]
fn settings_may_name_one_member_alone() {
    let temp = Temp::new("settings");
    let source = temp.0.join("settings.cpp");
    let text = "#include <outlive.hpp>\nint main() { outlive::node_options n{.group = 1}; \
                outlive::topic_options t{.depth = 4}; outlive::queue_options q{.stamped = true}; \
                return n.group == 1 && t.depth == 4 && q.stamped ? 0 : 1; }\n";
    std::fs::write(&source, text).unwrap();
    for (compiler, standard) in cpp_ways() {
        compile(compiler, standard, &source, &temp.0.join("settings"));
    }
}

/// Whether msgpack-cxx is there, which `outlive/msgpack.hpp` is made for.
fn has_msgpack() -> bool {
    Path::new("/usr/include/msgpack.hpp").exists()
}

#[test]
fn types_of_ones_own_travel_as_messagepack() {
    if !has_msgpack() {
        return;
    }
    let said = run(cpp_compilers()[0], "c++20", "examples/cpp/messagepack.cpp");
    assert!(said.contains("messagepack: to the dock at 0.5 m/s"), "{said}");
    says_in_every_way("tests/cpp/msgpack.cpp", "msgpack: values of our own");
}

/// How to compile with the library of Protocol Buffers, which `outlive/protobuf.hpp` is made for,
/// and with what protoc makes of `plan.proto`; `None` if they are not there.
fn protobuf(temp: &Temp) -> Option<String> {
    let flags =
        Command::new("pkg-config").args(["--cflags", "--libs", "protobuf"]).output().ok()?;
    if !flags.status.success() || !has("protoc") {
        return None;
    }
    let mut protoc = Command::new("protoc");
    protoc.arg(format!("--cpp_out={}", temp.0.display())).arg("plan.proto");
    succeeds(protoc.current_dir(here().join("tests/cpp")));
    // Its headers are not without warnings.
    let flags = String::from_utf8_lossy(&flags.stdout).trim().replace("-I", "-isystem ");
    Some(format!("-isystem {} -Wl,--no-as-needed {flags}", temp.0.display()))
}

#[test]
fn messages_of_protocol_buffers_travel_as_they_are() {
    let temp = Temp::new("protobuf");
    let Some(flags) = protobuf(&temp) else { return };
    // The library was made for the other standard library.
    for (compiler, standard) in cpp_ways().into_iter().filter(|(_, of)| !of.contains("libc++")) {
        let standard = format!("{} {flags}", sanitized(compiler, standard));
        let said = run(compiler, &standard, "tests/cpp/protobuf.cpp");
        assert!(said.contains("protobuf: messages as they are"), "{compiler} {standard}: {said}");
    }
}

/// How to compile with FlatBuffers, which `outlive/flatbuffers.hpp` is made for, and with what
/// flatc makes of our files; `None` if they are not there.
fn flatbuffers(temp: &Temp) -> Option<String> {
    if !Path::new("/usr/include/flatbuffers/flatbuffers.h").exists() || !has("flatc") {
        return None;
    }
    let mut flatc = Command::new("flatc");
    flatc.args(["--cpp", "--bfbs-gen-embed", "-o"]).arg(&temp.0);
    succeeds(flatc.args(["route.fbs", "other.fbs"]).current_dir(here().join("tests/cpp")));
    Some(format!("-isystem {}", temp.0.display()))
}

#[test]
fn flatbuffers_are_built_and_read_in_shared_memory() {
    let temp = Temp::new("flatbuffers");
    let Some(flags) = flatbuffers(&temp) else { return };
    for (compiler, standard) in cpp_ways() {
        let standard = format!("{} {flags}", sanitized(compiler, standard));
        let said = run(compiler, &standard, "tests/cpp/flatbuffers.cpp");
        assert!(said.contains("flatbuffers: in shared memory"), "{compiler} {standard}: {said}");
    }
}

/// How to compile with Arrow, which `outlive/arrow.hpp` is made for: that of pyarrow, which the
/// tests of Python have anyway; `None` if it is not there.
fn arrow() -> Option<String> {
    let python = here().join("../../.venv/bin/python");
    let asks = "import glob, pyarrow as a; d, = a.get_library_dirs()[-1:]; \
                print(a.get_include(), d, *glob.glob(d + '/libarrow.so.*'))";
    let said = Command::new(python).args(["-c", asks]).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let [include, libraries, library] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    // A library that is linked before the objects that need it.
    Some(format!("-isystem {include} -Wl,--no-as-needed {library} -Wl,-rpath,{libraries}"))
}

#[test]
fn tables_of_arrow_are_written_and_read_in_shared_memory() {
    let Some(flags) = arrow() else { return };
    // The library was made for GCC's standard library, and is not instrumented.
    let said = run(cpp_compilers()[0], &format!("c++20 {flags}"), "tests/cpp/arrow.cpp");
    assert!(said.contains("arrow: in shared memory"), "{said}");
}

/// What `outlive types import --cdr` wrote, over Fast-CDR of eProsima, which `outlive/cdr.hpp` is
/// made for; crates/outlive-py/tests/test_types.py lets it talk.
#[test]
fn messages_of_ros_travel_as_cdr() {
    if !Path::new("/usr/include/fastcdr/Cdr.h").exists() {
        return;
    }
    let with = "-I../outlive-cli/tests/types/golden_cdr -Wl,--no-as-needed -lfastcdr";
    for compiler in cpp_compilers() {
        let standard = format!("{} {with}", sanitized(compiler, "c++20"));
        let said = run(compiler, &standard, "../outlive-cli/tests/types/route.cpp");
        assert!(said.contains("route: refused what is wrong"), "{compiler} {standard}: {said}");
    }
}

/// Whether Eigen is there, which `outlive/eigen.hpp` is made for.
fn has_eigen() -> bool {
    Path::new(EIGEN).join("Eigen/Core").exists()
}

const EIGEN: &str = "/usr/include/eigen3";

#[test]
fn fields_of_eigen_are_arrays_to_all_others() {
    if !has_eigen() {
        return;
    }
    for (compiler, standard) in cpp_ways() {
        let standard = format!("{} -isystem {EIGEN}", sanitized(compiler, standard));
        let said = run(compiler, &standard, "tests/cpp/eigen.cpp");
        assert!(said.contains("eigen: fields and messages"), "{compiler} {standard} said: {said}");
    }
}

/// As `REFUSED`, with Eigen.
const REFUSED_OF_EIGEN: &[(&str, &str)] = &[
    (
        "struct @ { Eigen::Vector4d x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is aligned to more than its numbers",
    ),
    (
        "struct @ { Eigen::Quaterniond x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is aligned to more than its numbers",
    ),
    ("struct @ { Eigen::VectorXd x; }; OUTLIVE_MESSAGE(@, \"s\", x)", "@ has pointers of its own"),
    (
        "struct @ { Eigen::Vector3cd x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is of a type that cannot be shared",
    ),
    (
        "struct @ { Eigen::Vector3d x; std::string s; }; OUTLIVE_MESSAGE(@, \"s\", x, s)",
        "@ has pointers of its own",
    ),
    ("struct @ { Eigen::Vector3f x; double y; }; OUTLIVE_MESSAGE(@, \"s\", x, y)", "@ has padding"),
    (
        "auto f@(outlive::node &n) { return n.publisher<Eigen::Vector4d>(\"/x\"); }",
        "of Eigen what is",
    ),
];

/// What must not compile, and a part of what the compiler says; `@` is a name of its own.
const REFUSED: &[(&str, &str)] = &[
    (
        "struct @ { double x; }; auto f@(outlive::node &n) { return n.publisher<@>(\"/x\"); }",
        "this type cannot be shared",
    ),
    ("struct @ { char a; double x; }; OUTLIVE_MESSAGE(@, \"s\", a, x)", "@ has padding"),
    (
        "struct @ { int *at; }; OUTLIVE_MESSAGE(@, \"s\", at)",
        "a field of @ is of a type that cannot be shared",
    ),
    (
        "struct @ { bool is; }; OUTLIVE_MESSAGE(@, \"s\", is)",
        "a field of @ is of a type that cannot be shared",
    ),
    (
        "struct @ { std::chrono::milliseconds ms; }; OUTLIVE_MESSAGE(@, \"s\", ms)",
        "a field of @ is of a type that cannot be shared",
    ),
    ("struct @ { int x, y; }; OUTLIVE_MESSAGE(@, \"s\", y, x)", "@ are not listed in their order"),
    ("struct @ { int x, y; }; OUTLIVE_MESSAGE(@, \"s\", x, x)", "@ are not listed in their order"),
    (
        "struct @ { int x, y; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "@ has padding, or a field that is not",
    ),
    (
        "struct @ { const int x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is const or volatile",
    ),
    (
        "struct @ { std::array<const int, 2> x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is const or volatile",
    ),
    (
        "struct @ { volatile int x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is const or volatile",
    ),
    (
        "struct @ { enum e { a, b } x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is an enum without a fixed underlying type",
    ),
    (
        "struct @ { std::array<int, 0> x; int y; }; OUTLIVE_MESSAGE(@, \"s\", x, y)",
        "a field of @ is an array of no elements",
    ),
    (
        "struct @ { std::array<std::array<int, 0>, 2> x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is an array of no elements",
    ),
    (
        "struct @ { long double x; }; OUTLIVE_MESSAGE(@, \"s\", x)",
        "a field of @ is a floating-point number",
    ),
    // Where a compiler has none, there is nothing to refuse.
    (
        "#if __clang_major__ >= 15 || (!defined(__clang__) && __GNUC__ >= 13)\n\
         struct @ { _Float16 x; }; OUTLIVE_MESSAGE(@, \"s\", x)\n\
         #else\n#error a field of @ is of no type\n#endif",
        "a field of @ is",
    ),
    ("struct @ { int x; }; OUTLIVE_MESSAGE(@, \"\", x)", "the name of @ is empty"),
    (
        "struct @ { int x; }; OUTLIVE_MESSAGE(@, \"s/A\\0B\", x)",
        "the name of @ has a zero byte in it",
    ),
    (
        "auto f@(outlive::node &n) { return n.publisher<outlive::msgpack<\"s/@\\0B\">>(\"/x\"); }",
        "the name of a MessagePack type has a zero byte in it",
    ),
    (
        "struct alignas(16) @ { double x, y; }; OUTLIVE_MESSAGE(@, \"s\", x, y)\n\
         auto f@(outlive::node &n) { return n.publisher<outlive::optional<@>>(\"/x\"); }",
        "an optional value is aligned to more than 8 bytes",
    ),
    (
        "auto f@(outlive::node &n) { return n.mutex<float[]>(\"/x\"); }",
        "a lock protects one value of a fixed size",
    ),
    (
        "struct @ {}; template <> struct outlive::packed_traits<@> {\
         static constexpr const char *name = \"s\"; static void pack(const @ &, \
         std::vector<std::byte> &); static bool unpack(std::span<const std::byte>, @ &); };\n\
         auto f@(outlive::node &n) { return n.shared_mutex<@>(\"/x\"); }",
        "a lock protects one value of a fixed size",
    ),
    // Loans and what they show end with their statement when they have no name.
    ("void @(outlive::publisher<pose> &p) { p.loan().value()->x = 1; }", "deleted"),
    ("void @(outlive::producer<float[]> &p) { p.reserve(2).value().span(); }", "deleted"),
    ("auto @(outlive::subscriber<float[]> &s) { return *s.receive().value(); }", "deleted"),
    ("auto @(outlive::node &n) { return *n.mutex<pose>(\"/x\").value(); }", "deleted"),
];

#[test]
fn what_must_not_compile_does_not_and_the_compiler_says_why() {
    let head = "struct pose { double x, y; };\nOUTLIVE_MESSAGE(pose, \"pose\", x, y)\n";
    are_refused("refused", head, REFUSED);
    if has_eigen() {
        are_refused("refused-eigen", "#include <outlive/eigen.hpp>\n", REFUSED_OF_EIGEN);
    }
}

/// Compiles all of `those` behind `head`, and looks for what each is to say.
fn are_refused(label: &str, head: &str, those: &[(&str, &str)]) {
    let temp = Temp::new(label);
    let source = temp.0.join("refused.cpp");
    let mut text = format!("#include <outlive.hpp>\n{head}");
    for (i, (refused, _)) in those.iter().enumerate() {
        let refused = refused.replace('@', &format!("number_{i}_"));
        text += &format!("#line {} \"refused.cpp\"\n{refused}\n", 10_000 + 100 * i);
    }
    std::fs::write(&source, text).unwrap();
    for (compiler, standard) in cpp_ways() {
        let mut cc = Command::new(compiler);
        cc.args(format!("-std={standard} -fsyntax-only -I").split(' '));
        cc.arg(prefix().join("include"))
            .args(["-isystem", EIGEN])
            .arg(if compiler.starts_with("clang") { "-ferror-limit=0" } else { "-fmax-errors=0" });
        let out = cc.arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        for (i, (refused, says)) in those.iter().enumerate() {
            let says = says.replace('@', &format!("number_{i}_"));
            let here = format!("refused.cpp:{}", 10_000 / 100 + i);
            let found = said.contains(&here) && said.contains(&says);
            assert!(found, "{compiler} {standard} on {refused}:\n{said}");
        }
    }
}

#[test]
fn the_examples_in_cpp_run() {
    for (name, says) in [
        ("hello", "hello: x 1.0 m, y 2.0 m"),
        ("camera", "camera: 3 frames, without a copy"),
        ("many_producers", "many producers: 300 messages of 3 producers, each in order"),
        ("request_response", "request/response: 5.0 m, then server died"),
        ("robust_lock", "robust lock: left 50, right 50"),
        ("shutdown", "shutdown: the worker left, exit 0"),
        ("watching_a_death", "watching: the camera died; its last words were read"),
    ] {
        let compiler = cpp_compilers()[0];
        let standard = sanitized(compiler, "c++20");
        let said = run(compiler, &standard, &format!("examples/cpp/{name}.cpp"));
        assert!(said.contains(says), "{name} said: {said}");
    }
}

/// Writes the first program in C++ of a page of this repository into a file.
fn program_in(page: &str, temp: &Temp) -> PathBuf {
    let page = std::fs::read_to_string(here().join("../..").join(page)).unwrap();
    let (_, block) = page.split_once("```cpp\n").unwrap();
    let (program, _) = block.split_once("```").unwrap();
    let source = temp.0.join("page.cpp");
    std::fs::write(&source, program).unwrap();
    source
}

#[test]
fn the_program_in_the_readme_runs() {
    let temp = Temp::new("readme");
    let source = program_in("README.md", &temp);
    let said = run(cpp_compilers()[0], "c++20", source.to_str().unwrap());
    assert_eq!(said, "pixel 255\n");
}

#[outlive::message("example/Pose")]
#[derive(Clone, Copy)]
struct Pose {
    x: f64,
    y: f64,
    heading: f64,
}

#[test]
fn the_program_that_gets_a_newcomer_started_prints_what_another_language_sends() {
    let temp = Temp::new("started");
    let (source, program) =
        (program_in("docs/book/getting-started.md", &temp), temp.0.join("page"));
    compile(cpp_compilers()[0], "c++20", &source, &program);
    let root = temp.0.join("root");
    let node = outlive::Node::builder().root(&root).name("localizer").open().unwrap();
    let poses = node.topic::<Pose>("/robot/pose").unwrap().publisher().unwrap();
    let started = Command::new(&program).env("OUTLIVE_DIR", &root).stdout(Stdio::piped()).spawn();
    let mut started = started.unwrap();
    while started.try_wait().unwrap().is_none() {
        poses.publish(&Pose { x: 1.0, y: 2.0, heading: 0.5 }).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let said = started.wait_with_output().unwrap();
    assert!(said.status.success());
    assert_eq!(String::from_utf8_lossy(&said.stdout), "1.0 m, 2.0 m, 0.5 rad\n".repeat(10));
}

/// Configures a project of `lists` that finds the installed package; whether it could.
fn cmake(temp: &Temp, lists: &str) -> bool {
    cmake_in(prefix(), temp, lists)
}

/// As `cmake`, of the package below `prefix`.
fn cmake_in(prefix: &Path, temp: &Temp, lists: &str) -> bool {
    let build = temp.0.join("build");
    let _ = std::fs::remove_dir_all(&build);
    std::fs::write(temp.0.join("CMakeLists.txt"), lists).unwrap();
    let mut make = Command::new("cmake");
    make.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    make.arg("-S").arg(&temp.0).arg("-B").arg(&build).output().unwrap().status.success()
}

#[test]
fn cmake_finds_the_package_and_compiles_as_cpp20_unasked() {
    if !has("cmake") {
        return;
    }
    let temp = Temp::new("cmake");
    for (language, ending) in [("CXX", "cpp"), ("C", "c")] {
        let lists = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(hello {language})\n\
            find_package(outlive REQUIRED)\nadd_executable(hello hello.{ending})\n\
            set_target_properties(hello PROPERTIES CXX_EXTENSIONS OFF C_STANDARD 11)\n\
            target_link_libraries(hello PRIVATE outlive::outlive)\n"
        );
        let hello = format!("hello.{ending}");
        let example = here().join("examples").join(ending).join(&hello);
        std::fs::copy(example, temp.0.join(&hello)).unwrap();
        assert!(cmake(&temp, &lists), "{language}");
        succeeds(Command::new("cmake").arg("--build").arg(temp.0.join("build")));
        let mut program = Command::new(temp.0.join("build/hello"));
        let said = succeeds(program.env("OUTLIVE_DIR", temp.0.join("root"))).stdout;
        assert!(String::from_utf8_lossy(&said).contains("hello: x 1.0 m"));
    }
}

#[test]
fn cmake_finds_the_headers_where_lib_is_a_link_into_usr() {
    if !has("cmake") {
        return;
    }
    let temp = Temp::new("cmake-merged");
    let root = temp.0.join("root");
    std::fs::create_dir(&root).unwrap();
    std::os::unix::fs::symlink(prefix(), root.join("usr")).unwrap();
    std::os::unix::fs::symlink("usr/lib", root.join("lib")).unwrap();
    let hello = here().join("examples/cpp/hello.cpp");
    let lists = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(hello CXX)\n\
        find_package(outlive REQUIRED)\nadd_executable(hello {})\n\
        target_link_libraries(hello PRIVATE outlive::outlive)\n",
        hello.display()
    );
    assert!(cmake_in(&root, &temp, &lists));
}

#[test]
fn cmake_finds_the_versions_that_this_one_can_stand_for() {
    if !has("cmake") {
        return;
    }
    let version: Vec<u32> =
        env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap_or(0)).collect();
    let (major, minor) = (version[0], version[1]);
    let whole = env!("CARGO_PKG_VERSION");
    let temp = Temp::new("cmake-versions");
    for (asked, found) in [
        (String::new(), true),
        (format!("{major}.{minor}"), true),
        (format!("{whole} EXACT"), true),
        (format!("{major}.{}", minor + 1), false),
        (format!("{}.0", major + 1), false),
        // Before 1.0 another minor version is another interface.
        (format!("{major}.{}", minor.wrapping_sub(1)), major > 0 && minor > 0),
        (format!("{major}.{minor}...<{major}.{}", minor + 2), true),
        (format!("{major}.{}...{major}.{}", minor + 1, minor + 2), false),
    ] {
        let lists = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(asks NONE)\n\
            find_package(outlive {asked} REQUIRED)\n"
        );
        assert_eq!(cmake(&temp, &lists), found, "find_package(outlive {asked})");
    }
}

#[test]
fn pkg_config_finds_the_library() {
    if !has("pkg-config") {
        return;
    }
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let out = succeeds(ask.args(["--cflags", "--libs", "outlive"]));
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("-loutlive") && said.contains("/include"), "{said}");
}
