//! Section `[ros2]` of the bridge's file.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::pattern::Pattern;
use super::source::{ConfigError, Direction, Source};
use crate::ros2::{Known, names};

/// The highest domain of ROS 2 on Linux.
const DOMAIN_MAX: u64 = 232;
/// The most that can be asked of a topic's depth.
const DEPTH_MAX: u64 = 4096;
/// Rules at most.
const RULES_MAX: usize = 256;

/// A checked section.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ros2Config {
    pub(crate) domain: u32,
    /// The bridge in the graph of ROS.
    pub(crate) node: String,
    pub(crate) namespace: String,
    /// Names here that are never carried; those of the whole file.
    deny: Vec<Pattern>,
    rules: Vec<Ros2Rule>,
    services: Vec<Ros2ServiceRule>,
    /// Types of ROS, and the user's own.
    pub(crate) known: Known,
}

/// Which topics or services, and what they are called in ROS.
#[derive(Clone, Debug, PartialEq)]
struct Names {
    pattern: Pattern,
    /// Here, and in ROS, where the names differ.
    differ: Option<(String, String)>,
}

impl Names {
    /// What `name` of here is called there; none if it is not meant.
    fn there(&self, name: &str) -> Option<String> {
        let there = self.differ.as_ref().map_or(name, |(_, there)| there);
        self.pattern.matches(name).then(|| there.to_owned())
    }

    /// The other way round.
    fn here(&self, name: &str) -> Option<String> {
        match &self.differ {
            Some((here, there)) => (there == name).then(|| here.clone()),
            None => self.pattern.matches(name).then(|| name.to_owned()),
        }
    }
}

/// How the services of a pattern are carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ros2ServiceRule {
    names: Names,
    pub(crate) direction: Direction,
    /// How long a call may take that has no deadline of its own, ms.
    pub(crate) timeout_ms: u64,
}

/// How the topics of a pattern are carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ros2Rule {
    names: Names,
    pub(crate) direction: Direction,
    /// Only messages of this type.
    pub(crate) of: Option<String>,
    /// Most messages each second that go out.
    pub(crate) rate_hz: Option<f64>,
    /// Waits for a busy link instead of dropping.
    pub(crate) reliable: bool,
    /// Messages that go out are kept for those that come later there.
    pub(crate) keeps: bool,
    /// What comes in is, where the topic here does not say it.
    pub(crate) becomes: Option<Becomes>,
    /// Of topics that are made here, and how many are kept.
    pub(crate) depth: Option<u64>,
}

impl Ros2Config {
    /// Whether it carries nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.services.is_empty()
    }

    /// Whether the topic or service `name` of this domain may be carried.
    fn allows(&self, name: &str) -> bool {
        !self.deny.iter().any(|pattern| pattern.matches(name))
    }

    /// The rule for the topic `name` of this domain, and its name in ROS.
    pub(crate) fn goes_out(&self, name: &str) -> Option<(&Ros2Rule, String)> {
        let mut all = self.rules.iter().filter_map(|rule| Some((rule, rule.names.there(name)?)));
        all.next().filter(|(rule, _)| rule.direction.goes_out() && self.allows(name))
    }

    /// The rule for a topic of ROS, and its name here.
    pub(crate) fn comes_in(&self, topic: &names::Topic) -> Option<(&Ros2Rule, String)> {
        let name = &topic.name;
        let mut all = self.rules.iter().filter_map(|rule| Some((rule, rule.names.here(name)?)));
        let (rule, here) = all.next()?;
        let fits = rule.of.as_ref().is_none_or(|of| *of == topic.of);
        (rule.direction.comes_in() && fits && self.allows(&here)).then_some((rule, here))
    }

    /// The rule for the service `name` of this domain, and its name in ROS.
    pub(crate) fn service_goes_out(&self, name: &str) -> Option<(&Ros2ServiceRule, String)> {
        let mut all = self.services.iter().filter_map(|rule| Some((rule, rule.names.there(name)?)));
        all.next().filter(|(rule, _)| rule.direction.goes_out() && self.allows(name))
    }

    /// The rule for the service `name` of ROS, and its name here.
    pub(crate) fn service_comes_in(&self, name: &str) -> Option<(&Ros2ServiceRule, String)> {
        let mut all = self.services.iter().filter_map(|rule| Some((rule, rule.names.here(name)?)));
        all.next().filter(|(rule, here)| rule.direction.comes_in() && self.allows(here))
    }
}

