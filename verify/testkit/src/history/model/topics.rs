//! Topics: which messages a subscriber, a late joiner and a successor must, may and must not get.

use std::collections::BTreeMap;

use super::state::topics::{Cursor, Publisher, Subscriber};
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::{News, Reply, Seen, UNSAID};
use crate::history::step::{Handle, LONG_MS, Step, Verb};

/// Rings of the dead that are kept for history at most.
const RETAINED: usize = 4;
/// Unseen rings that are kept for sure.
const UNSEEN: usize = 15;

impl Model {
    fn ring(&self, handle: Handle) -> Option<&Publisher> {
        match &self.objects.get(&handle)?.kind {
            Kind::Publisher(publisher) => Some(publisher),
            _ => None,
        }
    }

    fn ring_mut(&mut self, handle: Handle) -> Option<&mut Publisher> {
        match &mut self.objects.get_mut(&handle)?.kind {
            Kind::Publisher(publisher) => Some(publisher),
            _ => None,
        }
    }

    fn sub(&self, handle: Handle) -> Option<&Subscriber> {
        match &self.objects.get(&handle)?.kind {
            Kind::Subscriber(subscriber) => Some(subscriber),
            _ => None,
        }
    }

    fn sub_mut(&mut self, handle: Handle) -> Option<&mut Subscriber> {
        match &mut self.objects.get_mut(&handle)?.kind {
            Kind::Subscriber(subscriber) => Some(subscriber),
            _ => None,
        }
    }

    fn rings(&self, topic: u64) -> Vec<(Handle, &Publisher)> {
        let Some(at) = self.topics.get(&topic) else { return Vec::new() };
        at.rings.iter().filter_map(|h| Some((*h, self.ring(*h)?))).collect()
    }

    fn subs(&self, topic: u64) -> impl Iterator<Item = (Handle, &Subscriber)> {
        self.living().filter_map(move |(handle, o)| match &o.kind {
            Kind::Subscriber(s) if s.topic == topic => Some((handle, s)),
            _ => None,
        })
    }

    fn topic_lives(&self, topic: u64) -> bool {
        self.subs(topic).next().is_some()
            || self.rings(topic).iter().any(|(handle, _)| self.exists(*handle))
    }

    /// A member joins: refused only if the living have another type.
    fn joins_topic(&mut self, step: &Step, reply: &Reply) -> Result<bool, String> {
        let (topic, type_) = (step.arg("topic"), step.arg("type"));
        let before = self.topics.get(&topic).and_then(|t| t.type_);
        let other = before.is_some_and(|t| t != type_);
        if other && self.topic_lives(topic) {
            // Who is refused reclaims, too, as it looks who lives.
            self.reclaimed(topic);
            return match reply.outcome.as_str() {
                "TypeMismatch" => Ok(false),
                "ok" => Err("another type is let in beside the living".into()),
                _ => ok(reply).map(|()| false),
            };
        }
        ok(reply)?;
        let at = self.topics.entry(topic).or_default();
        if other {
            at.rings.clear();
        }
        at.type_ = Some(type_);
        Ok(true)
    }

    pub(super) fn publisher(&mut self, step: &Step, reply: &Reply) -> Verdict {
        if !self.joins_topic(step, reply)? {
            return Ok(());
        }
        let topic = step.arg("topic");
        let new = step.new_handle().unwrap_or_default();
        let publisher = Publisher {
            topic,
            depth: step.arg("depth").next_power_of_two(),
            volatile: step.arg("volatile") == 1,
            waits: step.arg("wait_ms") > 0,
            patient: step.arg("wait_ms") >= LONG_MS,
            pending: 0,
            lacking: false,
            sent: Vec::new(),
            born_at: self.tick(),
            ended_at: None,
            unsure: false,
        };
        self.add(step, Kind::Publisher(publisher), None);
        self.ids.insert((false, reply.id.0, reply.id.1), new);
        self.topics.entry(topic).or_default().rings.push(new);
        self.reclaimed(topic);
        Ok(())
    }

