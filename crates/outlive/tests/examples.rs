//! The examples run and end as they say.
#![cfg(not(loom))]

use std::process::Command;

#[test]
fn the_examples_run() {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    for (name, says) in [
        ("hello", "hello: x 1.0 m, y 2.0 m, heading 0.5 rad"),
        ("camera", "camera: 3 frames, without a copy"),
        ("many_producers", "many producers: 300 messages of 3 producers, each in order"),
        ("request_response", "request/response: 5.0 m, then server died"),
        ("robust_lock", "robust lock: left 50, right 50"),
        ("shutdown", "shutdown: after 3 messages the worker left"),
        ("watching_a_death", "watching: the camera died; its last words were 'still here'"),
    ] {
        let root = outlive::doc_dir();
        let program = deps.parent().unwrap().join("examples").join(name);
        let out = Command::new(program).env("OUTLIVE_DIR", root.path()).output();
        let out = out.unwrap_or_else(|e| panic!("{name}: {e}; `cargo test -p outlive` builds it"));
        let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && said.contains(says), "{name} said: {said}");
    }
}
