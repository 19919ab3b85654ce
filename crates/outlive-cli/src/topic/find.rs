//! `outlive topic find`: topics by their type.

use clap::Args;
use serde::Serialize;

use super::list::type_text;
use crate::absent::{nobody, similar};
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome};
use crate::options::DomainOptions;
use crate::output::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  outlive topic find outlive/Image
  outlive topic find image                        last part of the name, any case
  outlive topic echo $(outlive topic find Pose)";

/// List the topics of a type, a name per line.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct FindArgs {
    /// Type, like outlive/Image, or its last part.
    #[arg(value_name = "TYPE", add = complete::types())]
    r#type: String,
    /// Print JSON, with the type of each.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    name: String,
    r#type: String,
}

pub(crate) fn run(args: &FindArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    let of = |t: outlive::topic::Info| Found {
        r#type: type_text(&t.type_name, t.encoding),
        name: t.name,
    };
    let all: Vec<Found> = domain.topics()?.into_iter().map(of).collect();
    let types: Vec<String> = all.iter().map(|found| found.r#type.clone()).collect();
    let found: Vec<Found> = all.into_iter().filter(|f| is_meant(&args.r#type, &f.r#type)).collect();
    if found.is_empty() {
        let like = match (similar(&args.r#type, &types).as_slice(), nobody(&domain)) {
            ([], Some(nobody)) if types.is_empty() => format!(": {nobody}"),
            ([], _) => ": 'outlive topic list' shows the types there are".into(),
            (like, _) => format!("; did you mean {}?", like.join(" or ")),
        };
        let message = format!("no topic of type {}{like}", args.r#type);
        return Err(Failure::new(Code::NotFound, message));
    }
    if args.json {
        return print_json(&found);
    }
    print(&found.iter().map(|f| f.name.clone() + "\n").collect::<String>())
}

/// The whole name, or what follows its last `/` or `::`; a slice also by its elements.
fn is_meant(wanted: &str, of: &str) -> bool {
    let bare = of.trim_start_matches('[').trim_end_matches(']');
    let last = bare.rsplit(['/', ':', '.']).next().unwrap_or(bare);
    [of, bare, last].iter().any(|name| name.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_meant_by_its_name_or_the_last_part_of_it() {
        for wanted in ["outlive/Pose", "Pose", "pose", "OUTLIVE/pose"] {
            assert!(is_meant(wanted, "outlive/Pose"), "{wanted}");
        }
        assert!(is_meant("u8", "[u8]") && is_meant("[u8]", "[u8]"));
        assert!(!is_meant("os", "outlive/Pose") && !is_meant("outlive", "outlive/Pose"));
    }
}
