//! What clients and servers do next.

use super::{FOREVER_MS, Generator};
use crate::history::model::Kind;
use crate::history::step::{Handle, Verb};

impl Generator {
    pub(super) fn about_services(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let clients = usable(|k| matches!(k, Kind::Client(_)));
        let servers = usable(|k| matches!(k, Kind::Server(_)));
        let tickets = usable(|k| matches!(k, Kind::Ticket { .. }));
        let requests = usable(|k| matches!(k, Kind::Request(_)));
        // Whoever is asked answers, most of the time.
        if !requests.is_empty() && self.rng.one_in(3) {
            return self.answer(&requests);
        }
        Some(match self.rng.below(40) {
            0..4 if clients.is_empty() || self.rng.one_in(6) => {
                let resume = u64::from(self.rng.one_in(3));
                let args = [self.new_handle(), node, self.name(), resume, self.type_()];
                (Verb::Client, args.to_vec())
            }
            4..9 if servers.is_empty() || self.rng.one_in(20) => {
                (Verb::Server, vec![self.new_handle(), node, self.name(), self.type_()])
            }
            0..16 => {
                let late = u64::from(self.rng.one_in(10));
                (Verb::Ask, vec![self.new_handle(), self.pick(&clients)?, self.words(), late])
            }
            16 => (Verb::Call, vec![self.pick(&clients)?, self.words(), 3]),
            17..23 => (Verb::Replies, vec![self.pick(&clients)?, wait]),
            23..25 => {
                let ms = if self.rng.one_in(2) { FOREVER_MS } else { 2 };
                (Verb::ReplyFor, vec![self.pick(&tickets)?, ms])
            }
            25..27 => (Verb::Cancel, vec![self.pick(&tickets)?]),
            27..37 => (Verb::Serve, vec![self.new_handle(), self.pick(&servers)?, wait]),
            _ => return self.answer(&requests),
        })
    }

    fn answer(&mut self, requests: &[Handle]) -> Option<(Verb, Vec<u64>)> {
        let request = self.pick(requests)?;
        Some(match self.rng.below(8) {
            0..3 => (Verb::Part, vec![request, self.words()]),
            3..6 => (Verb::Answer, vec![request, self.words()]),
            6 => (Verb::Refuse, vec![request]),
            _ => (Verb::Wanted, vec![request]),
        })
    }
}
