//! Metrics handed to a collector of OpenTelemetry: OTLP over HTTP in its JSON encoding.
//!
//! Numbers of 64 bits are text, as the encoding wants them; names lose `_total`, which those who
//! make Prometheus' names of them add again.

use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use ureq::Agent;

use super::families::{Family, Kind, Metrics, Sample};
use crate::exit::{Code, Failure, Outcome, note};
use crate::options::sleep_until;
use crate::os;
use outlive::Deadline;

/// Longest wait for the collector, from the search for its address to the end of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most that is read of its answer's head, and of its body, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Where a collector listens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Collector {
    /// Host and port, as in `Host`.
    authority: String,
    path: String,
}

/// Reads `http://host[:port][/path]` for clap.
pub(super) fn collector(text: &str) -> Result<Collector, String> {
    let wrong = "a collector is like http://localhost:4318/v1/metrics";
    if text.starts_with("https:") {
        return Err("no TLS here: send to a collector on this machine, and let that one".into());
    }
    let rest = text.strip_prefix("http://").ok_or(wrong)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/v1/metrics"),
    };
    let plain = |c: char| c.is_ascii_graphic() && !"@\\\"<>".contains(c);
    if authority.is_empty() || !rest.chars().all(plain) {
        return Err(wrong.into());
    }
    let has_port = authority.rsplit(']').next().is_some_and(|last| last.contains(':'));
    let port = if has_port { "" } else { ":4318" };
    Ok(Collector { authority: format!("{authority}{port}"), path: path.into() })
}

/// Sends once, or again and again until a signal.
pub(super) fn send(
    metrics: &mut Metrics,
    domain: &str,
    to: &Collector,
    every: Option<Duration>,
) -> Outcome {
    let began = now_ns();
    let mut once = || -> Result<(), Failure> {
        let body = request(&metrics.families()?, domain, (began, now_ns())).to_string();
        to.post(&body)
    };
    let Some(every) = every else { return once().map(|()| Code::Done) };
    let every = every.max(Duration::from_millis(100));
    os::catch_stop_signals()?;
    let mut failed = false;
    while !os::stop_asked() {
        let next = Deadline::after(every);
        let done = once();
        // The collector may come later, or come back: told once.
        match &done {
            Err(failure) if !failed => note(format_args!("{failure}; goes on trying")),
            Ok(()) if failed => note("the collector takes metrics again"),
            _ => {}
        }
        failed = done.is_err();
        sleep_until(next);
    }
    Ok(Code::Done)
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64
}

/// An ExportMetricsServiceRequest; `times` are the first look and this one, ns since 1970.
fn request(families: &[Family], domain: &str, times: (u64, u64)) -> Value {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut about = vec![attribute("service.name", "outlive"), attribute("outlive.domain", domain)];
    if !host.trim().is_empty() {
        about.push(attribute("host.name", host.trim()));
    }
    json!({"resourceMetrics": [{
        "resource": {"attributes": about},
        "scopeMetrics": [{
            "scope": {"name": "outlive", "version": env!("CARGO_PKG_VERSION")},
            "metrics": families.iter().map(|f| metric(f, times)).collect::<Vec<_>>(),
        }],
    }]})
}

fn attribute(key: &str, text: &str) -> Value {
    json!({"key": key, "value": {"stringValue": text}})
}

fn metric(family: &Family, (began, now): (u64, u64)) -> Value {
    let point = |sample: &Sample| {
        let labels = sample.labels.iter().map(|(key, text)| attribute(key, text));
        let mut point = json!({
            "attributes": labels.collect::<Vec<_>>(),
            "timeUnixNano": now.to_string(),
            // A number of 64 bits with its sign.
            "asInt": sample.value.min(i64::MAX as u64).to_string(),
        });
        if family.kind == Kind::Seen {
            point["startTimeUnixNano"] = began.to_string().into();
        }
        point
    };
    let points: Vec<Value> = family.samples.iter().map(point).collect();
    let name = family.name.strip_suffix("_total").unwrap_or(family.name);
    let unit = if name.contains("bytes") { "By" } else { "1" };
    let mut metric = json!({"name": name, "description": family.help, "unit": unit});
    match family.kind {
        Kind::Gauge => metric["gauge"] = json!({"dataPoints": points}),
        // 2: cumulative.
        Kind::Counter | Kind::Seen => {
            metric["sum"] = json!({
                "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points,
            });
        }
    }
    metric
}

