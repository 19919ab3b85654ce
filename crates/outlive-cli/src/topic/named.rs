//! What is said of topics that a command names and that are not there.

use outlive::Domain;

use crate::absent;
use crate::exit::{Failure, note};

/// There is no topic of this name.
pub(super) fn missing(domain: &Domain, name: &str) -> Failure {
    absent::missing(domain, "topic", name, names(domain))
}

/// Says that these topics are waited for, and which others may be meant.
pub(crate) fn note_waiting(domain: &Domain, pending: &[String]) {
    for name in pending {
        let hint = absent::hint(domain, "topic", name, names(domain));
        let hint = if hint.starts_with(';') { hint } else { String::new() };
        note(format_args!("waiting for topic {name}{hint}"));
    }
}

/// The topics there are; none where they cannot be read.
pub(super) fn names(domain: &Domain) -> Vec<String> {
    domain.topics().unwrap_or_default().into_iter().map(|topic| topic.name).collect()
}
