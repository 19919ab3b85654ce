//! `outlive topic`: see, feed and read topics.

pub(crate) mod decode;
mod delay;
mod echo;
pub(crate) mod encode;
mod find;
pub(crate) mod foreign;
mod gaps;
mod info;
mod list;
mod publish;
mod publish_json;
mod rate;

pub(crate) use info::{FieldRow, list_fields};
pub(crate) use list::type_text;

use clap::Subcommand;

use outlive::Domain;

use crate::absent;
use crate::exit::{Failure, Outcome, note};
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

/// There is no topic of this name.
pub(crate) fn missing(domain: &Domain, name: &str) -> Failure {
    absent::missing(domain, "topic", name, names(domain))
}

/// Says that these topics are waited for, and which others may be meant.
pub(crate) fn note_waiting(domain: &Domain, pending: &[String]) {
    for name in pending {
        let hint = absent::hint(domain, "topic", name, names(domain));
        let hint = if hint.starts_with(';') { hint } else { String::new() };
        note(format_args!("waiting for topic {name}{hint}"));
    }
}

/// The topics there are; none where they cannot be read.
pub(crate) fn names(domain: &Domain) -> Vec<String> {
    domain.topics().unwrap_or_default().into_iter().map(|topic| topic.name).collect()
}
