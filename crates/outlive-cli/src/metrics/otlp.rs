//! Metrics handed to a collector of OpenTelemetry: OTLP over HTTP in its JSON encoding.
//!
//! Numbers of 64 bits are text, as the encoding wants them; names lose `_total`, which those who
//! make Prometheus' names of them add again.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::families::{Family, Kind, Metrics, Sample};
use crate::exit::{Code, Failure, Outcome, note};
use crate::options::{deadline_ns, sleep_until};
use crate::os;

/// Longest wait for the collector, for each step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most that is read of its answer, bytes.
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
    os::catch_stop_signals();
    let mut failed = false;
    while !os::stop_asked() {
        let next_ns = deadline_ns(every);
        let done = once();
        // The collector may come later, or come back: told once.
        match &done {
            Err(failure) if !failed => note(format_args!("{failure}; goes on trying")),
            Ok(()) if failed => note("the collector takes metrics again"),
            _ => {}
        }
        failed = done.is_err();
        sleep_until(next_ns);
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
        let answer = self.exchange(body).map_err(failed)?;
        let line = answer.lines().next().unwrap_or_default();
        let refused = |why: &str| {
            let message = format!("{} refuses the metrics: {why}", self.authority);
            Err(Failure::new(Code::Failed, message))
        };
        if line.split(' ').nth(1).is_none_or(|status| !status.starts_with('2')) {
            return refused(line);
        }
        let told = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let rejected = serde_json::from_str::<Value>(told).unwrap_or_default();
        match &rejected["partialSuccess"]["rejectedDataPoints"] {
            Value::Null => Ok(()),
            none if *none == "0" || *none == 0 => Ok(()),
            some => refused(&format!("{some} of them: {}", rejected["partialSuccess"])),
        }
    }

    fn exchange(&self, body: &str) -> io::Result<String> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
        for address in self.authority.to_socket_addrs()? {
            let mut stream = match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => stream,
                Err(e) => {
                    last = e;
                    continue;
                }
            };
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let Self { authority, path } = self;
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nUser-Agent: outlive/{}\r\nConnection: close\r\n\r\n",
                body.len(),
                env!("CARGO_PKG_VERSION")
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(body.as_bytes())?;
            let mut answer = Vec::new();
            stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
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
}
