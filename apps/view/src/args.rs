//! The command line.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use outlive_record::Selection;

use crate::topics::Rates;

const HELP: &str = "\
Shows topics live in Foxglove, or writes them into a file for Rerun.

Usage: outlive-view [OPTIONS] [TOPIC]...

Arguments:
  TOPIC  names and globs like /camera/front or '/arm/*'; without any, every topic

Options:
  --regex             read TOPICS as regular expressions for the whole name
  --rate [TOPICS=]HZ  maximum rate per publisher, newest message first; 'inf' for all; repeat
                      per topic [default: 30]
  --bind ADDRESS      address to listen on [default: 127.0.0.1, this machine only]
  --port PORT         port to listen on; 0 picks a free one [default: 8765]
  --origin URL        also allow pages of this origin; repeatable, '*' for all
  --rerun FILE        write FILE for Rerun instead of serving
  --overwrite         replace an existing FILE
  --stats             print what was shown and sent, every second
  --domain NAME       domain to use [default: $OUTLIVE_DOMAIN, else 'default']
  -h, --help
  -V, --version

The domain is in $OUTLIVE_DIR or /dev/shm/outlive-<uid>.

Exit codes:
  0 ended by SIGTERM or SIGINT   1 failed   2 wrong usage
";

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) selection: Selection,
    pub(crate) rates: Rates,
    pub(crate) bind: IpAddr,
    pub(crate) port: u16,
    pub(crate) origins: Vec<String>,
    pub(crate) rerun: Option<PathBuf>,
    pub(crate) overwrite: bool,
    pub(crate) stats: bool,
    pub(crate) domain: Option<String>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Parsed {
    Run(Args),
    Print(&'static str),
}

impl Args {
    /// # Errors
    /// What is wrong.
    pub(crate) fn parse(given: impl Iterator<Item = OsString>) -> Result<Parsed, String> {
        let mut args = Self {
            selection: Selection::all(),
            rates: Rates::default(),
            bind: Ipv4Addr::LOCALHOST.into(),
            port: 8765,
            origins: Vec::new(),
            rerun: None,
            overwrite: false,
            stats: false,
            domain: None,
        };
        let (mut topics, mut regex) = (Vec::new(), false);
        let mut rest = given;
        while let Some(arg) = rest.next() {
            let arg =
                arg.into_string().map_err(|arg| format!("{} is not valid UTF-8", arg.display()))?;
            let mut value = || rest.next().ok_or_else(|| format!("{arg} wants a value"));
            let mut text = || {
                value()?
                    .into_string()
                    .map_err(|v| format!("{arg} {} is not valid UTF-8", v.display()))
            };
            match arg.as_str() {
                "-h" | "--help" => return Ok(Parsed::Print(HELP)),
                "-V" | "--version" => {
                    let version = concat!("outlive-view ", env!("CARGO_PKG_VERSION"), "\n");
                    return Ok(Parsed::Print(version));
                }
                "--regex" => regex = true,
                "--rate" => args.rates.add(&text()?)?,
                "--bind" => {
                    let address = text()?;
                    let wrong = || {
                        format!("--bind {address}: write an address like 0.0.0.0, 10.0.0.5 or ::")
                    };
                    args.bind = address.parse().map_err(|_| wrong())?;
                }
                "--port" => {
                    let port = text()?;
                    let wrong = || format!("--port {port}: write a number from 0 to 65535");
                    args.port = port.parse().map_err(|_| wrong())?;
                }
                "--origin" => args.origins.push(text()?),
                "--rerun" => args.rerun = Some(value()?.into()),
                "--overwrite" => args.overwrite = true,
                "--stats" => args.stats = true,
                "--domain" => args.domain = Some(text()?),
                option if option.starts_with('-') => return Err(format!("no option {option}")),
                _ => topics.push(arg),
            }
        }
        if args.overwrite && args.rerun.is_none() {
            return Err("--overwrite needs --rerun FILE".into());
        }
        if !topics.is_empty() {
            args.selection = Selection::new(&topics, regex).map_err(|e| e.to_string())?;
        } else if regex {
            return Err("--regex needs TOPICS".into());
        }
        Ok(Parsed::Run(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Parsed, String> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn all_options_are_taken() {
        let line = "/a /b/* --rate 5 --rate /a=inf --bind :: --port 0 --origin http://x --stats \
                    --rerun f.rrd --overwrite --domain d";
        let Parsed::Run(args) = parse(line).unwrap() else { panic!() };
        assert!(args.selection.matches("/b/c") && !args.selection.matches("/c"));
        assert!(args.bind.is_unspecified() && args.port == 0 && args.overwrite && args.stats);
        assert_eq!((args.origins.len(), args.domain.as_deref()), (1, Some("d")));
        let Parsed::Run(args) = parse("").unwrap() else { panic!() };
        assert!(args.bind.is_loopback() && args.port == 8765 && args.selection.matches("/x"));
        assert!(parse("--nonsense --help").is_err());
        let version = |text: &str| text.starts_with("outlive-view ");
        assert!(matches!(parse("/a -V"), Ok(Parsed::Print(text)) if version(text)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, why) in [
            ("--nonsense", "no option --nonsense"),
            ("--rate", "--rate wants a value"),
            ("--rate fast", "'fast' is not a valid rate"),
            ("--bind localhost", "--bind localhost: write an address"),
            ("--port 70000", "--port 70000: write a number"),
            ("--regex", "--regex needs TOPICS"),
            ("--regex /cam(", "'/cam(' is not a valid regular expression"),
            ("--overwrite", "--overwrite needs --rerun"),
        ] {
            let said = parse(line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
    }
}
