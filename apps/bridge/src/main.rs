//! `outlive-bridge`: carries topics, queues and services between machines, over Zenoh.
//!
//! | where | what |
//! |---|---|
//! | `config/` | the file that says what is carried |
//! | `report/` | what is said: lines, failures, counters |
//! | `work/` | what begins, rests and ends, and the table of that |
//! | `link/` | the Zenoh session, and what bridges say to each other |
//! | `local/` | the domain, and what the bridge puts there |
//! | `shared` | what all threads know |
//! | `carried/` | topics, services and queues on their way |
//! | `ros2/` | topics and services to and from ROS 2 |
//! | `control` | what is here and there: what is to be carried |
//!
//! Begin with `control`, which knows all the others: one turn of it is `Control::step`.

mod carried;
mod config;
mod control;
#[cfg(test)]
mod fixture;
mod link;
mod local;
mod report;
mod ros2;
mod shared;
mod work;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use outlive::MsgPack;
use outlive::lock::LockError;
use outlive::{Domain, Node, Publisher};
use signal_hook::consts::{SIGINT, SIGTERM};

use config::Config;
use control::Control;
use link::Link;
use local::speakers::NODE_NAME;
use report::{Failed, log, say, stats};
use ros2::Known;
use shared::Shared;

const HELP: &str = "\
Carries topics, queues and services between machines, over Zenoh.

Usage: outlive-bridge [OPTIONS] FILE

Arguments:
  FILE       configuration: docs/book/bridge.md

Options:
  --check        check FILE, and list the types that cannot be carried
  --stats        print counters every stats_ms
  --domain NAME  domain to use; overrides FILE
  --types PATH   .msg and .srv files of your own types, or a directory of them, besides those that
                 FILE names; may be repeated
  --ros2-types   list the known ROS 2 types with their hashes
  -h, --help
  -V, --version

The domain is that of FILE, else $OUTLIVE_DOMAIN, else 'default', in $OUTLIVE_DIR or
/dev/shm/outlive-<uid>.

Exit codes:
  0 ended by SIGTERM or SIGINT   1 failed   2 wrong usage or invalid FILE
";

/// What the command line says.
#[derive(Debug, Default)]
struct Args {
    file: Option<PathBuf>,
    check: bool,
    stats: bool,
    domain: Option<String>,
    types: Vec<PathBuf>,
    ros2_types: bool,
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(what) => {
            say(format_args!("{what}; outlive-bridge --help shows how"));
            return ExitCode::from(2);
        }
    };
    if let Some(why) = args.domain.as_deref().and_then(config::domain_fault) {
        say(format_args!("--domain: {why}"));
        return ExitCode::from(2);
    }
    let mut known = Known::default();
    if let Err(e) = known.add(&args.types) {
        say(e);
        return ExitCode::from(2);
    }
    if args.ros2_types {
        known.faults().for_each(say);
        print(&known.lines());
        return ExitCode::SUCCESS;
    }
    let file = args.file.unwrap_or_default();
    let mut config = match Config::load(&file, known) {
        Ok(config) => config,
        Err(e) => {
            say(e);
            return ExitCode::from(2);
        }
    };
    if let Err(e) = link::session::told(&config) {
        say(format_args!("{}: {e}", file.display()));
        return ExitCode::from(2);
    }
    let faults: Vec<_> = config.ros2.iter().flat_map(|ros2| ros2.known.faults()).collect();
    faults.iter().for_each(say);
    if config.ros2.is_none() && !args.types.is_empty() {
        say(format_args!("--types is for a section [ros2], and {} has none", file.display()));
        return ExitCode::from(2);
    }
    if args.check {
        return if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    config.domain = args.domain.or(config.domain);
    let ended = log::start().map_err(Failed::from).and_then(|()| run(config, args.stats));
    let code = match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say(e);
            ExitCode::FAILURE
        }
    };
    log::finish();
    code
}

