//! `outlive types show` and `diff`: the fields of a type, before anybody publishes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use outlive::{Encoding, PayloadType};
use outlive_record::decode::{self, SetType};
use outlive_record::ros2::{InterfaceFile, embedded_text};

use super::form::FormArgs;
use super::json::{self, Difference, Shown};
use super::model::{self, Carried, Form, Library, Message, full_name};
use crate::exit::{CODES_HELP, Code, Failure, Outcome, plain};
use crate::output::{print, print_json};

const SHOW_EXAMPLES: &str = "\
Examples:
  outlive types show my_msgs/msg/Pose.msg
  outlive types show geometry_msgs/Twist          a message of ROS
  outlive types show std_msgs/Header --text-max 32
  outlive types show geometry_msgs/Twist --json | jq '.[].fields[].path'
  outlive types show robot.bin                    a descriptor set (protoc -o robot.bin ..)";

const DIFF_EXAMPLES: &str = "\
Examples:
  outlive types diff old/msg/Pose.msg new/msg/Pose.msg
  outlive types diff old.bin robot.bin            two descriptor sets";

/// Show the fixed layout of a message, or the messages of a descriptor set.
#[derive(Args, Debug)]
#[command(after_help = format!("{SHOW_EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct ShowArgs {
    /// A .msg, .srv or .action file, a message of ROS, like geometry_msgs/Point, or a descriptor
    /// set of protoc.
    #[arg(value_name = "TYPE|FILE")]
    of: String,
    #[command(flatten)]
    form: FormArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Show what differs between two messages, or two descriptor sets; code 6 if something does.
#[derive(Args, Debug)]
#[command(after_help = format!("{DIFF_EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct DiffArgs {
    /// The first, as for 'outlive types show'.
    #[arg(value_name = "A")]
    first: String,
    /// The second.
    #[arg(value_name = "B")]
    second: String,
    #[command(flatten)]
    form: FormArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn show(args: &ShowArgs) -> Outcome {
    if let Some(set) = descriptor_set(&args.of)? {
        if args.json {
            let types = set_types(&args.of, &set)?;
            return print_json(&types.into_iter().map(Shown::from).collect::<Vec<_>>());
        }
        let shown = decode::set_text(&set).map_err(|why| no_set(&args.of, &why));
        return print(&plain(&shown?));
    }
    let Loaded { library, wanted, .. } = load(&args.of, args.form.form(Carried::Fixed))?;
    if args.json {
        let shown = wanted.iter().map(|index| Shown::of(&library.messages[*index]));
        return print_json(&shown.collect::<Vec<_>>());
    }
    let text = wanted.iter().map(|index| {
        let Message { full, description, .. } = &library.messages[*index];
        let text = description.to_text();
        // The first line is for programs.
        let fields = text.split_once('\n').map_or("", |(_, fields)| fields);
        let (size, align) = (description.size(), description.align());
        let rest = fields.split_once('\n').map_or("", |(_, rest)| rest);
        format!("{full}, {size} bytes, aligned to {align}\n{rest}")
    });
    print(&text.collect::<Vec<_>>().join("\n"))
}

pub(super) fn diff(args: &DiffArgs) -> Outcome {
    let sets = (descriptor_set(&args.first)?, descriptor_set(&args.second)?);
    let (lines, differences) = match sets {
        (None, None) => message_differences(args)?,
        (Some(first), Some(second)) => set_differences(args, &first, &second)?,
        _ => {
            let why = "only one is a descriptor set: compare it with another";
            return Err(Failure::new(Code::Usage, why));
        }
    };
    match (lines.is_empty(), args.json) {
        (true, true) => return print_json(&Vec::<Difference>::new()),
        (true, false) => return print("both are the same type\n"),
        (false, true) => print_json(&differences)?,
        (false, false) => print(&plain(&(lines.join("\n") + "\n")))?,
    };
    Ok(Code::Mismatch)
}

/// As text, and each of them.
type Differences = (Vec<String>, Vec<Difference>);

