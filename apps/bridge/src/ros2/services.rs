//! Services to and from ROS: calls are queries, with requests and responses in CDR.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use outlive::service;
use outlive_record::ros2::Service;
use zenoh::query::QueryTarget;

use super::known::Known;
use super::member::Member;
use super::names::{self, Attachment, Port, Topic};
use super::qos::Qos;
use crate::carried::services::form::{Called, Form, Parts};
use crate::carried::services::offer::serve;
use crate::carried::services::stand::{Call, stand};
use crate::config::ros2::Ros2ServiceRule;
use crate::link::wire::{PAYLOAD_BYTES_MAX, wall_now_ns};
use crate::work::{Slot, Stop, Worker};

/// How rmw_zenoh writes calls.
struct Cdr {
    service: Service,
    /// Of our client.
    gid: [u8; 16],
    /// Number of the next request: ROS counts from 1.
    seq: AtomicI64,
}

impl Cdr {
    fn new(service: Service, token: &str) -> Self {
        Self { service, gid: names::gid(token), seq: AtomicI64::new(1) }
    }
}

impl Form for Cdr {
    /// Its clients wait on.
    const SEES_END: bool = false;

    fn called<'a>(&self, payload: &'a [u8], attached: &[u8]) -> Result<Called<'a>, String> {
        if Attachment::parse(attached).is_none() {
            return Err("the request has no number and id attached".into());
        }
        let request = fits(payload).and_then(|payload| self.service.request.payload(payload));
        let request =
            request.map_err(|why| format!("the request does not match its type: {why}"))?;
        Ok((request.into(), None))
    }

    fn answer(&self, attached: &[u8], body: &[u8], last: bool) -> Result<Option<Parts>, String> {
        // There is one answer in ROS.
        if !last {
            return Ok(None);
        }
        let call = Attachment::parse(attached).ok_or("the request has no number")?;
        let response = self.service.response.message(body);
        let response =
            response.map_err(|why| format!("the response does not match its type: {why}"))?;
        let attachment = Attachment { wall_ns: wall_now_ns() as i64, ..call };
        Ok(Some((response.into(), attachment.to_bytes().into())))
    }

    fn call(&self, request: &[u8], _: u64) -> Result<Parts, String> {
        let request = self.service.request.message(request);
        let request =
            request.map_err(|why| format!("the request does not match its type: {why}"))?;
        let seq = self.seq.fetch_add(1, Relaxed);
        let attachment = Attachment { seq, wall_ns: wall_now_ns() as i64, gid: self.gid };
        Ok((request.into(), attachment.to_bytes().into()))
    }

    fn answered<'a>(
        &self,
        payload: &'a [u8],
        attached: &[u8],
    ) -> Result<(Cow<'a, [u8]>, bool), String> {
        if Attachment::parse(attached).is_none_or(|a| a.gid != self.gid) {
            return Err("the response has no number and id of this client attached".into());
        }
        let response = fits(payload).and_then(|payload| self.service.response.payload(payload));
        let response =
            response.map_err(|why| format!("the response does not match its type: {why}"))?;
        Ok((response.into(), true))
    }
}

fn fits(payload: &[u8]) -> Result<&[u8], String> {
    let fine = payload.len() as u64 <= PAYLOAD_BYTES_MAX;
    fine.then_some(payload).ok_or_else(|| format!("{} bytes are too many", payload.len()))
}

/// The service of ROS that requests and responses of a service here are named after.
pub(super) fn type_of(info: &service::Info, known: &Known) -> Option<(String, Service)> {
    let name = info.request.name().strip_suffix("_Request")?.to_owned();
    let service = Service::among(&name, known.definitions()).ok()??;
    let (request, response) = (service.request.payload_type(), service.response.payload_type());
    (*request == info.request && *response == info.response).then_some((name, service))
}