    pub(super) fn subscriber(&mut self, step: &Step, reply: &Reply) -> Verdict {
        if !self.joins_topic(step, reply)? {
            return Ok(());
        }
        let topic = step.arg("topic");
        let now = self.tick();
        let cursors = self.history(topic, step.arg("history"));
        let subscriber = Subscriber {
            topic,
            reliable: step.arg("reliable") == 1,
            borrows: step.arg("borrows"),
            opened_at: now,
            looked_at: now,
            blurred: false,
            unsorted: self.is_limited(step.member),
            cursors,
        };
        self.add(step, Kind::Subscriber(subscriber), None);
        self.reclaimed(topic);
        Ok(())
    }

    /// Where one that asks for so much history begins: the youngest messages of the topic.
    fn history(&self, topic: u64, wanted: u64) -> BTreeMap<Handle, Cursor> {
        let rings = self.rings(topic);
        let unsure = |p: &Publisher| p.unsure || p.volatile || p.pending > 0;
        // Where each begins, if of the unsure ones only those are there.
        let begin = |there: &dyn Fn(Handle) -> bool| {
            let mut all = Vec::new();
            for (handle, p) in &rings {
                let from = if unsure(p) && !there(*handle) { p.count() } else { p.lowest() };
                all.extend((from..p.count()).map(|n| (p.sent[n as usize], *handle, n)));
            }
            all.sort_unstable();
            let youngest = &all[all.len().saturating_sub(wanted as usize)..];
            let mut begin: BTreeMap<Handle, u64> =
                rings.iter().map(|(handle, p)| (*handle, p.count())).collect();
            for (_, handle, n) in youngest.iter().rev() {
                begin.insert(*handle, *n);
            }
            begin
        };
        let with_all = begin(&|_| true);
        rings
            .iter()
            .map(|(handle, p)| {
                // What is sure comes in any case; how far back depends on what else is there.
                let next = if unsure(p) { p.count() } else { with_all[handle] };
                let earliest = begin(&|other| other == *handle)[handle];
                (*handle, Cursor { next, earliest, ..Cursor::default() })
            })
            .collect()
    }

    /// Somebody opened or dropped a port: rings of the gone that nobody wants may go.
    fn reclaimed(&mut self, topic: u64) {
        if !self.topic_lives(topic) {
            self.topics.remove(&topic);
            return;
        }
        let rings = self.rings(topic);
        // Of the gone some may not be there: the deepest of the living surely is.
        let living = rings.iter().filter(|(handle, _)| self.exists(*handle));
        let deepest = living.map(|(_, p)| p.depth).max().unwrap_or(0);
        let held = |p: &Publisher| if p.volatile { 0 } else { p.count() - p.floor() };
        let over = |p: &&(Handle, &Publisher)| !self.exists(p.0);
        let mut younger: u64 = rings.iter().filter(|p| !over(p)).map(|(_, p)| held(p)).sum();
        let mut unwanted = Vec::new();
        for (kept, (handle, p)) in rings.iter().rev().filter(over).enumerate() {
            if younger >= deepest || kept >= RETAINED {
                unwanted.push(*handle);
            }
            younger += held(p);
        }
        for handle in unwanted {
            if let Some(ring) = self.ring_mut(handle) {
                ring.unsure = true;
            }
        }
    }

    /// On a full disk a publisher drops the history of those that are gone.
    pub(super) fn makes_room(&mut self, step: &Step) {
        let Some(topic) = self.ring(step.arg("on")).map(|p| p.topic).filter(|_| self.full) else {
            return;
        };
        let rings = self.rings(topic).into_iter().map(|(handle, _)| handle);
        let gone: Vec<_> = rings.filter(|handle| !self.exists(*handle)).collect();
        for handle in gone {
            if let Some(ring) = self.ring_mut(handle) {
                ring.unsure = true;
            }
        }
    }

