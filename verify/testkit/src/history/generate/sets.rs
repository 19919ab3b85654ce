//! What those who share sets do next.

use super::Generator;
use crate::history::model::Kind;
use crate::history::step::{Handle, IDS, Verb};

impl Generator {
    pub(super) fn about_sets(
        &mut self,
        node: Handle,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let sets = usable(|k| matches!(k, Kind::Set { .. }));
        Some(match self.rng.below(20) {
            0..4 if self.rng.one_in(1 + 3 * sets.len() as u64) => {
                let capacity = if self.rng.one_in(12) { 2 } else { self.capacity };
                (Verb::Set, vec![self.new_handle(), node, self.name(), capacity])
            }
            0..11 => {
                // Around the capacity, and sometimes none.
                let id = self.rng.below(IDS.min(self.capacity + 4));
                (Verb::Insert, vec![self.pick(&sets)?, id])
            }
            11..16 => {
                let id = self.rng.below(IDS.min(self.capacity + 4));
                (Verb::Remove, vec![self.pick(&sets)?, id])
            }
            _ => (Verb::Ids, vec![self.pick(&sets)?]),
        })
    }
}
