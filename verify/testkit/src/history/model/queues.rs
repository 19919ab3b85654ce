//! Queues: each message once, in the order of its producer, but for the one in hand at a death.

use std::collections::BTreeSet;

use super::state::queues::{Producer, Queue};
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::{News, Reply};
use crate::history::step::{Handle, Step, Verb};

/// So many lanes with unread messages, or of the living, a queue has room for at least.
const LANES: usize = 500;
/// Bytes that a lane holds for sure, for each byte of its bound, and the head of a record.
const SURELY: u64 = 4;
const HEAD: u64 = 64;

impl Model {
    fn lane(&mut self, handle: Handle) -> Option<&mut Producer> {
        match &mut self.objects.get_mut(&handle)?.kind {
            Kind::Producer(producer) => Some(producer),
            _ => None,
        }
    }

    fn consumer_of(&self, queue: u64) -> Option<Handle> {
        let is = |k: &Kind| matches!(k, Kind::Consumer { queue: q, .. } if *q == queue);
        self.living().find(|(_, o)| is(&o.kind)).map(|(h, _)| h)
    }

    fn queue_lives(&self, queue: u64) -> bool {
        self.living().any(|(_, o)| match &o.kind {
            Kind::Producer(producer) => producer.queue == queue,
            Kind::Consumer { queue: q, .. } => *q == queue,
            _ => false,
        })
    }

    /// Lanes that a queue has to keep.
    pub(super) fn lanes(&self, queue: u64) -> usize {
        let Some(at) = self.queues.get(&queue) else { return 0 };
        let kept = at.lanes.iter().filter(|lane| match self.objects.get(lane).map(|o| &o.kind) {
            Some(Kind::Producer(producer)) => producer.unread() > 0 || self.exists(**lane),
            _ => false,
        });
        kept.count()
    }

    fn has_unread(&self, queue: u64) -> bool {
        let Some(at) = self.queues.get(&queue) else { return false };
        at.lanes.iter().any(|lane| match self.objects.get(lane).map(|o| &o.kind) {
            Some(Kind::Producer(producer)) => producer.unread() > 0,
            _ => false,
        })
    }

    /// Whether who opens the queue with that type is let in; `None`: either.
    fn suits_queue(&self, queue: u64, type_: u64) -> Option<bool> {
        match self.queues.get(&queue).and_then(|q| q.type_) {
            Some(t) if t != type_ && self.queue_lives(queue) => Some(false),
            Some(t) if t != type_ => None,
            _ => Some(true),
        }
    }

    fn joins_queue(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (queue, type_) = (step.arg("queue"), step.arg("type"));
        let refused = reply.outcome == "TypeMismatch";
        match self.suits_queue(queue, type_) {
            Some(false) if reply.is_ok() => return Err("another type is let in".into()),
            None | Some(false) if refused => return Err(String::new()),
            _ => {}
        }
        if reply.is_ok() {
            let at = self.queues.entry(queue).or_default();
            if at.type_ != Some(type_) {
                *at = Queue { type_: Some(type_), lanes: Vec::new() };
            }
        }
        Ok(())
    }

    pub(super) fn producer(&mut self, step: &Step, reply: &Reply) -> Verdict {
        if reply.outcome == "TooManyMembers" {
            return match self.lanes(step.arg("queue")) {
                lanes if lanes >= LANES => Ok(()),
                lanes => Err(format!("a queue with {lanes} lanes is full")),
            };
        }
        match self.joins_queue(step, reply) {
            Err(why) if why.is_empty() => return Ok(()),
            done => done?,
        }
        ok(reply)?;
        let queue = step.arg("queue");
        let new = step.new_handle().unwrap_or_default();
        let producer = Producer {
            queue,
            bound: step.arg("bound"),
            sent: Vec::new(),
            taken: 0,
            joined: BTreeSet::new(),
            ended: BTreeSet::new(),
        };
        self.add(step, Kind::Producer(producer), None);
        self.ids.insert((true, reply.id.0, reply.id.1), new);
        self.queues.entry(queue).or_default().lanes.push(new);
        Ok(())
    }

    pub(super) fn consumer(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let queue = step.arg("queue");
        let other = self.consumer_of(queue).is_some();
        match reply.outcome.as_str() {
            "ConsumerExists" if other => return Ok(()),
            "ok" if other => return Err("a second consumer is let in".into()),
            _ => {}
        }
        match self.joins_queue(step, reply) {
            Err(why) if why.is_empty() => return Ok(()),
            done => done?,
        }
        ok(reply)?;
        self.add(step, Kind::Consumer { queue, hand: None, untold: false }, None);
        Ok(())
    }

