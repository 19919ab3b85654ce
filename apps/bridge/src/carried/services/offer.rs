//! Where the server is: the bridge is a client, for those elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use outlive::service::{self, Ticket};
use outlive::{Client, Deadline, ErrorKind, PayloadType};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{Query, Queryable};

use super::form::{Form, Plain};
use super::limited::Limited;
use super::{CALLS_MAX, IDLE, SOON};
use crate::config::ServiceRule;
use crate::link::hand_over;
use crate::link::notes::Note;
use crate::link::wire::{ServiceNote, TypeNote};
use crate::local::room::{LANE_BYTES, Share};
use crate::report::Failed;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Slot, Stop, Turn, Worker};

/// A local service that others may call.
pub(crate) fn start(shared: &Arc<Shared>, info: &service::Info, rule: &ServiceRule) -> Worker {
    let (by, info, rule) = (shared.clone(), info.clone(), rule.clone());
    let what = format!("service {} is not offered", info.name);
    let slot = Arc::<Slot>::default();
    let at = slot.clone();
    let begin = move |stop: &Stop| offer(&by, &info, &rule, (at, stop));
    Worker::start(&shared.workers, "offer", what, begin).hearing(move |_| slot.wake())
}

fn offer(
    shared: &Arc<Shared>,
    info: &service::Info,
    rule: &ServiceRule,
    run: (Arc<Slot>, &Stop),
) -> Result<Option<Box<dyn Job>>, Failed> {
    let name = &info.name;
    let note = ServiceNote {
        request: TypeNote::of(&info.request),
        response: TypeNote::of(&info.response),
    };
    let note = Note::show(&shared.link, "service", name, &note)?;
    let key = shared.link.own_key("call", name);
    let token = shared.link.own_key("live/service", name);
    serve(shared, info, (key, token), Some(note), (Plain, rule.timeout_ms), run)
}

/// Passes calls that come on a key to a service here, and shows that by a token.
pub(crate) fn serve(
    shared: &Arc<Shared>,
    info: &service::Info,
    (key, token): (String, String),
    note: Option<Note>,
    (form, timeout_ms): (impl Form + Send + 'static, u64),
    (slot, stop): (Arc<Slot>, &Stop),
) -> Result<Option<Box<dyn Job>>, Failed> {
    let limited = Limited::new(shared, &info.name);
    let share = Share::of_lane(&shared.room, &limited.what, LANE_BYTES, stop);
    let Some(mut share) = share else { return Ok(None) };
    let service = shared.node.service::<[u8], [u8]>(&info.name)?;
    let service = service.of_types(&info.request, &info.response);
    let client = service.bound_bytes(LANE_BYTES).client()?;
    share.set(client.memory_bytes());
    let (to, queries) = sync_channel(CALLS_MAX);
    let wakes = slot.clone();
    let queryable = shared
        .link
        .session
        .declare_queryable(key)
        .complete(true)
        .callback(move |query| {
            hand_over(&to, query);
            wakes.wake();
        })
        .wait()?;
    let token = shared.link.session.liveliness().declare_token(token).wait()?;
    Ok(Some(Box::new(Offered {
        _token: token,
        _queryable: queryable,
        _note: note,
        client,
        request: info.request.clone(),
        share,
        limited,
        form,
        timeout_ms,
        calls: HashMap::new(),
        queries,
        next: None,
        slot,
    })))
}

struct Offered<F> {
    /// Gone first: who hears of the end calls no more.
    _token: LivelinessToken,
    _queryable: Queryable<()>,
    _note: Option<Note>,
    client: Client<[u8], [u8]>,
    request: PayloadType,
    share: Share,
    limited: Limited,
    form: F,
    timeout_ms: u64,
    calls: HashMap<Ticket, Query>,
    queries: Receiver<Query>,
    /// What was found when it was to rest.
    next: Option<Query>,
    slot: Arc<Slot>,
}

impl<F: Form + Send> Job for Offered<F> {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let mut busy = Instant::now();
        while stop.goes_on() {
            let wait = if self.calls.is_empty() { IDLE } else { SOON };
            let query = self.next.take().map_or_else(|| self.queries.recv_timeout(wait), Ok);
            match query {
                Ok(query) => self.ask(query),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.answer()?;
            if !self.calls.is_empty() {
                busy = Instant::now();
            } else if busy.elapsed() > QUIET {
                return Ok(Turn::Quiet);
            }
        }
        Ok(Turn::Ended)
    }

    fn rests(&mut self) -> Rests<'_> {
        self.next = self.next.take().or_else(|| self.queries.try_recv().ok());
        match self.next {
            Some(_) => Rests::Not,
            None => Rests::UntilWoken(self.slot.clone()),
        }
    }
}

impl<F: Form> Offered<F> {
    fn answer(&mut self) -> Result<(), Failed> {
        while let Some(reply) = self.client.receive()? {
            let ticket = reply.ticket();
            let Some(query) = self.calls.get(&ticket) else { continue };
            let answer = match reply.body() {
                Ok(body) => self.form.answer(&attached(query), body, reply.is_last()),
                Err(e) if is_end::<F>(&e) => Ok(None),
                Err(e) => Err(e.to_string()),
            };
            // An answer that cannot be sent has nobody who waits for it.
            let _ = match answer {
                Ok(Some((payload, attached))) => {
                    query.reply(query.key_expr().clone(), payload).attachment(attached).wait()
                }
                Ok(None) => Ok(()),
                Err(why) => query.reply_err(why).wait(),
            };
            if reply.is_last() {
                self.calls.remove(&ticket);
            }
        }
        Ok(())
    }

    fn ask(&mut self, query: Query) {
        match self.send(&query) {
            Ok(Some(ticket)) => drop(self.calls.insert(ticket, query)),
            Ok(None) => {}
            Err(why) => drop(query.reply_err(why).wait()),
        }
    }

    /// None if there is no server any more.
    fn send(&mut self, query: &Query) -> Result<Option<Ticket>, String> {
        if self.calls.len() >= CALLS_MAX {
            return Err("too many calls at once: try again later".into());
        }
        let payload = query.payload().map(|p| p.to_bytes()).unwrap_or_default();
        let (request, left_ms) = self.form.called(&payload, &attached(query))?;
        let left_ms = left_ms.unwrap_or(self.timeout_ms).min(3_600_000);
        let deadline = Deadline::after(Duration::from_millis(left_ms));
        let most = self.limited.shared.room.lane_bytes();
        let (sent, _) =
            self.share.within(&mut self.client, most, |to| to.send_until(&request, deadline));
        match sent {
            Ok(ticket) => Ok(Some(ticket)),
            Err(e) if is_end::<F>(&e) => Ok(None),
            Err(e) => {
                self.limited.count(&e, self.request.fits(request.len()));
                Err(e.to_string())
            }
        }
    }
}

/// Whether a call stays without an answer: its client is told of the server's end, not of a reason.
fn is_end<F: Form>(e: &outlive::Error) -> bool {
    F::SEES_END && e.kind() == ErrorKind::ServerDied
}

fn attached(query: &Query) -> Vec<u8> {
    query.attachment().map(|a| a.to_bytes().into_owned()).unwrap_or_default()
}
