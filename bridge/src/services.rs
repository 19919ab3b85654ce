//! Services across machines: where the server is, the bridge is a client; elsewhere a server.
//!
//! | what ends | who is told |
//! |---|---|
//! | the server, its machine, the link | clients elsewhere: `ServerDied` |
//! | a client elsewhere | nobody: its answer is dropped |
//! | a bridge | its clients or its server, as of any process |

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use outlive::{Client, Request, Server, ServiceInfo, Ticket, now_ns};
use zenoh::Wait;
use zenoh::handlers::CallbackDrop;
use zenoh::query::{ConsolidationMode, Query, Reply};
use zenoh::sample::Locality;

use crate::config::ServiceRule;
use crate::incoming::ask;
use crate::outgoing::Failed;
use crate::shared::{Shared, say};
use crate::wire::{ServiceNote, TypeNote};
use crate::worker::Worker;

/// Calls in hand at most, each way.
const CALLS_MAX: usize = 1024;
/// How soon the other side is looked at while a call is under way, and while none is.
const SOON: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(20);

const PART: u8 = 0;
const LAST: u8 = 1;

/// A local service that others may call.
#[derive(Debug)]
pub(crate) struct Offer(Worker);

impl Offer {
    pub(crate) fn start(shared: &Arc<Shared>, info: &ServiceInfo, rule: &ServiceRule) -> Self {
        let (shared, info, rule) = (shared.clone(), info.clone(), rule.clone());
        Self(Worker::start("offer", move |stop| {
            if let Err(e) = offer(&shared, &info, &rule, stop) {
                say(format_args!("service {} is not offered: {e}", info.name));
            }
        }))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}

fn offer(
    shared: &Arc<Shared>,
    info: &ServiceInfo,
    rule: &ServiceRule,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let name = &info.name;
    let service = shared.node.service::<[u8], [u8]>(name)?;
    let client = service.of_types(&info.request, &info.response).client()?;
    let note = ServiceNote {
        request: TypeNote::of(&info.request),
        response: TypeNote::of(&info.response),
    };
    let note_key = shared.keys.of(&shared.own, "note/service", name);
    shared.set_note(note_key.clone(), Some(serde_json::to_string(&note)?));
    let (to, queries) = sync_channel(CALLS_MAX);
    let queryable = shared
        .session
        .declare_queryable(shared.keys.of(&shared.own, "call", name))
        .callback(move |query| take(&to, query))
        .wait()?;
    let token_key = shared.keys.of(&shared.own, "live/service", name);
    let token = shared.session.liveliness().declare_token(token_key).wait()?;
    let mut offered = Offered { client, rule, calls: HashMap::new() };
    let done = offered.run(&queries, stop);
    token.undeclare().wait()?;
    queryable.undeclare().wait()?;
    shared.set_note(note_key, None);
    done
}

/// Zenoh's thread never waits.
pub(crate) fn take(to: &SyncSender<Query>, query: Query) {
    if let Err(e) = to.try_send(query) {
        let (std::sync::mpsc::TrySendError::Full(query)
        | std::sync::mpsc::TrySendError::Disconnected(query)) = e;
        let _ = query.reply_err("too many calls at once: try again later").wait();
    }
}

struct Offered<'a> {
    client: Client<[u8], [u8]>,
    rule: &'a ServiceRule,
    calls: HashMap<Ticket, Query>,
}

