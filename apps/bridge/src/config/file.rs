//! Reads the bridge's file: what is carried, where to, how.

use std::path::Path;

use outlive::{Domain, Node};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::pattern::Pattern;
use super::ros2::{Ros2Config, Ros2Section};
use super::source::{ConfigError, Direction, Source};
use crate::ros2::Known;

/// What files of `[tls]` hold, by their labels.
const CERTIFICATE: [&str; 1] = ["CERTIFICATE"];
const PRIVATE_KEY: [&str; 3] = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"];
/// Rules at most.
const RULES_MAX: usize = 256;

/// Zenoh's priorities: a link sends what is more urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Urgency {
    RealTime,
    InteractiveHigh,
    InteractiveLow,
    DataHigh,
    #[default]
    Data,
    DataLow,
    Background,
}

/// How the topics of a pattern are carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopicRule {
    pub(crate) pattern: Pattern,
    pub(crate) direction: Direction,
    /// Most messages each second; more are dropped and counted.
    pub(crate) rate_hz: Option<f64>,
    /// Waits for a busy link instead of dropping.
    pub(crate) reliable: bool,
    pub(crate) priority: Urgency,
    /// Payloads of more bytes are compressed.
    pub(crate) compress_over: Option<u64>,
}

/// How the services of a pattern are carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceRule {
    pub(crate) pattern: Pattern,
    pub(crate) direction: Direction,
    /// How long a call from elsewhere may take that has no deadline of its own, ms.
    pub(crate) timeout_ms: u64,
}

/// Which queues of a pattern are carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueRule {
    pub(crate) pattern: Pattern,
    /// The way of the messages.
    pub(crate) direction: Direction,
}

/// Certificates of a link over TLS; paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// Who may be trusted.
    pub(crate) ca: Option<String>,
    /// This machine's certificate and key.
    pub(crate) certificate: Option<String>,
    pub(crate) key: Option<String>,
    /// Whether those who connect must show a certificate, too.
    pub(crate) mutual: bool,
}

/// What others may take of this machine's RAM disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Messages that the ring of a topic that comes in may hold.
    pub(crate) depth: u64,
    /// Shared memory of one publisher of what comes in, for its larger payloads; of one lane.
    pub(crate) publisher_bytes: u64,
    /// Shared memory of all of them.
    pub(crate) total_bytes: u64,
}

/// A checked file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) namespace: String,
    pub(crate) host: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) listen: Vec<String>,
    pub(crate) connect: Vec<String>,
    pub(crate) multicast: bool,
    pub(crate) lease_ms: u64,
    pub(crate) stats_ms: u64,
    pub(crate) nodes: bool,
    pub(crate) tls: Tls,
    pub(crate) limits: Limits,
    pub(crate) link_buffer_bytes: u64,
    /// What is handed on to Zenoh as it is.
    pub(crate) zenoh: Map<String, Value>,
    deny: Vec<Pattern>,
    topics: Vec<TopicRule>,
    services: Vec<ServiceRule>,
    queues: Vec<QueueRule>,
    pub(crate) ros2: Option<Ros2Config>,
}

/// Zenoh's modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Speaks with those it has a link to.
    #[default]
    Peer,
    /// Passes on between those that have no link to each other.
    Router,
    /// Has a router speak for it.
    Client,
}

