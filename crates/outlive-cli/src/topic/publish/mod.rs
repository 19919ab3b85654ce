//! `outlive topic pub`: values, or frames from standard input.
//!
//! | file | what |
//! |---|---|
//! | `args` | what is asked |
//! | `values` | values typed by hand or made by a script; begin here |
//! | `frames` | standard input in pieces of one size |
//! | `pace` | when messages go out |

mod args;
mod frames;
mod pace;
mod values;

use crate::exit::Outcome;
use crate::options::DomainOptions;
pub(super) use args::PubArgs;

pub(super) fn run(args: &PubArgs, options: &DomainOptions) -> Outcome {
    match args.value.as_ref().or(args.json.as_ref()) {
        Some(text) => values::run(args, text, options),
        None => frames::run(args, options),
    }
}
