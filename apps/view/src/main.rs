//! `outlive-view`: shows topics live in Foxglove, or writes them into a file for Rerun.
//!
//! | file | what |
//! |---|---|
//! | `topics` | which topics there are, and how often they are read |
//! | `foxglove/` | a server that viewers connect to |
//! | `json` | payloads that ROS has no message for |
//! | `rerun` | a file that the viewer opens; feature `rerun` |
//! | `args` | the command line |
//! | `log` | what is said, to whoever reads it |
//! | `shared` | what all parts need |

mod args;
mod foxglove;
mod json;
mod log;
#[cfg(feature = "rerun")]
mod rerun;
mod shared;
mod topics;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use outlive::{Domain, Node};
use outlive_record::ros2::epoch_ns;
use signal_hook::consts::{SIGINT, SIGTERM};

use args::{Args, Parsed};
use shared::{Failed, say};
use topics::{Output, View};

/// How often `--stats` prints.
const STATS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args_os().skip(1)) {
        Ok(Parsed::Run(args)) => args,
        Ok(Parsed::Print(text)) => {
            shared::print(text);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            say(format_args!("{what}; outlive-view --help shows how"));
            return ExitCode::from(2);
        }
    };
    let code = match log::start().map_err(Failed::from).and_then(|()| run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say(e);
            ExitCode::FAILURE
        }
    };
    log::finish();
    code
}

fn run(args: Args) -> Result<(), Failed> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, end.clone())?;
    }
    let epoch_ns = epoch_ns();
    let mut builder = Node::builder().name(topics::NODE_NAME);
    if let Some(domain) = args.domain {
        builder = builder.domain(domain);
    }
    let node = builder.open()?;
    let domain = Domain::of_node(&node);
    let domain = domain.name();
    let mut out: Box<dyn Output> = match &args.rerun {
        Some(file) => rerun(file, args.overwrite, domain)?,
        None => {
            let at = (args.bind, args.port).into();
            Box::new(foxglove::Foxglove::start(at, args.origins, epoch_ns, domain)?)
        }
    };
    let lines = args.stats.then(shared::printer).transpose()?;
    let mut view = View::new(node, args.selection, args.rates, epoch_ns);
    let mut print_at = Instant::now() + STATS;
    while !end.load(Relaxed) {
        view.step(out.as_mut())?;
        if let Some(lines) = &lines
            && Instant::now() >= print_at
        {
            print_at = Instant::now() + STATS;
            let _ = lines.try_send(view.figures(out.as_ref()));
        }
    }
    out.end()
}

#[cfg(feature = "rerun")]
fn rerun(file: &std::path::Path, overwrite: bool, domain: &str) -> Result<Box<dyn Output>, Failed> {
    Ok(Box::new(rerun::Rerun::create(file, overwrite, domain)?))
}

#[cfg(not(feature = "rerun"))]
fn rerun(_: &std::path::Path, _: bool, _: &str) -> Result<Box<dyn Output>, Failed> {
    let why = "this outlive-view was built without Rerun: cargo install --path apps/view \
               --features rerun; or 'outlive record --profile ros2', whose files the viewer opens, \
               too";
    Err(why.into())
}
