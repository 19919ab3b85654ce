//! `outlive topic`: see, feed and read topics.
//!
//! | file | what |
//! |---|---|
//! | `list`, `info`, `find` | which topics there are, without joining |
//! | `publish/`, `echo` | messages into a topic; what comes on it; begin here |
//! | `rate`, `gaps`, `delay` | how often and how late messages come |
//! | `named` | what is said of topics that a command names |
//! | `decode`, `encode` | payloads as text and JSON, and back |
//! | `foreign` | payloads of other encodings |

pub(crate) mod decode;
mod delay;
mod echo;
pub(crate) mod encode;
mod find;
mod gaps;
mod info;
mod list;
mod named;
mod publish;
mod rate;

pub(crate) use info::{FieldRow, list_fields};
pub(crate) use list::type_text;
pub(crate) use named::note_waiting;

use clap::Subcommand;

use crate::exit::Outcome;
use crate::options::DomainOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    List(list::ListArgs),
    Info(info::InfoArgs),
    Find(find::FindArgs),
    Pub(publish::PubArgs),
    Echo(echo::EchoArgs),
    Hz(rate::RateArgs),
    /// Show how many bytes per second are published, without subscribing.
    #[command(long_about = None)]
    Bw(rate::RateArgs),
    Delay(delay::DelayArgs),
}

pub(crate) fn run(command: &TopicCommand, options: &DomainOptions) -> Outcome {
    match command {
        TopicCommand::List(args) => list::run(args, options),
        TopicCommand::Info(args) => info::run(args, options),
        TopicCommand::Find(args) => find::run(args, options),
        TopicCommand::Pub(args) => publish::run(args, options),
        TopicCommand::Echo(args) => echo::run(args, options),
        TopicCommand::Hz(args) => rate::run(args, rate::Of::Messages, options),
        TopicCommand::Bw(args) => rate::run(args, rate::Of::Bytes, options),
        TopicCommand::Delay(args) => delay::run(args, options),
    }
}
