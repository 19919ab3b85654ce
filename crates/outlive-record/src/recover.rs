//! A whole file out of what can be read of a damaged or unfinished one.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use mcap::records::{MessageHeader, Metadata};

use crate::about::{ABOUT, FIRST, LOSSES, RECOVERS, ROW, RUN};
use crate::channel::Source;
use crate::options::{AHEAD_BYTES, Compression};
use crate::scan::Damage;
use crate::sink::Sink;
use crate::{Error, Recording};

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Messages written.
    pub messages: u64,
    /// What could not be read.
    pub damage: Damage,
}

/// Writes all that can be read of `from` into a new file `to`, with an index.
///
/// # Errors
/// [`Error::Io`] when `to` exists and must not be replaced, or cannot be written; an unfinished
/// file is removed.
pub fn recover(
    from: &Recording,
    to: &Path,
    compression: Compression,
    overwrite: bool,
) -> Result<Recovered, Error> {
    recover_watched(from, to, compression, overwrite, |_| ())
}

/// As [`recover`]; `watch` gets the number of messages written so far, again before each.
///
/// # Errors
/// As [`recover`].
pub fn recover_watched(
    from: &Recording,
    to: &Path,
    compression: Compression,
    overwrite: bool,
    watch: impl FnMut(u64),
) -> Result<Recovered, Error> {
    let mut how = fs::OpenOptions::new();
    how.write(true);
    if overwrite {
        how.create(true).truncate(true);
    } else {
        how.create_new(true);
    }
    let same = |a: &Path, b: &Path| fs::canonicalize(a).ok() == fs::canonicalize(b).ok();
    let mut read = from.files.iter().chain(&from.left_out).chain([&from.path]);
    if to.exists() && read.any(|file| same(to, file)) {
        return Err(Error::Usage(format!("{} would be written over itself", to.display())));
    }
    let file = how.open(to).map_err(|e| Error::io("create", to, e))?;
    write(from, to, compression, file, watch).inspect_err(|_| drop(fs::remove_file(to)))
}

/// A channel like that, with its schema.
fn add_channel<W: std::io::Write + std::io::Seek>(
    writer: &mut mcap::Writer<W>,
    channel: &mcap::Channel<'_>,
) -> mcap::McapResult<u16> {
    let schema = match &channel.schema {
        Some(s) => writer.add_schema(&s.name, &s.encoding, &s.data)?,
        None => 0,
    };
    let (topic, encoding) = (&channel.topic, &channel.message_encoding);
    writer.add_channel(schema, topic, encoding, &channel.metadata)
}

fn write(
    from: &Recording,
    to: &Path,
    compression: Compression,
    file: fs::File,
    mut watch: impl FnMut(u64),
) -> Result<Recovered, Error> {
    let wrong = |e| Error::writing(to, e);
    let sink = Sink::new(file, Rc::default(), compression, AHEAD_BYTES);
    let mut writer = compression
        .into_options()
        .chunk_size(Some(4 << 20))
        .profile(from.profile.clone())
        .library(concat!("outlive ", env!("CARGO_PKG_VERSION")).to_owned() + RECOVERS)
        .create(sink)
        .map_err(wrong)?;
    let losses: BTreeMap<String, String> =
        from.losses.iter().map(|(by, count)| (by.clone(), count.to_string())).collect();
    let mut about = from.about.clone();
    // It is a whole of its own, and not the recorder's to remove.
    about.retain(|key, _| ![ROW, RUN, FIRST].contains(&key.as_str()));
    for (name, metadata) in [(ABOUT, about), (LOSSES, losses)] {
        if !metadata.is_empty() {
            let metadata = Metadata { name: name.into(), metadata };
            writer.write_metadata(&metadata).map_err(wrong)?;
        }
    }
    // By channel its new number; none where nobody could read it there either.
    let mut ids: HashMap<u16, Option<u16>> = HashMap::new();
    let mut nonsense = Damage::default();
    let mut count = 0;
    let mut messages = from.messages()?;
    for message in messages.by_ref() {
        let message = message?;
        watch(count);
        let channel = &message.channel;
        let channel_id = match ids.get(&channel.id) {
            Some(id) => *id,
            None => {
                let id = match Source::of(channel) {
                    Ok(_) => Some(add_channel(&mut writer, channel).map_err(wrong)?),
                    Err(why) => {
                        nonsense.add_record(0, why);
                        None
                    }
                };
                *ids.entry(channel.id).or_insert(id)
            }
        };
        let Some(channel_id) = channel_id else {
            nonsense.orphans += 1;
            continue;
        };
        let header = MessageHeader {
            channel_id,
            sequence: message.sequence,
            log_time: message.log_time,
            publish_time: message.publish_time,
        };
        writer.write_to_known_channel(&header, &message.data).map_err(wrong)?;
        count += 1;
    }
    writer.finish().map_err(wrong)?;
    let mut out = writer.into_inner();
    out.flush().map_err(|e| Error::io("write", to, e))?;
    let mut damage = messages.damage();
    damage.merge(&nonsense);
    Ok(Recovered { messages: count, damage })
}
