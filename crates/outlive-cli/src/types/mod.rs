//! `outlive types`: message types from the interface files of ROS 2.
//!
//! | file | what |
//! |---|---|
//! | `model` | messages with all that they consist of; fixed layouts |
//! | `form` | options that say how text and lists are carried |
//! | `names` | languages, and names that they refuse |
//! | `rust`, `cpp`, `c`, `python` | source code |
//! | `cdr` | what that has of CDR |
//! | `import` | writes it: all files or none |
//! | `show`, `json` | a type's fields; what differs between two |

mod c;
mod cdr;
mod cpp;
mod form;
mod import;
mod json;
mod model;
mod names;
mod python;
mod rust;
mod show;

use clap::Subcommand;

use crate::exit::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum TypesCommand {
    Import(import::ImportArgs),
    Show(show::ShowArgs),
    Diff(show::DiffArgs),
}

pub(crate) fn run(command: &TypesCommand) -> Outcome {
    match command {
        TypesCommand::Import(args) => import::run(args),
        TypesCommand::Show(args) => show::show(args),
        TypesCommand::Diff(args) => show::diff(args),
    }
}
