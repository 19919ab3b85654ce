//! The Zenoh session: opened as the file says, and what it listens to.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use serde_json::{Value, json};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::Queryable;
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

use crate::config::{Config, Mode};
use crate::control::Token;
use crate::shared::Shared;
use crate::worker::Failed;

/// A broken link is tried again so often, ms: from, to.
const RETRY_MS: (u64, u64) = (100, 1000);

/// What Zenoh is told; all else is its default.
fn settings(config: &Config) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("mode", json!(config.mode.as_str())),
        ("connect/endpoints", json!(config.connect)),
        ("listen/endpoints", json!(config.listen)),
        ("scouting/multicast/enabled", json!(config.multicast)),
        ("transport/link/tx/lease", json!(config.lease_ms)),
        // One that is not there yet is waited for in the background.
        ("connect/timeout_ms", json!({ "router": -1, "peer": -1, "client": -1 })),
        ("connect/exit_on_failure", json!(false)),
    ];
    let (period_init_ms, period_max_ms) = RETRY_MS;
    let retry = json!({
        "period_init_ms": period_init_ms,
        "period_max_ms": period_max_ms,
        "period_increase_factor": 2,
    });
    all.extend([("connect/retry", retry.clone()), ("listen/retry", retry)]);
    let tls = &config.tls;
    if let Some(ca) = &tls.ca {
        all.push(("transport/link/tls/root_ca_certificate", json!(ca)));
    }
    for (at, value) in [
        ("transport/link/tls/listen_certificate", &tls.certificate),
        ("transport/link/tls/listen_private_key", &tls.key),
    ] {
        all.extend(value.as_ref().map(|value| (at, json!(value))));
    }
    if tls.mutual {
        all.push(("transport/link/tls/enable_mtls", json!(true)));
        for (at, value) in [
            ("transport/link/tls/connect_certificate", &tls.certificate),
            ("transport/link/tls/connect_private_key", &tls.key),
        ] {
            all.extend(value.as_ref().map(|value| (at, json!(value))));
        }
    }
    all
}

/// Opens the session. Who is not there yet is looked for in the background.
pub(crate) fn open(config: &Config) -> Result<Session, Failed> {
    let mut zenoh = zenoh::Config::default();
    for (at, value) in settings(config) {
        let told = zenoh.insert_json5(at, &value.to_string());
        told.map_err(|e| format!("Zenoh does not take {at} = {value}: {e}"))?;
    }
    let remedy = match config.mode {
        Mode::Client => "is its router there, and its address right?",
        _ => "is the address of 'listen' this machine's, and free?",
    };
    zenoh::open(zenoh)
        .wait()
        .map_err(|e| format!("the link cannot be opened: {e}; {remedy}").into())
}

/// What is listened to for as long as the bridge runs.
pub(crate) struct Listening {
    _tokens: Subscriber<()>,
    _notes: Queryable<()>,
    _here: LivelinessToken,
}

/// Passes tokens of others on, and answers those who ask for notes.
pub(crate) fn listen(shared: &Arc<Shared>, to: Sender<Token>) -> Result<Listening, Failed> {
    let session = &shared.session;
    let tokens = session
        .liveliness()
        .declare_subscriber(shared.keys.all_tokens())
        .history(true)
        .callback(move |sample| {
            let there = sample.kind() == SampleKind::Put;
            let _ = to.send(Token { key: sample.key_expr().as_str().to_owned(), there });
        })
        .wait()?;
    let asked = shared.clone();
    let notes = session
        .declare_queryable(shared.keys.of(&shared.own, "note", "**"))
        .callback(move |query| {
            let note = asked.note(query.key_expr().as_str());
            let _ = match note {
                Some(note) => query.reply(query.key_expr().clone(), note).wait(),
                None => query.reply_err("not carried any more").wait(),
            };
        })
        .wait()?;
    let here = shared.keys.of(&shared.own, "live/bridge", "here");
    let here = session.liveliness().declare_token(here).wait()?;
    Ok(Listening { _tokens: tokens, _notes: notes, _here: here })
}

/// Tells the others at once that this bridge leaves.
pub(crate) fn close(shared: &Shared) {
    let _ = shared.session.close().wait();
}

/// This machine's name, as a part of a name may be.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
    let name: String = name.trim().chars().filter(plain).take(63).collect();
    if name.is_empty() { "host".into() } else { name }
}