impl Collector {
    /// Hands it a request; what it refuses is a failure.
    fn post(&self, body: &str) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::io(&format!("send to {}", self.authority), &e);
        let (status, answer) = self.exchange(body).map_err(failed)?;
        let refused = |why: &str| {
            let message = format!("{} refuses the metrics: {why}", self.authority);
            Err(Failure::new(Code::Failed, message))
        };
        if !status.is_success() {
            return refused(&status.to_string());
        }
        let rejected = serde_json::from_slice::<Value>(&answer).unwrap_or_default();
        match &rejected["partialSuccess"]["rejectedDataPoints"] {
            Value::Null => Ok(()),
            none if *none == "0" || *none == 0 => Ok(()),
            some => refused(&format!("{some} of them: {}", rejected["partialSuccess"])),
        }
    }

    fn exchange(&self, body: &str) -> io::Result<(ureq::http::StatusCode, Vec<u8>)> {
        let agent: Agent = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .max_response_header_size(ANSWER_BYTES_MAX as usize)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .user_agent(concat!("outlive/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let Self { authority, path } = self;
        let post = agent.post(format!("http://{authority}{path}"));
        let sent = post.header("Connection", "close").content_type("application/json").send(body);
        let mut response = sent.map_err(ureq::Error::into_io)?;
        let mut answer = Vec::new();
        response.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok((response.status(), answer))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn collectors_are_addresses_without_tls() {
        let is = |text, authority: &str, path: &str| {
            let wanted = Collector { authority: authority.into(), path: path.into() };
            assert_eq!(collector(text), Ok(wanted), "{text}");
        };
        is("http://localhost", "localhost:4318", "/v1/metrics");
        is("http://localhost:1/x/y", "localhost:1", "/x/y");
        is("http://[::1]", "[::1]:4318", "/v1/metrics");
        is("http://[::1]:9/", "[::1]:9", "/");
        for wrong in
            ["", "localhost", "https://a", "http://", "http://a b", "http://u@h", "http://a\r\nX"]
        {
            assert!(collector(wrong).is_err(), "{wrong:?}");
        }
    }
    /// Hands `{}` to a collector that answers with these bytes and leaves the connection open.
    fn told_by(answer: &str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = collector(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(move || to.post("{}"));
            let (mut stream, mut asked) = (listener.accept().unwrap().0, Vec::new());
            while !asked.ends_with(b"\r\n\r\n{}") {
                let mut piece = [0; 1024];
                let n = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..n]);
            }
            assert!(asked.starts_with(b"POST /v1/metrics HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
            asking.join().unwrap().map_or_else(|e| e.to_string(), |()| "taken".into())
        })
    }

    #[test]
    fn an_answer_ends_where_it_says_itself() {
        let ok = "HTTP/1.1 200 OK\r\n";
        assert_eq!(told_by(&format!("{ok}Content-Length: 2\r\n\r\n{{}}")), "taken");
        let rejected = r#"{"partialSuccess": {"rejectedDataPoints": "3"}}"#;
        let (one, two) = rejected.split_at(9);
        let (n, m) = (one.len(), two.len());
        let chunks = format!("{n:x}\r\n{one}\r\n{m:x}\r\n{two}\r\n0\r\n\r\n");
        let told = told_by(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n{chunks}"));
        assert!(told.contains("refuses the metrics: \"3\" of them"), "{told}");
        let elsewhere = "Location: http://127.0.0.1:9\r\nContent-Length: 0\r\n\r\n";
        let told = told_by(&format!("HTTP/1.1 307 x\r\n{elsewhere}"));
        assert!(told.contains("refuses the metrics: 307"), "{told}");
    }

    #[test]
    fn what_is_no_answer_is_a_failure() {
        for wrong in ["nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            let told = told_by(wrong);
            assert!(told.contains("send to 127.0.0.1"), "{wrong:?}: {told}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000));
        assert!(told_by(&long).contains("send to 127.0.0.1"));
    }
}
