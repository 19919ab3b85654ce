//! What those who want permits do next.

use super::{FOREVER_MS, Generator};
use crate::history::model::Kind;
use crate::history::step::{Handle, Verb};

impl Generator {
    pub(super) fn about_semaphores(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let permits = usable(|k| matches!(k, Kind::Permit { .. }));
        let semaphores = usable(|k| matches!(k, Kind::Semaphore { .. }));
        Some(match self.rng.below(20) {
            0..4 if self.rng.one_in(1 + 3 * semaphores.len() as u64) => {
                let count = if self.rng.one_in(12) { 1 + self.rng.below(4) } else { self.permits };
                (Verb::Semaphore, vec![self.new_handle(), node, self.name(), count])
            }
            0..13 => {
                let ms = if self.rng.one_in(3) { FOREVER_MS } else { wait.max(self.rng.below(2)) };
                (Verb::Acquire, vec![self.new_handle(), self.pick(&semaphores)?, ms])
            }
            13..17 => (Verb::Drop, vec![self.pick(&permits)?]),
            17 => (Verb::Unwind, vec![self.pick(&permits)?]),
            _ => (Verb::Leak, vec![self.pick(&permits)?]),
        })
    }
}