impl Mode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Router => "router",
            Self::Client => "client",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    namespace: Option<Spanned<String>>,
    host: Option<Spanned<String>>,
    domain: Option<Spanned<String>>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    listen: Vec<Spanned<String>>,
    #[serde(default)]
    connect: Vec<Spanned<String>>,
    #[serde(default)]
    multicast: bool,
    lease_ms: Option<Spanned<u64>>,
    stats_ms: Option<Spanned<u64>>,
    nodes: Option<bool>,
    tls: Option<Spanned<TlsSection>>,
    #[serde(default)]
    limits: LimitsSection,
    link_buffer_bytes: Option<Spanned<u64>>,
    #[serde(default)]
    zenoh: Map<String, Value>,
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    topic: Vec<Spanned<TopicSection>>,
    #[serde(default)]
    service: Vec<Spanned<ServiceSection>>,
    #[serde(default)]
    queue: Vec<Spanned<QueueSection>>,
    ros2: Option<Ros2Section>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    ca: Option<Spanned<String>>,
    certificate: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    #[serde(default)]
    mutual: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsSection {
    depth: Option<Spanned<u64>>,
    publisher_bytes: Option<Spanned<u64>>,
    total_bytes: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicSection {
    pattern: Spanned<String>,
    #[serde(default)]
    direction: Direction,
    rate_hz: Option<Spanned<f64>>,
    #[serde(default)]
    reliable: bool,
    #[serde(default)]
    priority: Urgency,
    compress_over: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceSection {
    pattern: Spanned<String>,
    #[serde(default)]
    direction: Direction,
    timeout_ms: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueSection {
    pattern: Spanned<String>,
    #[serde(default)]
    direction: Direction,
}

impl Config {
    /// Reads and checks the file at `path`; `known` are types of ROS that are known besides those
    /// that it names.
    pub(crate) fn load(path: &Path, known: Known) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| ConfigError {
            file: file.clone(),
            line: 1,
            column: 1,
            what: format!("it cannot be read: {e}"),
            remedy: "name a file that says what to carry".into(),
        })?;
        Self::parse(&file, &text, known)
    }

    /// Reads and checks `text`, which came from `file`; tells the first thing that is wrong.
    pub(crate) fn parse(file: &str, text: &str, known: Known) -> Result<Self, ConfigError> {
        let source = Source { file, text };
        let read: File = toml::from_str(text).map_err(|e| {
            let what = e.message().trim().replace('\n', ", ");
            source.wrong(e.span().unwrap_or(0..0), what, "docs/book/bridge.md lists all keys")
        })?;
        read.check(&source, known)
    }

    /// The rule for the topic `name`; none when it is not carried.
    pub(crate) fn topic(&self, name: &str) -> Option<&TopicRule> {
        let denied = self.deny.iter().any(|pattern| pattern.matches(name));
        self.topics.iter().find(|rule| !denied && rule.pattern.matches(name))
    }

    /// The rule for the service `name`; none when it is not carried.
    pub(crate) fn service(&self, name: &str) -> Option<&ServiceRule> {
        let denied = self.deny.iter().any(|pattern| pattern.matches(name));
        self.services.iter().find(|rule| !denied && rule.pattern.matches(name))
    }

    /// The rule for the queue `name`; none when it is not carried.
    pub(crate) fn queue(&self, name: &str) -> Option<&QueueRule> {
        let denied = self.deny.iter().any(|pattern| pattern.matches(name));
        self.queues.iter().find(|rule| !denied && rule.pattern.matches(name))
    }
}

/// How others are met.
#[derive(Clone, Copy)]
struct Reach<'a> {
    listen: &'a [String],
    connect: &'a [String],
    multicast: bool,
}

