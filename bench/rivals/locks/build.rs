//! Compiles the few lines that make Boost's templates callable.

fn main() {
    println!("cargo::rerun-if-changed=src/boost.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .file("src/boost.cpp")
        .compile("boost_lock");
}
