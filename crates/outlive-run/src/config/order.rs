//! Who starts after whom.

use super::spec::ProcessSpec;

/// Each after those it names; names that are no process are passed over. Fails with a round of
/// names, the first one twice.
pub(crate) fn sorted(mut left: Vec<ProcessSpec>) -> Result<Vec<ProcessSpec>, Vec<String>> {
    let mut done: Vec<ProcessSpec> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |p: &ProcessSpec| p.after.iter().any(|a| left.iter().any(|o| o.name == *a));
        match left.iter().position(|p| !waits(p)) {
            Some(at) => done.push(left.remove(at)),
            None => return Err(round(&left)),
        }
    }
    Ok(done)
}

/// All of `left` wait for one of `left`, so following them comes round.
fn round(left: &[ProcessSpec]) -> Vec<String> {
    let mut path: Vec<&str> = Vec::new();
    let mut at = &left[0];
    loop {
        if let Some(from) = path.iter().position(|name| *name == at.name) {
            path.push(&at.name);
            return path[from..].iter().map(|name| (*name).to_owned()).collect();
        }
        path.push(&at.name);
        let next = left.iter().find(|o| at.after.contains(&o.name));
        match next {
            Some(next) => at = next,
            None => return path.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}
