//! Boost's queues are measured where its headers are; else their rows say that they are not.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(boost)");
    println!("cargo::rerun-if-changed=src/boost.cpp");
    let has = |header: &str| {
        ["/usr/include", "/usr/local/include"]
            .iter()
            .any(|dir| std::path::Path::new(dir).join(header).exists())
    };
    if has("boost/lockfree/spsc_queue.hpp")
        && has("boost/interprocess/ipc/message_queue.hpp")
        && cc::Build::new()
            .cpp(true)
            .std("c++17")
            .opt_level(3)
            .warnings(false)
            .file("src/boost.cpp")
            .try_compile("peers_boost")
            .is_ok()
    {
        println!("cargo::rustc-cfg=boost");
        println!("cargo::rustc-link-lib=rt");
    }
}
