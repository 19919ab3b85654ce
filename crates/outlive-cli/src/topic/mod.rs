//! `outlive topic`: see, feed and read topics.

pub(crate) mod decode;
mod delay;
mod echo;
pub(crate) mod encode;
mod info;
mod list;
mod publish;
mod publish_json;
mod rate;

pub(crate) use list::type_text;

use clap::Subcommand;

use crate::exit::{Code, Failure, Outcome};
use crate::options::DomainOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    List(list::ListArgs),
    Info(info::InfoArgs),
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
        TopicCommand::Pub(args) => publish::run(args, options),
        TopicCommand::Echo(args) => echo::run(args, options),
        TopicCommand::Hz(args) => rate::run(args, rate::Of::Messages, options),
        TopicCommand::Bw(args) => rate::run(args, rate::Of::Bytes, options),
        TopicCommand::Delay(args) => delay::run(args, options),
    }
}

fn missing(name: &str) -> Failure {
    let message = format!("no topic {name}: 'outlive topic list' shows those that exist");
    Failure::new(Code::NotFound, message)
}
