//! Reads `robot.toml`.
//!
//! | file | what |
//! |---|---|
//! | `spec` | what a file says, checked |
//! | `section` | tables, keys and what is unknown |
//! | `order` | who starts after whom |
//! | `values` | times, sizes, users as people write them |
//! | `problem` | messages with file, line, column and remedy |

mod order;
mod problem;
mod section;
mod spec;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

pub use problem::{ConfigError, Problem};
use problem::{Source, nearest};
use section::{Reader, Section};
pub use spec::{
    Backoff, Config, Heartbeat, InheritEnv, Kind, Orphan, ProcessSpec, Ready, Restart, Then, User,
};

/// Processes of one robot at most.
pub const PROCESSES_MAX: usize = 256;

const ORPHANS: [(&str, Orphan); 3] =
    [("adopt", Orphan::Adopt), ("stop", Orphan::Stop), ("kill", Orphan::Kill)];
const ENDS: [(&str, Then); 2] = [("stop-robot", Then::StopRobot), ("stay", Then::Stay)];
const RESTARTS: [(&str, Restart); 3] =
    [("always", Restart::Always), ("on-failure", Restart::OnFailure), ("never", Restart::Never)];

/// What `[robot]` says for every process that does not say otherwise.
struct Defaults {
    dir: PathBuf,
    env: BTreeMap<String, String>,
    grace: Duration,
    orphan: Orphan,
}

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// Everything that is wrong in it, with line, column and remedy.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(e) => {
                let source = Source { file: path, text: "" };
                let what = format!("it cannot be read: {e}");
                let remedy = "name a file that says which processes to run";
                Err(ConfigError { problems: vec![source.problem(0..0, what, remedy)] })
            }
        }
    }

    /// Reads and checks `text`, which came from `path`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let source = Source { file: path, text };
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(e) => {
                let span = e.span().unwrap_or(0..0);
                let what = e.message().replace('\n', ", ");
                let problem = source.problem(span, what, "write it as TOML 1.0 wants it");
                return Err(ConfigError { problems: vec![problem] });
            }
        };
        let reader = Reader::new(source);
        let config = read(&reader, path, root.get_ref());
        match reader.into_problems() {
            problems if problems.is_empty() => Ok(config),
            problems => Err(ConfigError { problems }),
        }
    }

    /// The process `name`.
    pub fn process(&self, name: &str) -> Option<&ProcessSpec> {
        self.processes.iter().find(|p| p.name == name)
    }
}

fn read<'a>(reader: &'a Reader<'a>, path: &Path, root: &'a DeTable<'_>) -> Config {
    let top = Section::top(reader, root);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let here = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
    let stem = path.file_stem().map_or("robot".into(), |stem| stem.to_string_lossy().into_owned());
    let mut config = Config {
        file: absolute,
        name: stem,
        domain: None,
        logs: None,
        log_bytes: 10_000_000,
        log_rate: 1_000_000,
        log_files: 3,
        watch: false,
        processes: Vec::new(),
    };
    let mut defaults = Defaults {
        dir: here.clone(),
        env: top.section("env").map(|env| variables(&env)).unwrap_or_default(),
        grace: Duration::from_secs(5),
        orphan: Orphan::Adopt,
    };
    if let Some(robot) = top.section("robot") {
        robot_section(&robot, &here, &mut config, &mut defaults);
        robot.finish();
    }
    // `process` must be asked for by its own name: sections in it are called after it.
    match top.section("process") {
        Some(all) => processes(all, &defaults, &mut config),
        None if top.get("process").is_none() => {
            let what = "no process to run";
            top.wrong(0..0, what, "add a section [process.NAME] with command = [\"program\"]");
        }
        None => {}
    }
    top.finish();
    config
}