    pub(super) fn left_topic(&mut self, topic: u64, life: Life) {
        if life == Life::Dropped {
            self.reclaimed(topic);
        }
    }

    pub(super) fn topics_cleaned(&mut self) {
        let all: Vec<u64> = self.topics.keys().copied().collect();
        for topic in all {
            self.reclaimed(topic);
        }
    }

    /// A publisher begins to wait for its readers.
    pub(super) fn insists(&mut self, step: &Step) {
        self.makes_room(step);
        let lacking = self.is_limited(step.member);
        if let Some(publisher) = self.ring_mut(step.arg("on")) {
            (publisher.pending, publisher.lacking) = (1, lacking);
        }
    }

    /// Whether a publisher that waits surely has room, or may have some. A subscriber says how far
    /// it is when it has read all, else in steps of a quarter of the ring.
    fn room_of(&self, ring: Handle) -> (bool, bool) {
        let Some(p) = self.ring(ring) else { return (true, true) };
        let reliable = self.subs(p.topic).filter(|(_, s)| s.reliable);
        let (mut surely, mut maybe) = (true, true);
        for cursor in reliable.map(|(handle, _)| self.cursor(handle, ring)) {
            let left = |at: u64| (at + p.depth).saturating_sub(p.count());
            let read_all = cursor.next.min(cursor.earliest.max(p.lowest())) == p.count();
            surely &= read_all || left(cursor.earliest.min(cursor.next)) > p.depth.div_ceil(4);
            maybe &= left(cursor.next) > 0;
        }
        (surely, maybe)
    }

    pub(super) fn has_room(&self, ring: Handle) -> bool {
        self.room_of(ring).0
    }

    /// Whether one may publish at any time now: who comes meanwhile may find the message or not.
    pub(super) fn may_publish_now(&self, topic: u64) -> bool {
        let waits = self.rings(topic).into_iter().filter(|(_, p)| p.pending > 0);
        waits.into_iter().any(|(handle, _)| self.exists(handle) && self.room_of(handle).1)
    }

    /// It was seen, or said to be there.
    fn is_published(&mut self, ring: Handle) {
        let now = self.tick();
        if let Some(publisher) = self.ring_mut(ring) {
            publisher.sent.push(now);
            publisher.pending = 0;
        }
    }

    /// A wait of [`insists`](Self::insists) is over.
    pub(super) fn insisted(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let ring = step.arg("on");
        let seen = self.ring(ring).is_none_or(|p| p.pending == 0);
        let lacking = self.ring(ring).is_some_and(|p| p.lacking) || self.is_limited(step.member);
        if lacking && Self::lacked(reply) && !seen {
            if let Some(publisher) = self.ring_mut(ring) {
                publisher.pending = 0;
            }
            return Ok(());
        }
        ok(reply)?;
        if !seen {
            if !self.room_of(ring).1 {
                return Err("published over what a reliable subscriber has yet to read".into());
            }
            self.is_published(ring);
        }
        Ok(())
    }

    fn cursor(&self, sub: Handle, ring: Handle) -> Cursor {
        let known = self.sub(sub).and_then(|s| s.cursors.get(&ring).copied());
        known.unwrap_or_default()
    }

    fn set_cursor(&mut self, sub: Handle, ring: Handle, cursor: Cursor) {
        if let Some(sub) = self.sub_mut(sub) {
            sub.cursors.insert(ring, cursor);
        }
    }

