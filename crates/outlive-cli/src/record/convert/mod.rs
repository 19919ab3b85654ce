//! `outlive convert`: a recording as tables, pictures and films.

pub(crate) mod picture;
mod table;
mod video;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use outlive::msg::Image;
use outlive::zerocopy::IntoBytes;
use outlive_record::{RecordedSource, Recording, Selection};

use super::Input;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note, one_line};
use crate::look::is_image;
use crate::os;
use crate::output::count;
use crate::status::{Status, bar};
use table::Table;
use video::Films;

const EXAMPLES: &str = "\
Examples:
  outlive convert run.mcap                           run/imu.csv, run/camera/front/000000.png ...
  outlive convert run.mcap --output tables --topic '/arm/*' --images none
  outlive convert run.mcap --images mp4              films, by ffmpeg";

/// Of a part of a path, bytes: Linux has 255, and it needs an ending and perhaps a number.
const NAME_BYTES_MAX: usize = 230;
/// Of a path: Linux has 4096.
const PATH_BYTES_MAX: usize = 4000;

/// Write a recording as CSV tables, one for each topic, and images as PNG or MP4.
///
/// A table has a row for each message: times, publisher and fields. For images it has the header
/// and the name of the picture; JPEG and PNG images are written unchanged.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: Input,
    /// Directory to write [default: FILE without its extension].
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write into a directory that is not empty, over files of the same names.
    #[arg(long)]
    overwrite: bool,
    /// Only these topics, like '/arm/*'; may be repeated.
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// How to write images.
    #[arg(long, value_name = "HOW", default_value = "png")]
    images: Images,
    /// Program that makes MP4.
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    ffmpeg: String,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Images {
    Png,
    Mp4,
    None,
}

/// What is written of one topic.
struct Topic {
    table: Table,
    /// Path without ending.
    base: PathBuf,
    is_images: bool,
    pictures: u64,
    films: Option<Films>,
}

pub(crate) fn run(args: &ConvertArgs) -> Outcome {
    os::catch_stop_signals()?;
    let recording = args.input.open(false)?;
    let selection = match args.topic.is_empty() {
        true => Selection::all(),
        false => Selection::new(&args.topic, false)?,
    };
    let chosen = |s: &&RecordedSource| selection.matches(&s.source.topic) && s.messages > 0;
    let sources: HashMap<u16, &RecordedSource> =
        recording.sources.iter().filter(chosen).map(|s| (s.channel, s)).collect();
    if sources.is_empty() {
        return Err(args.input.without(&recording.damage, "message of these topics"));
    }
    if args.images == Images::Mp4 {
        video::check(&args.ffmpeg)?;
    }
    let dir = args.output.clone().unwrap_or_else(|| args.input.path().with_extension(""));
    make_dir(&dir, args.overwrite)?;
    let rates =
        if args.images == Images::Mp4 { rates(&recording, &sources)? } else { HashMap::new() };
    let mut topics: BTreeMap<&str, Topic> = BTreeMap::new();
    let mut taken = HashSet::new();
    let mut left_out: HashSet<&str> = HashSet::new();
    let (mut rows, mut invalid, mut pictures) = (0u64, 0u64, 0u64);
    let mut aligned = Vec::new();
    let mut messages = recording.messages()?;
    let all: u64 = sources.values().map(|s| s.messages).sum();
    let (mut status, mut stopped) = (Status::new(), false);
    for message in messages.by_ref() {
        let message = message?;
        status.show([rows, 0], |[rate, _]| {
            format!("{}  {rows} of {all} messages ({rate}/s)", bar(rows, all))
        });
        stopped = os::stop_asked();
        if stopped {
            break;
        }
        let Some(recorded) = sources.get(&message.channel.id) else { continue };
        let source = &recorded.source;
        let Ok(payload) = source.payload(&message.data) else {
            invalid += 1;
            continue;
        };
        if left_out.contains(source.topic.as_str()) {
            continue;
        }
        let topic = match topics.entry(&source.topic) {
            std::collections::btree_map::Entry::Occupied(topic) => topic.into_mut(),
            std::collections::btree_map::Entry::Vacant(free) => {
                let base = base(&dir, &source.topic, &mut taken);
                if !fits(&base) {
                    left_out.insert(recorded.source.topic.as_str());
                    let topic = one_line(&source.topic);
                    note(format_args!("{topic} is left out: its name is too long"));
                    continue;
                }
                let is_images = is_image(&source.payload_type);
                let table = Table::create(&base, &source.payload_type, is_images)?;
                let rate = rates.get(source.topic.as_str()).copied().unwrap_or(30.0);
                let films = args.images == Images::Mp4 && is_images;
                let films = films.then(|| Films::new(&args.ffmpeg, &base, rate));
                free.insert(Topic { table, base, is_images, pictures: 0, films })
            }
        };
        let mut file = String::new();
        if topic.is_images && args.images != Images::None {
            let image = align(&payload, &mut aligned);
            let Some(image) = Image::parse(image) else {
                invalid += 1;
                continue;
            };
            file = topic.picture(image, &mut taken)?.unwrap_or_default();
            pictures += u64::from(!file.is_empty());
        }
        let has_row = topic.table.row(&message, source, &payload, &file)?;
        rows += u64::from(has_row);
        invalid += u64::from(!has_row);
    }
    drop(status);
    let tables = topics.len() as u64;
    for topic in topics.into_values() {
        topic.table.finish()?;
        if let Some(films) = topic.films {
            films.finish()?;
        }
    }
    let dir = dir.display();
    note(format_args!(
        "{} of {}, {} into {dir}",
        count(rows, "message"),
        count(tables, "topic"),
        count(pictures, "picture")
    ));
    if stopped {
        let message = format!("stopped after {rows} of {all} messages: convert it again for all");
        return Err(Failure::new(Code::Failed, message));
    }
    if messages.damage().is_some() {
        let message = format!("{}: {}", args.input.path().display(), messages.damage());
        return Err(Failure::new(Code::Corrupt, message));
    }
    if invalid > 0 {
        let message = format!("{invalid} messages are damaged and were left out");
        return Err(Failure::new(Code::Corrupt, message));
    }
    Ok(if left_out.is_empty() { Code::Done } else { Code::Loss })
}