fn robot_section(
    robot: &Section<'_, '_>,
    here: &Path,
    config: &mut Config,
    defaults: &mut Defaults,
) {
    if let Some(name) = robot.text("name") {
        if !is_name(&name) {
            let what = format!("'{name}' is not a valid robot name");
            robot.wrong(robot.place("name"), what, NAME_REMEDY);
        }
        config.name = name;
    }
    config.domain = robot.text("domain");
    if let Some(name) = &config.domain
        && let Some(remedy) = values::name_remedy(name, true)
    {
        let what = format!("'{name}' is not a valid domain name");
        robot.wrong(robot.place("domain"), what, &remedy);
    }
    config.logs = robot.text("logs").map(|dir| here.join(dir));
    config.log_bytes = robot.bytes("log_bytes", 4096).unwrap_or(config.log_bytes);
    config.log_rate = robot.bytes("log_rate", 1000).unwrap_or(config.log_rate);
    config.log_files = robot.integer("log_files", 0..101).map_or(config.log_files, |n| n as u32);
    config.watch = robot.choice("reload", &[("signal", false), ("watch", true)]).unwrap_or(false);
    if let Some(dir) = robot.text("dir") {
        defaults.dir = here.join(dir);
    }
    defaults.grace = robot.duration("grace").unwrap_or(defaults.grace);
    defaults.orphan = robot.choice("on_supervisor_death", &ORPHANS).unwrap_or(defaults.orphan);
}

const NAME_REMEDY: &str =
    "use letters, digits, '-', '_' and '.', at most 64; it must not start with '.'";

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.')
}

fn variables(env: &Section<'_, '_>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for (key, span, value) in env.entries() {
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(n) => Some(n.as_str().to_owned()),
            DeValue::Float(n) => Some(n.as_str().to_owned()),
            DeValue::Boolean(b) => Some(b.to_string()),
            _ => None,
        };
        match text {
            _ if !is_variable(key) => wrong_variable(env, span, key),
            Some(text) if !text.contains('\0') => drop(out.insert(key.to_owned(), text)),
            _ => {
                let what = format!("the value of variable {key} is not a string");
                env.wrong(value.span(), what, "write a quoted string without NUL");
            }
        }
    }
    out
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn wrong_variable(section: &Section<'_, '_>, span: Range<usize>, name: &str) {
    let what = format!("'{name}' is not a valid variable name");
    section.wrong(span, what, "it must not be empty or contain '=' or NUL");
}

fn processes(all: Section<'_, '_>, defaults: &Defaults, config: &mut Config) {
    let names: Vec<&str> = all.entries().map(|(name, ..)| name).collect();
    if names.len() > PROCESSES_MAX {
        let what = format!("{} processes", names.len());
        all.wrong(all.span.clone(), what, "use at most 256 for each robot");
    }
    let mut links = Vec::new();
    let mut specs = Vec::new();
    for (name, span, value) in all.entries() {
        if !is_name(name) || name == "run" {
            let what = format!("'{name}' is not a valid process name");
            let remedy = format!("{NAME_REMEDY}; 'run' is reserved for the supervisor");
            all.wrong(span.clone(), what, &remedy);
        }
        let Some(section) = all.section_of(name, span.clone(), value) else { continue };
        let after = section.texts("after").unwrap_or_default();
        for (other, place) in &after {
            if !names.contains(&other.as_str()) {
                let what =
                    format!("'{name}' starts after '{other}', but there is no process '{other}'");
                let remedy = match nearest(other, names.iter().copied()) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("there are {}", names.join(", ")),
                };
                section.wrong(place.clone(), what, &remedy);
            }
        }
        links.push((span, after.iter().map(|(other, _)| other.clone()).collect::<Vec<_>>()));
        specs.push(process(section, name, after.into_iter().map(|(a, _)| a).collect(), defaults));
    }
    match order::sorted(specs) {
        Ok(sorted) => config.processes = sorted,
        Err(cycle) => {
            let place = all.entries().find(|(name, ..)| *name == cycle[0]);
            let span = place.map_or(all.span.clone(), |(_, span, _)| span);
            let what = format!("they wait for each other: {}", cycle.join(" after "));
            all.wrong(span, what, "take one of them out of 'after'");
        }
    }
}