fn message_differences(args: &DiffArgs) -> Result<Differences, Failure> {
    let form = args.form.form(Carried::Fixed);
    let (first, second) = (load(&args.first, form)?, load(&args.second, form)?);
    let (a, b) = (&first.wanted, &second.wanted);
    let (mut lines, mut differences) = (Vec::new(), Vec::new());
    if a.len() != b.len() {
        lines.push(format!(
            "{} has {} parts, {} has {}",
            args.first,
            a.len(),
            args.second,
            b.len()
        ));
    }
    let whole = first.named && second.named;
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (&first.library.messages[*a], &second.library.messages[*b]);
        let names = compared(&a.full, whole) != compared(&b.full, whole);
        differences.extend(json::between(a, b, names));
        if names {
            lines.push(format!("the name is {}, in the second {}", a.full, b.full));
        }
        lines.extend(of_the_second(a.description.differences(&b.description)));
    }
    for (of, with, is_first) in [(&first, b, true), (&second, a, false)] {
        let more = of.wanted.iter().skip(with.len());
        differences.extend(more.map(|i| json::one_sided(&of.library.messages[*i], is_first)));
    }
    Ok((lines, differences))
}

/// Of all messages; what several use is said once.
fn set_differences(args: &DiffArgs, a: &[u8], b: &[u8]) -> Result<Differences, Failure> {
    let names = |path: &str, set| decode::set_names(set).map_err(|why| no_set(path, &why));
    let (of_a, of_b) = (names(&args.first, a)?, names(&args.second, b)?);
    let (mut lines, mut said) = (Vec::new(), BTreeSet::new());
    for name in &of_a {
        if !of_b.contains(name) {
            lines.push(format!("message {name} is missing in the second"));
            continue;
        }
        let of = |set| PayloadType::encoded(Encoding::Protobuf, name, set);
        let differences = of_the_second(of(a)?.differences(&of(b)?));
        lines.extend(differences.filter(|line| said.insert(line.clone())));
    }
    let only = of_b.iter().filter(|name| !of_a.contains(name));
    lines.extend(only.map(|name| format!("message {name} is in the second only")));
    let (a, b) = (set_types(&args.first, a)?, set_types(&args.second, b)?);
    Ok((lines, json::between_sets(a, b)))
}

fn of_the_second(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| line.replace("this program", "the second"))
}

/// The bytes of a file that is no interface file.
fn descriptor_set(of: &str) -> Result<Option<Vec<u8>>, Failure> {
    if is_interface(of) || !Path::new(of).is_file() {
        return Ok(None);
    }
    fs::read(of).map(Some).map_err(|e| Failure::io(&format!("reading {of}"), &e))
}

fn set_types(path: &str, set: &[u8]) -> Result<Vec<SetType>, Failure> {
    decode::set_types(set).map_err(|why| no_set(path, &why))
}

fn no_set(of: &str, why: &str) -> Failure {
    Failure::new(Code::Usage, format!("{of} is neither a .msg file nor a descriptor set: {why}"))
}

fn is_interface(of: &str) -> bool {
    [".msg", ".srv", ".action"].iter().any(|end| of.ends_with(end))
}

/// What counts of a name: not the package, if only a directory is called so, like old/ and new/.
fn compared(full: &str, whole: bool) -> &str {
    match full.split_once('/') {
        Some((_, name)) if !whole => name,
        _ => full,
    }
}

/// A file or a name with all that it needs.
struct Loaded {
    library: Library,
    /// Which of the messages are meant.
    wanted: Vec<usize>,
    /// Whether their package has its name from more than a directory.
    named: bool,
}

fn load(of: &str, form: Form) -> Result<Loaded, Failure> {
    if is_interface(of) {
        let sources = InterfaceFile::find(&[PathBuf::from(of)], None)?;
        let library = model::load(&sources, form)?;
        let is_meant = |m: &Message| m.file.as_deref() == Some(of);
        let meant = (0..library.messages.len()).filter(|i| is_meant(&library.messages[*i]));
        let wanted = meant.collect();
        let named = sources.iter().all(|source| source.named || !source.wanted);
        return Ok(Loaded { library, wanted, named });
    }
    let full = full_name("", of);
    if embedded_text(&full).is_none() {
        let why = format!("{of} is neither a file nor a ROS message known here");
        return Err(Failure::new(Code::NotFound, why));
    }
    let library = model::load_known(&full, form)?;
    let last = library.messages.len().saturating_sub(1);
    Ok(Loaded { library, wanted: vec![last], named: true })
}