    pub(super) fn published(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let (ring, count, got) = match (step.verb, self.objects.get(&on).map(|o| &o.kind)) {
            (Verb::Commit, Some(Kind::Loan { of })) => (*of, 1, u64::from(reply.is_ok())),
            _ => (on, step.arg("count"), reply.value),
        };
        if step.verb == Verb::Commit {
            self.end_of(on, Life::Dropped);
        }
        let Some(publisher) = self.ring(ring) else { return Ok(()) };
        let (topic, depth, sent) = (publisher.topic, publisher.depth, publisher.count());
        let waits = publisher.waits;
        let read_beside = self.subs(topic).any(|(h, s)| s.reliable && self.objects[&h].busy);
        let rooms = |at: fn(&Cursor) -> u64| {
            let reliable = self.subs(topic).filter(|(_, s)| s.reliable);
            let left = reliable.map(|(h, _)| at(&self.cursor(h, ring)) + depth);
            left.map(|left| left.saturating_sub(sent)).min().unwrap_or(u64::MAX)
        };
        // Of what a late joiner may get or not, it may still hold the place.
        let (room, surely) = (rooms(|c| c.next), rooms(|c| c.earliest.min(c.next)));
        let most = count.min(room);
        for _ in 0..got {
            let now = self.tick();
            if let Some(publisher) = self.ring_mut(ring) {
                publisher.sent.push(now);
            }
        }
        if got > most && !read_beside {
            return Err(format!("published {got}, a reliable subscriber has room for {room}"));
        }
        if self.lacks(step, reply) {
            return Ok(());
        }
        // Subscribers say how far they are in steps of a quarter of the ring.
        if got + depth.div_ceil(4) < count.min(surely) || got < count && room == u64::MAX {
            return Err(format!("published {got} of {count}: {} {}", reply.outcome, reply.text));
        }
        match (reply.outcome.as_str(), got == count) {
            ("ok", true) => Ok(()),
            ("Timeout", false) if waits => Ok(()),
            ("WouldBlock", false) if !waits => Ok(()),
            _ => ok(reply).and(Err(format!("published {got} of {count}"))),
        }
    }

    /// Messages of `ring` that the subscriber must get yet.
    fn unread(&self, sub: Handle, ring: Handle, p: &Publisher) -> u64 {
        let Some(s) = self.sub(sub) else { return 0 };
        let cursor = self.cursor(sub, ring);
        if cursor.ended {
            return 0;
        }
        // A ring that nobody was there to see, or that came with too many others, may be gone.
        let gone = p.ended_at.is_some() && !cursor.joined;
        let since = self.rings(s.topic);
        let crowd = since.iter().filter(|(_, r)| r.born_at > s.looked_at).count();
        if gone && (crowd > UNSEEN || p.born_at < s.opened_at && p.unsure) {
            return 0;
        }
        let withdrawn = gone && p.volatile && p.born_at < s.opened_at;
        if withdrawn { 0 } else { p.count() - cursor.next.max(p.floor()).min(p.count()) }
    }

    fn ends_owed(&self, sub: Handle) -> Vec<Handle> {
        let Some(s) = self.sub(sub) else { return Vec::new() };
        let owed = self.rings(s.topic).into_iter().filter(|(handle, p)| {
            let cursor = self.cursor(sub, *handle);
            p.ended_at.is_some() && cursor.joined && !cursor.ended
        });
        owed.map(|(handle, _)| handle).collect()
    }

    /// Whether a subscriber that waits has something to wake for.
    pub(super) fn has_news(&self, sub: Handle) -> bool {
        let Some(s) = self.sub(sub) else { return false };
        let rings = self.rings(s.topic);
        rings.iter().any(|(handle, p)| self.unread(sub, *handle, p) > 0)
            // A wait set named it for that, perhaps: who waits next is not told again.
            || !self.is_named(sub) && !self.ends_owed(sub).is_empty()
    }

