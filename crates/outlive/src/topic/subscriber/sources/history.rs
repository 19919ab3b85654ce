//! Which messages from before it joined a subscriber receives: the youngest of the topic.
//!
//! A message's age is its time stamp; among those without one, and at the same stamp, that of its
//! publisher. Within a ring neither ever goes back, so that what is taken of each is its end.

use std::collections::BinaryHeap;

use super::source::Source;
use crate::sync::fault;

/// Lets `sources` begin so far back that together they hold the youngest `wanted` messages. Again
/// later, it only leaves out what has become too old since.
pub(in crate::topic) fn begin(sources: &mut [Source], wanted: u64) {
    let mut starts: Vec<_> = sources.iter().map(Source::end).collect();
    let key = |i: usize, start: Option<u64>| {
        let before = start?.checked_sub(1)?;
        let source: &Source = &sources[i];
        Some((source.history_time(before)?, source.birth(), i))
    };
    let mut youngest: BinaryHeap<_> =
        starts.iter().enumerate().filter_map(|(i, start)| key(i, *start)).collect();
    let mut left = wanted;
    while left > 0
        && let Some((_, _, i)) = youngest.pop()
    {
        starts[i] = starts[i].map(|start| start - 1);
        youngest.extend(key(i, starts[i]));
        left -= u64::from(!fault("history.of_each_ring"));
    }
    for (source, start) in sources.iter_mut().zip(starts) {
        if let Some(start) = start {
            source.skip_to(start);
        }
    }
}
