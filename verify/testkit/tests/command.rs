//! The command line of `testkit`: what it lists, what it refuses and how.

use std::process::{Command, Output};

use testkit::TempDomain;

const SCREEN_LINES: usize = 40;
const ALWAYS: [&str; 10] = [
    "kill-sweep",
    "fail-sweep",
    "lock-sweep",
    "queue-sweep",
    "start-kills",
    "lock-kills",
    "chaos",
    "histories",
    "scale",
    "fail-stop",
];
/// With the feature that each needs.
const SOMETIMES: [(&str, &str, bool); 5] = [
    ("crash-points", "crash-points", cfg!(feature = "crash-points")),
    ("queue-kills", "crash-points", cfg!(feature = "crash-points")),
    ("wake-test", "crash-points", cfg!(feature = "crash-points")),
    ("wild-writes", "crash-points", cfg!(feature = "crash-points")),
    ("faults", "faults", cfg!(feature = "faults")),
];

fn testkit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_testkit")).args(args).output().expect("it starts")
}

/// What it says on standard error when it ends with code 2.
fn refused(args: &[&str]) -> String {
    let ran = testkit(args);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{args:?}: {said}");
    said
}

#[test]
fn help_lists_what_there_is_on_one_screen() {
    let ran = testkit(&["--help"]);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success() && text.lines().count() <= SCREEN_LINES, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let lists = |name: &str| text.lines().any(|l| l.trim_start().starts_with(&format!("{name} ")));
    assert!(ALWAYS.into_iter().all(lists), "{text}");
    for (name, _, built) in SOMETIMES {
        assert_eq!(lists(name), built, "{name}: {text}");
        assert!(text.contains(name), "{name} is not even named:\n{text}");
    }
}

#[test]
fn what_it_was_built_without_says_how_to_build_it() {
    for (name, feature, built) in SOMETIMES {
        if built {
            assert!(testkit(&[name, "--help"]).status.success(), "{name}");
        } else {
            let said = refused(&[name, "--quick"]);
            assert!(said.contains(&format!("-p testkit --features {feature} -- {name}")), "{said}");
        }
    }
}

#[test]
fn wrong_usage_is_code_2() {
    assert!(refused(&[]).contains("Usage: testkit"));
    assert!(refused(&["kil-sweep"]).contains("kill-sweep"), "names like it are offered");
    assert!(refused(&["kill-sweep", "--quik"]).contains("--quick"));
    assert!(refused(&["chaos", "--for"]).contains("--for"));
    assert!(refused(&["chaos", "--for", "5d"]).contains("500ms"));
    assert!(refused(&["chaos", "--seed", "x"]).contains("0x1f"));
    assert!(refused(&["scale", "planets"]).contains("subscribers"));
    assert!(refused(&["fail-stop", "--victim", "cook"]).contains("ethercat"));
}

/// As `make soak ARGS="--for 8h"` does.
#[test]
fn an_option_given_again_takes_the_last_value() {
    let kept = TempDomain::new("no-histories").unwrap();
    let dir = kept.path().to_str().unwrap();
    let ran = testkit(&["histories", "--for", "1h", "--for", "0", "--seed", "0x7", "--kept", dir]);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert_eq!(said.trim(), "histories: 0 from seed 7, 0 steps, 0 kept, 0 failures");
}

#[test]
fn a_role_is_played_before_any_argument_is_read() {
    let as_nobody = testkit::spawn_self("nobody", &[]);
    let mut program = Command::new(env!("CARGO_BIN_EXE_testkit"));
    program.envs(as_nobody.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = program.arg("--help").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("no role nobody"), "{ran:?}");
    assert!(ran.stdout.is_empty(), "help was printed instead: {ran:?}");
}
