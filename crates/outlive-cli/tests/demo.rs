//! The demo: true when all is well, and able to say when it is not.

mod common;

use common::*;

#[test]
fn the_demo_kills_and_leaves_nothing() {
    let home = Home::new("demo");
    let ran = home.run("demo --seconds 2").expect(DONE);
    let text = ran.text();
    for said in [
        "the fast viewer, while it held frame",
        "in the middle of their start-up",
        "the camera, half-way through frame",
        "known to the others after",
        "nobody hung, nothing was torn, every lost frame was counted",
        "nothing left: 0 files",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains('\x1b'), "no colours but on a terminal");
    let dir = text.split("in /").nth(1).and_then(|t| t.split(',').next()).unwrap();
    assert!(dir.contains("outlive-demo-") && !std::path::Path::new(&format!("/{dir}")).exists());
    assert!(!home.root().exists(), "it has a directory of its own");
}

#[test]
fn the_demo_tells_each_lie_and_still_leaves_nothing() {
    let home = Home::new("lies");
    for (lie, said) in [
        ("torn", "untrue: nothing torn is read: the recorder found 1 bad frames"),
        ("count", "untrue: every frame is received or counted as lost: the recorder has"),
        ("litter", "untrue: nothing is left: ["),
    ] {
        let ran = home.run(&format!("demo --seconds 1 --lie {lie}")).expect(FAILED);
        assert!(ran.err.contains(said), "{lie}: {}", ran.err);
        let dir = ran.text().split("in /").nth(1).and_then(|t| t.split(',').next()).unwrap();
        assert!(!std::path::Path::new(&format!("/{dir}")).exists(), "{lie}");
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing() {
    let home = Home::new("demo-signal");
    let demo = home.start("demo", b"");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    demo.signal(libc::SIGINT);
    let ran = demo.end().expect(FAILED);
    assert!(ran.err.contains("interrupted"), "{}", ran.err);
    let dir = ran.text().split("in /").nth(1).and_then(|t| t.split(',').next()).unwrap();
    assert!(!std::path::Path::new(&format!("/{dir}")).exists());
}
