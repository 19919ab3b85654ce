//! Services across machines: where the server is, the bridge is a client; elsewhere a server.
//!
//! | what ends | who is told |
//! |---|---|
//! | the server, its machine, the link | clients elsewhere: `ServerDied` |
//! | a client elsewhere | nobody: its answer is dropped |
//! | a bridge | its clients or its server, as of any process |
//!
//! Calls that come wait in a lane here for the server, answers in those of the clients: both within
//! what the file allows. What has no room is refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use outlive::service::{self, Request, Ticket};
use outlive::{Client, Deadline, ErrorKind, PayloadType, Server};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::handlers::CallbackDrop;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable, Reply};
use zenoh::sample::Locality;

use crate::config::ServiceRule;
use crate::link::hand_over;
use crate::link::notes::{Note, ask};
use crate::link::wire::{ServiceNote, TypeNote};
use crate::local::room::{LANE_BYTES, Share};
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Slot, Stop, Turn, Worker};

/// Calls in hand at most, each way.
const CALLS_MAX: usize = 1024;
/// A request that nobody there has answered is refused after this time. If its server is gone, that
/// is told before: its stand-in ends.
const NEWS_WAIT: Duration = Duration::from_secs(2);
/// How soon the other side is looked at while a call is under way, and while none is.
const SOON: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(20);

const PART: u8 = 0;
const LAST: u8 = 1;

/// How calls and answers are written on the way.
pub(crate) trait Form {
    /// Whether who calls from elsewhere learns by itself of the server's end.
    const SEES_END: bool;

    /// What a call from elsewhere asks, and how long it may take, ms, if it says so.
    fn called<'a>(&self, payload: &'a [u8], attached: &[u8]) -> Result<Called<'a>, String>;

    /// An answer to the call that had `attached`, with what is attached to it; none if there is
    /// no word for it there.
    fn answer(&self, attached: &[u8], body: &[u8], last: bool) -> Result<Option<Parts>, String>;

    /// A call to a service elsewhere, with what is attached.
    fn call(&self, request: &[u8], left_ms: u64) -> Result<Parts, String>;

    /// What is answered there, and whether that was the last part.
    fn answered<'a>(
        &self,
        payload: &'a [u8],
        attached: &[u8],
    ) -> Result<(Cow<'a, [u8]>, bool), String>;
}

pub(crate) type Called<'a> = (Cow<'a, [u8]>, Option<u64>);
/// A payload, and what is attached to it.
pub(crate) type Parts = (ZBytes, Vec<u8>);

/// That of bridges among each other.
struct Plain;

impl Form for Plain {
    const SEES_END: bool = true;

    fn called<'a>(&self, payload: &'a [u8], attached: &[u8]) -> Result<Called<'a>, String> {
        Ok((payload.into(), attached.try_into().ok().map(u64::from_le_bytes)))
    }

    fn answer(&self, _: &[u8], body: &[u8], last: bool) -> Result<Option<Parts>, String> {
        Ok(Some((body.into(), vec![if last { LAST } else { PART }])))
    }

    fn call(&self, request: &[u8], left_ms: u64) -> Result<Parts, String> {
        Ok((request.into(), left_ms.to_le_bytes().into()))
    }

    fn answered<'a>(
        &self,
        payload: &'a [u8],
        attached: &[u8],
    ) -> Result<(Cow<'a, [u8]>, bool), String> {
        Ok((payload.into(), attached.first() != Some(&PART)))
    }
}