impl Source<'_> {
    fn endpoints(&self, all: Vec<Spanned<String>>) -> Result<Vec<String>, ConfigError> {
        for endpoint in &all {
            let text = endpoint.get_ref();
            let rest = text.strip_prefix("tcp/").or(text.strip_prefix("tls/"));
            let parts = rest.and_then(|rest| rest.rsplit_once(':'));
            let is_port = |port: &str| port.parse::<u16>().is_ok();
            let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
            if !parts.is_some_and(|(host, port)| is_host(host) && is_port(port)) {
                let what = format!("'{text}' is not a valid address");
                let remedy = "write it like \"tcp/10.0.0.2:7447\" or \"tls/robot:7447\"";
                return Err(self.wrong(endpoint.span(), what, remedy));
            }
        }
        Ok(all.into_iter().map(Spanned::into_inner).collect())
    }

    /// What Zenoh would refuse, or quietly do without.
    fn tls(&self, tls: Option<Spanned<TlsSection>>, reach: Reach<'_>) -> Result<Tls, ConfigError> {
        let span = tls.as_ref().map_or(0..0, Spanned::span);
        let given = tls.is_some();
        let tls = tls.map(Spanned::into_inner).unwrap_or_default();
        let is_tls = |all: &[String]| all.iter().any(|endpoint| endpoint.starts_with("tls/"));
        let wrong = |what: &str, remedy: &str| Err(self.wrong(span.clone(), what, remedy));
        if tls.certificate.is_some() != tls.key.is_some() {
            return wrong("a certificate and its key belong together", "name both, or neither");
        }
        if tls.mutual && (tls.certificate.is_none() || tls.ca.is_none()) {
            let remedy = "add ca, certificate and key: each side shows one and checks the other's";
            return wrong("mutual = true without certificates", remedy);
        }
        if is_tls(reach.listen) && tls.certificate.is_none() {
            let remedy = "add [tls] with certificate and key, which those who connect are shown";
            return wrong("it listens over tls/ without a certificate", remedy);
        }
        if given && !is_tls(reach.listen) && !is_tls(reach.connect) && !reach.multicast {
            let remedy = "write tls/HOST:PORT in listen or connect, or take [tls] away";
            return wrong("no address begins with tls/: nothing would be encrypted", remedy);
        }
        let TlsSection { ca, certificate, key, mutual } = tls;
        Ok(Tls {
            ca: self.pem("ca", ca, &CERTIFICATE)?,
            certificate: self.pem("certificate", certificate, &CERTIFICATE)?,
            key: self.pem("key", key, &PRIVATE_KEY)?,
            mutual,
        })
    }

    /// A file of one of these in PEM, which Zenoh would look for only once it links.
    fn pem(
        &self,
        key: &str,
        path: Option<Spanned<String>>,
        labels: &[&str],
    ) -> Result<Option<String>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        let (span, path) = (path.span(), path.into_inner());
        let bytes = std::fs::read(&path).map_err(|e| {
            let what = format!("{key} '{path}' cannot be read: {e}");
            self.wrong(span.clone(), what, "name a file in PEM that this user may read")
        })?;
        let text = String::from_utf8_lossy(&bytes);
        let holds = |label: &&str| {
            let ends = ["BEGIN", "END"].map(|at| text.find(&format!("-----{at} {label}-----")));
            matches!(ends, [Some(begin), Some(end)] if begin < end)
        };
        if !labels.iter().any(holds) {
            let what = format!("{key} '{path}' holds no {} in PEM", labels[0]);
            let remedy = format!("it has a line -----BEGIN {}-----, and one with END", labels[0]);
            return Err(self.wrong(span, what, &remedy));
        }
        Ok(Some(path))
    }

    /// Whether anybody can be met.
    fn reach(&self, mode: Mode, reach: Reach<'_>) -> Result<(), ConfigError> {
        let Reach { listen, connect, multicast } = reach;
        let wrong = |what: &str, remedy: &str| Err(self.wrong(0..0, what, remedy));
        if listen.is_empty() && connect.is_empty() && !multicast {
            let remedy = "add connect = [\"tcp/ADDRESS:7447\"], listen, or multicast = true";
            return wrong("it reaches nobody", remedy);
        }
        if mode == Mode::Client && !listen.is_empty() {
            let remedy = "name its router in connect, or take mode = \"peer\"";
            return wrong("a client listens nowhere", remedy);
        }
        if multicast && mode != Mode::Client && listen.is_empty() && connect.is_empty() {
            let remedy = "add listen = [\"tcp/0.0.0.0:0\"] (any free port) on each machine";
            return wrong("multicast only finds those that listen", remedy);
        }
        Ok(())
    }

    /// A name of one part, or with `parts` of several, without '/' in front.
    fn plain(&self, text: &Spanned<String>, parts: bool) -> Result<String, ConfigError> {
        let name = text.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let fine = |part: &str| !["", ".", ".."].contains(&part) && part.chars().all(plain);
        if name.len() > 64 || !name.split('/').all(fine) || (!parts && name.contains('/')) {
            let remedy = if parts { "parts separated by '/', " } else { "" };
            let remedy = format!(
                "use {remedy}letters, digits, '_', '-' and '.', at most 64; not '.' or '..' alone"
            );
            return Err(self.wrong(text.span(), format!("'{name}' is not a valid name"), &remedy));
        }
        Ok(name.clone())
    }

    fn domain(&self, text: Spanned<String>) -> Result<String, ConfigError> {
        match domain_fault(text.get_ref()) {
            None => Ok(text.into_inner()),
            Some(why) => {
                let what = format!("'{}' is not a valid domain name", text.get_ref());
                Err(self.wrong(text.span(), what, &why))
            }
        }
    }
}

