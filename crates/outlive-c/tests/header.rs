//! `include/outlive.h` says what the sources say. `make header` writes it anew.

use std::path::Path;

#[test]
fn the_header_is_what_the_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new().with_crate(here).with_config(config).generate();
    is_written("include/outlive.h", &text_of(&bindings.expect("the sources")));
}

#[test]
fn the_header_of_messages_is_what_their_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("msg.toml")).expect("msg.toml");
    let sources = here.join("../outlive/src/types/msg");
    let files = ["mod", "text", "motion", "joints", "image", "point_cloud"];
    let from = |builder: cbindgen::Builder, file: &str| {
        builder.with_src(sources.join(format!("{file}.rs")))
    };
    let builder = cbindgen::Builder::new().with_config(config);
    let bindings = files.into_iter().fold(builder, from).generate().expect("the sources");
    is_written("include/outlive/msg.h", &as_c(&text_of(&bindings)));
}

/// What cbindgen does not say as C does: text is `char`, constants are in capitals.
fn as_c(made: &str) -> String {
    let (before, text) = made.split_once("// Text of at most").expect("the type of text");
    let (_, after) = text.split_once("typedef uint8_t Text_32[32];\n\n").expect("its definition");
    let line = |line: &str| match line.strip_prefix("    Text_32 ") {
        Some(name) => format!("    char {}[32];\n", name.trim_end_matches(';')),
        None => format!("{line}\n"),
    };
    let text: String = without_rust(before.lines().chain(after.lines())).map(line).collect();
    text.replace("outlive_pixel_format_", "OUTLIVE_PIXEL_")
        .replace("outlive_quaternion_IDENTITY", "OUTLIVE_QUATERNION_IDENTITY")
}

/// The lines without the examples of their documentation, which are in Rust.
fn without_rust<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut in_example = false;
    for line in lines {
        let comment = line.trim_start().strip_prefix("//").map(str::trim);
        if comment == Some("# Examples") {
            in_example = true;
            // The empty line before it.
            kept.pop();
        }
        in_example &= comment.is_some();
        if !in_example {
            kept.push(line);
        }
    }
    kept.into_iter()
}

fn text_of(bindings: &cbindgen::Bindings) -> String {
    let mut made = Vec::new();
    bindings.write(&mut made);
    String::from_utf8(made).unwrap()
}

/// Compares with the file, or writes it.
fn is_written(path: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("OUTLIVE_WRITE_HEADER").is_some() {
        std::fs::write(&file, made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(made == there, "{path} is out of date: run `make header`");
}

/// All headers, by path.
fn headers() -> Vec<(String, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut paths: Vec<_> = ["", "outlive"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(here.join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        (path.display().to_string(), std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// Words of a text as C splits it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// A macro `Out` was in everybody's program.
#[test]
fn all_that_a_program_gets_with_the_headers_bears_our_name() {
    let ours = |name: &str| name.starts_with("outlive_") || name.starts_with("OUTLIVE_");
    let headers = headers();
    assert!(headers.len() > 10);
    for (path, text) in &headers {
        let defined = text.lines().filter_map(|line| line.trim_start().strip_prefix("#define "));
        for line in defined {
            let name = words(line).next().unwrap();
            assert!(ours(name), "{path} defines {name}");
        }
    }
    let (_, header) = headers.iter().find(|(path, _)| path.ends_with("outlive.h")).unwrap();
    let mut types = 0;
    let mut before = "";
    for word in header.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(words) {
        if ["struct", "enum", "union"].contains(&before) {
            assert!(ours(word), "outlive.h has a type {word}");
            types += 1;
        }
        before = word;
    }
    assert!(types > 20, "{types}");
}

/// It named a handle that does not exist.
#[test]
fn what_the_page_on_languages_names_in_c_is_in_the_header() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/languages.md");
    let page = std::fs::read_to_string(page).unwrap();
    let headers = headers();
    let (_, header) = headers.iter().find(|(path, _)| path.ends_with("outlive.h")).unwrap();
    let known: std::collections::HashSet<&str> = words(header).collect();
    let named = page.split(|c: char| !c.is_alphanumeric() && !"_*".contains(c));
    let mut count = 0;
    for name in named.filter(|name| name.to_lowercase().starts_with("outlive_")) {
        let is = match name.strip_suffix('*') {
            Some(begin) => known.iter().any(|known| known.starts_with(begin)),
            // Macros of C++.
            None => known.contains(name) || headers.iter().any(|(_, text)| text.contains(name)),
        };
        assert!(is || name.starts_with("OUTLIVE_DIR"), "no {name} in the headers");
        count += 1;
    }
    assert!(count > 30, "{count}");
}
