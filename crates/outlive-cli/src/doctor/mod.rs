//! `outlive doctor`: what on this machine or in this domain keeps outlive from working well, and
//! what to do about each.
//!
//! | file | looks at |
//! |---|---|
//! | `machine` | kernel, memory, limits, `RemoveIPC` |
//! | `gpu` | the CUDA driver and its devices |
//! | `domain` | directories, RAM disk, what dead processes left |
//!
//! What each of them answers is in `check`.

mod check;
mod domain;
mod gpu;
mod machine;

use clap::Args;

use crate::exit::{Code, Outcome};
use crate::options::DomainOptions;
use crate::output::{Paint, print, print_json};
use check::Status;

const EXAMPLES: &str = "\
Examples:
  outlive doctor
  outlive doctor --json | jq '.[] | select(.status != \"ok\")'

Exit codes:
  0 nothing is bad; there may be warnings
  1 something is bad: outlive will not work, or not as it promises
  2 wrong usage";

/// Check this machine and this domain, and say how to fix what is wrong.
///
/// Changes nothing. A warning costs time or may cause trouble later; what is bad keeps programs
/// from working or from surviving.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs, options: &DomainOptions) -> Outcome {
    let mut checks = machine::checks();
    checks.extend(gpu::checks());
    checks.extend(domain::checks(options));
    let code = match checks.iter().any(|c| c.status == Status::Bad) {
        true => Code::Failed,
        false => Code::Done,
    };
    if args.json {
        print_json(&checks)?;
    } else {
        let paint = Paint::standard();
        print(&checks.iter().map(|c| c.text(paint)).collect::<String>())?;
    }
    Ok(code)
}
