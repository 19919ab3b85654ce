//! `outlive types import`: source code of messages, in every language.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use outlive_record::ros2::InterfaceFile;

use super::form::FormArgs;
use super::model::{self, Carried, Form, Library};
use super::names::Language;
use super::{c, cdr, cpp, python, rust};
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::output::count;

const EXAMPLES: &str = "\
Examples:
  outlive types import my_msgs -o messages                       Rust, C++, C and Python
  outlive types import my_msgs/msg/Pose.msg -o src/messages --language rust
  outlive types import my_msgs -o messages --text-max 32 --list-max 100
  outlive types import my_msgs -o messages --msgpack
  outlive types import my_msgs -o messages --cdr";

/// How lines begin that declare a type; its name is the first text in them.
const DECLARES: [&str; 8] = [
    "#[outlive::message(",
    "pub const TYPE_NAME:",
    "OUTLIVE_MESSAGE(",
    "OUTLIVE_MSGPACK(",
    "static constexpr const char *cdr_name =",
    "return outlive_type_fixed(",
    "type_name =",
    "__outlive_type__:",
];
/// Most types that are named where some would be lost.
const LOST_MAX: usize = 10;
/// Most fields that OUTLIVE_MESSAGE of C++ takes.
const CPP_FIELDS_MAX: usize = 256;
/// Most fields that MSGPACK_DEFINE_MAP takes.
const CPP_PACKED_FIELDS_MAX: usize = 64;

/// Write source code of the messages in .msg, .srv and .action files.
///
/// For each package it writes NAME.rs, .hpp, .h and .py, also for packages of ROS that are part of
/// the messages. The types are named as in ROS, like geometry_msgs/msg/Point, and are the same in
/// all languages. Nothing is written if anything is wrong.
///
/// Messages get a fixed layout; a bounded list becomes an array and a count. Text and lists without
/// a bound need --text-max, --list-max, --msgpack or --cdr.
///
/// With --cdr, messages travel as in ROS 2. Their definition is in the topic: the bridge to ROS 2,
/// echo, record and convert understand them.
///
/// Give all packages of a program in one call: a second one for the same directory would take away
/// what only the first had, and is refused.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct ImportArgs {
    /// Files, and directories to search for files.
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Directory to write.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Only these languages, separated by commas.
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    language: Vec<Language>,
    #[command(flatten)]
    form: FormArgs,
    /// Make all messages MessagePack, without bounds; not in C.
    #[arg(long, conflicts_with_all = ["text_max", "list_max"])]
    msgpack: bool,
    /// Make all messages ROS 2 CDR, within the bounds of their files; not in C.
    #[arg(long, conflicts_with_all = ["text_max", "list_max", "msgpack"])]
    cdr: bool,
    /// Package of the files [default: name in package.xml, else that of the directory].
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Replace files of the same names, if no type in them is lost.
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn run(args: &ImportArgs) -> Outcome {
    let form = args.form.form(match (args.msgpack, args.cdr) {
        (true, _) => Carried::MsgPack,
        (_, true) => Carried::Cdr,
        _ => Carried::Fixed,
    });
    let languages = languages(&args.language, form.carried)?;
    let sources = InterfaceFile::find(&args.paths, args.package.as_deref())?;
    let library = model::load(&sources, form)?;
    check_names(&library, form, &languages)?;
    let files = files(&library, form, &languages)?;
    write(&args.output, &files, args.overwrite)?;
    note(format_args!(
        "{} in {} to {}",
        count(library.messages.len() as u64, "message"),
        count(files.len() as u64, "file"),
        args.output.display()
    ));
    Ok(Code::Done)
}