fn process(
    section: Section<'_, '_>,
    name: &str,
    after: Vec<String>,
    defaults: &Defaults,
) -> ProcessSpec {
    let kinds = [("core", Kind::Core), ("service", Kind::Service)];
    let kind = section.choice("kind", &kinds).unwrap_or(Kind::Service);
    let mut env = defaults.env.clone();
    env.extend(section.section("env").map(|env| variables(&env)).unwrap_or_default());
    let dir = section.text("dir").map_or(defaults.dir.clone(), |dir| defaults.dir.join(dir));
    let fifo = section.integer("fifo", 1..100).map(|n| n as u8);
    let nice = section.integer("nice", -20..20).map(|n| n as i8);
    if fifo.is_some() && nice.is_some() {
        let what = format!("{} has both 'fifo' and 'nice'", section.name);
        section.wrong(section.place("nice"), what, "SCHED_FIFO has no niceness: leave one out");
    }
    let user = user(&section);
    let spec = ProcessSpec {
        name: name.to_owned(),
        kind,
        command: command(&section),
        dir,
        env,
        after,
        ready: ready(&section),
        heartbeat: heartbeat(&section),
        cores: cores(&section),
        fifo,
        nice,
        memory: section.bytes("memory", 1),
        address_space: section.bytes("address_space", 1),
        inherit_env: inherit_env(&section, user.is_some()),
        core_dumps: section.flag("core_dumps").unwrap_or(false),
        user,
        stop_signal: section.choice("stop_signal", &values::SIGNALS).unwrap_or(libc::SIGTERM),
        grace: section.duration("grace").unwrap_or(defaults.grace),
        on_supervisor_death: section
            .choice("on_supervisor_death", &ORPHANS)
            .unwrap_or(defaults.orphan),
        on_end: section.choice("on_end", &ENDS).unwrap_or(match kind {
            Kind::Core => Then::StopRobot,
            Kind::Service => Then::Stay,
        }),
        restart: section.choice("restart", &RESTARTS).unwrap_or(match kind {
            Kind::Core => Restart::Never,
            Kind::Service => Restart::Always,
        }),
        backoff: backoff(&section),
    };
    if kind == Kind::Core {
        for key in ["restart", "backoff", "heartbeat"] {
            if section.place(key) != section.span {
                let what = format!("{} is a core and has '{key}'", section.name);
                let remedy = "a core is fail-stop and its own lifeline watches it: leave it out, \
                    or make it kind = \"service\"";
                section.wrong(section.place(key), what, remedy);
            }
        }
    }
    section.finish();
    spec
}

fn command(section: &Section<'_, '_>) -> Vec<String> {
    let Some(parts) = section.texts("command") else {
        if section.place("command") == section.span {
            let what = format!("{} has no command", section.name);
            section.wrong(section.span.clone(), what, "add command = [\"program\", \"argument\"]");
        }
        return Vec::new();
    };
    let span = section.place("command");
    let is_line = section.get("command").is_some_and(|v| v.get_ref().is_str());
    let parts = match parts.as_slice() {
        [(line, _)] if is_line => values::words(line),
        _ => Ok(parts.into_iter().map(|(part, _)| part).collect()),
    };
    match parts {
        Ok(parts) if parts.first().is_some_and(|p| !p.is_empty()) => {
            if parts.iter().any(|part| part.contains('\0')) {
                section.wrong(span, "a command with NUL", "leave it out");
            }
            parts
        }
        Ok(_) => {
            section.wrong(span, "an empty command", "name the program to run");
            Vec::new()
        }
        Err(e) => {
            section.wrong(
                span,
                format!("this command cannot be split into words: {e}"),
                "check quotes and escapes",
            );
            Vec::new()
        }
    }
}

fn cores(section: &Section<'_, '_>) -> Vec<usize> {
    let cores = section.integers("cores", 0..1024);
    if cores.as_ref().is_some_and(Vec::is_empty) {
        let what = "an empty list of cores";
        section.wrong(section.place("cores"), what, "name at least one, or leave it out");
    }
    let cores = cores.unwrap_or_default();
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    let cores: Vec<usize> = cores.into_iter().map(|n| n as usize).collect();
    if !cores.is_empty() && cores.iter().all(|core| *core >= online.max(configured())) {
        let what = format!("this machine has none of these cores: {cores:?}");
        section.wrong(section.place("cores"), what, &format!("use 0 to {}", configured() - 1));
    }
    cores
}

