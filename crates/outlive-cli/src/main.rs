//! The `outlive` command: see, feed, read and clean shared-memory topics.
//!
//! | file | what |
//! |---|---|
//! | `topic/`, `queue`, `service`, `lock`, `node` | the subcommands for what is shared |
//! | `robot/` | `run`, `ps`, `restart`, `stop`, `logs` |
//! | `record/` | `record`, `play`, `info`, `convert`, `recover`: MCAP files |
//! | `look/`, `top/`, `metrics/` | a domain at one moment; in a terminal; for Prometheus |
//! | `dashboard/`, `http` | the same in a browser; the server of both |
//! | `types/` | message types from interface files of ROS 2 |
//! | `bridge`, `view`, `program` | hand over to `outlive-bridge` and `outlive-view` |
//! | `man`, `complete` | manual pages; completion in shells |
//! | `absent` | what is said of a name or domain that is not there |
//! | `chaos/` | blows for a running robot |
//! | `clean`, `doctor/`, `demo/`, `bench/` | the other subcommands |
//! | `stage` | a directory of its own for a demo or a measurement |
//! | `status` | a line at a terminal that says how far a command is |
//! | `options`, `exit` | options of all of them; exit codes and how errors become one |
//! | `output`, `input`, `tree`, `value`, `clock` | standard output and input, values and times |
//! | `os`, `os_probe` | the few system calls; what the kernel can do |

mod absent;
mod bench;
mod bridge;
mod chaos;
mod clean;
mod clock;
mod complete;
mod csv;
mod dashboard;
mod demo;
mod doctor;
mod exit;
mod http;
mod input;
mod lock;
mod look;
mod man;
mod metrics;
mod node;
mod options;
mod os;
mod os_probe;
mod output;
mod program;
mod queue;
mod record;
mod robot;
mod service;
mod stage;
mod status;
mod top;
mod topic;
mod types;
mod value;
mod view;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::CODES_HELP;
use options::DomainOptions;

const EXAMPLES: &str = "\
Examples:
  outlive demo                                    kill things and watch the others carry on
  outlive topic list                              the topics, their types and members
  outlive topic echo /camera --count 3            the next three messages
  ffmpeg -i clip.mp4 -f rawvideo -pix_fmt rgb24 - |
    outlive topic pub /camera --from-stdin --frame-bytes 6220800
  outlive topic pub /speed 1.5                    one value
  outlive topic info /camera                      publishers, subscribers, held samples
  outlive topic hz /camera                        rate and gaps, without subscribing
  outlive dashboard                               the robot in a browser
  outlive record -a -o run.mcap                   everything into a file, for 'outlive play'
  outlive view                                    everything live in Foxglove
  outlive service call /planner/plan '[1, 2.5]'   call it and print the response
  outlive run robot.toml                          start a robot and keep it running
  outlive doctor                                  what is wrong here, and how to fix it
  outlive clean                                   remove what dead processes left";

/// Shared-memory messaging that survives `kill -9`.
#[derive(Debug, Parser)]
#[command(name = "outlive", version, after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
struct Cli {
    #[command(flatten)]
    options: DomainOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Topics: list, publish, print, measure.
    #[command(subcommand)]
    Topic(topic::TopicCommand),
    /// Nodes: list the processes of a domain, show one.
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Queues: list, send, look inside.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Services: list, call.
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Locks: list them and their holders, remove one.
    #[command(subcommand)]
    Lock(lock::LockCommand),
    Run(robot::RunArgs),
    #[command(hide = true)]
    KeepLogs(robot::KeepLogsArgs),
    Ps(robot::PsArgs),
    Restart(robot::RestartArgs),
    Stop(robot::StopArgs),
    Logs(robot::LogsArgs),
    Top(top::TopArgs),
    Dashboard(dashboard::DashboardArgs),
    Record(record::RecordArgs),
    Play(record::PlayArgs),
    Info(record::InfoArgs),
    Convert(record::ConvertArgs),
    Recover(record::RecoverArgs),
    /// Types: source code from interface files of ROS 2; show and compare layouts.
    #[command(subcommand)]
    Types(types::TypesCommand),
    Metrics(metrics::MetricsArgs),
    View(view::ViewArgs),
    Bridge(bridge::BridgeArgs),
    Chaos(chaos::ChaosArgs),
    Clean(clean::CleanArgs),
    Doctor(doctor::DoctorArgs),
    Completions(complete::CompletionsArgs),
    Man(man::ManArgs),
    Demo(demo::DemoArgs),
    #[command(hide = true)]
    DemoRole(demo::RoleArgs),
    Bench(bench::BenchArgs),
}

/// What was typed. A verb without its noun, as in 'outlive hz', is answered with the nouns that
/// have it.
fn typed() -> Cli {
    let mut command = with_negatives(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|mut error| {
        if let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) {
            let root = Cli::command();
            let nouns = root.get_subcommands().filter(|noun| noun.find_subcommand(verb).is_some());
            let meant: Vec<_> = nouns.map(|noun| format!("{} {verb}", noun.get_name())).collect();
            if !meant.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant));
            }
        }
        error.exit()
    })
}

/// Takes `--start -1` for what it is, so that the answer is about the number.
fn with_negatives(command: clap::Command) -> clap::Command {
    let takes = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| match takes(&arg) {
        true if !arg.is_allow_hyphen_values_set() => arg.allow_negative_numbers(true),
        _ => arg,
    });
    command.mut_subcommands(with_negatives)
}

fn main() -> ExitCode {
    os::survive_file_limit();
    complete::answer_shell(Cli::command);
    let Cli { options, command } = typed();
    let done = match command {
        Command::Topic(command) => topic::run(&command, &options),
        Command::Node(command) => node::run(&command, &options),
        Command::Queue(command) => queue::run(&command, &options),
        Command::Service(command) => service::run(&command, &options),
        Command::Lock(command) => lock::run(&command, &options),
        Command::Run(args) => robot::run(&args, &options),
        Command::KeepLogs(args) => robot::keep_logs(&args),
        Command::Ps(args) => robot::ps(&args, &options),
        Command::Restart(args) => robot::restart(&args, &options),
        Command::Stop(args) => robot::stop(&args, &options),
        Command::Logs(args) => robot::logs(&args, &options),
        Command::Chaos(args) => chaos::run(&args, &options),
        Command::Top(args) => top::run(&args, &options),
        Command::Dashboard(args) => dashboard::run(&args, &options),
        Command::Record(args) => record::record(&args, &options),
        Command::Play(args) => record::play(&args, &options),
        Command::Info(args) => record::info(&args),
        Command::Convert(args) => record::convert(&args),
        Command::Recover(args) => record::recover(&args),
        Command::Types(command) => types::run(&command),
        Command::Metrics(args) => metrics::run(&args, &options),
        Command::View(args) => view::run(&args, &options),
        Command::Bridge(args) => bridge::run(&args, &options),
        Command::Doctor(args) => doctor::run(&args, &options),
        Command::Completions(args) => complete::run(&args),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Clean(args) => clean::run(&args, &options),
        Command::Demo(args) => demo::run(&args),
        Command::DemoRole(args) => demo::run_role(&args, &options),
        Command::Bench(args) => bench::run(&args),
    };
    exit::finish(done)
}