/// Offers a service of here in ROS.
pub(super) fn offer(
    member: &Arc<Member>,
    info: &service::Info,
    topic: Topic,
    service: Service,
    rule: &Ros2ServiceRule,
) -> Worker {
    let (by, info, timeout_ms) = (member.clone(), info.clone(), rule.timeout_ms);
    let what = format!("service {} is not offered to ROS 2", info.name);
    let slot = Arc::<Slot>::default();
    let at = slot.clone();
    let begin = move |stop: &Stop| {
        let token = by.port_token(Port::Server, &topic, Qos::SERVICE);
        let form = Cdr::new(service, &token);
        let keys = (topic.key(by.participant.domain), token);
        serve(&by.shared, &info, keys, None, (form, timeout_ms), (at, stop))
    };
    Worker::start(&member.shared.workers, "to-ros", what, begin).hearing(move |_| slot.wake())
}

/// Stands here, as `here`, for a service of ROS.
pub(super) fn stand_for(
    member: &Arc<Member>,
    topic: &Topic,
    service: Service,
    here: String,
    rule: &Ros2ServiceRule,
) -> Worker {
    let (by, topic, timeout_ms) = (member.clone(), topic.clone(), rule.timeout_ms);
    let what = format!("service {} of ROS 2 is not stood for as {here}", topic.name);
    let workers = member.shared.workers.clone();
    let begin = move |_: &Stop| {
        let token = by.port_token(Port::Client, &topic, Qos::SERVICE);
        let form = Cdr::new(service.clone(), &token);
        let liveliness = by.shared.link.session.liveliness();
        let token = zenoh::Wait::wait(liveliness.declare_token(token))?;
        let types = (service.request.payload_type(), service.response.payload_type());
        let key = topic.key(by.participant.domain);
        // As clients of rmw_zenoh ask: all servers, and the first answer counts.
        let call = Call { key, target: QueryTarget::AllComplete, timeout_ms };
        stand(&by.shared, &here, types, call, (form, Some(token)))
    };
    Worker::start(&member.shared.workers, "from-ros", what, begin).hearing(move |_| workers.look())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_and_read_and_garbage_says_why() {
        let service = Service::of("std_srvs/srv/SetBool").expect("known");
        let client = Cdr::new(service.clone(), "client");
        let server = Cdr::new(service, "server");
        // {"data": true}
        let asked = [&[0x81, 0xa4][..], b"data", &[0xc3]].concat();
        for seq in 1..=3 {
            let (payload, attached) = client.call(&asked, 10).expect("a call");
            let call = Attachment::parse(&attached).expect("attached");
            assert_eq!((call.seq, call.gid), (seq, names::gid("client")));
            let payload = payload.to_bytes();
            assert_eq!(payload.as_ref(), [0, 1, 0, 0, 1]);
            let (request, left) = server.called(&payload, &attached).expect("a request");
            assert_eq!((request.as_ref(), left), (&asked[..], None));

            assert!(server.answer(&attached, b"part", false).expect("nothing").is_none());
            let given = [&[0x81, 0xa7][..], b"success", &[0xc3]].concat();
            let answer = server.answer(&attached, &given, true).expect("an answer");
            let (payload, back) = answer.expect("it is the last");
            let answer = Attachment::parse(&back).expect("attached");
            assert_eq!((answer.seq, answer.gid), (call.seq, call.gid));
            let payload = payload.to_bytes();
            assert_eq!(payload.as_ref(), [0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
            let (body, last) = client.answered(&payload, &back).expect("it");
            let (success, message) = (&given[1..], &[0xa7][..]);
            let whole = [&[0x82][..], success, message, b"message", &[0xa0]].concat();
            assert_eq!((body.as_ref(), last), (&whole[..], true));
            let other = Attachment { gid: [0; 16], ..call }.to_bytes();
            assert!(client.answered(&payload, &other).expect_err("another's").contains("id"));
            for len in 0..payload.len() {
                let short = &payload[..len];
                assert!(client.answered(short, &back).is_err() || len + 3 >= payload.len());
            }
        }
        let attached = Attachment { seq: 1, wall_ns: 1, gid: [1; 16] }.to_bytes();
        let why = |payload: &[u8], attached: &[u8]| {
            server.called(payload, attached).expect_err("no request")
        };
        assert!(why(&[0, 1, 0, 0, 1], b"").contains("no number"));
        assert!(why(b"", &attached).contains("does not match its type"));
        assert!(client.call(&[0x81, 0xa1, b'x', 1], 1).expect_err("x").contains("no field x"));
        assert!(
            server.answer(&attached, b"", true).expect_err("none").contains("does not match its")
        );
    }
}