/// A local service that others may call.
pub(crate) fn start_offer(
    shared: &Arc<Shared>,
    info: &service::Info,
    rule: &ServiceRule,
) -> Worker {
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

enum Event {
    Reply(u64, Reply),
    End(u64),
}

/// Stands here for a server elsewhere. Its end ends the waits of its clients: `ServerDied`.
pub(crate) fn start_stand(
    shared: &Arc<Shared>,
    bridge: &str,
    name: &str,
    rule: &ServiceRule,
) -> Worker {
    let (by, rule) = (shared.clone(), rule.clone());
    let (bridge, name) = (bridge.to_owned(), name.to_owned());
    let what = format!("service {name} of {bridge} is not stood for");
    let workers = shared.workers.clone();
    let begin = move |stop: &Stop| {
        let note = ask(&by.link, &bridge, "note/service", &name, stop)?;
        let Some(note) = note else { return Ok(None) };
        let note: ServiceNote = serde_json::from_str(&note)?;
        let types = (&note.request.payload_type()?, &note.response.payload_type()?);
        let call = Call {
            key: by.link.keys.of(&bridge, "call", &name),
            target: QueryTarget::default(),
            timeout_ms: rule.timeout_ms,
        };
        stand(&by, &name, types, call, (Plain, None))
    };
    Worker::start(&shared.workers, "stand", what, begin).hearing(move |_| workers.look())
}

/// Where calls go.
pub(crate) struct Call {
    pub(crate) key: String,
    pub(crate) target: QueryTarget,
    /// Of a request without a deadline.
    pub(crate) timeout_ms: u64,
}

/// Serves `name` here by calls elsewhere; `token` shows that as long as it does.
pub(crate) fn stand(
    shared: &Arc<Shared>,
    name: &str,
    (request, response): (&PayloadType, &PayloadType),
    call: Call,
    (form, token): (impl Form + Send + 'static, Option<LivelinessToken>),
) -> Result<Option<Box<dyn Job>>, Failed> {
    let service = shared.node.service::<[u8], [u8]>(name)?;
    let service = service.of_types(request, response);
    let mut server = service.bound_bytes(shared.room.lane_bytes()).server()?;
    // What its lanes begin with.
    server.set_memory_bytes_max(0);
    let (to, events) = channel();
    Ok(Some(Box::new(Standing {
        _token: token,
        share: Share::new(&shared.room),
        limited: Limited::new(shared, name),
        call,
        form,
        server,
        response: response.clone(),
        next: 0,
        calls: HashMap::new(),
        to,
        events,
    })))
}

struct Standing<F> {
    _token: Option<LivelinessToken>,
    share: Share,
    limited: Limited,
    call: Call,
    form: F,
    server: Server<[u8], [u8]>,
    response: PayloadType,
    next: u64,
    calls: HashMap<u64, Asked>,
    to: Sender<Event>,
    events: Receiver<Event>,
}

/// A call under way.
struct Asked {
    request: Request<[u8]>,
    /// Since when no answer can come any more.
    ended: Option<Instant>,
}

impl<F: Form + Send> Job for Standing<F> {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let mut busy = Instant::now();
        while stop.goes_on() {
            self.step()?;
            if !self.calls.is_empty() {
                busy = Instant::now();
            } else if busy.elapsed() > QUIET {
                return Ok(Turn::Quiet);
            }
        }
        Ok(Turn::Ended)
    }

    fn rests(&mut self) -> Rests<'_> {
        Rests::ForLocal(&mut self.server)
    }
}