fn languages(given: &[Language], carried: Carried) -> Result<Vec<Language>, Failure> {
    let lacks = |language: &Language| match (carried, language) {
        (Carried::MsgPack, Language::C) => Some(("MessagePack", "--msgpack")),
        (Carried::Cdr, Language::C) => Some(("CDR", "--cdr")),
        _ => None,
    };
    if let Some((language, (what, option))) = given.iter().find_map(|l| Some((l, lacks(l)?))) {
        let language = language.title();
        let why = format!("{language} has no {what}: leave {option} or {language} out");
        return Err(Failure::new(Code::Usage, why));
    }
    let all = if given.is_empty() { &Language::ALL } else { given };
    Ok(all.iter().copied().filter(|language| lacks(language).is_none()).collect())
}

/// Every name must be one in every language that is written.
fn check_names(library: &Library, form: Form, languages: &[Language]) -> Result<(), Failure> {
    let mut faults = Vec::new();
    let is_fixed = form.carried == Carried::Fixed;
    let mut check = |at: String, name: &str, refuses: &dyn Fn(Language) -> bool| {
        let Some(language) = languages.iter().find(|language| refuses(**language)) else { return };
        let others = languages.iter().filter(|l| !refuses(**l)).map(|l| l.option());
        let others = others.collect::<Vec<_>>().join(",");
        let or = if others.is_empty() { "" } else { ", or use --language " };
        let taken = format!("{at}: the name {name} is taken in {}", language.title());
        faults.push(format!("{taken}: rename it{or}{others}"));
    };
    for message in &library.messages {
        let plain = |name: &str| {
            let name = name.to_owned();
            move |language: Language| language.refuses(&name)
        };
        let own = ["std", "outlive", cdr::SHARED].contains(&message.package.as_str());
        let package = &message.package;
        check(message.at(1), package, &|l| own || l.refuses_package(package));
        check(message.at(1), &message.ident, &plain(&message.ident));
        for field in &message.fields {
            // Fields of a dtype are text.
            let refuses = |language| match language {
                Language::Python if is_fixed => false,
                Language::Cpp if field.name == message.ident => true,
                language => language.refuses(&field.name),
            };
            check(message.at(field.line), &field.name, &refuses);
        }
        for item in &message.constants {
            let refuses = |language| match language {
                // Its constructor has this name.
                Language::Cpp if item.name == message.ident => true,
                language => language.refuses(&item.name),
            };
            check(message.at(item.line), &item.name, &refuses);
        }
    }
    if languages.contains(&Language::C) {
        faults.extend(macros_taken_twice(library));
    }
    let most = match form.carried {
        Carried::Fixed => CPP_FIELDS_MAX,
        Carried::MsgPack => CPP_PACKED_FIELDS_MAX,
        Carried::Cdr => usize::MAX,
    };
    for message in library.messages.iter().filter(|_| languages.contains(&Language::Cpp)) {
        if message.members.len().max(message.fields.len()) > most {
            let why = format!("C++ describes at most {most} fields");
            faults.push(format!("{}: {why}: put some into a message of their own", message.at(1)));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Usage, faults.join("\n"))),
    }
}

/// Constants whose macro in C another one has, or a header for itself.
fn macros_taken_twice(library: &Library) -> Vec<String> {
    let mut faults = Vec::new();
    let mut taken: HashMap<String, String> = HashMap::new();
    for message in &library.messages {
        taken.insert(c::guard(&message.package), format!("the header {}.h", message.package));
    }
    for message in &library.messages {
        for item in &message.constants {
            let (at, name) = (message.at(item.line), c::macro_of(message, item));
            match taken.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(format!("{} of {}", item.name, message.full));
                }
                Entry::Occupied(other) => {
                    let (name, other) = (other.key(), other.get());
                    let (taken, rename) = ("is taken in C by", "rename one of them");
                    faults
                        .push(format!("{at}: {name} for {} {taken} {other}: {rename}", item.name));
                }
            }
        }
    }
    faults
}