impl Topic {
    /// Writes an image; the name of the file, if it can be written.
    fn picture(
        &mut self,
        image: &Image,
        taken: &mut HashSet<PathBuf>,
    ) -> Result<Option<String>, Failure> {
        let number = self.pictures;
        let written = match &mut self.films {
            Some(films) => films.frame(image, taken)?,
            None => picture::write(&self.base.join(format!("{number:06}")), image)?,
        };
        self.pictures += u64::from(written.is_some());
        let name = self.base.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(written.map(|file| if self.films.is_some() { file } else { format!("{name}/{file}") }))
    }
}

/// The same bytes where a type with 64-bit numbers may begin.
fn align<'a>(payload: &[u8], words: &'a mut Vec<u64>) -> &'a [u8] {
    words.resize(payload.len().div_ceil(8), 0);
    let bytes = words.as_mut_bytes();
    bytes[..payload.len()].copy_from_slice(payload);
    &bytes[..payload.len()]
}

fn make_dir(dir: &Path, overwrite: bool) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|e| Failure::io_at("make", dir, &e))?;
    let mut entries = fs::read_dir(dir).map_err(|e| Failure::io_at("read", dir, &e))?;
    if !overwrite && entries.next().is_some() {
        let message =
            format!("{} exists and is not empty: use --overwrite or --output", dir.display());
        return Err(Failure::new(Code::Failed, message));
    }
    Ok(())
}

/// A path below `dir` that no other topic has: names in files may be anything.
fn base(dir: &Path, topic: &str, taken: &mut HashSet<PathBuf>) -> PathBuf {
    let plain = |c: char| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let parts = topic.split('/').filter(|part| !part.is_empty());
    let parts = parts.map(|part| part.chars().map(plain).collect::<String>());
    let mut path = dir.to_path_buf();
    path.extend(parts.map(|part| match part.starts_with('.') {
        true => format!("_{part}"),
        false => part,
    }));
    if path == dir {
        path.push("_");
    }
    while !taken.insert(path.clone()) {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push("_");
        path.set_file_name(name);
    }
    path
}

/// Whether files can have such a path, with an ending.
fn fits(base: &Path) -> bool {
    let short = |part: Component<'_>| part.as_os_str().len() <= NAME_BYTES_MAX;
    base.as_os_str().len() <= PATH_BYTES_MAX && base.components().all(short)
}

/// Images per second of each topic, over all of it.
fn rates<'a>(
    recording: &Recording,
    sources: &HashMap<u16, &'a RecordedSource>,
) -> Result<HashMap<&'a str, f64>, Failure> {
    let mut spans: HashMap<&str, (u64, u64, u64)> = HashMap::new();
    for message in recording.messages()? {
        // Whoever reads the messages next stops, too.
        if os::stop_asked() {
            break;
        }
        let message = message?;
        if let Some(source) = sources.get(&message.channel.id) {
            let time = message.log_time;
            let span = spans.entry(&source.source.topic).or_insert((time, time, 0));
            *span = (span.0.min(time), span.1.max(time), span.2 + 1);
        }
    }
    let rate = |(first, last, count): (u64, u64, u64)| match last - first {
        0 => 30.0,
        ns => ((count - 1) as f64 * 1e9 / ns as f64).clamp(0.1, 1000.0),
    };
    Ok(spans.into_iter().map(|(topic, span)| (topic, rate(span))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_topic_leaves_the_directory_or_takes_anothers_file() {
        let mut taken = HashSet::new();
        let mut of = |topic| base(Path::new("d"), topic, &mut taken).display().to_string();
        assert_eq!(of("/camera/front"), "d/camera/front");
        assert_eq!(of("camera//front"), "d/camera/front_");
        assert_eq!(of("/../../etc/x y"), "d/_../_../etc/x_y");
        assert_eq!((of("/"), of("")), ("d/_".into(), "d/__".into()));
    }
}
