//! `outlive dashboard`: a domain as a page of a browser, as it goes.
//!
//! | file | what |
//! |---|---|
//! | `page/` | what the browser runs: one page, nothing fetched from elsewhere |
//! | `journal` | deaths and other events, by comparing looks |
//! | `state` | what is asked for every second, as JSON |
//! | `watch` | subscribers for what a browser looks at: pictures, messages, latencies |
//! | `picture` | an image as a small picture |
//!
//! # Who may ask
//! Whoever reaches the address: there are no passwords. A page of another site, open in the same
//! browser, may not: names in `Host` that are not ours are refused, as is what a browser says to
//! come from another site. Names and texts of the domain reach the page as JSON and become text
//! nodes there; its content policy allows no script but its own.

mod journal;
mod picture;
mod state;
mod watch;

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::absent::note_if_nobody;
use crate::exit::{CODES_HELP, Failure, Outcome, note};
use crate::http::{self, Request, Response};
use crate::options::{DomainOptions, seconds};
use crate::os;
use state::Board;
use watch::Watch;

const EXAMPLES: &str = "\
Examples:
  outlive dashboard                               then open http://127.0.0.1:8420/
  outlive dashboard --bind 0.0.0.0:8420 --allow-host robot.lan
  outlive dashboard --bind 127.0.0.1:0 --no-subscribe

Looks from outside, as 'top' does. It joins the domain only while a browser shows pictures or an
open topic, with a subscriber that delays nobody.";

/// Show the domain in the browser: graph, rates, losses, deaths, pictures, messages, latencies.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct DashboardArgs {
    /// Address to serve at; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8420")]
    bind: SocketAddr,
    /// Host name that browsers may use besides addresses and localhost; may be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Time between two looks, at least 0.1.
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    every: Duration,
    /// Never join the domain: no pictures, no messages, no latencies.
    #[arg(long)]
    no_subscribe: bool,
}

/// Where the page's own script and style are to stand, and the word that allows them.
const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 3] =
    [include_str!("page/graph.js"), include_str!("page/lists.js"), include_str!("page/main.js")];

pub(crate) fn run(args: &DashboardArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    os::catch_stop_signals()?;
    let (listener, bound) = http::listen(args.bind)?;
    note(format_args!("dashboard at http://{bound}/"));
    if !bound.ip().is_loopback() {
        note("anyone who can reach this address sees the domain's names, pictures and messages");
    }
    note_if_nobody(&domain);
    let every = args.every.clamp(Duration::from_millis(100), Duration::from_secs(3600));
    let name = domain.name().to_owned();
    let board = Board::new(domain, name, every);
    let watch = (!args.no_subscribe).then(|| Arc::new(Watch::new(options.clone())));
    let done = thread::scope(|scope| {
        let looks = thread::Builder::new().spawn_scoped(scope, || board.look_on());
        looks.map_err(|e| Failure::io("start a thread", &e))?;
        http::serve(&listener, |request| answer(request, args, &board, watch.as_ref()))
    });
    if let Some(watch) = watch {
        watch.leave();
    }
    done
}

fn answer(
    request: &Request,
    args: &DashboardArgs,
    board: &Board,
    watch: Option<&Arc<Watch>>,
) -> Response {
    let mut response = answer_to(request, args, board, watch);
    response.headers += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
        Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
        X-Frame-Options: DENY\r\n";
    response
}

fn answer_to(
    request: &Request,
    args: &DashboardArgs,
    board: &Board,
    watch: Option<&Arc<Watch>>,
) -> Response {
    if !request.host_is(&args.allow_host) {
        let why = "not a name of this dashboard: use its address, or start it with --allow-host";
        return Response::text("403 Forbidden", why);
    }
    // A link may lead to the page; nothing else may be asked for from another site.
    let site = request.header("sec-fetch-site").unwrap_or("none");
    if request.path != "/" && !["same-origin", "none"].contains(&site) {
        return Response::text("403 Forbidden", "another site asks");
    }
    match request.path.as_str() {
        "/" => page(),
        "/api/state" => state(request, board, watch),
        "/api/image" => image(request, watch),
        // Browsers ask for it unasked.
        "/favicon.ico" => Response::new("204 No Content", "text/plain", ""),
        _ => Response::text("404 Not Found", "there are /, /api/state and /api/image"),
    }
}

fn page() -> Response {
    let Ok(nonce) = nonce() else {
        return Response::text("500 Internal Server Error", "no random numbers");
    };
    let body = PAGE
        .replace("{{nonce}}", &nonce)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", &SCRIPTS.concat());
    let mut response = Response::new("200 OK", "text/html; charset=utf-8", body);
    response.headers = format!(
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; \
         style-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'\r\n"
    );
    response
}

fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// What there is; `see=TOPIC` asks for a topic's pictures, `time=TOPIC` for its messages and
/// latencies.
fn state(request: &Request, board: &Board, watch: Option<&Arc<Watch>>) -> Response {
    let known = |(key, _): &(String, String)| ["see", "time"].contains(&key.as_str());
    if !request.query.iter().all(known) {
        return Response::bad("the query is see=TOPIC or time=TOPIC, again and again");
    }
    if request.query.len() > watch::WATCHED_MAX {
        return Response::bad(&format!("at most {} topics at once", watch::WATCHED_MAX));
    }
    if request.query.iter().any(|(_, name)| name.len() > outlive::NAME_BYTES_MAX + 1) {
        return Response::bad("no topic has so long a name");
    }
    let watched = watch.map(|watch| {
        watch.look_at(&request.values("see").collect::<Vec<_>>(), false);
        watch.look_at(&request.values("time").collect::<Vec<_>>(), true);
        watch.json()
    });
    let own = watch.and_then(|watch| watch.own());
    Response::new("200 OK", "application/json", board.json(own, watched))
}

fn image(request: &Request, watch: Option<&Arc<Watch>>) -> Response {
    let topics: Vec<&str> = request.values("topic").collect();
    let [topic] = topics[..] else { return Response::bad("the query is topic=TOPIC") };
    match watch.and_then(|watch| watch.picture(topic)) {
        Some(picture) => Response::new("200 OK", picture.kind, picture.bytes.clone()),
        None => Response::text("404 Not Found", "no picture of this topic: nobody looks at it"),
    }
}