impl Offered<'_> {
    fn run(&mut self, queries: &Receiver<Query>, stop: &AtomicBool) -> Result<(), Failed> {
        while !stop.load(Relaxed) {
            match queries.recv_timeout(if self.calls.is_empty() { IDLE } else { SOON }) {
                Ok(query) => self.ask(query),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Some(reply) = self.client.receive()? {
                let ticket = reply.ticket();
                let Some(query) = self.calls.get(&ticket) else { continue };
                // An answer that cannot be sent has nobody who waits for it.
                let _ = match reply.body() {
                    Ok(body) => {
                        let kind = if reply.is_last() { LAST } else { PART };
                        query.reply(query.key_expr().clone(), body).attachment([kind]).wait()
                    }
                    Err(e) => query.reply_err(e.to_string()).wait(),
                };
                if reply.is_last() {
                    self.calls.remove(&ticket);
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, query: Query) {
        let bytes = query.payload().map(|p| p.to_bytes()).unwrap_or_default();
        let left = query.attachment().and_then(|a| a.to_bytes().as_ref().try_into().ok());
        let left_ms = left.map_or(self.rule.timeout_ms, u64::from_le_bytes).min(3_600_000);
        let asked = if self.calls.len() < CALLS_MAX {
            self.client
                .send_until(&bytes, now_ns() + left_ms * 1_000_000)
                .map_err(|e| e.to_string())
        } else {
            Err("too many calls at once: try again later".into())
        };
        match asked {
            Ok(ticket) => drop(self.calls.insert(ticket, query)),
            Err(why) => drop(query.reply_err(why).wait()),
        }
    }
}

/// Stands here for a server elsewhere. Dropping it ends the waits of its clients: `ServerDied`.
#[derive(Debug)]
pub(crate) struct Stand {
    _worker: Worker,
}

enum Event {
    Reply(u64, Reply),
    End(u64),
}

impl Stand {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        bridge: &str,
        name: &str,
        rule: &ServiceRule,
    ) -> Self {
        let (shared, rule) = (shared.clone(), rule.clone());
        let (bridge, name) = (bridge.to_owned(), name.to_owned());
        let what = format!("service {name} of {bridge}");
        let worker =
            Worker::retry("stand", what, move |stop| stand(&shared, &bridge, &name, &rule, stop));
        Self { _worker: worker }
    }
}

fn stand(
    shared: &Arc<Shared>,
    bridge: &str,
    name: &str,
    rule: &ServiceRule,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let note: ServiceNote = serde_json::from_str(&ask(shared, bridge, "note/service", name)?)?;
    let (request, response) = (note.request.payload_type()?, note.response.payload_type()?);
    let service = shared.node.service::<[u8], [u8]>(name)?;
    let server = service.of_types(&request, &response).server()?;
    let (to, events) = channel();
    let key = shared.keys.of(bridge, "call", name);
    let mut standing =
        Standing { shared, key, rule, server, next: 0, calls: HashMap::new(), to, events };
    while !stop.load(Relaxed) {
        standing.step()?;
    }
    Ok(())
}

struct Standing<'a> {
    shared: &'a Shared,
    key: String,
    rule: &'a ServiceRule,
    server: Server<[u8], [u8]>,
    next: u64,
    calls: HashMap<u64, Request<[u8]>>,
    to: Sender<Event>,
    events: Receiver<Event>,
}

impl Standing<'_> {
    fn step(&mut self) -> Result<(), Failed> {
        let wait = if self.calls.is_empty() { IDLE } else { SOON };
        if let Some(request) = self.server.receive_timeout(wait)? {
            if self.calls.len() < CALLS_MAX {
                self.pass(request)?;
            } else {
                let _ = self.server.refuse(request, "too many calls at once: try again later");
            }
        }
        while let Ok(event) = self.events.try_recv() {
            self.answer(event);
        }
        Ok(())
    }

    fn pass(&mut self, request: Request<[u8]>) -> Result<(), Failed> {
        let left_ms = request.deadline_ns().map_or(self.rule.timeout_ms, |deadline| {
            (deadline.saturating_sub(now_ns()) / 1_000_000).clamp(1, 3_600_000)
        });
        let id = self.next;
        self.next += 1;
        let (on_reply, on_end) = (self.to.clone(), self.to.clone());
        self.shared
            .session
            .get(&self.key)
            .payload(&request[..])
            .attachment(left_ms.to_le_bytes())
            .timeout(Duration::from_millis(left_ms))
            .consolidation(ConsolidationMode::None)
            .allowed_destination(Locality::Remote)
            .with(CallbackDrop {
                callback: move |reply| drop(on_reply.send(Event::Reply(id, reply))),
                drop: move || drop(on_end.send(Event::End(id))),
            })
            .wait()?;
        self.calls.insert(id, request);
        Ok(())
    }

    fn answer(&mut self, event: Event) {
        // A client that is gone, or reads nothing, is no reason to stop serving others.
        match event {
            Event::Reply(id, reply) => match reply.result() {
                Ok(sample) => {
                    let kind = sample.attachment().map(|a| a.to_bytes().first().copied());
                    let body = sample.payload().to_bytes();
                    if kind == Some(Some(PART)) {
                        if let Some(request) = self.calls.get(&id) {
                            let _ = self.server.respond_part(request, &body);
                        }
                    } else if let Some(request) = self.calls.remove(&id) {
                        let _ = self.server.respond(request, &body);
                    }
                }
                Err(e) => {
                    let why = e.payload().to_bytes();
                    self.refuse(id, &String::from_utf8_lossy(&why));
                }
            },
            Event::End(id) => self.refuse(id, "its bridge has not answered"),
        }
    }

    fn refuse(&mut self, id: u64, why: &str) {
        if let Some(request) = self.calls.remove(&id) {
            let _ = self.server.refuse(request, why);
        }
    }
}
