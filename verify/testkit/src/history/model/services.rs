//! Services: which requests a server must, may and must not get, and what becomes of each at its
//! client: every part in order, and exactly one end.

use std::collections::BTreeSet;

use super::state::services::{Asked, Client, InHand, Server};
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::member::{KINDS, PARTS, UNSAID};
use crate::history::reply::{Reply, Seen};
use crate::history::step::{Handle, Step, Verb};

const LAST: u64 = 1;
const REFUSED: u64 = 2;
const LATE: u64 = 3;
const SERVER_DIED: u64 = 4;

impl Model {
    fn client(&self, handle: Handle) -> Option<&Client> {
        match &self.objects.get(&handle)?.kind {
            Kind::Client(client) => Some(client),
            _ => None,
        }
    }

    fn client_mut(&mut self, handle: Handle) -> Option<&mut Client> {
        match &mut self.objects.get_mut(&handle)?.kind {
            Kind::Client(client) => Some(client),
            _ => None,
        }
    }

    fn ask(&mut self, on: Handle, asked: Asked) {
        if let Some(client) = self.client_mut(on) {
            client.asked.push(asked);
        }
    }

    fn asked_mut(&mut self, client: Handle, ticket: Handle) -> Option<&mut Asked> {
        self.client_mut(client)?.asked.iter_mut().find(|a| a.ticket == ticket)
    }

    /// The living server of a service.
    fn server_of(&self, service: u64) -> Option<Handle> {
        let is = |k: &Kind| matches!(k, Kind::Server(s) if s.service == service);
        self.living().find(|(_, o)| is(&o.kind)).map(|(h, _)| h)
    }

    fn service_lives(&self, service: u64) -> bool {
        self.living().any(|(_, o)| match &o.kind {
            Kind::Server(s) => s.service == service,
            Kind::Client(c) => c.service == service,
            _ => false,
        })
    }

    /// Whether it is in; a refusal that is right is none.
    fn joins_service(&mut self, step: &Step, reply: &Reply) -> Result<bool, String> {
        let (service, type_) = (step.arg("service"), step.arg("type"));
        let other = self.services.get(&service).is_some_and(|t| *t != type_);
        let lives = self.service_lives(service);
        match reply.outcome.as_str() {
            "TypeMismatch" if other => return Ok(false),
            "ok" if other && lives => return Err("another type is let in".into()),
            _ => ok(reply)?,
        }
        self.services.insert(service, type_);
        Ok(true)
    }

