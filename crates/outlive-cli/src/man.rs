//! `outlive man`: the manual pages, made from the same definition as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::exit::{Code, Failure, Outcome};

/// Write the manual pages into a directory, one for each subcommand.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive man ~/.local/share/man/man1             then: man outlive-topic-echo")]
pub(crate) struct ManArgs {
    /// Directory, created if it does not exist; pages of the same names are replaced.
    dir: PathBuf,
}

pub(crate) fn run(args: &ManArgs, command: Command) -> Outcome {
    let failed = |e: io::Error| Failure::io_at("writing", &args.dir, &e);
    fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write(&command, &args.dir).map_err(failed)?;
    Ok(Code::Done)
}

/// The page of `command`, then those of its subcommands.
fn write(command: &Command, dir: &Path) -> io::Result<()> {
    let version = format!("outlive {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("outlive");
    fs::write(dir.join(man.get_filename()), page(&man, command)?)?;
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.into_iter().try_for_each(|sub| write(sub, dir))
}

/// As `Man::render`, but for what follows the options: its lines are kept as they are.
fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        notes(&text.to_string()).to_writer(&mut out)?;
    }
    Ok(out)
}

/// Blocks between empty lines: one that begins with `Word:` is a section of that name.
fn notes(text: &str) -> Roff {
    let mut roff = Roff::default();
    let mut within = "";
    for block in text.split("\n\n") {
        let (head, rest) = block.split_once('\n').unwrap_or((block, ""));
        let (name, body) = match head.strip_suffix(':') {
            Some(name) => (name, rest),
            None => ("Notes", block),
        };
        if name != within || name != "Notes" {
            roff.control("SH", [name.to_uppercase().as_str()]);
        } else {
            roff.control("PP", []);
        }
        within = name;
        roff.control("nf", []);
        for line in body.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_options_keeps_its_lines() {
        let page = notes("Examples:\n  outlive a\n  .b\n\nSome text\nin lines.\n\nMore.").to_roff();
        for part in [
            ".SH EXAMPLES\n.nf\n  outlive a\n",
            ".fi\n.SH NOTES\n.nf\nSome text\nin lines.\n.fi\n.PP\n.nf\nMore.\n",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("\n.b"), "a leading dot is not escaped: {page}");
    }
}
