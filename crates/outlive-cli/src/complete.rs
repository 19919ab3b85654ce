//! Completion in shells: commands and options from clap, names from the domain as it is now.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::{Args, Command, Parser, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use outlive::Domain;
use outlive_run::{Request, RunDir};

use crate::exit::{Failure, Outcome};
use crate::options::DomainOptions;
use crate::output::print;

/// Set by the shell's script: this call completes a line.
const VARIABLE: &str = "OUTLIVE_COMPLETE";

/// Print the completion script of a shell; it also completes names in the domain.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive completions bash >~/.local/share/bash-completion/completions/outlive
  outlive completions zsh >~/.zfunc/_outlive
  outlive completions fish >~/.config/fish/completions/outlive.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs) -> Outcome {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut text = Vec::new();
    shell
        .write_registration(VARIABLE, "outlive", "outlive", "outlive", &mut text)
        .map_err(|e| Failure::io("write the completions", &e))?;
    print(&String::from_utf8_lossy(&text))
}

/// Answers a shell that completes a line, and ends the process; else does nothing.
pub(crate) fn answer_shell(command: fn() -> Command) {
    let command = || command().mut_arg("domain", |arg| arg.add(domains()));
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Names of topics.
pub(crate) fn topics() -> ArgValueCompleter {
    names(|domain| Ok(domain.topics()?.into_iter().map(|t| (t.name, t.type_name)).collect()))
}

/// Names of queues.
pub(crate) fn queues() -> ArgValueCompleter {
    names(|domain| Ok(domain.queues()?.into_iter().map(|q| (q.name, q.type_name)).collect()))
}

/// Names of services.
pub(crate) fn services() -> ArgValueCompleter {
    let of = |s: outlive::service::Info| (s.name, s.request.name().to_owned());
    names(move |domain| Ok(domain.services()?.into_iter().map(of).collect()))
}

/// Names of locks, semaphores, sets and segments.
pub(crate) fn locks() -> ArgValueCompleter {
    let of = |l: outlive::lock::LockInfo| (l.name, l.kind.as_str().to_owned());
    names(move |domain| Ok(domain.locks()?.into_iter().map(of).collect()))
}

/// Names of nodes.
pub(crate) fn nodes() -> ArgValueCompleter {
    let of = |n: outlive::NodeInfo| (n.name, format!("pid {}", n.pid));
    names(move |domain| Ok(domain.nodes()?.into_iter().map(of).collect()))
}

/// Types of topics.
pub(crate) fn types() -> ArgValueCompleter {
    names(|domain| Ok(domain.topics()?.into_iter().map(|t| (t.type_name, t.name)).collect()))
}

/// Names of domains.
fn domains() -> ArgValueCompleter {
    names(|domain| {
        let mut names = crate::absent::beside(domain);
        names.push(domain.name().to_owned());
        Ok(names.into_iter().map(|name| (name, String::new())).collect())
    })
}

/// Processes of the running robot.
pub(crate) fn processes() -> ArgValueCompleter {
    names(|domain| {
        let answer = outlive_run::ask(&RunDir::of(domain), &Request::Ps, PATIENCE);
        let Ok(outlive_run::Answer::Done(state)) = answer else { return Ok(Vec::new()) };
        Ok(state.processes.into_iter().map(|p| (p.name, p.phase.name().to_owned())).collect())
    })
}

/// A line is not completed later than this.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// Names with what is said beside them.
type Named = Vec<(String, String)>;

fn names(
    of: impl Fn(&Domain) -> outlive::Result<Named> + Send + Sync + 'static,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let domain = typed_options().and_then(|options| options.domain().ok());
        let mut named = domain.and_then(|domain| of(&domain).ok()).unwrap_or_default();
        named.sort();
        named.dedup_by(|a, b| a.0 == b.0);
        // A name may be typed without its leading slash.
        let slash = if current.starts_with('/') { "" } else { "/" };
        let fits = |name: &str| {
            name.starts_with(current)
                || name.strip_prefix(slash).is_some_and(|n| n.starts_with(current))
        };
        // Another process chose the name: what moves the cursor is not offered.
        let offered =
            named.into_iter().filter(|(name, _)| fits(name) && !name.contains(char::is_control));
        let candidate = |(name, help): (String, String)| {
            let help = (!help.is_empty()).then(|| crate::exit::plain(&help).into());
            CompletionCandidate::new(name).help(help)
        };
        offered.map(candidate).collect()
    })
}

/// The domain that the line to be completed names: its words follow the first `--`.
fn typed_options() -> Option<DomainOptions> {
    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        options: DomainOptions,
    }
    let mut words = env::args_os().skip_while(|word| word != "--").skip(2);
    let mut kept = vec![OsString::from("outlive")];
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "--domain" || text == "--root" {
            let value = words.next().filter(|value| !value.is_empty());
            kept.extend(value.into_iter().flat_map(|value| [word.clone(), value]));
        } else if text.starts_with("--domain=") || text.starts_with("--root=") {
            kept.push(word);
        }
    }
    Only::try_parse_from(kept).ok().map(|only| only.options)
}
