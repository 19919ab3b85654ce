//! `outlive doctor`: what on this machine or in this domain keeps outlive from working well, and
//! what to do about each.
//!
//! | file | looks at |
//! |---|---|
//! | `machine` | kernel, memory, limits, `RemoveIPC` |
//! | `gpu` | the CUDA driver and its devices |
//! | `domain` | directories, RAM disk, what dead processes left |

mod domain;
mod gpu;
mod machine;

use clap::Args;
use serde::Serialize;

use crate::exit::{Code, Outcome};
use crate::options::DomainOptions;
use crate::output::{Paint, print, print_json};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    /// For scripts; never changes its meaning.
    id: &'static str,
    status: Status,
    found: String,
    /// What to do; empty when all is well.
    remedy: String,
}

impl Check {
    fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    fn warn(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { id, status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    fn bad(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { id, status: Status::Bad, found: found.into(), remedy: remedy.into() }
    }

    fn text(&self, paint: Paint) -> String {
        let status = match self.status {
            Status::Ok => paint.good("ok  "),
            Status::Warn => paint.warning("warn"),
            Status::Bad => paint.bad("bad "),
        };
        let mut text = format!("{status}  {:<12}  {}\n", self.id, self.found);
        for line in self.remedy.lines() {
            text += &format!("                    -> {line}\n");
        }
        text
    }
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
