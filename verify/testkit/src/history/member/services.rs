//! The ends of services, as a member uses them.

use std::time::Duration;

use outlive::service::{Reply as Answer, Ticket};
use outlive::{Deadline, ErrorKind, PayloadType};

use super::fails::Fails;
use super::messages::{content, look};
use super::names::payload_type;
use super::shared::Shared;
use super::things::Thing;
use super::things::services::{Asking, InHand, Serving};
use crate::history::reply::{Reply, Seen};
use crate::history::step::{Step, Verb};

/// The number of a request, of one that does not say it.
pub(in crate::history) const UNSAID: u64 = u64::MAX;
/// How many parts of an answer are told apart.
pub(in crate::history) const PARTS: u64 = 64;
/// What a reply is: a part, the last, a refusal, out of time, without a server, unreadable.
pub(in crate::history) const KINDS: [Option<ErrorKind>; 6] = [
    None,
    None,
    Some(ErrorKind::Refused),
    Some(ErrorKind::Timeout),
    Some(ErrorKind::ServerDied),
    Some(ErrorKind::Corrupt),
];

fn name(number: u64) -> String {
    format!("/h/service{number}")
}

fn types(step: &Step) -> (PayloadType, PayloadType) {
    (payload_type(step.arg("type")), payload_type(0))
}

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let node = shared.node(step.arg("node"));
    let (request, reply) = types(step);
    let service = node.service::<[u8], [u8]>(&name(step.arg("service")))?;
    let service = service.of_types(&request, &reply);
    Ok(match step.verb {
        Verb::Client => Thing::Client(Box::new(service.resume(step.arg("resume") == 1).client()?)),
        _ => Thing::Server(Box::new(service.server()?)),
    })
}

/// One of a crowd.
pub(super) fn client(shared: &Shared, step: &Step) -> Result<Asking, Fails> {
    let node = shared.node(step.arg("node"));
    let (request, reply) = types(step);
    let service = node.service::<[u8], [u8]>(&name(step.arg("name")))?;
    Ok(service.of_types(&request, &reply).client()?)
}

fn seen(answer: &Answer<[u8]>) -> Seen {
    let number = answer.ticket().get();
    let (looked, kind) = match answer.body() {
        Ok(body) => (look(body), u64::from(answer.is_last())),
        Err(e) => {
            let kind = KINDS.iter().position(|kind| *kind == Some(e.kind()));
            (Seen { whole: true, ..Seen::default() }, kind.unwrap_or(KINDS.len()) as u64)
        }
    };
    Seen { seq: number, lost: kind, ..looked }
}

/// What a client does by itself.
pub(super) fn ask(
    shared: &Shared,
    client: &mut Asking,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let (on, wait) = (step.arg("on"), Duration::from_millis(step.arg("ms")));
    match step.verb {
        Verb::Ask => {
            let new = step.arg("new");
            let until = if step.arg("late") == 1 {
                Deadline::after(Duration::ZERO)
            } else {
                Deadline::NEVER
            };
            let ticket = client.send_until(&content(on, new, step.arg("words")), until)?;
            reply.value = ticket.get();
            shared.put(new, Thing::Ticket(ticket, on));
        }
        Verb::Call => {
            let response = client.call_timeout(&content(on, 0, step.arg("words")), wait)?;
            reply.seen.push(look(&response));
        }
        _ => {
            let mut wait = wait;
            while let Some(answer) = client.receive_timeout(wait)? {
                reply.seen.push(seen(&answer));
                wait = Duration::ZERO;
            }
        }
    }
    Ok(())
}

/// What is done about one request: by its client or by its server, which stay what they are.
pub(super) fn about(shared: &Shared, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    let on = step.arg("on");
    match shared.take(on) {
        Thing::Ticket(ticket, of) => {
            let Thing::Client(mut client) = shared.take(of) else { panic!("a client") };
            let done = about_ticket(&mut client, ticket, step, reply);
            shared.put(of, Thing::Client(client));
            shared.put(on, Thing::Ticket(ticket, of));
            done
        }
        Thing::Request(mut request) => {
            let of = request.server;
            let Thing::Server(mut server) = shared.take(of) else { panic!("a server") };
            let mut keep = true;
            let n = request.ticket * PARTS + request.parts;
            let body = content(of, n, step.arg("words"));
            request.parts += 1;
            let done = match step.verb {
                Verb::Part => server.respond_part(&request.it, &body),
                Verb::Wanted => {
                    server.is_cancelled(&request.it).map(|is| reply.value = u64::from(!is))
                }
                _ => {
                    keep = false;
                    Ok(())
                }
            };
            let done = match keep {
                true => {
                    shared.put(on, Thing::Request(request));
                    done
                }
                false if step.verb == Verb::Refuse => server.refuse(request.it, "as told"),
                false => server.respond(request.it, &body),
            };
            shared.put(of, Thing::Server(server));
            Ok(done?)
        }
        _ => panic!("handle {on} does not {:?}", step.verb),
    }
}

fn about_ticket(
    client: &mut Asking,
    ticket: Ticket,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    if step.verb == Verb::Cancel {
        return Ok(client.cancel(ticket)?);
    }
    let until = Deadline::after(Duration::from_millis(step.arg("ms")));
    reply.seen.push(seen(&client.receive_for(ticket, until)?));
    Ok(())
}

pub(super) fn serve(
    shared: &Shared,
    server: &mut Serving,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    let wait = Duration::from_millis(step.arg("ms"));
    if let Some(it) = server.receive_timeout(wait)? {
        let looked = Seen { seq: it.id(), ..look(&it) };
        reply.seen.push(looked);
        let (server, ticket) = (step.arg("on"), looked.n);
        let request = InHand { it, server, ticket, parts: 0 };
        shared.put(step.arg("new"), Thing::Request(Box::new(request)));
    }
    Ok(())
}
