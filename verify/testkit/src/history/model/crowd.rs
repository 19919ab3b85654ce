//! Many ends at once: each is what it would be alone.

use super::{Kind, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{CROWD_DEPTH, Step, Verb};

/// Publishers that a subscriber surely reads.
const PUBLISHERS: u64 = 500;
/// Rings that a process surely maps, each for each of its subscribers.
const RINGS: u64 = 8000;

impl Model {
    /// Handles that a step makes: a crowd takes as many again for its requests.
    pub(in crate::history) fn handles(step: &Step) -> u64 {
        2 * step.arg("count")
    }

    pub(super) fn may_come(&self, step: &Step) -> bool {
        let (new, count) = (step.arg("new"), step.arg("count"));
        let free = self.objects.range(new..new + 2 * count).next().is_none();
        let more = |what| if step.arg("what") == what { step.arg("keep") * count } else { 0 };
        let publishers = self.living().filter(|(_, o)| matches!(o.kind, Kind::Publisher(_)));
        let subscribers = self.living().filter(|(_, o)| matches!(o.kind, Kind::Subscriber(_)));
        let publishers = publishers.count() as u64 + more(0);
        // As one subscriber that opens beside a publish.
        let beside = step.arg("what") == 3 && self.may_publish_now(step.arg("name"));
        free && !beside
            && count <= 1000
            && publishers <= PUBLISHERS
            && publishers * (subscribers.count() as u64 + more(3)) <= RINGS
    }

    /// As if each had come in steps of its own.
    pub(super) fn crowd_comes(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let keep = step.arg("keep") == 1;
        for seen in &reply.seen {
            let done = Reply { outcome: "ok".into(), id: seen.id, ..Reply::default() };
            self.one_opens(step, seen.from, &done)?;
            let sent = Reply { value: seen.n, ..done.clone() };
            let refused = |kind: &str| Reply { outcome: kind.into(), ..done.clone() };
            let it = |verb, args: &[u64]| Step::new(step.member, step.thread, verb, args);
            match step.arg("what") {
                0 => {
                    let sent = if seen.n == 1 { sent } else { refused("Timeout") };
                    self.published(&it(Verb::Publish, &[seen.from, 1, 4]), &sent)?;
                }
                1 => {
                    let sent = if seen.n == 1 { sent } else { refused("OwnerDied") };
                    self.sent(&it(Verb::Send, &[seen.from, 1, 4]), &sent)?;
                }
                2 => {
                    let ticket = seen.from + step.arg("count");
                    let asked = match seen.n {
                        1 => Reply { value: seen.seq, ..done },
                        _ => refused("ServerDied"),
                    };
                    self.asks(&it(Verb::Ask, &[ticket, seen.from, 4, 0]), &asked)?;
                    // Nobody has it in hand.
                    if self.objects.contains_key(&ticket) {
                        self.let_go(ticket, Verb::Drop);
                    }
                }
                _ => {}
            }
            if !keep {
                self.let_go(seen.from, Verb::Drop);
            }
        }
        if reply.is_ok() {
            let all = reply.seen.len() as u64 == step.arg("count");
            return if all { Ok(()) } else { Err("not all of a crowd came".into()) };
        }
        let next = step.arg("new") + reply.seen.len() as u64;
        let refused = Reply { seen: Vec::new(), ..reply.clone() };
        self.one_opens(step, next, &refused)?;
        if self.objects.contains_key(&next) { ok(reply) } else { Ok(()) }
    }

    fn one_opens(&mut self, step: &Step, handle: u64, reply: &Reply) -> Verdict {
        let it = |verb, args: &[u64]| Step::new(step.member, step.thread, verb, args);
        let (node, name, type_) = (step.arg("node"), step.arg("name"), step.arg("type"));
        match step.arg("what") {
            0 => {
                // Beside one that is slow it waits for the usual time.
                let args = [handle, node, name, CROWD_DEPTH, 0, 2, type_];
                self.publisher(&it(Verb::Publisher, &args), reply)
            }
            1 => self.producer(&it(Verb::Producer, &[handle, node, name, 0, type_]), reply),
            2 => self.client_opens(&it(Verb::Client, &[handle, node, name, 0, type_]), reply),
            _ => {
                let args = [handle, node, name, 0, 0, 4, type_];
                self.subscriber(&it(Verb::Subscriber, &args), reply)
            }
        }
    }
}
