//! Real-time channels: who is paired with whom, and which values come.
//!
//! An end names the other one: a writer what it offers itself to, a reader what it accepts. Ends
//! that wait do that beside other steps, so what they name is known only after they are done.

use super::state::rt::{Channel, End};
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

impl Model {
    fn end(&self, handle: Handle) -> Option<&End> {
        match &self.objects.get(&handle)?.kind {
            Kind::End(end) => Some(end),
            _ => None,
        }
    }

    fn end_mut(&mut self, handle: Handle) -> Option<&mut End> {
        match &mut self.objects.get_mut(&handle)?.kind {
            Kind::End(end) => Some(end),
            _ => None,
        }
    }

    /// The living end of that role.
    fn living_end(&self, channel: Channel, writer: bool) -> Option<Handle> {
        let is = |k: &Kind| matches!(k, Kind::End(e) if e.channel == channel && e.writer == writer);
        self.living().find(|(_, o)| is(&o.kind)).map(|(h, _)| h)
    }

    /// Which one it connects to, if any.
    fn other_end(&self, handle: Handle, end: &End) -> Option<Handle> {
        self.keeps(handle).or_else(|| self.living_end(end.channel, !end.writer))
    }

    pub(super) fn end_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let depth = step.arg("depth");
        let channel = (step.arg("channel"), depth > 0);
        let writer = step.arg("writer") == 1;
        let other = self.living_end(channel, writer);
        match (reply.outcome.as_str(), other) {
            ("AlreadyExists", Some(_)) => return Ok(()),
            ("ok", Some(other)) => return Err(format!("a second end is let in beside {other}")),
            _ => ok(reply)?,
        }
        let end = End {
            channel,
            depth,
            writer,
            connected: false,
            peer: None,
            names: None,
            sent: 0,
            popped: 0,
            helped: false,
            met: Vec::new(),
            seen: None,
        };
        self.add(step, Kind::End(end), None);
        Ok(())
    }

    /// Whether it may do its part of connecting beside the next steps: it waits, or another of its
    /// process does, which helps one that is new.
    fn steps_aside(&self, handle: Handle, running: bool) -> bool {
        let (Some(object), Some(end)) = (self.objects.get(&handle), self.end(handle)) else {
            return false;
        };
        let Some(member) = self.members.get(&object.member) else { return false };
        if member.stopped && running {
            return false;
        }
        if end.helped && !running {
            return true;
        }
        member.threads.values().flatten().any(|wait| match wait.verb {
            Verb::Connect => wait.arg("on") == handle || !end.connected,
            Verb::Reconnect => wait.arg("on") == handle,
            _ => false,
        })
    }

    /// The writer that a ring's reader has accepted while it was not connected itself, as another
    /// of its process waited, and that has pushed since: what it pushed comes first.
    fn keeps(&self, reader: Handle) -> Option<Handle> {
        let end = self.end(reader).filter(|end| !end.writer && !end.connected && end.channel.1)?;
        let writer = end.names?;
        self.end(writer).filter(|writer| writer.popped < writer.sent).map(|_| writer)
    }

    /// What connecting may give, as kinds of outcomes; the first if only one is sure.
    fn connecting(&self, step: &Step, running: bool) -> Vec<&'static str> {
        let on = step.arg("on");
        let Some(end) = self.end(on) else { return Vec::new() };
        if self.keeps(on).is_some() {
            return vec!["ok"];
        }
        let Some(other) = self.living_end(end.channel, !end.writer) else { return vec!["Timeout"] };
        let Some(peer) = self.end(other) else { return Vec::new() };
        if peer.depth != end.depth {
            return vec!["TypeMismatch"];
        }
        if self.keeps(other).is_some_and(|kept| kept != on) {
            return vec!["Timeout"];
        }
        let same_process = self.objects.get(&other).map(|o| o.member) == Some(step.member);
        let helped = step.verb == Verb::Connect && same_process && !peer.connected;
        let sure = peer.names == Some(on);
        if !sure && !helped && !self.steps_aside(other, running) {
            return vec!["Timeout"];
        }
        let left = end.peer.filter(|old| !end.writer && *old != other && end.connected);
        let left = left.filter(|old| self.end(*old).is_some_and(|old| old.popped < old.sent));
        let done = match left {
            Some(_) if end.channel.1 && end.names != Some(other) => "WouldBlock",
            _ => "ok",
        };
        if sure || running { vec![done] } else { vec![done, "Timeout"] }
    }

    /// Whether a wait for the other end is over.
    pub(super) fn is_connected(&self, step: &Step) -> bool {
        self.connecting(step, true) != ["Timeout"]
    }

    /// After each step, before the other end may go: whom an end that waits may have met, and what
    /// that gives it.
    pub(super) fn meet(&mut self) {
        let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        let connects = waits.filter(|w| matches!(w.verb, Verb::Connect | Verb::Reconnect));
        let met: Vec<_> = connects
            .filter_map(|wait| {
                let (on, may) = (wait.arg("on"), self.connecting(wait, false));
                let other = self.other_end(on, self.end(on)?)?;
                Some((on, other, may.into_iter().find(|outcome| *outcome != "Timeout")?))
            })
            .collect();
        for (on, other, outcome) in met {
            if let Some(end) = self.end_mut(on) {
                end.met.retain(|met| met.0 != outcome);
                end.met.push((outcome, other));
            }
        }
    }

    /// A short wait for the other end is over: whom others may have met while it went on.
    fn meet_while(&mut self, step: &Step) {
        self.runs(step, Some(step.clone()));
        self.meet();
        self.runs(step, None);
    }

    fn runs(&mut self, by: &Step, what: Option<Step>) {
        if let Some(member) = self.members.get_mut(&by.member) {
            member.threads.insert(by.thread, what);
        }
    }

    pub(super) fn connects(&mut self, step: &Step, reply: &Reply) -> Verdict {
        self.meet_while(step);
        let on = step.arg("on");
        let may = self.connecting(step, false);
        let outcome = reply.outcome.as_str();
        let Some(end) = self.end(on) else { return Ok(()) };
        let writer = end.writer;
        let other = self.other_end(on, end);
        let met = end.met.iter().find(|met| met.0 == outcome && !may.contains(&outcome));
        let met = met.map(|met| met.1);
        if !may.contains(&outcome) && met.is_none() {
            let wrong = format!("connecting gives {outcome}, it must give one of {may:?}");
            return if may.is_empty() { ok(reply) } else { Err(format!("{wrong} {}", reply.text)) };
        }
        let other = met.or(other);
        if let Some(end) = self.end_mut(on) {
            end.met.clear();
        }
        if step.verb == Verb::Connect {
            let theirs = self.objects.values_mut().filter(|o| o.member == step.member);
            for object in theirs {
                if let Kind::End(end) = &mut object.kind {
                    end.helped |= !end.connected;
                }
            }
        }
        if outcome == "ok" {
            let Some(other) = other else { return Ok(()) };
            let fresh = self.end(on).is_some_and(|e| e.names != Some(other));
            if let Some(end) = self.end_mut(on) {
                (end.connected, end.peer, end.names) = (true, Some(other), Some(other));
                end.helped = false;
                if !writer && fresh {
                    end.seen = None;
                }
            }
            if let Some(peer) = self.end_mut(other) {
                (peer.peer, peer.names) = (Some(on), Some(on));
            }
            return Ok(());
        }
        if step.verb == Verb::Connect {
            self.end_of_life(on);
            return Ok(());
        }
        // A writer has offered itself, and from then on works with that one only.
        if let Some(other) = other.filter(|_| writer && outcome == "Timeout")
            && let Some(end) = self.end_mut(on)
        {
            (end.peer, end.names) = (Some(other), Some(other));
        }
        Ok(())
    }

    fn end_of_life(&mut self, handle: Handle) {
        self.let_go(handle, Verb::Drop);
    }

    /// What a call on this end says of the other one; several where that is not known.
    fn pairing(&self, on: Handle) -> Vec<&'static str> {
        let Some((peer, other)) =
            self.end(on).and_then(|e| e.peer).and_then(|p| Some((p, self.end(p)?)))
        else {
            return Vec::new();
        };
        let paired = other.names == Some(on);
        let left = self.objects.get(&peer).is_some_and(|o| o.life == Life::Dropped);
        match (paired, left) {
            (true, true) => vec!["Left"],
            (true, false) => vec!["ok"],
            // One that is not done may have accepted already.
            (false, false) if self.steps_aside(peer, false) => vec!["Unpaired", "ok"],
            (false, _) => vec!["Unpaired"],
        }
    }

    pub(super) fn pushed(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (on, count) = (step.arg("on"), step.arg("count"));
        let pairing = self.pairing(on);
        let outcome = reply.outcome.as_str();
        let Some(end) = self.end_mut(on) else { return Ok(()) };
        let room = if end.depth == 0 { count } else { end.depth - (end.sent - end.popped) };
        end.sent += reply.value;
        let got = reply.value;
        let fits = match outcome {
            "ok" => pairing.contains(&"ok") && got == count && got <= room,
            "Full" => pairing.contains(&"ok") && got == room && got < count,
            _ => pairing.contains(&outcome) && got == 0,
        };
        let reader = self.end(on).and_then(|end| end.peer).filter(|_| got > 0);
        // One that is not connected has accepted it, as another of its process waited.
        if let Some(reader) = reader.and_then(|reader| self.end_mut(reader))
            && !reader.connected
        {
            reader.names = Some(on);
        }
        if fits {
            return Ok(());
        }
        Err(format!("pushed {got} of {count}: {outcome}, {pairing:?}, room for {room}"))
    }

    pub(super) fn popped(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let pairing = self.pairing(on);
        let outcome = reply.outcome.as_str();
        let Some(end) = self.end(on) else { return Ok(()) };
        let Some(writer) = end.peer else { return Err("connected with nobody".into()) };
        let (newest, seen) = (end.depth == 0, end.seen);
        let Some(source) = self.end(writer) else { return Ok(()) };
        let (mut next, sent) = (source.popped, source.sent);
        let wrong = |what: String| Err(format!("{what}: {pairing:?}, writer {writer} sent {sent}"));
        let unpaired = pairing == ["Unpaired"];
        if unpaired && (outcome != "Unpaired" || !reply.seen.is_empty()) {
            return wrong(format!("it reads what is not for it, {outcome}"));
        }
        for m in &reply.seen {
            let expected = if newest { sent.wrapping_sub(1) } else { next };
            let good = m.whole && m.from == writer && m.n == expected && m.seq == m.n + 1;
            if !good || m.n >= sent {
                return wrong(format!("{m:?} came, next is {expected}"));
            }
            next = m.n + 1;
        }
        let left = pairing.contains(&"Left");
        let last = newest && left && seen == Some((writer, sent.wrapping_sub(1)));
        let empty = if newest { sent == 0 || last } else { next == sent };
        let told = reply.seen.is_empty() || !newest;
        match outcome {
            "ok" if reply.value == 1 && (!empty || left) => {
                return wrong("nothing comes".into());
            }
            "ok" if reply.seen.is_empty() && reply.value == 0 => return wrong("nothing".into()),
            "ok" => {}
            "Left" if left && empty && told => {}
            "Unpaired" if pairing.contains(&"Unpaired") => {}
            _ => return wrong(format!("it gives {outcome}")),
        }
        if newest {
            if let (Some(m), Some(end)) = (reply.seen.last(), self.end_mut(on)) {
                end.seen = Some((m.from, m.n));
            }
        } else if let Some(source) = self.end_mut(writer) {
            source.popped = next;
        }
        Ok(())
    }

    pub(super) fn looks_at_peer(&self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let peer = self.end(step.arg("on")).and_then(|e| e.peer);
        let alive = peer.is_some_and(|peer| self.exists(peer));
        if alive == (reply.value == 1) {
            return Ok(());
        }
        Err(format!("end {peer:?} lives: {alive}, it says {}", reply.value))
    }
}
