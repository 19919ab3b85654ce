//! Files that are right, and what is said about those that are not.

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("/etc/arm.toml"), text)
}

/// The messages, a line each.
fn problems(text: &str) -> Vec<String> {
    let error = parse(text).unwrap_err();
    let line = |p: &Problem| format!("{}:{}: {}: {}", p.line, p.column, p.what, p.remedy);
    error.problems.iter().map(line).collect()
}

const WHOLE: &str = r#"
[robot]
name = "arm"
domain = "lab"
logs = "log"
log_bytes = "1MB"
log_files = 2
grace = "2s"
reload = "watch"
on_supervisor_death = "stop"

[env]
RUST_LOG = "info"
LEVEL = 3

[process.viewer]
command = "view --title 'the arm'"
after = ["core", "camera"]
restart = "on-failure"
backoff = { first = "50ms", max = 2, factor = 1.5, jitter = 0, limit = 3, within = "10s" }
heartbeat = { topics = "/view", timeout = "1s" }
env = { LEVEL = "4" }
nice = 5
memory = "512MiB"

[process.camera]
command = ["camera"]
after = "core"
ready = { topics = ["/camera"], timeout = 3 }

[process.core]
kind = "core"
command = ["./core", "--hz", "1000"]
dir = "bin"
fifo = 80
cores = [0]
on_end = "stay"
on_supervisor_death = "adopt"
stop_signal = "SIGINT"
"#;

#[test]
fn a_file_becomes_processes_in_order_of_starting() {
    let config = parse(WHOLE).unwrap();
    let names: Vec<_> = config.processes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["core", "camera", "viewer"]);
    assert_eq!(config.logs.as_deref(), Some(Path::new("/etc/log")));
    assert!(config.watch && config.domain.as_deref() == Some("lab"));
    let core = config.process("core").unwrap();
    assert_eq!((core.kind, core.fifo, core.on_end), (Kind::Core, Some(80), Then::Stay));
    assert_eq!((core.restart, core.stop_signal), (Restart::Never, libc::SIGINT));
    assert_eq!(core.dir, Path::new("/etc/bin"));
    assert_eq!(core.on_supervisor_death, Orphan::Adopt);
    let viewer = config.process("viewer").unwrap();
    assert_eq!(viewer.command, ["view", "--title", "the arm"]);
    assert_eq!((viewer.env["LEVEL"].as_str(), viewer.env["RUST_LOG"].as_str()), ("4", "info"));
    assert_eq!(viewer.backoff.max, Duration::from_secs(2));
    assert_eq!(viewer.on_supervisor_death, Orphan::Stop);
    assert_eq!(viewer.grace, Duration::from_secs(2));
    assert_eq!(viewer.memory, Some(512 << 20));
    let camera = config.process("camera").unwrap();
    assert_eq!((camera.ready.topics.len(), camera.ready.timeout.as_secs()), (1, 3));
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    let text = "[robot]\nnmae = 'x'\n[process.a]\ncommand = 'a'\nncie = 3\nqqqqqq = 1\n";
    let found = problems(text);
    assert_eq!(found[0], "2:1: unknown key 'nmae' in [robot]: did you mean 'name'?");
    assert_eq!(found[1], "5:1: unknown key 'ncie' in [process.a]: did you mean 'nice'?");
    assert!(found[2].starts_with("6:1: unknown key 'qqqqqq' in [process.a]: it can have after,"));
    let found = problems("[proces.a]\ncommand = 'a'\n");
    assert!(found.iter().any(|p| p.contains("did you mean 'process'?")), "{found:?}");
}