    pub(super) fn received(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let Some(topic) = self.sub(on).map(|s| s.topic) else { return Ok(()) };
        let held = self.objects.values().filter(|o| {
            let here = matches!(o.kind, Kind::Sample { of, borrowed: true } if of == on);
            here && matches!(o.life, Life::Held | Life::Leaked)
        });
        let full = held.count() as u64 >= self.sub(on).map_or(0, |s| s.borrows);
        let limited = self.is_limited(step.member);
        if limited && let Some(sub) = self.sub_mut(on) {
            sub.blurred |= !sub.reliable;
            sub.unsorted = true;
        }
        let refused = reply.outcome == "TooManyBorrows" && full || self.lacks(step, reply);
        if !refused {
            ok(reply)?;
        }
        let owed = self.ends_owed(on);
        let mut past = 0;
        for seen in &reply.seen {
            let birth = self.came(on, topic, seen, step.is_long())?;
            // What was over before it came is read first, the oldest first.
            let p = self.ring(seen.from);
            let (opened, unsorted) = self.sub(on).map_or((0, false), |s| (s.opened_at, s.unsorted));
            if p.and_then(|p| p.ended_at).is_some_and(|end| end < opened) {
                if birth < past && !unsorted {
                    return Err(format!("message {seen:?} of the dead comes after a younger's"));
                }
                past = birth;
            }
        }
        if step.verb == Verb::Take
            && let Some(seen) = reply.seen.first()
        {
            self.named_gives_one(on);
            self.add(step, Kind::Sample { of: on, borrowed: seen.borrowed }, None);
        }
        self.events(on, reply)?;
        let all = step.verb != Verb::Take;
        if all && !limited && step.arg("max") > 0 {
            // One that may not be borrowed has come, too.
            let came = !reply.seen.is_empty() || !reply.news.is_empty() || refused;
            self.named_is_asked(on, came)?;
        }
        let nothing = if all { reply.value == 1 } else { reply.seen.is_empty() };
        if !nothing || refused {
            return Ok(());
        }
        if step.is_long() && reply.seen.is_empty() && reply.news.is_empty() {
            return Err("it woke for nothing".into());
        }
        // One that slept took what came while others still published.
        if !step.is_long() && !limited {
            self.is_clear_again(on, topic);
            let unread = self.rings(topic).into_iter().filter_map(|(handle, p)| {
                let n = self.unread(on, handle, p);
                (n > 0).then(|| (handle, p.count() - n, p.count()))
            });
            let unread: Vec<_> = unread.collect();
            if !unread.is_empty() {
                return Err(format!("nothing comes, to read are (publisher, from, to) {unread:?}"));
            }
            let still = self.ends_owed(on);
            let untold: Vec<_> = still.into_iter().filter(|h| owed.contains(h)).collect();
            if all && !untold.is_empty() {
                return Err(format!("the end of publishers {untold:?} is not told"));
            }
            self.pass_over(on, topic);
            let now = self.tick();
            if let Some(sub) = self.sub_mut(on) {
                sub.looked_at = now;
            }
        }
        Ok(())
    }

    /// It has found nothing more: a ring whose publisher is gone and that it never joined is gone,
    /// too, and nothing of it comes later.
    fn pass_over(&mut self, on: Handle, topic: u64) {
        let rings = self.rings(topic);
        let gone = rings.iter().filter(|(_, p)| p.ended_at.is_some());
        let counts: Vec<_> = gone.map(|(handle, p)| (*handle, p.count())).collect();
        for (ring, count) in counts {
            let cursor = self.cursor(on, ring);
            if !cursor.joined {
                self.set_cursor(on, ring, Cursor { next: count, earliest: count, ..cursor });
            }
        }
    }

    /// It has found nothing although it could have: what is not there was passed over.
    fn is_clear_again(&mut self, on: Handle, topic: u64) {
        if !self.sub(on).is_some_and(|s| s.blurred) {
            return;
        }
        let rings = self.rings(topic);
        let counts: Vec<_> = rings.iter().map(|(handle, p)| (*handle, p.count())).collect();
        for (ring, count) in counts {
            let cursor = self.cursor(on, ring);
            self.set_cursor(on, ring, Cursor { next: count, earliest: count, ..cursor });
        }
        if let Some(sub) = self.sub_mut(on) {
            sub.blurred = false;
        }
    }