    pub(super) fn sent(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (on, count) = (step.arg("on"), step.arg("count"));
        let bytes = 8 * step.arg("words").max(4) + HEAD;
        // Of a batch all go, or none.
        let at_once = if step.verb == Verb::SendBatch { count } else { 1 };
        let Some(Kind::Producer(producer)) = self.objects.get(&on).map(|o| &o.kind) else {
            return Ok(());
        };
        let served = self.consumer_of(producer.queue).is_some();
        let (bound, unread) = (producer.bound, producer.unread_bytes());
        if let Some(producer) = self.lane(on) {
            producer.sent.extend((0..reply.value).map(|_| bytes));
        }
        match reply.outcome.as_str() {
            _ if self.lacks(step, reply) => Ok(()),
            "OwnerDied" if !served && reply.value == 0 => Ok(()),
            _ if !served => Err(format!("sent {} where nobody consumes", reply.value)),
            "ok" if reply.value == count => Ok(()),
            _ if reply.value % at_once != 0 => {
                Err(format!("sent {} of a batch of {count}", reply.value))
            }
            "InvalidArgument" if bound > 0 && at_once * bytes > bound => Ok(()),
            // It cannot grow, and one that was refused may have left its end padded.
            "WouldBlock" if self.is_limited(step.member) => Ok(()),
            "WouldBlock" if bound > 0 && unread + reply.value == 0 => {
                let bytes = at_once * bytes;
                Err(format!("an empty lane of {bound} bytes has no room for {bytes}"))
            }
            "WouldBlock" if bound > 0 => {
                let full = unread + (reply.value + at_once) * bytes > bound / SURELY;
                let wrong = || format!("a lane with {unread} bytes of {bound} is full");
                if full { Ok(()) } else { Err(wrong()) }
            }
            _ => ok(reply).and(Err(format!("sent {} of {count}", reply.value))),
        }
    }

    /// Whether a consumer that waits has something to wake for.
    pub(super) fn has_message(&self, consumer: Handle) -> bool {
        let Some(Kind::Consumer { queue, .. }) = self.objects.get(&consumer).map(|o| &o.kind)
        else {
            return false;
        };
        let owed = || self.lanes_owed(consumer).next().is_some();
        self.has_unread(*queue) || !self.is_named(consumer) && owed()
    }

    /// Producers that it knows and whose end it has not been told.
    fn lanes_owed(&self, consumer: Handle) -> impl Iterator<Item = Handle> {
        self.objects.iter().filter_map(move |(handle, o)| match &o.kind {
            Kind::Producer(p) => {
                let gone = matches!(o.life, Life::Dropped | Life::Dead);
                let owed = p.joined.contains(&consumer) && !p.ended.contains(&consumer);
                (gone && owed && p.unread() == 0).then_some(*handle)
            }
            _ => None,
        })
    }

