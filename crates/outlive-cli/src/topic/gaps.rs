//! Times between the messages of a topic, from the time stamps in its publishers' rings.

use std::collections::HashMap;

use outlive::Domain;
use outlive::topic::PublisherId;
use serde::Serialize;

use crate::clock::duration_ns;

/// What is known of the gaps so far.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Number and stamp of the newest message of each publisher that was looked at.
    newest: HashMap<PublisherId, (u64, u64)>,
    seen: u64,
    sum: f64,
    squares: f64,
    min_ns: u64,
    max_ns: u64,
}

/// As printed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// Gaps that were seen: with many messages between two looks, not all.
    seen: u64,
    mean_ns: u64,
    std_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Gaps {
    /// Takes in what a publisher has in its ring; the messages before the first look do not count.
    pub(super) fn look(&mut self, domain: &Domain, topic: &str, id: PublisherId) {
        // What is gone or cannot be read has no gaps.
        let stamps = domain.publish_times(topic, id).unwrap_or_default();
        self.take(id, &stamps);
    }

    fn take(&mut self, id: PublisherId, stamps: &[(u64, u64)]) {
        let Some(last) = stamps.last() else { return };
        let Some(mut before) = self.newest.insert(id, *last) else { return };
        for &(seq, stamp_ns) in stamps {
            if seq <= before.0 {
                continue;
            }
            if seq == before.0 + 1 {
                self.add(stamp_ns.saturating_sub(before.1));
            }
            before = (seq, stamp_ns);
        }
    }

    fn add(&mut self, ns: u64) {
        self.min_ns = if self.seen == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.seen += 1;
        self.sum += ns as f64;
        self.squares += ns as f64 * ns as f64;
    }

    pub(super) fn report(&self) -> Option<Report> {
        let n = self.seen as f64;
        let mean = self.sum / n;
        (self.seen > 0).then(|| Report {
            seen: self.seen,
            mean_ns: mean as u64,
            std_ns: (self.squares / n - mean * mean).max(0.0).sqrt() as u64,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
        })
    }
}

impl Report {
    pub(super) fn mean_ns(&self) -> u64 {
        self.mean_ns
    }

    pub(super) fn text(&self) -> String {
        let [mean, std, min, max] =
            [self.mean_ns, self.std_ns, self.min_ns, self.max_ns].map(duration_ns);
        format!("gap {mean}, std {std}, {min} to {max}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlive::NodeId;

    fn id(port: u64) -> PublisherId {
        PublisherId { node: NodeId::from_raw(1), port }
    }

    #[test]
    fn only_neighbours_after_the_first_look_make_a_gap() {
        let mut gaps = Gaps::default();
        gaps.take(id(1), &[(0, 100), (1, 5_000)]);
        assert_eq!(gaps.report(), None, "that was before");
        gaps.take(id(1), &[(1, 5_000), (2, 5_010), (3, 5_040)]);
        // Messages 4 and 5 were overwritten between the looks.
        gaps.take(id(1), &[(6, 9_000), (7, 9_020)]);
        gaps.take(id(2), &[(0, 1)]);
        gaps.take(id(1), &[]);
        let Report { seen, mean_ns, std_ns, min_ns, max_ns } = gaps.report().unwrap();
        assert_eq!((seen, mean_ns, std_ns, min_ns, max_ns), (3, 20, 8, 10, 30));
    }
}
