//! What is said of a name or a domain that is not there: what was meant, where it was looked for.

use std::fs;

use outlive::{Domain, Node};

use crate::exit::{Code, Failure, note};

/// Names that are offered at most.
const OFFERED_MAX: usize = 3;

/// There is no `what` of this name among `names`.
pub(crate) fn missing(
    domain: &Domain,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = String>,
) -> Failure {
    Failure::new(Code::NotFound, format!("no {what} {name}{}", hint(domain, what, name, names)))
}

/// What follows `no topic /x`: names like it, that nobody is there, or how to list all.
pub(crate) fn hint(
    domain: &Domain,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = String>,
) -> String {
    let names: Vec<String> = names.into_iter().collect();
    let like = similar(name, &names);
    match nobody(domain) {
        _ if !like.is_empty() => format!("; did you mean {}?", like.join(" or ")),
        Some(nobody) if names.is_empty() => format!(": {nobody}"),
        _ => format!(": 'outlive {what} list' shows those that exist"),
    }
}

/// The names that `name` is most like, best first.
pub(crate) fn similar(name: &str, names: &[String]) -> Vec<String> {
    let bare = |name: &str| name.trim_start_matches('/').to_lowercase();
    let wanted = bare(name);
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let distance = |there: &String| {
        let there = bare(there);
        let typos = strsim::damerau_levenshtein(&wanted, &there);
        let is_part = wanted.len() > 2 && there.contains(&wanted) || last(&there) == last(&wanted);
        let is_like = typos * 3 <= wanted.chars().count().max(there.chars().count());
        (is_part || is_like).then_some(typos)
    };
    let mut like: Vec<_> = names.iter().filter_map(|n| Some((distance(n)?, n.clone()))).collect();
    like.sort();
    like.dedup();
    like.into_iter().take(OFFERED_MAX).map(|(_, name)| name).collect()
}

/// Says on standard error that nobody is in the domain, if so: a list of nothing explains nothing.
pub(crate) fn note_if_nobody(domain: &Domain) {
    if let Some(nobody) = nobody(domain) {
        note(nobody);
    }
}

/// Says so if no other process is in the domain, with its path and the domains beside it.
pub(crate) fn nobody(domain: &Domain) -> Option<String> {
    // One that cannot be read is somebody's.
    let nodes = domain.nodes().ok()?;
    if nodes.iter().any(|node| node.pid != std::process::id()) {
        return None;
    }
    let (dir, name) = (domain.dir(), domain.name());
    let root = dir.parent()?;
    let mut others = beside(domain);
    let none = others.is_empty();
    others.retain(|other| {
        let other = Domain::of(&Node::builder().root(root).domain(other));
        // As above.
        !other.and_then(|other| other.nodes()).is_ok_and(|nodes| nodes.iter().all(|n| !n.alive))
    });
    let there = match others.as_slice() {
        [] if none => format!("; {} has no other domain", root.display()),
        [] => format!("; nor in another of {}", root.display()),
        others => format!("; other domains there: {}", others.join(", ")),
    };
    Some(format!("nobody is in domain {name} ({}){there}", dir.display()))
}

/// The other domains of the same root, those with nobody in them too.
pub(crate) fn beside(domain: &Domain) -> Vec<String> {
    let (own, root) = (domain.dir().file_name(), domain.dir().parent());
    let entries = root.and_then(|root| fs::read_dir(root).ok()).into_iter().flatten().flatten();
    let other = |e: &fs::DirEntry| e.path().join("nodes").is_dir() && Some(&*e.file_name()) != own;
    let names = entries.filter(other).map(|e| e.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_a_part_or_a_last_word_is_enough_and_nonsense_is_not() {
        let names = ["/speed", "/camera/front", "/camera/rear", "/arm/goal"].map(String::from);
        let of = |name: &str| similar(name, &names).join(" ");
        for (typed, meant) in [
            ("/sped", "/speed"),
            ("speed", "/speed"),
            ("/Speed", "/speed"),
            ("/spede", "/speed"),
            ("camera", "/camera/rear /camera/front"),
            ("/front", "/camera/front"),
            ("/robot/goal", "/arm/goal"),
            ("/zzz", ""),
            ("/a", ""),
        ] {
            assert_eq!(of(typed), meant, "{typed}");
        }
    }
}
