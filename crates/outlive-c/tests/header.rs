//! `include/outlive.h` says what the sources say. `make header` writes it anew.

use std::path::Path;

#[test]
fn the_header_is_what_the_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new().with_crate(here).with_config(config).generate();
    let mut made = Vec::new();
    bindings.expect("the sources").write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = here.join("include/outlive.h");
    if std::env::var_os("OUTLIVE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == there, "include/outlive.h is out of date: run `make header`");
}
