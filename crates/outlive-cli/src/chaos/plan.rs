//! Who, what, when: made from the seed and the names before anything is done.

use std::fmt;
use std::time::Duration;

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Kill,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blow {
    /// After the begin, ns.
    pub(super) at_ns: u64,
    pub(super) name: String,
    pub(super) act: Act,
    /// How long it is stopped, ns.
    pub(super) for_ns: u64,
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, name) = (self.at_ns as f64 / 1e9, &self.name);
        match self.act {
            Act::Kill => write!(f, "{s:8.3} s  kill {name}"),
            Act::Stop => write!(f, "{s:8.3} s  stop {name} for {} ms", self.for_ns / 1_000_000),
        }
    }
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }
}

/// The blows of a run; the first one leaves time to see how things are without.
pub(super) fn blows(
    names: &[String],
    acts: &[Act],
    seed: u64,
    length: Duration,
    every: Duration,
) -> Vec<Blow> {
    let mut rng = Rng(seed);
    let every_ns = (every.as_nanos() as u64).max(10_000_000);
    let mut at_ns = every_ns / 2;
    let mut out = Vec::new();
    while at_ns < length.as_nanos() as u64 {
        let name = names[rng.below(names.len() as u64) as usize].clone();
        let act = acts[rng.below(acts.len() as u64) as usize];
        let for_ns = 50_000_000 + rng.below(950) * 1_000_000;
        out.push(Blow { at_ns, name, act, for_ns });
        at_ns += every_ns / 2 + rng.below(every_ns);
    }
    out
}

/// Names with `*` and `?`, separated by commas.
#[derive(Clone, Debug)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let all: Vec<String> = text.split(',').map(|p| p.trim().to_owned()).collect();
        if all.iter().any(String::is_empty) {
            return Err(format!("'{text}' has no name: write names like 'camera*,planner'"));
        }
        Ok(Self(all))
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether one of them matches whatever it is given.
    pub(super) fn match_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern.chars().all(|c| c == '*' || c == '?'))
    }
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was, and what it has swallowed so far.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, swallowed)) = star else { return false };
                star = Some((at, swallowed + 1));
                (p, n) = (at + 1, swallowed + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        let patterns = Patterns::new("camera*, plan?er").unwrap();
        for (name, is) in [("camera", true), ("camera-2", true), ("planner", true)] {
            assert_eq!(patterns.matches(name), is, "{name}");
        }
        assert!(!patterns.matches("core") && !patterns.matches("planer"));
        assert!(Patterns::new("a*b*c").unwrap().matches("axxbyybc"));
        assert!(!Patterns::new("a*b*c").unwrap().matches("axxbyyb"));
        for all in ["*", "**", "camera,?*"] {
            assert!(Patterns::new(all).unwrap().match_all(), "{all}");
        }
        for none in ["", ",", "a,,b"] {
            assert!(Patterns::new(none).is_err(), "{none}");
        }
    }

    #[test]
    fn the_same_seed_strikes_the_same_blows() {
        let names = ["camera", "planner"].map(String::from);
        let plan = |seed| {
            let (length, every) = (Duration::from_secs(60), Duration::from_secs(1));
            blows(&names, &[Act::Kill, Act::Stop], seed, length, every)
        };
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
        assert!((40..90).contains(&plan(7).len()), "{}", plan(7).len());
        let hit = |name: &str, act| plan(7).iter().any(|b| b.name == name && b.act == act);
        for name in &names {
            assert!(hit(name, Act::Kill) && hit(name, Act::Stop));
        }
    }
}
