//! What the ends of real-time channels do next.

use super::{FOREVER_MS, Generator};
use crate::history::model::Kind;
use crate::history::step::{Handle, Verb};

impl Generator {
    pub(super) fn about_rt(
        &mut self,
        node: Handle,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let new = usable(|k| matches!(k, Kind::End(e) if !e.connected));
        let writers = usable(|k| matches!(k, Kind::End(e) if e.connected && e.writer));
        let readers = usable(|k| matches!(k, Kind::End(e) if e.connected && !e.writer));
        let both = [&writers[..], &readers[..]].concat();
        // Whoever waits first meets the other one.
        if !new.is_empty() && self.rng.one_in(2) {
            return Some((Verb::Connect, vec![self.pick(&new)?, FOREVER_MS]));
        }
        let open = both.is_empty() || self.rng.one_in(4);
        Some(match if open { self.rng.below(20) } else { 8 + self.rng.below(12) } {
            0..4 => {
                let depth = match self.rng.below(16) {
                    0..8 => 0,
                    8 => 8,
                    _ => 4,
                };
                let writer = self.rng.below(2);
                let args = [self.new_handle(), node, self.name(), depth, writer];
                (Verb::RtOpen, args.to_vec())
            }
            4..8 => {
                let ms = if self.rng.one_in(8) { 5 } else { FOREVER_MS };
                (Verb::Connect, vec![self.pick(&new)?, ms])
            }
            8..11 => {
                let ms = [0, 0, 3, FOREVER_MS][self.rng.below(4) as usize];
                (Verb::Reconnect, vec![self.pick(&both)?, ms])
            }
            11..15 => (Verb::Push, vec![self.pick(&writers)?, self.count()]),
            15..18 => {
                let max = if self.rng.one_in(2) { 1 + self.rng.below(3) } else { 1000 };
                (Verb::Pop, vec![self.pick(&readers)?, max])
            }
            18 => (Verb::Drop, vec![self.pick(&both)?]),
            _ => (Verb::Peer, vec![self.pick(&both)?]),
        })
    }
}
