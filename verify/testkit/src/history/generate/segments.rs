//! What those who share segments do next.

use super::Generator;
use crate::history::member::{LINES, PLACED};
use crate::history::model::Kind;
use crate::history::step::{Handle, Verb};

impl Generator {
    pub(super) fn about_segments(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let segments = usable(|k| matches!(k, Kind::Segment { .. }));
        // What lies in one is used as it would be elsewhere.
        if !segments.is_empty() && self.rng.one_in(2) {
            return match self.rng.below(8) {
                0..4 => self.about_locks(node, wait, usable),
                4 => self.about_sets(node, usable),
                5 => self.about_semaphores(node, wait, usable),
                _ => {
                    let condvars = usable(|k| matches!(k, Kind::Condvar { .. }));
                    let guards = usable(|k| matches!(k, Kind::Guard { reads: false, .. }));
                    self.about_condvars(node, &condvars, &guards)
                }
            };
        }
        Some(match self.rng.below(20) {
            0..4 if self.rng.one_in(1 + 3 * segments.len() as u64) => {
                let large = if self.rng.one_in(12) { 1 - self.large } else { self.large };
                let value = self.rng.below(3);
                (Verb::Segment, vec![self.new_handle(), node, self.name(), large, value])
            }
            0..9 => {
                let what = self.rng.below(PLACED.len() as u64);
                // Few places and sizes: others find it there. Sometimes it does not fit.
                let line = match (self.large, what) {
                    (1, 1) => 20 + 70 * self.rng.below(3),
                    (1, _) if self.rng.one_in(6) => 1 + self.rng.below(LINES[1] + 4),
                    _ if self.rng.one_in(6) => 1 + self.rng.below(LINES[0] + 4),
                    _ => 1 + 3 * what,
                };
                let count = match what {
                    3 => self.permits,
                    _ => self.capacity,
                };
                let count = if self.rng.one_in(12) { 2 } else { count };
                (Verb::Place, vec![self.new_handle(), self.pick(&segments)?, line, what, count])
            }
            9..13 => {
                self.next_value += 1;
                let at = self.rng.below(8);
                (Verb::Poke, vec![self.pick(&segments)?, at, self.next_value])
            }
            13..17 => (Verb::Peek, vec![self.pick(&segments)?]),
            17..19 => (Verb::Drop, vec![self.pick(&segments)?]),
            _ => (Verb::RemoveSegment, vec![node, self.name()]),
        })
    }
}