#[test]
fn every_fault_is_told_with_its_place() {
    let text = "\
[process.a]
command = []
kind = \"cor\"
after = [\"b\", \"c\"]
nice = 99
memory = \"lots\"
cores = [0, -1]
[process.b]
grace = \"soon\"
backoff = { first = \"2s\", max = \"1s\", limit = -1 }
stop_signal = 9
";
    let found = problems(text);
    let expect = [
        "2:11: an empty command: name the program to run",
        "3:8: 'kind' in [process.a] is unknown: did you mean \"core\"? It can be",
        "4:15: 'a' starts after 'c', but there is no process 'c': did you mean 'a'?",
        "5:8: 'nice' in [process.a] cannot be this integer: write a whole number from -20 to 19",
        "6:10: 'memory' in [process.a] cannot be this string: write a size like",
        "7:9: 'cores' in [process.a] cannot be this array: write numbers from 0 to 1023",
        "8:10: [process.b] has no command: add command =",
        "9:9: 'grace' in [process.b] cannot be this string: write a time like",
        "10:33: 'max' is shorter than 'first': make it at least as long",
        "10:47: 'limit' in [process.b.backoff] cannot be this integer",
        "11:15: 'stop_signal' in [process.b] is unknown: it can be \"SIGTERM\"",
    ];
    assert_eq!(found.len(), expect.len(), "{found:#?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found}\n{expect}");
    }
}

#[test]
fn rounds_cores_that_restart_and_broken_toml_are_told() {
    let a_b = "[process.a]\ncommand='a'\nafter='b'\n[process.b]\ncommand='b'\nafter='a'\n";
    assert!(problems(a_b)[0].contains("they wait for each other: a after b after a"));
    let core = "[process.a]\ncommand='a'\nkind='core'\nrestart='always'\n";
    let found = problems(core);
    assert!(found[0].starts_with("4:9: [process.a] is a core and has 'restart'"), "{found:?}");
    assert!(problems("[process.a\n")[0].starts_with("1:11: "));
    assert!(problems("")[0].contains("no process to run"));
    assert!(
        problems("[process.run]\ncommand='a'\n")[0]
            .contains("'run' is reserved for the supervisor")
    );
    assert!(problems("process = 3\n")[0].contains("'process' is not a table"));
    let none = Config::load(Path::new("/nonexistent/robot.toml")).unwrap_err();
    assert!(none.to_string().contains("it cannot be read"));
}

/// They were raised to the least that works, and nothing was said.
#[test]
fn bounds_of_logs_that_are_too_small_are_told() {
    let robot = |line: &str| format!("[robot]\n{line}\n[process.a]\ncommand = 'a'\n");
    for (line, expect) in [
        (
            "log_bytes = 4095",
            "2:13: 'log_bytes' in [robot] cannot be this integer: write a size of at least 4096 \
             bytes, like ",
        ),
        (
            "log_rate = '999 B'",
            "2:12: 'log_rate' in [robot] cannot be this string: write a size of at least 1000 \
             bytes, like ",
        ),
    ] {
        let found = problems(&robot(line));
        assert!(found.len() == 1 && found[0].starts_with(expect), "{found:?}");
    }
    let least = parse(&robot("log_bytes = '4 KiB'\nlog_rate = 1000")).unwrap();
    assert_eq!((least.log_bytes, least.log_rate), (4096, 1000));
}

/// They were waited for in vain, or could not be set.
#[test]
fn names_and_bounds_that_cannot_work_are_told() {
    let text = "\
[robot]
domain = \"bad/name\"
[process.a]
command = 'a'
ready = { topics = [\"/a\", \"bad//x\"], nodes = [\"a/b\"], services = [\"\"], timeout = \"0s\" }
heartbeat = { topics = \"b c\" }
cores = []
inherit_env = [\"A=B\", \"\"]
backoff = { factor = 100.5, jitter = 1.5 }
";
    let found = problems(text);
    let expect = [
        "2:10: 'bad/name' is not a valid domain name: use letters, digits",
        "5:27: 'bad//x' is not a valid topic name: no part of a name may be empty",
        "5:47: 'a/b' is not a valid node name: use letters, digits",
        "5:67: '' is not a valid service name: no part of a name may be empty",
        "5:82: a timeout of 0 is over before the process can be ready: write a longer one",
        "6:24: 'b c' is not a valid topic name: use letters, digits",
        "7:9: an empty list of cores: name at least one, or leave it out",
        "8:16: 'A=B' is not a valid variable name: it must not be empty or contain '=' or NUL",
        "8:23: '' is not a valid variable name: it must not be empty or contain '=' or NUL",
        "9:22: 'factor' in [process.a.backoff] cannot be this float: write a number from 1 to 100",
        "9:38: 'jitter' in [process.a.backoff] cannot be this float: write a number from 0 to 1",
    ];
    assert_eq!(found.len(), expect.len(), "{found:#?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found}\n{expect}");
    }
    let most = "[process.a]\ncommand = 'a'\nbackoff = { factor = 100, jitter = 1 }\n";
    let most = parse(most).unwrap();
    let backoff = most.process("a").unwrap().backoff;
    assert_eq!((backoff.factor, backoff.jitter), (100.0, 1.0));
}

/// The remedy named neither the units nor the limit, which was a day longer than documented.
#[test]
fn times_beyond_their_units_or_a_year_are_told_with_both() {
    let robot = |time: &str| format!("[robot]\ngrace = {time}\n[process.a]\ncommand = 'a'\n");
    for wrong in ["'366d'", "'-1s'", "-1", "31536001", "31536000.5", "'8761h'"] {
        let found = problems(&robot(wrong));
        assert!(
            found.len() == 1 && found[0].contains("in these units, from 0 to a year (\"8760h\")"),
            "{wrong}: {found:?}"
        );
    }
    for right in ["0", "'8760h'", "31536000"] {
        assert!(parse(&robot(right)).is_ok(), "{right}");
    }
}

/// The process was never found to hang.
#[test]
fn a_heartbeat_that_looks_at_nothing_is_told() {
    let with = |keys: &str| format!("[process.a]\ncommand = 'a'\nheartbeat = {{ {keys} }}\n");
    for wrong in ["node = false", "node = false, topics = []"] {
        let found = problems(&with(wrong));
        let expect = "3:22: this heartbeat looks at nothing: name topics, or leave 'node' out";
        assert!(found.len() == 1 && found[0] == expect, "{found:?}");
    }
    for right in ["topics = []", "node = false, topics = '/a'", "timeout = '1s'"] {
        assert!(parse(&with(right)).is_ok(), "{right}");
    }
}
