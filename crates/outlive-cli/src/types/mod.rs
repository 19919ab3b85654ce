//! `outlive types`: message types from the interface files of ROS 2.
//!
//! | file | what |
//! |---|---|
//! | `model` | messages with all that they consist of; fixed layouts |
//! | `names` | languages, and names that they refuse |
//! | `rust`, `cpp`, `c`, `python` | source code |
//! | `cdr` | what that has of CDR |
//! | `import` | writes it: all files or none |
//! | `show`, `json` | a type's fields; what differs between two |

mod c;
mod cdr;
mod cpp;
mod import;
mod json;
mod model;
mod names;
mod python;
mod rust;
mod show;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use model::{Carried, Form};

#[derive(Debug, Subcommand)]
pub(crate) enum TypesCommand {
    Import(import::ImportArgs),
    Show(show::ShowArgs),
    Diff(show::DiffArgs),
}

/// How text and lists without a bound are carried.
#[derive(Args, Debug)]
struct FormArgs {
    /// Maximum bytes for unbounded strings.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    text_max: Option<u32>,
    /// Maximum elements for unbounded lists.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    list_max: Option<u32>,
}

impl FormArgs {
    fn form(&self, carried: Carried) -> Form {
        let size = |n: Option<u32>| n.map(|n| n as usize);
        Form { carried, text_max: size(self.text_max), list_max: size(self.list_max) }
    }
}

pub(crate) fn run(command: &TypesCommand) -> Outcome {
    match command {
        TypesCommand::Import(args) => import::run(args),
        TypesCommand::Show(args) => show::show(args),
        TypesCommand::Diff(args) => show::diff(args),
    }
}