    /// A message came; when its publisher was born.
    ///
    /// `beside`: it was received while others may have published.
    fn came(&mut self, on: Handle, topic: u64, seen: &Seen, beside: bool) -> Result<u64, String> {
        if !seen.whole {
            return Err(format!("a torn message: {seen:?}"));
        }
        let said = seen.lost != UNSAID;
        let by_id = self.ids.get(&(false, seen.id.0, seen.id.1)).copied();
        let by_id = if said { by_id } else { Some(seen.from) };
        if self.ring(seen.from).is_some_and(|p| p.pending > 0 && seen.seq == p.count()) {
            self.is_published(seen.from);
        }
        let Some(p) = self.ring(seen.from).filter(|p| p.topic == topic && by_id == Some(seen.from))
        else {
            return Err(format!("a message of another topic or publisher: {seen:?}"));
        };
        let mut cursor = self.cursor(on, seen.from);
        let mut expected = cursor.next.max(p.floor());
        if p.pending > 0 {
            // Who waits to overwrite one may have done so or not.
            let kept = cursor.next.max(p.lowest());
            expected = if seen.seq == kept { kept } else { expected };
        }
        // Who is overtaken more than once goes on in the middle of the ring.
        let overtaken = p.floor() > cursor.next && seen.seq < p.count();
        let blurred = self.sub(on).is_some_and(|s| s.blurred);
        if blurred && cursor.next <= seen.seq {
            (cursor.earliest, expected) = (cursor.earliest.min(cursor.next), seen.seq);
        }
        if beside && cursor.next <= seen.seq && (seen.seq < expected || overtaken) {
            expected = seen.seq;
        }
        let first = cursor.earliest.max(p.lowest());
        let early = first <= seen.seq && seen.seq < expected && cursor.earliest < cursor.next;
        if seen.n != seen.seq || seen.seq >= p.count() || !early && seen.seq != expected {
            return Err(format!("{seen:?} came, next is {expected} of {}", p.count()));
        }
        if cursor.ended {
            return Err(format!("{seen:?} came after the end of its publisher was told"));
        }
        let lost = expected - cursor.next..=expected - cursor.earliest.min(cursor.next);
        if said && !early && cursor.joined && !lost.contains(&seen.lost) {
            return Err(format!("{seen:?} came, {lost:?} were lost"));
        }
        let birth = p.born_at;
        cursor.next = seen.seq + 1;
        cursor.earliest = cursor.next;
        self.set_cursor(on, seen.from, cursor);
        Ok(birth)
    }

    fn events(&mut self, on: Handle, reply: &Reply) -> Verdict {
        for &(news, id) in &reply.news {
            let Some(&handle) = self.ids.get(&(false, id.0, id.1)) else {
                if self.gave_up.contains(&id.0) {
                    continue;
                }
                return Err(format!("news of nobody: {news:?} {id:?}"));
            };
            let (life, member) = {
                let object = &self.objects[&handle];
                (object.life, object.member)
            };
            let alive = self.is_alive(member);
            let Some(p) = self.ring(handle) else { continue };
            let mut cursor = self.cursor(on, handle);
            // What there was no memory for, twice, was passed over.
            let blurred = self.sub(on).is_some_and(|s| s.blurred);
            let unread = match blurred {
                true => 0,
                false => p.count() - cursor.next.max(p.floor()).min(p.count()),
            };
            let wrong = format!("publisher {handle}, {life:?}, {unread} unread: {news:?}");
            let fits = match news {
                News::Joined => !std::mem::replace(&mut cursor.joined, true) && !cursor.ended,
                News::Left => life == Life::Dropped && unread == 0,
                News::Died(unfinished, lost) => {
                    let dead = life == Life::Dead || life == Life::Dropped && !alive;
                    dead && unread == 0 && (!unfinished || p.pending > 0) && (lost == 0 || blurred)
                }
                News::Corrupt => false,
            };
            let ends = matches!(news, News::Left | News::Died(..));
            if !fits || ends && std::mem::replace(&mut cursor.ended, true) {
                return Err(format!("{wrong} {}", reply.text));
            }
            self.set_cursor(on, handle, cursor);
        }
        Ok(())
    }
}
