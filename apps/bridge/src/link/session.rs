//! The Zenoh session, opened as the file says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zenoh::{Session, Wait};

use crate::config::{Config, Mode};
use crate::report::{Failed, say};

/// A broken link is tried again so often, ms: from, to.
const RETRY_MS: (u64, u64) = (100, 1000);
/// A client that has not reached a router says so after this time.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What Zenoh is told; all else is its default.
fn settings(config: &Config) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("mode", json!(config.mode.as_str())),
        ("connect/endpoints", json!(config.connect)),
        ("listen/endpoints", json!(config.listen)),
        ("scouting/multicast/enabled", json!(config.multicast)),
        ("transport/link/tx/lease", json!(config.lease_ms)),
        // What waits in the kernel cannot be overtaken, nor dropped for something newer.
        ("transport/link/tcp/so_sndbuf", json!(config.link_buffer_bytes)),
        ("transport/link/tls/so_sndbuf", json!(config.link_buffer_bytes)),
        // One that is not there yet is waited for in the background. A client begins with one:
        // it tries each address once, and `reach` begins again.
        ("connect/timeout_ms", json!({ "router": -1, "peer": -1, "client": 0 })),
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

/// Hands a value on: whole, or where Zenoh has keys of its own within it, one by one, so that the
/// others stay as they are.
fn insert(zenoh: &mut zenoh::Config, at: &str, value: &Value) -> Result<(), Failed> {
    if let Value::Object(parts) = value {
        let mut tried = zenoh.clone();
        let within =
            |(key, part): (&String, &Value)| insert(&mut tried, &format!("{at}/{key}"), part);
        if parts.iter().try_for_each(within).is_ok() {
            *zenoh = tried;
            return Ok(());
        }
    }
    let told = zenoh.insert_json5(at, &value.to_string());
    told.map_err(|e| format!("Zenoh does not take {at} = {value}: {e}").into())
}

/// What Zenoh is told: what the bridge needs, then section `[zenoh]` of its file.
pub(crate) fn told(config: &Config) -> Result<zenoh::Config, Failed> {
    let mut zenoh = zenoh::Config::default();
    for (at, value) in settings(config) {
        insert(&mut zenoh, at, &value)?;
    }
    for (at, value) in &config.zenoh {
        insert(&mut zenoh, at, value)?;
    }
    Ok(zenoh)
}

/// Opens the session; none if it is to end before that. Who is not there yet is looked for in the
/// background, but a client waits for its router.
pub(crate) fn open(config: &Config, end: &Arc<AtomicBool>) -> Result<Option<Session>, Failed> {
    let zenoh = told(config)?;
    let (waits, ends) = (config.mode == Mode::Client, end.clone());
    let (to, opened) = sync_channel(1);
    // One try may take 10 s for each address.
    let reach = move || drop(to.send(reach(&zenoh, waits, &ends)));
    thread::Builder::new().name("open".into()).spawn(reach)?;
    let (begun, mut told) = (Instant::now(), false);
    while !end.load(Relaxed) {
        match opened.recv_timeout(LOOK_EVERY) {
            Ok(Ok(session)) => return Ok(Some(session)),
            Ok(Err(e)) => {
                let remedy = "is the address of 'listen' this machine's, and free?";
                return Err(format!("the link cannot be opened: {e}; {remedy}").into());
            }
            Err(RecvTimeoutError::Timeout) => {
                if waits && !told && begun.elapsed() >= TELL_AFTER {
                    told = true;
                    say(no_router(config));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err("opening the link failed".into()),
        }
    }
    Ok(None)
}

/// Opens it; a client tries until there is a router.
fn reach(zenoh: &zenoh::Config, waits: bool, end: &AtomicBool) -> zenoh::Result<Session> {
    let mut pause_ms = RETRY_MS.0;
    loop {
        let opened = zenoh::open(zenoh.clone()).wait();
        if opened.is_ok() || !waits || end.load(Relaxed) {
            return opened;
        }
        thread::sleep(Duration::from_millis(pause_ms));
        pause_ms = RETRY_MS.1.min(2 * pause_ms);
    }
}

/// What a client says that waits.
fn no_router(config: &Config) -> String {
    let at = match config.connect.as_slice() {
        [] => "found by multicast".to_owned(),
        all => format!("at {}", all.join(", ")),
    };
    format!(
        "no router {at} yet, so nothing is carried until one answers: is it there, and its address \
         right?"
    )
}

/// This machine's name, as a part of a name may be.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
    let name: String = name.trim().chars().filter(plain).take(63).collect();
    if name.is_empty() { "host".into() } else { name }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ros2::Known;

    fn with(rest: &str) -> Result<zenoh::Config, String> {
        let text = format!(
            "namespace = \"n\"\nlisten = [\"tcp/a:1\"]\n{rest}[[topic]]\npattern = \"/**\"\n"
        );
        let config = Config::parse("b.toml", &text, Known::default()).map_err(|e| e.to_string())?;
        told(&config).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_meant_for_zenoh_is_handed_on_and_the_rest_stays() {
        let zenoh = with(
            "[zenoh]\n\"transport/unicast/max_sessions\" = 7\n\
             [zenoh.transport.link.tx]\nqueue = { size = { data = 1 } }\n\
             [zenoh.access_control]\nenabled = true\ndefault_permission = \"deny\"\n\
             rules = [{ id = \"r\", messages = [\"put\"], key_exprs = [\"**\"], \
             permission = \"allow\" }]\nsubjects = []\npolicies = []\n",
        )
        .expect("Zenoh takes it");
        let get = |key: &str| zenoh.get_json(key).expect("a key");
        assert_eq!(get("transport/unicast/max_sessions"), "7");
        assert_eq!(get("transport/link/tx/queue/size/data"), "1");
        assert_eq!(get("transport/link/tx/queue/size/real_time"), "2");
        assert_eq!(get("transport/link/tx/lease"), "1000");
        assert_eq!(get("transport/link/tcp/so_sndbuf"), "65536");
        assert_eq!(get("access_control/default_permission"), "\"deny\"");
    }

    #[test]
    fn what_zenoh_does_not_know_is_refused_by_name() {
        let why = with("[zenoh.transport]\nwarp = 9\n").expect_err("no such key");
        assert!(why.contains("Zenoh does not take transport"), "{why}");
    }

    #[test]
    fn the_example_of_the_book_is_taken() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/bridge.md");
        let book = std::fs::read_to_string(book).expect("the book");
        let blocks = book.split("```toml\n").skip(1).filter_map(|b| b.split("```").next());
        let ours: Vec<_> = blocks.filter(|block| block.contains("[zenoh")).collect();
        assert!(!ours.is_empty());
        ours.into_iter().for_each(|block| drop(with(block).expect(block)));
    }
}
