//! What the compiler says to the likeliest mistakes with message types. Each program in `mistakes/`
//! has one; its first lines say what is to be in the errors, the first of it in the first error,
//! and how many errors there may be.
#![cfg(all(not(loom), feature = "derive"))]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, as it was last built beside this test.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let files = std::fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("liboutlive-") && name.ends_with(".rlib")
    };
    let built = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).unwrap();
    files.filter(is_it).max_by_key(built).expect("this test is linked with it")
}

/// What the compiler says to `program`, without colours.
fn compile(program: &Path, library: &Path) -> String {
    let dependencies = library.parent().unwrap();
    let to = std::env::temp_dir().join(format!("outlive-mistake-{}", std::process::id()));
    let out = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--emit", "obj", "--color", "never", "-A", "warnings"])
        .arg(format!("-Ldependency={}", dependencies.display()))
        .arg(format!("--extern=outlive={}", library.display()))
        .arg("-o")
        .arg(&to)
        .arg(program)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(to);
    assert!(!out.status.success(), "{}: the compiler accepts it", program.display());
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn the_compiler_names_the_way_out_of_each_mistake() {
    let library = library();
    let mut seen = 0;
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")).unwrap()
    {
        let program = entry.unwrap().path();
        let text = std::fs::read_to_string(&program).unwrap();
        let wanted = |key| text.lines().filter_map(move |line| line.strip_prefix(key));
        let said = compile(&program, &library);
        let name = program.file_stem().unwrap().display();
        let first = said.lines().next().unwrap_or_default();
        for (i, says) in wanted("// says: ").enumerate() {
            let there = if i == 0 { first.contains(says) } else { said.contains(says) };
            assert!(there, "{name}: no '{says}' in\n{said}");
        }
        let errors = said.lines().filter(|l| l.starts_with("error") && !l.contains("aborting"));
        let most: usize = wanted("// errors: ").next().unwrap().parse().unwrap();
        assert!(errors.clone().count() <= most, "{name}: more than {most} errors:\n{said}");
        seen += 1;
    }
    assert!(seen >= 10, "{seen} mistakes");
}