fn args() -> Result<Option<Args>, String> {
    let mut args = Args::default();
    let mut rest = std::env::args_os().skip(1);
    while let Some(arg) = rest.next() {
        match arg.to_str() {
            Some("-h" | "--help") => {
                print(HELP);
                return Ok(None);
            }
            Some("-V" | "--version") => {
                print(concat!("outlive-bridge ", env!("CARGO_PKG_VERSION"), "\n"));
                return Ok(None);
            }
            Some("--ros2-types") => args.ros2_types = true,
            Some("--types") => {
                args.types.push(rest.next().ok_or("--types wants a path")?.into());
            }
            Some("--check") => args.check = true,
            Some("--stats") => args.stats = true,
            Some("--domain") => {
                let name = rest.next().and_then(|name| name.into_string().ok());
                args.domain = Some(name.ok_or("--domain wants a name")?);
            }
            Some(option) if option.starts_with('-') => return Err(format!("no option {option}")),
            _ if args.file.is_some() => return Err("more than one FILE".into()),
            _ => args.file = Some(arg.into()),
        }
    }
    if args.file.is_none() && !args.ros2_types { Err("no FILE".into()) } else { Ok(Some(args)) }
}

/// A thread that prints what is sent to it. While its reader takes no more nobody waits: there is
/// room for one text, and what does not fit is skipped.
fn printer() -> std::io::Result<SyncSender<String>> {
    let (to, texts) = sync_channel::<String>(1);
    let name = "print".to_owned();
    thread::Builder::new().name(name).spawn(move || texts.iter().for_each(|text| print(&text)))?;
    Ok(to)
}

/// A reader that went away is no reason to fail.
fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn run(mut config: Config, stats: bool) -> Result<(), Failed> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, end.clone())?;
    }
    config.host.get_or_insert_with(link::session::host_name);
    let mut builder = Node::builder().name(NODE_NAME);
    if let Some(domain) = &config.domain {
        builder = builder.domain(domain);
    }
    let domain = Domain::of(&builder)?;
    let node = builder.open()?;
    // Two bridges of one namespace in one domain would carry everything twice.
    let lock_name = format!("/{NODE_NAME}/{}", config.namespace);
    let lock = node.mutex::<u64>(&lock_name)?;
    let _alone = match lock.try_lock() {
        Ok(guard) => guard,
        Err(LockError::OwnerDied(left)) => left.mark_consistent(),
        Err(LockError::WouldBlock) => {
            let namespace = &config.namespace;
            let what = format!("another bridge carries namespace {namespace} in this domain");
            return Err(format!("{what}: stop it, or use another namespace").into());
        }
        Err(e) => return Err(outlive::Error::from(e).into()),
    };

    let Some(session) = link::session::open(&config, &end)? else { return Ok(()) };
    let stats_ms = config.stats_ms;
    let topic = format!("/{NODE_NAME}/{}/stats", config.namespace);
    let link = Link::new(session, &config.namespace);
    let shared = Arc::new(Shared::new(config, node, domain, link));
    let (to, tokens) = channel();
    let _listening = link::listen::listen(&shared.link, to)?;
    let published =
        shared.node.msgpack::<stats::Snapshot>(&topic)?.type_name("outlive/BridgeStats");
    let published: Publisher<MsgPack<stats::Snapshot>> =
        // This thread handles all that joins and leaves: it waits for nobody who reads them.
        published.depth(4).reliable_timeout(Duration::ZERO).publisher()?;
    say(format_args!("namespace {}, bridge {}", shared.config.namespace, shared.link.own));

    let lines = stats.then(printer).transpose()?;
    let mut control = Control::new(shared.clone())?;
    let period = Duration::from_millis(stats_ms);
    let mut next = Instant::now() + period;
    while !end.load(Relaxed) {
        control.step(&tokens, next);
        if Instant::now() >= next {
            next = Instant::now() + period;
            let snapshot = control.snapshot();
            if let Err(e) = published.publish_value(&snapshot) {
                shared.say_failed(format_args!("the counters are not published: {e}"));
            }
            if let Some(lines) = &lines {
                let _ = lines.try_send(snapshot.lines());
            }
        }
    }
    control.end();
    // Stand-ins leave in order, whatever else still holds what is shared.
    drop(shared.proxies.lock().map(|mut proxies| std::mem::take(&mut *proxies)));
    shared.link.close();
    Ok(())
}