impl<F: Form> Standing<F> {
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
        self.refuse_unanswered();
        // Each new client has a lane.
        self.share.set(self.server.memory_bytes());
        Ok(())
    }

    fn refuse_unanswered(&mut self) {
        let is_late = |asked: &Asked| asked.ended.is_some_and(|at| at.elapsed() >= NEWS_WAIT);
        for (_, Asked { request, .. }) in self.calls.extract_if(|_, asked| is_late(asked)) {
            let _ = self.server.refuse(request, "nobody there has answered");
        }
    }

    fn pass(&mut self, request: Request<[u8]>) -> Result<(), Failed> {
        let deadline = request.deadline();
        let left_ms = match deadline.is_never() {
            true => self.call.timeout_ms,
            false => (deadline.remaining().as_millis() as u64).clamp(1, 3_600_000),
        };
        let (payload, attached) = match self.form.call(&request, left_ms) {
            Ok(parts) => parts,
            Err(why) => {
                let _ = self.server.refuse(request, &why);
                return Ok(());
            }
        };
        let id = self.next;
        self.next += 1;
        let (on_reply, on_end) = (self.to.clone(), self.to.clone());
        self.limited
            .shared
            .link
            .session
            .get(&self.call.key)
            .target(self.call.target)
            .payload(payload)
            .attachment(attached)
            .timeout(Duration::from_millis(left_ms))
            .consolidation(ConsolidationMode::None)
            .allowed_destination(Locality::Remote)
            .with(CallbackDrop {
                callback: move |reply| drop(on_reply.send(Event::Reply(id, reply))),
                drop: move || drop(on_end.send(Event::End(id))),
            })
            .wait()?;
        self.calls.insert(id, Asked { request, ended: None });
        Ok(())
    }

    fn answer(&mut self, event: Event) {
        // A client that is gone, or reads nothing, is no reason to stop serving others.
        match event {
            Event::Reply(id, reply) => match reply.result() {
                Ok(sample) => {
                    let payload = sample.payload().to_bytes();
                    let attached = sample.attachment().map(|a| a.to_bytes()).unwrap_or_default();
                    match self.form.answered(&payload, &attached) {
                        Ok((body, false)) => {
                            if let Some(Err(e)) = self.respond(id, &body, false) {
                                // Later parts may fit again: the answer would have a hole.
                                let why = "a part of the answer could not be passed on";
                                self.refuse(id, &format!("{why}: {e}"));
                            }
                        }
                        Ok((body, true)) => drop(self.respond(id, &body, true)),
                        Err(why) => self.refuse(id, &why),
                    }
                }
                Err(e) => {
                    let why = e.payload().to_bytes();
                    self.refuse(id, &String::from_utf8_lossy(&why));
                }
            },
            Event::End(id) => {
                if let Some(asked) = self.calls.get_mut(&id) {
                    asked.ended = Some(Instant::now());
                }
            }
        }
    }

    /// None if that call has ended.
    fn respond(&mut self, id: u64, body: &[u8], is_last: bool) -> Option<outlive::Result<()>> {
        let Self { share, limited, server, calls, response, .. } = self;
        let put = |to: &mut Server<_, _>| match is_last {
            true => calls.remove(&id).map(|asked| to.respond(asked.request, body)),
            false => calls.get(&id).map(|asked| to.respond_part(&asked.request, body)),
        };
        let (done, _) = share.within(server, limited.shared.room.limits.total_bytes, put);
        done.map(|done| done.inspect_err(|e| limited.count(e, response.fits(body.len()))))
    }

    fn refuse(&mut self, id: u64, why: &str) {
        if let Some(Asked { request, .. }) = self.calls.remove(&id) {
            let _ = self.server.refuse(request, why);
        }
    }
}

/// What has no room here is counted as dropped, by service.
struct Limited {
    shared: Arc<Shared>,
    what: String,
    counted: Counted,
}

impl Limited {
    fn new(shared: &Arc<Shared>, name: &str) -> Self {
        let what = format!("service {name}");
        let counted = shared.stats.of(false, &what);
        Self { shared: shared.clone(), what, counted }
    }

    /// A call or an answer was not passed on; `fits`: it has a length of its type.
    fn count(&self, e: &outlive::Error, fits: bool) {
        use ErrorKind::{InvalidArgument, NoSpace, WouldBlock};
        if fits && matches!(e.kind(), InvalidArgument | NoSpace | WouldBlock) {
            self.counted.with(|c| c.dropped += 1);
            self.shared.say_failed(format_args!(
                "{}: a call or an answer is refused ({:?}): its reader is behind, the RAM disk is \
                 full, or publisher_bytes and total_bytes in [limits] allow no more",
                self.what,
                e.kind()
            ));
        }
    }
}
