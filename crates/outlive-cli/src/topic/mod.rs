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
use crate::settings::Settings;

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

pub(crate) fn run(command: &TopicCommand, settings: &Settings) -> Outcome {
    match command {
        TopicCommand::List(args) => list::run(args, settings),
        TopicCommand::Info(args) => info::run(args, settings),
        TopicCommand::Pub(args) => publish::run(args, settings),
        TopicCommand::Echo(args) => echo::run(args, settings),
        TopicCommand::Hz(args) => rate::run(args, rate::Of::Messages, settings),
        TopicCommand::Bw(args) => rate::run(args, rate::Of::Bytes, settings),
        TopicCommand::Delay(args) => delay::run(args, settings),
    }
}

fn missing(name: &str) -> Failure {
    let message = format!("no topic {name}: 'outlive topic list' shows those that exist");
    Failure::new(Code::NotFound, message)
}