    pub(super) fn client_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        if self.joins_service(step, reply)? {
            let (service, resume) = (step.arg("service"), step.arg("resume") == 1);
            let client = Client { service, resume, asked: Vec::new() };
            self.add(step, Kind::Client(client), None);
        }
        Ok(())
    }

    pub(super) fn server_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let service = step.arg("service");
        let other = self.server_of(service).is_some();
        match reply.outcome.as_str() {
            "ConsumerExists" if other => return Ok(()),
            "ok" if other => return Err("a second server is let in".into()),
            _ => {}
        }
        if self.joins_service(step, reply)? {
            let server = Server { service, seen: BTreeSet::new() };
            self.add(step, Kind::Server(server), None);
        }
        Ok(())
    }

    /// The client has looked whether another server is there.
    fn looked(&mut self, client: Handle) {
        let Some(c) = self.client(client).filter(|c| c.resume) else { return };
        let Some(server) = self.server_of(c.service) else { return };
        if let Some(client) = self.client_mut(client) {
            client.asked.iter_mut().filter(|a| a.is_unanswered()).for_each(|a| a.at = server);
        }
    }

    pub(super) fn asks(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let Some(service) = self.client(on).map(|c| c.service) else { return Ok(()) };
        let server = self.server_of(service);
        let call = step.verb == Verb::Call;
        let Some(at) = server else {
            // Who lacks memory cannot see that nobody is there.
            let told = reply.outcome == "ServerDied" || self.lacks(step, reply);
            return if told { Ok(()) } else { Err(format!("nobody serves: {}", reply.outcome)) };
        };
        let (late, ticket) = (step.arg("late") == 1, step.new_handle().unwrap_or_default());
        let asked = Asked { ticket, at, late, number: reply.value, ..Asked::default() };
        // Its lane cannot grow: nothing was sent.
        if self.is_limited(step.member) && reply.outcome == "WouldBlock" {
            return Ok(());
        }
        if self.lacks(step, reply) {
            // It may be on its way all the same.
            let asked = Asked { ticket: 0, given_up: true, ..asked };
            self.ask(on, asked);
            return Ok(());
        }
        // Without memory for it nothing is sent again either.
        self.looked(on);
        if call {
            // Whoever serves does one step at a time.
            let asked = Asked { given_up: true, late: false, ..asked };
            self.ask(on, asked);
            let late = reply.outcome == "Timeout";
            return if late { Ok(()) } else { ok(reply).and(Err("answered by nobody".into())) };
        }
        ok(reply)?;
        self.ask(on, asked);
        self.add(step, Kind::Ticket { of: on }, None);
        Ok(())
    }

    /// The ways in which `asked` may go on at its client now: kinds of replies.
    fn next_kinds(&self, client: &Client, asked: &Asked) -> Vec<u64> {
        let mut kinds = Vec::new();
        if asked.is_open() {
            let firsts = asked.answers.iter().filter(|(server, n, _)| {
                !asked.answers.iter().any(|(s, earlier, _)| s == server && earlier < n)
            });
            kinds.extend(firsts.map(|(.., kind)| *kind));
            if asked.late {
                kinds.push(LATE);
            }
            let gone = !self.exists(asked.at);
            if !client.resume && gone && asked.answers.is_empty() {
                kinds.push(SERVER_DIED);
            }
        }
        kinds
    }

    fn reply_comes(&mut self, on: Handle, seen: &Seen) -> Verdict {
        let Some(client) = self.client(on) else { return Ok(()) };
        let Some(asked) = client.asked.iter().find(|a| a.number == seen.seq && a.ticket > 0) else {
            return Err(format!("a reply to no request: {seen:?}"));
        };
        let (ticket, kinds) = (asked.ticket, self.next_kinds(client, asked));
        let kind = seen.lost;
        if !seen.whole {
            return Err(format!("a torn reply: {seen:?}"));
        }
        if !kinds.contains(&kind) {
            return Err(format!("{kind} came for ticket {ticket}, not one of {kinds:?}"));
        }
        let answer = (seen.from, seen.n, kind);
        let Some(asked) = self.asked_mut(on, ticket) else { return Ok(()) };
        let at = match kind {
            LATE | SERVER_DIED => None,
            REFUSED => asked.answers.iter().position(|(.., kind)| *kind == REFUSED),
            _ => match asked.answers.iter().position(|a| *a == answer) {
                Some(at) => Some(at),
                None => return Err(format!("{answer:?} came, not one of {:?}", asked.answers)),
            },
        };
        if let Some(at) = at {
            let (server, n, _) = asked.answers.remove(at);
            if asked.answers.iter().any(|(s, earlier, _)| *s == server && *earlier < n) {
                return Err(format!("{answer:?} came before {:?}", asked.answers));
            }
        }
        if kind > 0 {
            asked.done = true;
            asked.answers.clear();
        }
        Ok(())
    }

    pub(super) fn replies(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        if !self.lacks(step, reply) {
            ok(reply)?;
        }
        for seen in &reply.seen {
            self.reply_comes(on, seen)?;
        }
        if self.is_limited(step.member) {
            return Ok(());
        }
        if step.is_long() {
            let nothing = reply.seen.is_empty();
            return if nothing { Err("it woke for nothing".into()) } else { Ok(()) };
        }
        self.looked(on);
        let Some(client) = self.client(on) else { return Ok(()) };
        for asked in &client.asked {
            let kinds = self.next_kinds(client, asked);
            if !kinds.is_empty() {
                return Err(format!("nothing comes, ticket {} is owed {kinds:?}", asked.ticket));
            }
        }
        Ok(())
    }

    fn ticket(&self, handle: Handle) -> Option<(Handle, &Client, &Asked)> {
        let Kind::Ticket { of } = self.objects.get(&handle)?.kind else { return None };
        let client = self.client(of)?;
        Some((of, client, client.asked.iter().find(|a| a.ticket == handle)?))
    }

    pub(super) fn reply_for(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let Some((of, client, asked)) = self.ticket(step.arg("on")) else { return Ok(()) };
        let (open, kinds) = (asked.is_open(), self.next_kinds(client, asked));
        let number = asked.number;
        match reply.outcome.as_str() {
            "ok" => match &reply.seen[..] {
                [seen] if seen.seq == number => self.reply_comes(of, seen),
                other => Err(format!("{other:?} came for request {number}")),
            },
            "InvalidArgument" if !open => Ok(()),
            "Timeout" if self.is_limited(step.member) => Ok(()),
            _ if self.lacks(step, reply) => Ok(()),
            "Timeout" if kinds.is_empty() && open => {
                self.looked(of);
                Ok(())
            }
            _ => ok(reply).or(Err(format!("{}, it must give {kinds:?}", reply.outcome))),
        }
    }

    pub(super) fn cancels(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let Some((of, client, asked)) = self.ticket(step.arg("on")) else { return Ok(()) };
        let served = self.server_of(client.service).is_some();
        let open = asked.is_open();
        // Where its lane cannot grow, that is full.
        let full = self.is_limited(step.member) && reply.outcome == "WouldBlock";
        let (told, lacks) = (reply.is_ok(), full || self.lacks(step, reply));
        if !told && !lacks && (served || reply.outcome != "ServerDied") {
            return ok(reply);
        }
        // It may have been sent again before: then the cancellation lies behind it.
        let server = self.server_of(client.service).filter(|_| open && client.resume);
        let server = server.and_then(|server| self.objects.get_mut(&server));
        if let Some(Kind::Server(server)) = server.map(|o| &mut o.kind) {
            server.seen.insert(step.arg("on"));
        }
        // Whether or not the server could be told.
        if let Some(asked) = self.asked_mut(of, step.arg("on")).filter(|_| open) {
            (asked.given_up, asked.told) = (true, Some(told));
            asked.answers.clear();
        }
        Ok(())
    }

    /// Requests that the server gets next: by client, those that it must and those that it may.
    fn requests(&self, server: Handle, must: bool) -> Vec<(Handle, Handle)> {
        let Some(Kind::Server(s)) = self.objects.get(&server).map(|o| &o.kind) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (handle, object) in &self.objects {
            let Kind::Client(client) = &object.kind else { continue };
            let lives = matches!(object.life, Life::Held | Life::Leaked);
            if client.service != s.service {
                continue;
            }
            for asked in client.asked.iter().filter(|a| !a.handed.contains(&server)) {
                let here = asked.at == server;
                let sure = here && asked.is_open() && lives;
                // It may have been seen before, or be sent again behind our back.
                let seen = s.seen.contains(&asked.ticket);
                let again = client.resume && asked.is_unanswered() && lives;
                let maybe = (here && lives) || seen || again;
                if !asked.late && (sure || !must && maybe) {
                    found.push((*handle, asked.ticket));
                }
            }
        }
        found
    }

    pub(super) fn has_request(&self, server: Handle) -> bool {
        !self.requests(server, true).is_empty()
    }

    pub(super) fn serves(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let limited = self.is_limited(step.member);
        if !self.lacks(step, reply) {
            ok(reply)?;
        }
        let must = self.requests(on, true);
        let Some(seen) = reply.seen.first() else {
            if limited {
                return Ok(());
            }
            let owed = !must.is_empty() && !step.is_long();
            return match (owed, step.is_long()) {
                (true, _) => Err(format!("no request comes, there are (client, ticket) {must:?}")),
                (_, true) => Err("it woke for nothing".into()),
                _ => Ok(()),
            };
        };
        if !seen.whole {
            return Err(format!("a torn request: {seen:?}"));
        }
        let (client, mut ticket) = (seen.from, seen.n);
        let Some(c) = self.client(client) else {
            return Err(format!("a request of nobody: {seen:?}"));
        };
        let mut may = self.requests(on, false);
        if step.is_long() {
            // It came before the client was gone, and is told now.
            let sent = |a: &Asked| a.at == on || c.resume;
            let all = c.asked.iter().filter(|a| sent(a) && !a.handed.contains(&on) && !a.late);
            may.extend(all.map(|a| (client, a.ticket)));
        }
        if ticket == 0 {
            // Of a call, which has no ticket.
            ticket = may.iter().find(|m| **m == (client, 0)).map_or(1, |_| 0);
        }
        if !may.contains(&(client, ticket)) {
            return Err(format!("request {ticket} of {client} comes, not one of {may:?}"));
        }
        let mut earlier = must.iter().take_while(|m| **m != (client, ticket));
        let number = |of: Handle| c.asked.iter().find(|a| a.ticket == of).map(|a| a.number);
        let before = |m: &&(Handle, Handle)| m.0 == client && number(m.1) < number(ticket);
        if let Some(skipped) = earlier.find(|m| ticket > 0 && before(m)) {
            return Err(format!("request {ticket} of {client} comes before {}", skipped.1));
        }
        let asked = self.client_mut(client).and_then(|c| {
            let mut fits = c.asked.iter_mut().filter(|a| a.ticket == ticket);
            fits.find(|a| !a.handed.contains(&on))
        });
        if let Some(asked) = asked {
            if ticket > 0 && seen.seq != asked.number && seen.seq != UNSAID {
                return Err(format!("request {ticket} has number {}", seen.seq));
            }
            asked.handed.insert(on);
            asked.at = on;
        }
        let request = InHand { of: on, client, ticket, parts: 0 };
        self.add(step, Kind::Request(request), None);
        Ok(())
    }

    pub(super) fn answers(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let Some(Kind::Request(request)) = self.objects.get_mut(&on).map(|o| &mut o.kind) else {
            return Ok(());
        };
        let n = request.ticket * PARTS + request.parts;
        request.parts += 1;
        let request = request.clone();
        if step.verb == Verb::Wanted {
            return self.wanted(&request, reply);
        }
        let kind = match step.verb {
            Verb::Part => 0,
            Verb::Answer => LAST,
            _ => REFUSED,
        };
        if kind > 0 {
            self.end_of(on, Life::Dropped);
        }
        // The lane may not grow. Last answers are not tried then.
        let full = kind == 0 && self.is_limited(step.member);
        match (reply.outcome.as_str(), self.exists(request.client)) {
            ("ClientDied", false) => return Ok(()),
            ("WouldBlock", true) if full => return Ok(()),
            ("ok", false) => return Err("a client that is gone is answered".into()),
            _ => ok(reply)?,
        }
        let asked = self.asked_mut(request.client, request.ticket);
        if let Some(asked) = asked.filter(|a| a.is_open() && a.ticket > 0) {
            asked.answers.push((request.of, n, kind));
        }
        Ok(())
    }

    fn wanted(&mut self, request: &InHand, reply: &Reply) -> Verdict {
        ok(reply)?;
        let there = self.requests(request.of, false);
        if let Some(Kind::Server(s)) = self.objects.get_mut(&request.of).map(|o| &mut o.kind) {
            s.seen.extend(there.into_iter().map(|(_, ticket)| ticket));
        }
        let there = self.exists(request.client);
        let asked = self.asked_mut(request.client, request.ticket);
        let Some(asked) = asked.filter(|a| a.ticket > 0) else { return Ok(()) };
        let is = match (there, asked.given_up, asked.told) {
            (false, ..) => false,
            (true, true, Some(true)) => false,
            (true, true, _) => return Ok(()),
            (true, false, _) => true,
        };
        if is == (reply.value == 1) {
            return Ok(());
        }
        Err(format!("ticket {} is wanted: {is}, it says {}", asked.ticket, reply.value))
    }

    /// Whether a client that waits has something to wake for.
    pub(super) fn has_reply(&self, client: Handle) -> bool {
        let Some(c) = self.client(client) else { return false };
        c.asked.iter().any(|asked| !self.next_kinds(c, asked).is_empty())
    }

    /// Whether one that waits for the reply to one request has something to wake for.
    pub(super) fn has_reply_for(&self, ticket: Handle) -> bool {
        let at = self.ticket(ticket);
        at.is_some_and(|(_, c, asked)| !asked.is_open() || !self.next_kinds(c, asked).is_empty())
    }

    /// Services without a living member are gone.
    pub(super) fn services_cleaned(&mut self) {
        let dead: Vec<u64> =
            self.services.keys().copied().filter(|s| !self.service_lives(*s)).collect();
        for service in dead {
            self.services.remove(&service);
        }
    }
}

const _: () = assert!(KINDS.len() as u64 > SERVER_DIED);