/// CPUs that the kernel knows.
fn configured() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<usize>().ok());
    last.map_or(1, |n| n + 1)
}

fn user(section: &Section<'_, '_>) -> Option<User> {
    let name = section.text("user")?;
    match values::user(&name) {
        Ok(user) => Some(user),
        Err(what) => {
            section.wrong(section.place("user"), what, "make the user, or leave the line out");
            None
        }
    }
}

/// `true`, `false`, or names; without the key all, and nothing for another user.
fn inherit_env(section: &Section<'_, '_>, other_user: bool) -> InheritEnv {
    let named = match section.get("inherit_env").map(|v| v.get_ref()) {
        None => !other_user,
        Some(DeValue::Boolean(all)) => *all,
        Some(_) => {
            let names = section.texts("inherit_env").unwrap_or_default();
            for (name, place) in names.iter().filter(|(name, _)| !is_variable(name)) {
                wrong_variable(section, place.clone(), name);
            }
            return InheritEnv::Named(names.into_iter().map(|(name, _)| name).collect());
        }
    };
    if named { InheritEnv::All } else { InheritEnv::Named(Vec::new()) }
}

/// Names in a domain; `kind` is of what.
fn names(section: &Section<'_, '_>, key: &'static str, kind: &str) -> Vec<String> {
    let names = section.texts(key).unwrap_or_default();
    for (name, place) in &names {
        if let Some(remedy) = values::name_remedy(name, kind == "node") {
            let what = format!("'{name}' is not a valid {kind} name");
            section.wrong(place.clone(), what, &remedy);
        }
    }
    names.into_iter().map(|(name, _)| name).collect()
}

fn ready(section: &Section<'_, '_>) -> Ready {
    let mut out = Ready { timeout: Duration::from_secs(30), ..Ready::default() };
    let Some(ready) = section.section("ready") else { return out };
    out.topics = names(&ready, "topics", "topic");
    out.services = names(&ready, "services", "service");
    out.nodes = names(&ready, "nodes", "node");
    out.timeout = ready.duration("timeout").unwrap_or(out.timeout);
    if out.timeout.is_zero() {
        let what = "a timeout of 0 is over before the process can be ready";
        ready.wrong(ready.place("timeout"), what, "write a longer one");
    }
    ready.finish();
    out
}

fn heartbeat(section: &Section<'_, '_>) -> Option<Heartbeat> {
    let heartbeat = section.section("heartbeat")?;
    let out = Heartbeat {
        node: heartbeat.flag("node").unwrap_or(true),
        topics: names(&heartbeat, "topics", "topic"),
        timeout: heartbeat.duration("timeout").unwrap_or(Duration::from_secs(5)),
    };
    if !out.node && out.topics.is_empty() {
        let what = "this heartbeat looks at nothing";
        heartbeat.wrong(heartbeat.place("node"), what, "name topics, or leave 'node' out");
    }
    if out.timeout < Duration::from_millis(50) {
        let what = "a heartbeat's timeout is at least 50 ms";
        heartbeat.wrong(heartbeat.place("timeout"), what, "write a longer one");
    }
    heartbeat.finish();
    Some(out)
}

fn backoff(section: &Section<'_, '_>) -> Backoff {
    let mut out = Backoff {
        first: Duration::from_millis(100),
        max: Duration::from_secs(10),
        factor: 2.0,
        jitter: 0.2,
        limit: 10,
        within: Duration::from_secs(60),
    };
    let Some(backoff) = section.section("backoff") else { return out };
    out.first = backoff.duration("first").unwrap_or(out.first);
    out.max = backoff.duration("max").unwrap_or(out.max.max(out.first));
    out.factor = backoff.float("factor", 1.0..=100.0).unwrap_or(out.factor);
    out.jitter = backoff.float("jitter", 0.0..=1.0).unwrap_or(out.jitter);
    out.limit = backoff.integer("limit", 0..1_000_001).map_or(out.limit, |n| n as u32);
    out.within = backoff.duration("within").unwrap_or(out.within);
    if out.max < out.first {
        let what = "'max' is shorter than 'first'";
        backoff.wrong(backoff.place("max"), what, "make it at least as long");
    }
    backoff.finish();
    out
}
