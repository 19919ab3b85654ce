//! The chaos harness finds nothing in a short run, and each fault that it commits itself.

use std::process::Command;

/// Runs the harness briefly; what it printed last, and whether it was content.
fn chaos(sabotage: Option<&str>) -> (String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testkit"));
    command.args(["chaos", "--seed", "7", "--for", "2s"]);
    if let Some(what) = sabotage {
        command.args(["--sabotage", what]);
    }
    let ran = command.output().expect("it starts");
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    println!("{told}");
    (told.into_owned(), ran.status.success())
}

fn is_found(sabotage: &str, none: &str) {
    let (told, content) = chaos(Some(sabotage));
    assert!(!content, "{sabotage} was not found");
    assert!(told.contains("chaos: seed 7: ") && !told.contains(none), "another fault:\n{told}");
    assert!(told.contains("replay it: cargo run -p testkit -- chaos --seed 7 --for 2s"));
}

#[test]
fn a_short_run_finds_nothing() {
    let (told, content) = chaos(None);
    assert!(content, "{told}");
    assert!(told.contains(" 0 lost, 0 duplicated, 0 torn, 0 hangs, 0 files left"), "{told}");
}

#[test]
fn a_message_that_was_noted_and_never_sent_is_lost() {
    is_found("lost", " 0 lost");
}

#[test]
fn a_message_that_was_sent_twice_is_duplicated() {
    is_found("dup", " 0 duplicated");
}

#[test]
fn a_message_that_was_changed_after_its_checksum_is_torn() {
    is_found("torn", " 0 torn");
}

#[test]
fn a_call_that_takes_seconds_is_a_hang() {
    is_found("hang", " 0 hangs");
}

#[test]
fn a_file_that_nobody_removes_is_left() {
    is_found("file", " 0 files");
}
