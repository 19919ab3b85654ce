//! Where clients are: the bridge is a server, for one elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use outlive::service::Request;
use outlive::{PayloadType, Server};
use zenoh::Wait;
use zenoh::handlers::CallbackDrop;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply};
use zenoh::sample::Locality;

use super::form::{Form, Plain};
use super::limited::Limited;
use super::{CALLS_MAX, IDLE, SOON};
use crate::config::ServiceRule;
use crate::link::notes::ask;
use crate::link::wire::ServiceNote;
use crate::local::room::Share;
use crate::report::Failed;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Stop, Turn, Worker};

/// A request that nobody there has answered is refused after this time. If its server is gone, that
/// is told before: its stand-in ends.
const NEWS_WAIT: Duration = Duration::from_secs(2);

enum Event {
    Reply(u64, Reply),
    End(u64),
}

/// Stands here for a server elsewhere. Its end ends the waits of its clients: `ServerDied`.
pub(crate) fn start(shared: &Arc<Shared>, bridge: &str, name: &str, rule: &ServiceRule) -> Worker {
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
