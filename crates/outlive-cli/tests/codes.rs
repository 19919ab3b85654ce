//! Exit codes, and what is said with them.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::*;

#[test]
fn wrong_usage_and_illegal_names_are_2() {
    let home = Home::new("usage");
    for args in [
        "",
        "topic",
        "topic echo",
        "topic pub /a --frame-bytes 4",
        "topic pub /a --from-stdin",
        "topic pub /a --from-stdin --frame-bytes 0",
        "topic pub /a --from-stdin --frame-bytes 4 --rate 0",
        "topic echo /a --raw --json",
        "topic echo /a --count 0",
        "topic echo /a --timeout -1",
        "clean --frobnicate",
        // Well-formed, yet no names or sizes of ours.
        "topic echo /a//b --timeout 0",
        "record /a//b",
        "topic pub /.. --from-stdin --frame-bytes 4",
        "topic pub /a --from-stdin --frame-bytes 4 --depth 100000",
        "node list --domain a/b",
        "clean --domain ..",
    ] {
        let ran = home.run(args).expect(USAGE);
        assert!(!ran.err.is_empty(), "{args}");
    }
    for args in ["--help", "--version", "topic pub --help", "topic echo --help", "demo --help"] {
        assert!(home.run(args).expect(DONE).text().len() > 10, "{args}");
    }
    let help = home.run("--help").expect(DONE);
    assert!(help.text().contains("9 input ended inside a frame"), "codes are in --help");
}

#[test]
fn a_topic_that_does_not_come_is_4() {
    let home = Home::new("missing");
    let ran = home.run("topic echo /nobody --timeout 0.2").expect(NOT_FOUND);
    assert!(ran.err.contains("no topic /nobody"), "{}", ran.err);
    let publish = "topic pub /a --from-stdin --frame-bytes 1 --wait-for-subscribers 1 \
                   --timeout 0.1";
    let ran = home.run(publish).expect(NOT_FOUND);
    assert!(ran.err.contains("0 of 1 subscribers"), "{}", ran.err);
}

#[test]
fn a_short_last_frame_is_9_unless_allowed() {
    let home = Home::new("partial");
    let echo = home.start("topic echo /f --raw --until-left --timeout 60", b"");
    let publish = "topic pub /f --from-stdin --frame-bytes 4 --wait-for-subscribers 1";
    let ran = home.feed(publish, b"abcdefghij").expect(PARTIAL);
    assert!(ran.err.contains("2 of 4 bytes of message 2"), "{}", ran.err);
    assert_eq!(echo.end().expect(DONE).text(), "abcdefgh", "whole ones are sent");

    let echo = home.start("topic echo /g --raw --until-left --timeout 60", b"");
    let publish = "topic pub /g --from-stdin --frame-bytes 4 --wait-for-subscribers 1 \
                   --allow-partial";
    home.feed(publish, b"abcdefghij").expect(DONE);
    assert_eq!(echo.end().expect(DONE).text(), "abcdefghij");
    home.feed("topic pub /h --from-stdin --frame-bytes 4", b"").expect(DONE);
}

#[test]
fn another_type_is_6_and_says_what_differs() {
    let home = Home::new("mismatch");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let _publisher = node.topic::<u64>("/n").unwrap().depth(4).publisher().unwrap();
    let ran = home.run("topic pub /n --from-stdin --frame-bytes 8").expect(MISMATCH);
    assert!(ran.err.contains("type is u64, this program has u8"), "{}", ran.err);
    let _publisher = node.topic::<[u8]>("/b").unwrap().depth(4).publisher().unwrap();
    // Its depth is each publisher's own.
    home.run("topic pub /b --from-stdin --frame-bytes 8 --depth 8").expect(0);
}

#[test]
fn directories_open_to_strangers_are_7() {
    let home = Home::new("refused");
    std::fs::create_dir(home.root()).unwrap();
    std::fs::set_permissions(home.root(), PermissionsExt::from_mode(0o777)).unwrap();
    for args in ["topic pub /a --from-stdin --frame-bytes 1", "topic echo /a"] {
        let ran = home.run(args).expect(REFUSED);
        assert!(ran.err.contains("root"), "names the directory: {}", ran.err);
    }
    assert_eq!(home.listing(), [] as [&str; 0]);
}

#[test]
fn foreign_bytes_in_a_topic_are_5() {
    let home = Home::new("corrupt");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let _publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    let meta = home.root().join("default/topics/n/meta");
    let length = std::fs::metadata(&meta).unwrap().len() as usize;
    std::fs::write(&meta, noise(length)).unwrap();
    let ran = home.run("topic echo /n").expect(CORRUPT);
    assert!(ran.err.contains("meta"), "names the file: {}", ran.err);
}

#[test]
fn no_memory_left_in_the_bound_is_8() {
    let home = Home::new("no-room");
    let publish = "topic pub /a --from-stdin --frame-bytes 100000 --memory-bytes 50000";
    let ran = home.feed(publish, &noise(100_000)).expect(8);
    assert!(ran.err.contains("memory"), "{}", ran.err);
}

#[test]
fn bridge_and_view_become_their_programs_or_say_how_to_get_them() {
    let home = Home::new("programs");
    let path = home.root().with_extension("bin");
    std::fs::create_dir(&path).unwrap();
    for (name, given) in [
        ("bridge", "robot.toml --stats --domain arm"),
        ("view", "/a /b --stats --rate 5 --rate /a=inf --bind :: --port 0 --domain arm"),
        ("view", "/a --overwrite --rerun f.rrd"),
    ] {
        let become_it = |path: &std::path::Path| {
            let mut command = home.outlive(&format!("{name} {given}"));
            command.env("PATH", path);
            home.start_command(command).end()
        };
        let ran = become_it(&path).expect(FAILED);
        assert!(ran.err.contains(&format!("cargo install --path apps/{name}")), "{}", ran.err);
        let program = path.join(format!("outlive-{name}"));
        std::fs::write(&program, "#!/bin/sh\necho \"$OUTLIVE_DIR: $*\"\nexit 5\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let told = become_it(&path).expect(CORRUPT).text().trim().to_owned();
        assert_eq!(told, format!("{}: {given}", home.root().display()));
        std::fs::remove_file(&program).unwrap();
    }
}

/// It was said how to give a text that begins with a dash.
#[test]
fn a_negative_number_is_out_of_range_and_not_an_option() {
    let home = Home::new("negative");
    for args in [
        "play x.mcap --start -1",
        "topic echo /a --timeout -1",
        "record -a --for -1",
        "play x.mcap --rate -2.5",
        "topic echo /a --count -1",
    ] {
        let told = home.run(args).expect(USAGE).err;
        assert!(told.contains("error: invalid value '-"), "{args}: {told}");
        assert!(!told.contains("tip:"), "{args}: {told}");
    }
}

/// It was said that /dev/null is to be removed.
#[test]
fn a_root_that_is_no_directory_is_wrong_usage() {
    for args in ["topic list", "topic echo /a", "node list", "ps"] {
        let home = Home::with_root("root-file", "/dev/null".into());
        let told = home.run(args).expect(USAGE).err;
        let expect = "/dev/null is not a directory: set OUTLIVE_DIR to another, or give --root";
        assert!(told.contains(expect), "{args}: {told}");
        let told = home.run(&format!("{args} --root /dev/zero")).expect(USAGE).err;
        assert!(told.contains("/dev/zero is not a directory: give another --root"), "{told}");
    }
}