/// What messages become that are not to become MessagePack or a ready-made message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Becomes {
    /// CDR, as they came.
    Cdr,
    /// Of a fixed layout.
    Fixed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ros2Section {
    domain: Option<Spanned<u64>>,
    node: Option<Spanned<String>>,
    namespace: Option<Spanned<String>>,
    types: Option<Spanned<Vec<PathBuf>>>,
    #[serde(default)]
    topic: Vec<Spanned<TopicSection>>,
    #[serde(default)]
    service: Vec<Spanned<ServiceSection>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceSection {
    pattern: Spanned<String>,
    name: Option<Spanned<String>>,
    #[serde(default)]
    direction: Direction,
    timeout_ms: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicSection {
    pattern: Spanned<String>,
    name: Option<Spanned<String>>,
    #[serde(default)]
    direction: Direction,
    #[serde(rename = "type")]
    of: Option<Spanned<String>>,
    rate_hz: Option<Spanned<f64>>,
    #[serde(default)]
    reliable: bool,
    #[serde(default)]
    durability: Durability,
    encoding: Option<Becomes>,
    depth: Option<Spanned<u64>>,
}

/// What ROS calls it.
#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Durability {
    #[default]
    Volatile,
    TransientLocal,
}

impl Ros2Section {
    /// `known` is what is known besides the types that the section names; `deny` is the file's.
    pub(crate) fn check(
        self,
        source: &Source<'_>,
        mut known: Known,
        deny: Vec<Pattern>,
    ) -> Result<Ros2Config, ConfigError> {
        let domain = source.number(self.domain, 0, 0..=DOMAIN_MAX)? as u32;
        let node = match self.node {
            None => "outlive_bridge".to_owned(),
            Some(node) if !node.get_ref().contains('/') && is_name(node.get_ref()) => {
                node.into_inner()
            }
            Some(node) => {
                let what = format!("'{}' is not a valid ROS node name", node.get_ref());
                let remedy = "use letters, digits and '_'; it must not start with a digit";
                return Err(source.wrong(node.span(), what, remedy));
            }
        };
        let namespace = match self.namespace {
            None => "/".to_owned(),
            Some(at) if at.get_ref() == "/" || names::is_topic_name(at.get_ref()) => {
                at.into_inner()
            }
            Some(at) => {
                let what = format!("'{}' is not a valid ROS namespace", at.get_ref());
                return Err(source.wrong(at.span(), what, "write it like \"/robot1\""));
            }
        };
        let spans = self.topic.iter().map(Spanned::span);
        if let Some(span) = spans.chain(self.service.iter().map(Spanned::span)).nth(RULES_MAX) {
            return Err(source.wrong(span, "too many sections", "use at most 256"));
        }
        if let Some(types) = self.types
            && let Err(e) = known.add(types.get_ref())
        {
            let remedy = "name .msg and .srv files without faults, or directories that have some";
            return Err(source.wrong(types.span(), e.to_string(), remedy));
        }
        let rules = self.topic.into_iter().map(|s| s.into_inner().check(source, &known));
        let rules = rules.collect::<Result<_, _>>()?;
        let services = self.service.into_iter().map(|section| section.into_inner().check(source));
        let services = services.collect::<Result<_, _>>()?;
        Ok(Ros2Config { domain, node, namespace, deny, rules, services, known })
    }
}

impl ServiceSection {
    fn check(self, source: &Source<'_>) -> Result<Ros2ServiceRule, ConfigError> {
        Ok(Ros2ServiceRule {
            names: names_of(source, &self.pattern, self.name.as_ref())?,
            direction: self.direction,
            timeout_ms: source.number(self.timeout_ms, 10_000, 1..=3_600_000)?,
        })
    }
}

fn names_of(
    source: &Source<'_>,
    pattern: &Spanned<String>,
    name: Option<&Spanned<String>>,
) -> Result<Names, ConfigError> {
    let differ = match name {
        None => None,
        Some(name) if pattern.get_ref().contains('*') => {
            let what = "one name for a pattern of many";
            let remedy = "name only one in 'pattern', or leave 'name' out";
            return Err(source.wrong(name.span(), what, remedy));
        }
        Some(name) if names::is_topic_name(name.get_ref()) => {
            Some((pattern.get_ref().clone(), name.get_ref().clone()))
        }
        Some(name) => {
            let what = format!("'{}' is not a valid ROS name", name.get_ref());
            let remedy = "start each part with '/' and use letters, digits and '_'";
            return Err(source.wrong(name.span(), what, remedy));
        }
    };
    Ok(Names { pattern: source.pattern(pattern)?, differ })
}

impl TopicSection {
    fn check(self, source: &Source<'_>, known: &Known) -> Result<Ros2Rule, ConfigError> {
        let names = names_of(source, &self.pattern, self.name.as_ref())?;
        if let Some(of) = &self.of
            && known.hash(of.get_ref()).is_none()
        {
            let what = format!("'{}' is not a message known here", of.get_ref());
            let remedy = "outlive-bridge --ros2-types lists them; name its file with 'types'";
            return Err(source.wrong(of.span(), what, remedy));
        }
        source.rate(self.rate_hz.as_ref())?;
        Ok(Ros2Rule {
            names,
            direction: self.direction,
            of: self.of.map(Spanned::into_inner),
            rate_hz: self.rate_hz.map(Spanned::into_inner),
            reliable: self.reliable,
            keeps: self.durability == Durability::TransientLocal,
            becomes: self.encoding,
            depth: match self.depth {
                None => None,
                depth => Some(source.number(depth, 1, 1..=DEPTH_MAX)?),
            },
        })
    }
}

fn is_name(name: &str) -> bool {
    names::is_topic_name(&format!("/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const HEAD: &str = "namespace = \"fleet\"\nconnect = [\"tcp/127.0.0.1:7447\"]\n[ros2]\n";

    fn read(rest: &str) -> Result<Ros2Config, String> {
        let read = Config::parse("b.toml", &format!("{HEAD}{rest}"), Known::default())
            .map_err(|e| e.to_string())?;
        read.ros2.ok_or_else(|| "no section".into())
    }

    fn topic(name: &str, of: &str) -> names::Topic {
        Known::default().topic(name, of).expect("a known type")
    }

    #[test]
    fn names_and_types_are_mapped_both_ways() {
        let config = read(
            "domain = 7\n[[ros2.topic]]\npattern = \"/drive\"\nname = \"/cmd_vel\"\n\
             type = \"geometry_msgs/msg/Twist\"\ndirection = \"in\"\n\
             [[ros2.topic]]\npattern = \"/camera/**\"\ndirection = \"out\"\nreliable = true\n\
             [[ros2.topic]]\npattern = \"/tf\"\n\
             [[ros2.topic]]\npattern = \"/map\"\ndurability = \"transient_local\"\ndepth = 1\n",
        )
        .expect("a good file");
        let (rule, _) = config.goes_out("/map").expect("it");
        assert!(rule.keeps && rule.depth == Some(1));
        assert_eq!((config.domain, config.node.as_str()), (7, "outlive_bridge"));
        let (_, here) = config.comes_in(&topic("/cmd_vel", "geometry_msgs/msg/Twist")).expect("it");
        assert_eq!(here, "/drive");
        assert!(config.comes_in(&topic("/cmd_vel", "geometry_msgs/msg/TwistStamped")).is_none());
        assert!(config.comes_in(&topic("/drive", "geometry_msgs/msg/Twist")).is_none());
        assert!(config.goes_out("/drive").is_none(), "it only comes in");
        let (rule, there) = config.goes_out("/camera/left").expect("it");
        assert!(rule.reliable && !rule.keeps && there == "/camera/left");
        assert_eq!(rule.depth, None);
        assert!(config.comes_in(&topic("/camera/left", "sensor_msgs/msg/Image")).is_none());
        assert!(config.goes_out("/tf").is_some());
        assert!(config.comes_in(&topic("/tf", "tf2_msgs/msg/TFMessage")).is_some());
    }

    #[test]
    fn names_of_services_are_mapped_both_ways() {
        let config = read(
            "[[ros2.service]]\npattern = \"/stop\"\nname = \"/robot1/stop\"\ndirection = \"out\"\n\
             [[ros2.service]]\npattern = \"/map/*\"\ndirection = \"in\"\ntimeout_ms = 500\n",
        )
        .expect("a good file");
        let (rule, there) = config.service_goes_out("/stop").expect("it");
        assert_eq!((there.as_str(), rule.timeout_ms), ("/robot1/stop", 10_000));
        assert!(config.service_comes_in("/robot1/stop").is_none(), "it only goes out");
        assert!(config.service_comes_in("/stop").is_none());
        let (rule, here) = config.service_comes_in("/map/get").expect("it");
        assert_eq!((here.as_str(), rule.timeout_ms), ("/map/get", 500));
        assert!(config.service_goes_out("/map/get").is_none(), "it only comes in");
        assert!(config.goes_out("/stop").is_none(), "a service is not a topic");
    }

    #[test]
    fn what_is_denied_here_is_carried_neither_way() {
        let rules = "[[ros2.topic]]\npattern = \"/drive\"\nname = \"/cmd_vel\"\n\
            [[ros2.topic]]\npattern = \"/**\"\n\
            [[ros2.service]]\npattern = \"/stop\"\nname = \"/halt\"\n\
            [[ros2.service]]\npattern = \"/**\"\n";
        let deny = "deny = [\"/camera/raw/**\", \"/drive\", \"/stop\"]\n";
        let text = format!("{deny}{HEAD}{rules}");
        let read = Config::parse("b.toml", &text, Known::default()).expect("a good file");
        let config = read.ros2.expect("its section");
        let image = |name| topic(name, "sensor_msgs/msg/Image");
        assert!(config.goes_out("/camera/raw/left").is_none());
        assert!(config.comes_in(&image("/camera/raw/left")).is_none());
        assert!(config.service_goes_out("/camera/raw/set").is_none());
        assert!(config.service_comes_in("/camera/raw/set").is_none());
        // By its name here, not by that in ROS.
        assert!(config.comes_in(&topic("/cmd_vel", "geometry_msgs/msg/Twist")).is_none());
        assert!(config.service_comes_in("/halt").is_none());
        assert!(config.goes_out("/cmd_vel").is_some(), "it is another topic here");
        assert!(config.service_goes_out("/halt").is_some());
        assert!(config.goes_out("/camera/left").is_some());
        assert!(config.comes_in(&image("/camera/left")).is_some());
        assert!(config.service_goes_out("/map/get").is_some());
        assert!(config.service_comes_in("/map/get").is_some());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_remedy() {
        for (rest, expected) in [
            ("domain = 233\n", "b.toml:4:10: 233 is out of range: use 0 to 232"),
            ("node = \"a/b\"\n", "b.toml:4:8: 'a/b' is not a valid ROS node name: use"),
            ("namespace = \"x\"\n", "b.toml:4:13: 'x' is not a valid ROS namespace: write"),
            ("", "b.toml:1:1: it carries nothing: add [[topic]]"),
            ("[[ros2.topic]]\npattern = \"/x\"\ntype = \"a/b\"\n", "b.toml:6:8: 'a/b' is not a m"),
            ("[[ros2.topic]]\npattern = \"/x\"\nname = \"y\"\n", "b.toml:6:8: 'y' is not a valid"),
            ("[[ros2.topic]]\npattern = \"/*\"\nname = \"/y\"\n", "b.toml:6:8: one name for a"),
            ("[[ros2.topic]]\npattern = \"/x\"\ndepth = 0\n", "b.toml:6:9: 0 is out of range"),
            (
                "[[ros2.topic]]\npattern = \"/x\"\nrate_hz = -1.0\n",
                "b.toml:6:11: a rate of -1 messages",
            ),
            ("[[ros2.topics]]\n", "b.toml:4:"),
            ("[[ros2.topic]]\npattern = \"/x\"\ndurability = \"long\"\n", "b.toml:6:14: unknown"),
            ("[[ros2.service]]\npattern = \"/x\"\ntimeout_ms = 0\n", "b.toml:6:14: 0 is out of r"),
            ("[[ros2.service]]\npattern = \"/*\"\nname = \"/y\"\n", "b.toml:6:8: one name for"),
        ] {
            let said = read(rest).expect_err(rest);
            assert!(said.starts_with(expected), "{rest:?} says {said}");
        }
    }
}
