//! Installs the library as users do, and compiles and runs programs against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

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

/// Compiles one source file; strict about warnings.
fn compile(compiler: &str, standard: &str, source: &Path, to: &Path) {
    let prefix = prefix();
    let mut cc = Command::new(compiler);
    cc.arg(format!("-std={standard}")).args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]);
    cc.args(["-D_GNU_SOURCE", "-pthread"]).arg(source).arg("-o").arg(to);
    cc.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib")).arg("-loutlive");
    succeeds(cc.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())));
}

/// Compiles `source` and runs it in a domain of its own; what it said.
fn run(compiler: &str, standard: &str, source: &str) -> String {
    let source = here().join(source);
    let stem = source.file_stem().unwrap().to_string_lossy().into_owned();
    let temp = Temp::new(&format!("{compiler}-{stem}").replace('+', "x"));
    let program = temp.0.join(&stem);
    compile(compiler, standard, &source, &program);
    let out = succeeds(Command::new(&program).env("OUTLIVE_DIR", temp.0.join("root")));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn every_call_of_c_does_what_the_header_says() {
    assert!(run("cc", "c11", "tests/c/api.c").contains("api: every call"));
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

#[test]
fn every_class_of_cpp_does_what_it_says_without_a_warning() {
    for compiler in cpp_compilers() {
        assert!(run(compiler, "c++20", "tests/cpp/api.cpp").contains("api: every class"));
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
    for compiler in cpp_compilers() {
        let said = run(compiler, "c++20", "tests/cpp/msgpack.cpp");
        assert!(said.contains("msgpack: values of our own"), "{compiler} said: {said}");
    }
}

#[test]
fn a_type_that_cannot_be_shared_does_not_compile_and_the_compiler_says_why() {
    let temp = Temp::new("refused");
    let source = temp.0.join("refused.cpp");
    for (text, says) in [
        (
            "struct s { double x; }; auto f(outlive::node &n) { return n.publisher<s>(\"/x\"); }",
            "this type cannot be shared",
        ),
        ("struct s { char a; double x; }; OUTLIVE_MESSAGE(s, \"s\", a, x)", "has padding"),
        ("struct s { int *at; }; OUTLIVE_MESSAGE(s, \"s\", at)", "of a type that cannot be shared"),
    ] {
        std::fs::write(&source, format!("#include <outlive.hpp>\n{text}\n")).unwrap();
        for compiler in cpp_compilers() {
            let mut cc = Command::new(compiler);
            cc.args(["-std=c++20", "-fsyntax-only", "-I"]).arg(prefix().join("include"));
            let out = cc.arg(&source).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(!out.status.success() && said.contains(says), "{compiler} on {text}:\n{said}");
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
        ("watching_a_death", "watching: the camera died; its last words were read"),
    ] {
        let said = run(cpp_compilers()[0], "c++20", &format!("examples/cpp/{name}.cpp"));
        assert!(said.contains(says), "{name} said: {said}");
    }
}

#[test]
fn cmake_finds_the_package() {
    if !has("cmake") {
        return;
    }
    let temp = Temp::new("cmake");
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(hello CXX)\n\
        set(CMAKE_CXX_STANDARD 20)\nfind_package(outlive REQUIRED)\n\
        add_executable(hello hello.cpp)\ntarget_link_libraries(hello PRIVATE outlive::outlive)\n";
    std::fs::write(temp.0.join("CMakeLists.txt"), lists).unwrap();
    std::fs::copy(here().join("examples/cpp/hello.cpp"), temp.0.join("hello.cpp")).unwrap();
    let build = temp.0.join("build");
    let mut make = Command::new("cmake");
    make.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
    succeeds(make.arg("-S").arg(&temp.0).arg("-B").arg(&build));
    succeeds(Command::new("cmake").arg("--build").arg(&build));
    let mut hello = Command::new(build.join("hello"));
    let said = succeeds(hello.env("OUTLIVE_DIR", temp.0.join("root"))).stdout;
    assert!(String::from_utf8_lossy(&said).contains("hello: x 1.0 m"));
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
