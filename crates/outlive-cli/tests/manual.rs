//! What `make man` writes: manual pages and completions, compared with `--help`.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use common::*;

/// `scripts/share` with the command under test, and where it wrote.
fn share(home: &Home) -> std::path::PathBuf {
    let to = home.root().with_file_name("share");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/share");
    let ran = Command::new(script)
        .arg(&to)
        .env("OUTLIVE", env!("CARGO_BIN_EXE_outlive"))
        .status()
        .unwrap();
    assert!(ran.success());
    to
}

/// Words that begin with `--` and are long options.
fn options(text: &str) -> BTreeSet<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split(|c: char| !plain(c)).filter(|w| w.starts_with("--") && w.len() > 2);
    words.map(str::to_owned).collect()
}

/// A page as text, without the requests and escapes of roff.
fn plain(page: &str) -> String {
    let mut text = page.replace("\\-", "-").replace("\\*(Aq", "'");
    for font in ["\\fB", "\\fI", "\\fR"] {
        text = text.replace(font, "");
    }
    text.replace("\\\\", "\\")
}

#[test]
fn every_command_has_a_page_with_the_options_and_examples_of_its_help() {
    let home = Home::new("man");
    let pages = share(&home).join("man/man1");
    let mut left = vec![Vec::<String>::new()];
    let mut expected = BTreeSet::new();
    while let Some(command) = left.pop() {
        let args = command.join(" ");
        let help = home.run(&format!("{args} --help")).expect(DONE);
        let name = [&["outlive".to_owned()][..], &command].concat().join("-");
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        let text = plain(&page);
        assert!(text.contains(&format!(".SH NAME\n{name} - ")), "{name}");
        for option in options(help.text()) {
            assert!(text.contains(&option), "{name}.1 has no {option}");
        }
        let examples = help.text().split("Examples:\n").nth(1).unwrap_or_default();
        for line in examples.lines().take_while(|line| !line.is_empty()) {
            assert!(text.contains(&format!("\n{line}\n")), "{name}.1 has no line '{line}'");
        }
        let subs = help.text().split("Commands:\n").nth(1).unwrap_or_default();
        for line in subs.lines().take_while(|line| !line.is_empty()) {
            let sub = line.split_whitespace().next().unwrap();
            if line.starts_with("  ") && !line.starts_with("   ") && sub != "help" {
                left.push([&command[..], &[sub.to_owned()]].concat());
            }
        }
        expected.insert(format!("{name}.1"));
    }
    let written = std::fs::read_dir(&pages).unwrap().map(|e| e.unwrap().file_name());
    let written: BTreeSet<String> = written.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(written, expected);
    assert!(written.len() > 30, "{written:?}");
    complain(&pages);
}

/// Runs groff over the pages, where it is installed: nothing may be wrong with them.
fn complain(pages: &Path) {
    let mut files: Vec<_> =
        std::fs::read_dir(pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-z"]).args(&files);
    if let Ok(out) = groff.output() {
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "groff's warnings");
    }
}

#[test]
fn every_shell_can_read_its_completions() {
    let home = Home::new("completions-files");
    let share = share(&home);
    for (shell, file, args) in [
        ("bash", "bash-completion/completions/outlive", "-n"),
        ("zsh", "zsh/vendor-completions/_outlive", "-n"),
        ("fish", "fish/vendor_completions.d/outlive.fish", "--no-execute"),
    ] {
        let file = share.join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("OUTLIVE_COMPLETE"), "{shell}: it asks the command: {text}");
        if let Ok(out) = Command::new(shell).arg(args).arg(&file).output() {
            assert!(out.status.success(), "{shell}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

/// What bash offers for the last of `words`.
fn offered(home: &Home, words: &str) -> Vec<String> {
    let script = "
        eval \"$(outlive completions bash)\"
        COMP_WORDS=($0) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9
        [ \"${0% }\" = \"$0\" ] || COMP_WORDS+=('') COMP_CWORD=$((COMP_CWORD + 1))
        _clap_complete_outlive outlive \"${COMP_WORDS[COMP_CWORD]}\" \"\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let script = script.replace("|| COMP_WORDS+=('') COMP", "|| { COMP_WORDS+=(''); COMP");
    let script = script.replace("COMP_CWORD + 1))\n", "COMP_CWORD + 1)); }\n");
    let bin = Path::new(env!("CARGO_BIN_EXE_outlive")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut bash = testkit::spawn::spawn_program("bash");
    bash.args(["-c", &script, words]).env("PATH", path).env("OUTLIVE_DIR", home.root());
    let out = bash.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{words}");
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| line.trim_end().into()).collect()
}

#[test]
fn a_shell_completes_commands_options_and_the_names_there_are() {
    let home = Home::new("complete");
    let open = |domain: &str| {
        outlive::Node::builder().root(home.root()).domain(domain).name("cam").open().unwrap()
    };
    let (node, arm) = (open("default"), open("arm"));
    let _speed = node.topic::<f64>("/speed").unwrap().publisher().unwrap();
    let _spin = node.topic::<[u8]>("/spin/left").unwrap().publisher().unwrap();
    let _goal = arm.topic::<f64>("/goal").unwrap().publisher().unwrap();
    let _jobs = node.queue::<u64>("/jobs").unwrap().consumer().unwrap();
    let _plan = node.service::<u64, u64>("/plan").unwrap().server().unwrap();
    let _map = node.mutex::<u64>("/map").unwrap();
    for (words, offers) in [
        ("outlive topic ec", &["echo"][..]),
        ("outlive topic echo /sp", &["/speed", "/spin/left"]),
        ("outlive topic echo spi", &["/spin/left"]),
        ("outlive topic echo /speed /spi", &["/spin/left"]),
        ("outlive topic pub /spe", &["/speed"]),
        ("outlive --domain arm topic hz ", &["/goal"]),
        ("outlive topic hz --domain=arm /", &["/goal"]),
        ("outlive topic hz /x", &[]),
        ("outlive topic find f", &["f64"]),
        ("outlive queue send ", &["/jobs"]),
        ("outlive queue echo /j", &["/jobs"]),
        ("outlive service call ", &["/plan"]),
        ("outlive lock remove ", &["/map"]),
        ("outlive node info ", &["cam"]),
        ("outlive topic list --domain ", &["arm", "default"]),
        ("outlive stop ", &[]),
        ("outlive topic echo --until", &["--until-left"]),
        ("outlive completions ", &["bash", "zsh", "fish"]),
    ] {
        let mut got = offered(&home, words);
        if words.ends_with(' ') {
            got.retain(|word| !word.starts_with('-'));
        }
        assert_eq!(got, offers, "{words}");
    }
    assert_eq!(offered(&home, "outlive --domain arm2 topic hz /"), [""; 0]);
    assert!(!home.root().join("arm2").exists(), "completion makes no domain");
}
