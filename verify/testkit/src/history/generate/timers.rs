//! What those who wait for instants and interrupts do next.

use super::Generator;
use crate::history::model::Kind;
use crate::history::step::{Handle, Verb};

/// How often a timer is due, or after what time; 0: at once, or once.
const TIMES_US: [u64; 6] = [0, 70, 1000, 3000, 20_000, 300_000];

impl Generator {
    pub(super) fn about_timers(
        &mut self,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let timers = usable(|k| matches!(k, Kind::Timer(_)));
        let interrupts = usable(|k| matches!(k, Kind::Interrupt { .. }));
        Some(match self.rng.below(20) {
            0..3 if self.rng.one_in(1 + 3 * timers.len() as u64) => {
                let after = self.pick(&TIMES_US)?;
                let period = if self.rng.one_in(2) { self.pick(&TIMES_US)? } else { after };
                (Verb::Timer, vec![self.new_handle(), after, period])
            }
            3..5 if self.rng.one_in(1 + 3 * interrupts.len() as u64) => {
                (Verb::Interrupt, vec![self.new_handle()])
            }
            0..9 => (Verb::Fired, vec![self.pick(&timers)?]),
            9 => (Verb::StopTimer, vec![self.pick(&timers)?]),
            10..14 => (Verb::Raise, vec![self.pick(&interrupts)?, self.rng.below(2)]),
            14..18 => (Verb::Clear, vec![self.pick(&interrupts)?]),
            18 => (Verb::Raised, vec![self.pick(&interrupts)?]),
            _ => (Verb::Drop, vec![self.pick(&interrupts)?]),
        })
    }
}