    pub(super) fn got(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let Some(Kind::Consumer { queue, .. }) = self.objects.get(&on).map(|o| &o.kind) else {
            return Ok(());
        };
        let queue = *queue;
        let owed: Vec<Handle> = self.lanes_owed(on).collect();
        let holds = matches!(step.verb, Verb::Hold | Verb::HoldSlice);
        let nothing = if holds { reply.seen.is_empty() } else { reply.value == 1 };
        let mut limited = self.is_limited(step.member);
        if let Some(Kind::Consumer { untold, .. }) = self.objects.get_mut(&on).map(|o| &mut o.kind)
        {
            let told_late = *untold && Self::lacked(reply);
            // What is there comes first.
            *untold = !told_late && (limited || *untold && !nothing);
            limited |= told_late;
        }
        if !limited || !Self::lacked(reply) {
            ok(reply)?;
        }
        for (i, seen) in (0..).zip(&reply.seen) {
            if !seen.whole {
                return Err(format!("a torn message: {seen:?}"));
            }
            let from = seen.from;
            let id = if step.verb == Verb::GetBatch { Some(&from) } else { None };
            let Some(&by_id) = id.or_else(|| self.ids.get(&(true, seen.id.0, seen.id.1))) else {
                return Err(format!("a message of nobody: {seen:?}"));
            };
            let Some(producer) = self.lane(from).filter(|p| p.queue == queue && by_id == from)
            else {
                return Err(format!("a message of another queue or producer: {seen:?}"));
            };
            // What is in hand is not taken yet.
            let next = producer.taken + if holds { i } else { 0 };
            if seen.n != next || seen.n >= producer.sent.len() as u64 {
                let sent = producer.sent.len();
                return Err(format!(
                    "message {} of {from} came, it is at {next} of {sent}",
                    seen.n
                ));
            }
            if !holds {
                producer.taken += 1;
            } else if i == 0 {
                let new = step.new_handle().unwrap_or_default();
                let count = reply.seen.len() as u64;
                self.named_gives_one(on);
                self.add(step, Kind::Received { of: on, from, count }, None);
                if let Some(Kind::Consumer { hand, .. }) =
                    self.objects.get_mut(&on).map(|o| &mut o.kind)
                {
                    *hand = Some(new);
                }
            }
        }
        let mut senders = reply.seen.iter().map(|seen| seen.from);
        if holds && senders.next().is_some_and(|first| senders.any(|other| other != first)) {
            return Err("a slice has messages of several producers".into());
        }
        self.told(on, reply)?;
        if step.verb == Verb::HoldSlice && reply.seen.is_empty() && !limited {
            self.named_is_asked(on, !reply.news.is_empty())?;
        }
        if !holds && !limited && step.arg("max") > 0 {
            self.named_is_asked(on, !reply.seen.is_empty() || !reply.news.is_empty())?;
        }
        if limited {
            return Ok(());
        }
        // One that slept took what came while others still sent.
        if nothing && !step.is_long() && self.has_unread(queue) {
            let unread = self.queues[&queue].lanes.iter().filter_map(|lane| {
                match self.objects.get(lane).map(|o| &o.kind) {
                    Some(Kind::Producer(p)) if p.unread() > 0 => Some((*lane, p.taken)),
                    _ => None,
                }
            });
            let unread: Vec<_> = unread.collect();
            return Err(format!("nothing came, unread are (producer, number) {unread:?}"));
        }
        let still: Vec<Handle> = self.lanes_owed(on).filter(|h| owed.contains(h)).collect();
        if !holds && nothing && !step.is_long() && !still.is_empty() {
            return Err(format!("the end of producers {still:?} is not told"));
        }
        if step.is_long() && reply.seen.is_empty() && reply.news.is_empty() {
            return Err("it woke for nothing".into());
        }
        Ok(())
    }

    /// Events of producers.
    fn told(&mut self, consumer: Handle, reply: &Reply) -> Verdict {
        for &(news, id) in &reply.news {
            let Some(&handle) = self.ids.get(&(true, id.0, id.1)) else {
                if self.gave_up.contains(&id.0) {
                    continue;
                }
                return Err(format!("news of nobody: {news:?} {id:?}"));
            };
            let life = self.objects[&handle].life;
            let alive = self.is_alive(self.objects[&handle].member);
            let Some(producer) = self.lane(handle) else { continue };
            let unread = producer.unread();
            let fits = match news {
                News::Joined => producer.joined.insert(consumer),
                News::Left => life == Life::Dropped && unread == 0,
                News::Died(..) => {
                    let dead = life == Life::Dead || life == Life::Dropped && !alive;
                    dead && unread == 0
                }
                News::Corrupt => false,
            };
            let ends = matches!(news, News::Left | News::Died(..));
            if !fits || ends && !producer.ended.insert(consumer) {
                return Err(format!("producer {handle}, {life:?}, {unread} unread: {news:?}"));
            }
        }
        Ok(())
    }

    /// What was in hand goes: so many are acknowledged, the others are the next ones again.
    pub(super) fn put_down(&mut self, consumer: Handle, from: Handle, acknowledged: u64) {
        if let Some(Kind::Consumer { hand, .. }) =
            self.objects.get_mut(&consumer).map(|o| &mut o.kind)
        {
            *hand = None;
        }
        if let Some(producer) = self.lane(from) {
            producer.taken += acknowledged;
        }
    }

    pub(super) fn left_queue(&mut self, _queue: u64, _life: Life) {}

    /// Unread messages of queues without a living member are gone.
    pub(super) fn queues_cleaned(&mut self) {
        let dead: Vec<u64> =
            self.queues.keys().copied().filter(|q| !self.queue_lives(*q)).collect();
        for queue in dead {
            self.queues.remove(&queue);
        }
    }
}