/// Names and contents.
fn files(
    library: &Library,
    form: Form,
    languages: &[Language],
) -> Result<Vec<(String, String)>, Failure> {
    let (packages, carried) = (library.packages()?, form.carried);
    let mut files = Vec::new();
    for (package, needs) in &packages {
        for language in languages {
            files.push(match language {
                Language::Rust => {
                    (format!("{package}.rs"), rust::package(library, package, carried))
                }
                Language::Cpp => {
                    (format!("{package}.hpp"), cpp::package(library, package, needs, carried))
                }
                Language::C => (format!("{package}.h"), c::package(library, package, needs)),
                Language::Python => {
                    (format!("{package}.py"), python::package(library, package, needs, carried))
                }
            });
        }
    }
    if languages.contains(&Language::Rust) {
        let mut names: Vec<&str> = packages.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        files.push(("mod.rs".into(), rust::root(names.into_iter(), carried)));
        if carried == Carried::Cdr {
            files.push((format!("{}.rs", cdr::SHARED), cdr::RUST_SHARED.into()));
        }
    }
    if languages.contains(&Language::Python) {
        files.push(("__init__.py".into(), python::root()));
        if carried == Carried::Cdr {
            files.push((format!("{}.py", cdr::SHARED), cdr::PYTHON_SHARED.into()));
        }
    }
    Ok(files)
}

/// Refuses to replace files that have types which those of now lack: other sources need them.
fn refuse_loss(dir: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let mut lost = BTreeSet::new();
    for (name, text) in files {
        // What cannot be read is nothing that this program wrote.
        let old = fs::read_to_string(dir.join(name)).unwrap_or_default();
        let now = declared(text);
        lost.extend(declared(&old).into_iter().filter(|of| !now.contains(of)));
    }
    if lost.is_empty() {
        return Ok(());
    }
    let more = lost.len().saturating_sub(LOST_MAX);
    let mut named: Vec<String> = lost.into_iter().take(LOST_MAX).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let (dir, lost) = (dir.display(), named.join(", "));
    let why = format!(
        "{dir} has {lost}, which would be lost: give all packages in one call, or remove what is \
         no longer needed"
    );
    Err(Failure::new(Code::Failed, why))
}

/// What the text of a file declares, if this program wrote it.
fn declared(text: &str) -> BTreeSet<String> {
    let first = text.lines().next().unwrap_or_default();
    if !first.contains("made by") || !first.contains("outlive types import") {
        return BTreeSet::new();
    }
    let one = |line: &str| {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("pub mod ") {
            return Some(format!("the module {}", name.trim_end_matches(';')));
        }
        let declares = DECLARES.iter().any(|begin| line.starts_with(begin));
        declares.then(|| line.split('"').nth(1).map(Into::into)).flatten()
    };
    text.lines().filter_map(one).collect()
}

/// Every file under a name of its own first: what fails leaves none of them.
fn write(dir: &Path, files: &[(String, String)], overwrite: bool) -> Result<(), Failure> {
    for (name, _) in files {
        let path = dir.join(name);
        if path.is_dir() {
            let why = format!("{} is a directory: use another --output", path.display());
            return Err(Failure::new(Code::Failed, why));
        }
        if !overwrite && path.symlink_metadata().is_ok() {
            let why = format!("{} exists: --overwrite replaces it", path.display());
            return Err(Failure::new(Code::Failed, why));
        }
    }
    refuse_loss(dir, files)?;
    let failed = |path: &Path, e: io::Error| Failure::io_at("writing", path, &e);
    fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let part = |name: &str| dir.join(format!(".{name}.{}", std::process::id()));
    let written = files.iter().try_for_each(|(name, text)| {
        let path = part(name);
        let mut file = fs::File::create(&path).map_err(|e| failed(&path, e))?;
        file.write_all(text.as_bytes()).map_err(|e| failed(&path, e))
    });
    let renamed = written.and_then(|()| {
        files.iter().try_for_each(|(name, _)| {
            let path = dir.join(name);
            fs::rename(part(name), &path).map_err(|e| failed(&path, e))
        })
    });
    if renamed.is_err() {
        files.iter().for_each(|(name, _)| drop(fs::remove_file(part(name))));
    }
    renamed
}
