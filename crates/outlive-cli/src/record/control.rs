//! `outlive play --control`: a service by which others pause, seek and change the rate.

use std::time::Duration;

use outlive::msgpack;
use outlive::service::Request;
use outlive::{Deadline, MsgPack, Node, Server};
use serde::Serialize;

use crate::exit::Failure;

/// What the service understands, for those who ask for something else.
const WORDS: &str = "pause, resume, toggle, next, seek SECONDS, rate FACTOR, state or stop";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    Pause,
    Resume,
    Toggle,
    Next,
    Seek(Duration),
    Rate(f64),
    State,
    Stop,
}

/// And who waits for the answer.
pub(super) type Order = (Asked, Request<[u8]>);

/// The answer to everything: what is so from now on.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct State {
    pub(super) paused: bool,
    pub(super) rate: f64,
    /// Seconds of the recording: where it is, and of how many.
    pub(super) at: f64,
    pub(super) of: f64,
}

/// The service.
pub(super) struct Control {
    server: Server<[u8], MsgPack<State>>,
    of: Duration,
}

impl Control {
    /// `of`: how long the recording is.
    pub(super) fn new(node: &Node, service: &str, of: Duration) -> Result<Self, Failure> {
        let server = node.service::<[u8], MsgPack<State>>(service)?;
        Ok(Self { server: server.type_names("u8", "outlive/Playing").server()?, of })
    }

    pub(super) fn of(&self) -> Duration {
        self.of
    }

    /// What is asked next, at most until `until`. What makes no sense is refused.
    pub(super) fn next(&mut self, until: Deadline) -> Result<Option<Order>, Failure> {
        let Some(request) = self.server.receive_until(until)? else { return Ok(None) };
        match understood(&String::from_utf8_lossy(&request), self.of) {
            Ok(asked) => Ok(Some((asked, request))),
            Err(why) => {
                self.refuse(request, &why);
                Ok(None)
            }
        }
    }

    /// Who has gone meanwhile needs no answer.
    pub(super) fn answer(&mut self, request: Request<[u8]>, state: State) -> Result<(), Failure> {
        let state = msgpack::encode(&state)?;
        let _ = self.server.respond(request, MsgPack::new(&state));
        Ok(())
    }

    pub(super) fn refuse(&mut self, request: Request<[u8]>, why: &str) {
        let _ = self.server.refuse(request, why);
    }
}

fn understood(text: &str, of: Duration) -> Result<Asked, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["pause"] => Asked::Pause,
        ["resume"] => Asked::Resume,
        ["toggle"] => Asked::Toggle,
        ["next"] => Asked::Next,
        ["state"] => Asked::State,
        ["stop"] => Asked::Stop,
        ["rate", text] => Asked::Rate(factor(text)?),
        ["seek", text] => {
            let to = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
            match to {
                Some(to) if to <= of => Asked::Seek(to),
                _ => return Err(format!("seek 0 to {:.3}, in seconds", of.as_secs_f64())),
            }
        }
        _ => return Err(format!("say {WORDS}")),
    })
}

/// How many times as fast as recorded.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "write it like 2 or 0.5".to_owned())?;
    if (1e-3..=1e3).contains(&factor) { Ok(factor) } else { Err("use 0.001 to 1000".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        let asked = |text| understood(text, Duration::from_secs(2));
        assert_eq!(asked(" pause\n"), Ok(Asked::Pause));
        assert_eq!(asked("seek 1.5"), Ok(Asked::Seek(Duration::from_millis(1500))));
        assert_eq!(asked("rate 0.5"), Ok(Asked::Rate(0.5)));
        for wrong in ["seek 2.1", "seek -1", "seek nan", "seek inf", "seek"] {
            assert!(asked(wrong).unwrap_err().contains("seek"), "{wrong}");
        }
        for wrong in ["rate 0", "rate -1", "rate nan", "rate 1e9"] {
            assert!(asked(wrong).unwrap_err().contains("use 0.001 to 1000"), "{wrong}");
        }
        assert!(asked("").unwrap_err().contains("rate FACTOR"));
        assert!(asked("pause now").unwrap_err().contains("pause, resume"));
    }
}
