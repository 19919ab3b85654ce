//! The shared library's own name: programs that link to it ask for this file.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liboutlive.so.0");
}