/// Why no domain can have that name.
pub(crate) fn domain_fault(name: &str) -> Option<String> {
    // Nothing is looked at but the name.
    let settings = Node::builder().root("/dev/shm").domain(name);
    Domain::of(&settings).err().map(|e| e.to_string())
}

impl File {
    fn check(self, source: &Source<'_>, known: Known) -> Result<Config, ConfigError> {
        let Some(namespace) = &self.namespace else {
            let remedy = "add namespace = \"fleet\": bridges of one namespace find each other";
            return Err(source.wrong(0..0, "no namespace", remedy));
        };
        let namespace = source.plain(namespace, true)?;
        let host = self.host.as_ref().map(|host| source.plain(host, false)).transpose()?;
        let (listen, connect) = (source.endpoints(self.listen)?, source.endpoints(self.connect)?);
        let reach = Reach { listen: &listen, connect: &connect, multicast: self.multicast };
        source.reach(self.mode, reach)?;
        let tls = source.tls(self.tls, reach)?;
        let LimitsSection { depth, publisher_bytes, total_bytes } = self.limits;
        let limits = Limits {
            depth: source.number(depth, 4096, 1..=65_536)?,
            publisher_bytes: source.number(publisher_bytes, 512 << 20, 1 << 16..=1 << 40)?,
            total_bytes: source.number(total_bytes, 1 << 30, 1 << 20..=1 << 40)?,
        };
        let deny: Vec<_> = self.deny.iter().map(|p| source.pattern(p)).collect::<Result<_, _>>()?;
        if self.topic.len() + self.service.len() + self.queue.len() > RULES_MAX {
            let last = self.topic.last().map_or(0..0, Spanned::span);
            return Err(source.wrong(last, "too many sections", "use at most 256"));
        }
        let mut topics = Vec::new();
        for section in self.topic {
            let section = section.into_inner();
            let pattern = source.pattern(&section.pattern)?;
            source.rate(section.rate_hz.as_ref())?;
            topics.push(TopicRule {
                pattern,
                direction: section.direction,
                rate_hz: section.rate_hz.map(Spanned::into_inner),
                reliable: section.reliable,
                priority: section.priority,
                compress_over: section.compress_over,
            });
        }
        let mut services = Vec::new();
        for section in self.service {
            let section = section.into_inner();
            let pattern = source.pattern(&section.pattern)?;
            let timeout_ms = source.number(section.timeout_ms, 10_000, 1..=3_600_000)?;
            services.push(ServiceRule { pattern, direction: section.direction, timeout_ms });
        }
        let mut queues = Vec::new();
        for section in self.queue {
            let section = section.into_inner();
            let pattern = source.pattern(&section.pattern)?;
            queues.push(QueueRule { pattern, direction: section.direction });
        }
        let ros2 = self.ros2.map(|section| section.check(source, known, deny.clone()));
        let ros2 = ros2.transpose()?;
        let no_ros = ros2.as_ref().is_none_or(Ros2Config::is_empty);
        if topics.is_empty() && services.is_empty() && queues.is_empty() && no_ros {
            let remedy = "add [[topic]] or [[ros2.topic]] with pattern = \"/camera/**\"";
            return Err(source.wrong(0..0, "it carries nothing", remedy));
        }
        Ok(Config {
            namespace,
            host,
            domain: self.domain.map(|domain| source.domain(domain)).transpose()?,
            mode: self.mode,
            listen,
            connect,
            multicast: self.multicast,
            lease_ms: source.number(self.lease_ms, 1000, 100..=60_000)?,
            stats_ms: source.number(self.stats_ms, 1000, 100..=3_600_000)?,
            nodes: self.nodes.unwrap_or(true),
            tls,
            limits,
            link_buffer_bytes: source.number(self.link_buffer_bytes, 65_536, 4096..=1 << 26)?,
            zenoh: self.zenoh,
            deny,
            topics,
            services,
            queues,
            ros2,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    const HEAD: &str = "namespace = \"fleet\"\nlisten = [\"tcp/0.0.0.0:7447\"]\n";

    fn said(rest: &str) -> String {
        match Config::parse("b.toml", &format!("{HEAD}{rest}"), Known::default()) {
            Ok(config) => format!("{config:?}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts_and_deny_beats_all() {
        let config = Config::parse(
            "b.toml",
            &format!(
                "{HEAD}deny = [\"/camera/raw/**\"]\n\
                 [[topic]]\npattern = \"/camera/front\"\nrate_hz = 5.0\ndirection = \"out\"\n\
                 [[topic]]\npattern = \"/camera/**\"\nreliable = true\n"
            ),
            Known::default(),
        )
        .expect("a good file");
        let front = config.topic("/camera/front").expect("carried");
        assert_eq!((front.rate_hz, front.reliable), (Some(5.0), false));
        assert!(front.direction.goes_out() && !front.direction.comes_in());
        assert!(config.topic("/camera/left").expect("carried").reliable);
        assert!(config.topic("/camera/raw/left").is_none());
        assert!(config.topic("/pose").is_none());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_remedy() {
        for (rest, expected) in [
            (
                "[[topic]]\npattern = \"x\"\n",
                "b.toml:4:11: 'x' is not a valid pattern: it does not start with '/'",
            ),
            ("topics = 1\n", "b.toml:3:1: unknown field `topics`, expected one of"),
            (
                "[[topic]]\npattern = \"/x\"\nrate_hz = 0.0\n",
                "b.toml:5:11: a rate of 0 messages per",
            ),
            ("lease_ms = 5\n[[topic]]\npattern = \"/x\"\n", "b.toml:3:12: 5 is out of range: use"),
            ("[limits]\ndepth = 0\n", "b.toml:4:9: 0 is out of range: use 1 to 65536"),
            ("connect = [\"10.0.0.1\"]\n", "b.toml:3:12: '10.0.0.1' is not a valid address: write"),
            ("connect = [\"tcp/robot:70000\"]\n", "b.toml:3:12: 'tcp/robot:70000' is not a valid"),
            ("", "b.toml:1:1: it carries nothing: add [[topic]]"),
            ("[[topic]]\n", "b.toml:3:1: missing field `pattern`"),
            ("[[topic\n", "b.toml:3:"),
        ] {
            let said = said(rest);
            assert!(said.starts_with(expected), "{rest:?} says {said}");
        }
        for (key, name) in [
            ("namespace", "fleet/.."),
            ("namespace", "."),
            ("host", ".."),
            ("domain", "a/b"),
            ("domain", ".."),
            ("domain", ""),
        ] {
            let head = if key == "namespace" { "" } else { "namespace = \"n\"\n" };
            let text = format!(
                "{key} = \"{name}\"\n{head}multicast = true\nlisten = [\"tcp/a:1\"]\n\
                 [[topic]]\npattern = \"/**\"\n"
            );
            let said = Config::parse("b.toml", &text, Known::default()).map(drop);
            let said = said.expect_err("no such name").to_string();
            let expected = format!("b.toml:1:{}: '{name}' is not a valid ", key.len() + 4);
            assert!(said.starts_with(&expected), "{key} {name} says {said}");
        }
        let none =
            Config::parse("b.toml", "", Known::default()).expect_err("nothing in it").to_string();
        assert!(none.contains("no namespace: add namespace"), "{none}");
    }

    #[test]
    fn a_file_that_cannot_work_is_refused() {
        let pem = Pem::new();
        let (ca, certificate) = (pem.line("ca"), pem.line("certificate") + &pem.line("key"));
        for (reach, expected) in [
            ("multicast = true\n".into(), "multicast only finds those that listen: add listen"),
            (
                "mode = \"client\"\nlisten = [\"tcp/a:1\"]\n".into(),
                "a client listens nowhere: name",
            ),
            ("listen = [\"tls/a:1\"]\n".into(), "it listens over tls/ without a certificate: add"),
            ("connect = [\"tcp/a:1\"]\n[tls]\nca = \"a\"\n".into(), "nothing would be encrypted"),
            ("connect = [\"tls/a:1\"]\n[tls]\nkey = \"k\"\n".into(), "belong together: name both"),
            (
                "connect = [\"tls/a:1\"]\n[tls]\nca = \"a\"\nmutual = true\n".into(),
                "mutual = true without certificates: add ca, certificate and key",
            ),
            (
                format!("connect = [\"tls/a:1\"]\n[tls]\n{certificate}mutual = true\n"),
                "mutual = true without certificates",
            ),
        ] {
            let text = format!("namespace = \"n\"\n{reach}[[topic]]\npattern = \"/**\"\n");
            match Config::parse("b.toml", &text, Known::default()) {
                Ok(_) => panic!("taken: {text}"),
                Err(e) => assert!(e.to_string().contains(expected), "{text} says {e}"),
            }
        }
        for reach in [
            "multicast = true\nlisten = [\"tcp/0.0.0.0:0\"]\n".to_owned(),
            "multicast = true\nmode = \"client\"\n".into(),
            "connect = [\"tls/a:1\"]\n".into(),
            format!("listen = [\"tls/[::]:1\"]\n[tls]\n{ca}mutual = true\n{certificate}"),
        ] {
            let text = format!("namespace = \"n\"\n{reach}[[topic]]\npattern = \"/**\"\n");
            Config::parse("b.toml", &text, Known::default()).expect("it can work");
        }
    }

    #[test]
    fn files_of_certificates_that_cannot_be_used_are_told_with_their_key() {
        let pem = Pem::new();
        let path = |name: &str| pem.0.join(name).display().to_string();
        let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("a file");
        write("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n");
        write("binary", "0\u{3}\u{80}");
        for (key, file, expected) in [
            ("ca", "missing", "cannot be read: No such file"),
            ("ca", "", "cannot be read: Is a directory"),
            ("ca", "cut", "holds no CERTIFICATE in PEM"),
            ("ca", "key", "holds no CERTIFICATE in PEM"),
            ("certificate", "binary", "holds no CERTIFICATE in PEM"),
            ("key", "certificate", "holds no PRIVATE KEY in PEM"),
        ] {
            let lines = ["ca", "certificate", "key"].map(|of| match of == key {
                true => format!("{key} = \"{}\"\n", path(file)),
                false => pem.line(of),
            });
            let lines = lines.concat();
            let text = format!(
                "namespace = \"n\"\nlisten = [\"tls/a:1\"]\n[tls]\n{lines}\
                 [[topic]]\npattern = \"/**\"\n"
            );
            let e = Config::parse("b.toml", &text, Known::default()).expect_err("no such file");
            let line =
                4 + ["ca", "certificate", "key"].iter().position(|of| *of == key).unwrap_or(9);
            let place =
                format!("b.toml:{line}:{}: {key} '{}' {expected}", key.len() + 4, path(file));
            assert!(e.to_string().starts_with(&place), "{place}\n{e}");
        }
    }

    /// A folder with a certificate and a key, as far as anybody looks at them here.
    struct Pem(std::path::PathBuf);

    impl Pem {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let n = NUMBER.fetch_add(1, Relaxed);
            let name = format!("outlive-test-olb-pem-{}-{n}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            std::fs::create_dir(&dir).expect("a folder");
            for (name, of) in
                [("ca", "CERTIFICATE"), ("certificate", "CERTIFICATE"), ("key", "EC PRIVATE KEY")]
            {
                let text = format!("of ours\r\n-----BEGIN {of}-----\r\nAAAA\n-----END {of}-----");
                std::fs::write(dir.join(name), text).expect("a file");
            }
            Self(dir)
        }

        fn line(&self, key: &str) -> String {
            format!("{key} = \"{}\"\n", self.0.join(key).display())
        }
    }

    impl Drop for Pem {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
