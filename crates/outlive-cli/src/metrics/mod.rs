//! `outlive metrics`: a domain as numbers for Prometheus.
//!
//! | file | what |
//! |---|---|
//! | `families` | the numbers, and how Prometheus reads them |
//! | `otlp` | handed to a collector of OpenTelemetry (feature `otlp`) |

mod families;
#[cfg(feature = "otlp")]
mod otlp;

use std::net::SocketAddr;
use std::sync::Mutex;

use clap::Args;

use crate::absent::note_if_nobody;
use crate::exit::{CODES_HELP, Outcome, note};
use crate::http::{self, Request, Response};
use crate::options::DomainOptions;
use crate::os;
use crate::output::print;
use families::Metrics;

const EXAMPLES: &str = "\
Examples:
  outlive metrics                                 once, to standard output
  outlive metrics >/var/lib/node_exporter/outlive.prom
  outlive metrics --listen 127.0.0.1:9464         for Prometheus to scrape

Looks from outside, without subscribing: nobody notices.";

/// Print the domain's metrics in Prometheus text format, or serve them over HTTP.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct MetricsArgs {
    /// Answer GET /metrics here until a signal; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Send to this collector of OpenTelemetry (OTLP over HTTP, JSON), like http://localhost:4318.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", value_parser = otlp::collector, conflicts_with = "listen")]
    otlp: Option<otlp::Collector>,
    /// Send again and again until a signal, not once.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "SECONDS", value_parser = crate::options::seconds, requires = "otlp")]
    every: Option<std::time::Duration>,
}

pub(crate) fn run(args: &MetricsArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    let mut metrics = Metrics::new(domain.clone());
    #[cfg(feature = "otlp")]
    if let Some(collector) = &args.otlp {
        note_if_nobody(&domain);
        return otlp::send(&mut metrics, domain.name(), collector, args.every);
    }
    let Some(address) = args.listen else {
        note_if_nobody(&domain);
        return print(&metrics.text()?);
    };
    os::catch_stop_signals()?;
    let (listener, bound) = http::listen(address)?;
    note(format_args!("metrics at http://{bound}/metrics"));
    note_if_nobody(&domain);
    let metrics = Mutex::new(metrics);
    http::serve(&listener, |request| answer(request, &metrics))
}

fn answer(request: &Request, metrics: &Mutex<Metrics>) -> Response {
    if request.path != "/metrics" {
        return Response::text("404 Not Found", "metrics are at /metrics");
    }
    let mut metrics = metrics.lock().unwrap_or_else(|broken| broken.into_inner());
    match metrics.text() {
        Ok(text) => Response::new("200 OK", "text/plain; version=0.0.4; charset=utf-8", text),
        Err(e) => Response::text("500 Internal Server Error", &e.to_string()),
    }
}
