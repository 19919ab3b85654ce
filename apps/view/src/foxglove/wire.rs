//! What server and client say to each other: the protocol that Foxglove calls `foxglove.sdk.v1`.
//!
//! | who | message | as |
//! |---|---|---|
//! | server | `serverInfo`, `advertise`, `unadvertise`, `status` | JSON |
//! | server | messages: 1, number of the subscription (u32), time (u64 ns), payload | binary |
//! | client | `subscribe`, `unsubscribe` | JSON |
//!
//! Clients may say more (publish, call, set); a robot is only looked at here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// Names of the protocol, the one we like best first; the second is what it was called before,
/// which open viewers still ask for.
pub(crate) const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// Kinds of `status`.
pub(crate) const WARNING: u8 = 1;
pub(crate) const ERROR: u8 = 2;

/// What a channel is, as clients are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Channel {
    pub(crate) id: u32,
    pub(crate) topic: String,
    pub(crate) encoding: &'static str,
    pub(crate) schema_name: String,
    pub(crate) schema_encoding: &'static str,
    pub(crate) schema: String,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// From server to client.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Told<'a> {
    ServerInfo {
        name: &'a str,
        capabilities: [&'a str; 0],
        metadata: BTreeMap<&'a str, &'a str>,
        session_id: &'a str,
    },
    Advertise {
        channels: &'a [Channel],
    },
    Unadvertise {
        channel_ids: &'a [u32],
    },
    Status {
        level: u8,
        message: &'a str,
        /// The next one of the same id takes its place.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
}

/// From client to server.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Asked {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    Unsubscribe {
        subscription_ids: Vec<u32>,
    },
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subscription {
    /// Chosen by the client.
    pub(crate) id: u32,
    pub(crate) channel_id: u32,
}

impl Told<'_> {
    /// As a frame of WebSocket.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let text = serde_json::to_string(self).unwrap_or_default();
        let mut frame = head(Data::Text, text.len());
        frame.extend(text.as_bytes());
        frame
    }
}

/// All of a message's frame that precedes its payload.
pub(crate) fn message_head(subscription: u32, time_ns: u64, payload_bytes: usize) -> Vec<u8> {
    let mut frame = head(Data::Binary, 1 + 4 + 8 + payload_bytes);
    frame.push(1);
    frame.extend(subscription.to_le_bytes());
    frame.extend(time_ns.to_le_bytes());
    frame
}

fn head(data: Data, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let header = FrameHeader { opcode: OpCode::Data(data), ..FrameHeader::default() };
    // Into memory, where there is always room.
    let _ = header.format(bytes as u64, &mut out);
    out
}

/// Whether a page of this origin may look. Browsers let any page connect to this machine, so the
/// pages of strangers are turned away here; programs that are no browser name no origin.
pub(crate) fn may_look(origin: Option<&str>, allowed: &[String]) -> bool {
    let Some(origin) = origin else { return true };
    if allowed.iter().any(|a| a == "*" || a == origin) {
        return true;
    }
    // `null` has none.
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let name = match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        Some((name, _)) => name,
        None => host.split(':').next().unwrap_or_default(),
    };
    let here = ["localhost", "127.0.0.1", "::1"].contains(&name);
    let foxglove = scheme == "https" && (name == "foxglove.dev" || name.ends_with(".foxglove.dev"));
    // Programs that are a browser inside bring a scheme of their own. A file may be any page that
    // somebody has downloaded.
    let program = !["http", "https", "file"].contains(&scheme);
    here || foxglove || program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_lengths_of_one_two_and_eight_bytes() {
        assert_eq!(message_head(7, 258, 0)[..2], [0x82, 13]);
        assert_eq!(message_head(7, 258, 0)[2..], [1, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message_head(7, 0, 187)[..4], [0x82, 126, 0, 200]);
        assert_eq!(message_head(7, 0, 1 << 20)[1..10], [127, 0, 0, 0, 0, 0, 0x10, 0, 13]);
        let warning = Told::Status { level: WARNING, message: "x", id: None };
        assert_eq!(warning.frame()[2..], *br#"{"op":"status","level":1,"message":"x"}"#);
    }

    #[test]
    fn what_clients_ask_for_is_read_and_what_we_do_not_know_is_no_error() {
        let asked = |text: &str| serde_json::from_str::<Asked>(text);
        let subscribe = r#"{"op":"subscribe","subscriptions":[{"id":3,"channelId":9}]}"#;
        let Ok(Asked::Subscribe { subscriptions }) = asked(subscribe) else { panic!() };
        assert_eq!((subscriptions[0].id, subscriptions[0].channel_id), (3, 9));
        let Ok(Asked::Unsubscribe { subscription_ids }) =
            asked(r#"{"op":"unsubscribe","subscriptionIds":[3]}"#)
        else {
            panic!()
        };
        assert_eq!(subscription_ids, [3]);
        assert!(matches!(asked(r#"{"op":"getParameters","parameterNames":[]}"#), Ok(Asked::Other)));
        assert!(asked("{}").is_err() && asked(r#"{"op":"subscribe"}"#).is_err());
    }

    #[test]
    fn pages_of_strangers_may_not_look() {
        let may = |origin: &str| may_look(Some(origin), &["https://lab.example".into()]);
        assert!(may_look(None, &[]) && may("https://app.foxglove.dev") && may("app://foxglove"));
        assert!(may("http://localhost:8080") && may("http://127.0.0.1") && may("http://[::1]:80"));
        assert!(may("https://lab.example") && may_look(Some("http://a.b"), &["*".into()]));
        assert!(!may("https://evil.example") && !may("https://foxglove.dev.evil.example"));
        // A page that was downloaded, and one of nobody.
        assert!(!may("file://") && may_look(Some("file://"), &["file://".into()]));
        assert!(!may("null") && may_look(Some("null"), &["*".into()]));
        assert!(!may("http://app.foxglove.dev") && !may("https://notfoxglove.dev"));
    }
}
