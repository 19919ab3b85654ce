//! How to record, and what was recorded.

use std::time::Duration;

use crate::Error;
use crate::ros2::Definitions;

/// Bytes of chunks that may wait for their compression: of the usual size, some for each thread.
pub(crate) const AHEAD_BYTES: u64 = 32 << 20;

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Let publishers wait for us instead of losing messages.
    pub reliable: bool,
    /// Also record this many messages of each topic from before the start, the newest of all its
    /// publishers together; of topics that appear later, all that is still there.
    pub history: u64,
    /// The format of the messages.
    pub profile: Profile,
    /// Definitions of messages that ROS 2 does not bring along, for [`Profile::Ros2`] and for CDR
    /// whose topics have none.
    pub definitions: Definitions,
    /// How chunks are compressed, by threads of their own: one for each core, at most four. Up to
    /// 32 MiB may wait for them.
    pub compression: Compression,
    /// Bytes of messages, before compression, after which a chunk ends; 4 MiB.
    pub chunk_bytes: u64,
    /// Longest time that a message stays in our memory, if more come; 1 s.
    pub flush_every: Duration,
    /// Begin another file after this many bytes.
    pub split_bytes: Option<u64>,
    /// Begin another file after this time.
    pub split_after: Option<Duration>,
    /// Remove the oldest files of a split recording when there are more than this many. Those that
    /// earlier runs wrote under the same name count, unless existing files are replaced.
    pub keep_files: Option<u64>,
    /// The same when all but the current one have more than this many bytes.
    pub keep_bytes: Option<u64>,
    /// The same when fewer than this many bytes of the disk are free; looked at whenever a file
    /// begins and after each [`RecordOptions::flush_every`].
    pub free_bytes: Option<u64>,
    /// Keep only what came within this time, in memory; see
    /// [`Recorder::save`](crate::Recorder::save). What was saved before is never replaced.
    pub last: Option<Duration>,
    /// Most memory for that, bytes; twice as much while a file is being saved.
    pub memory_bytes_max: u64,
    /// Replace existing files. Without it a split recording begins behind the last file that an
    /// earlier run wrote under its name.
    pub overwrite: bool,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            reliable: false,
            history: 0,
            profile: Profile::Outlive,
            definitions: Definitions::default(),
            compression: Compression::Lz4,
            chunk_bytes: 4 << 20,
            flush_every: Duration::from_secs(1),
            split_bytes: None,
            split_after: None,
            keep_files: None,
            keep_bytes: None,
            free_bytes: None,
            last: None,
            memory_bytes_max: 1 << 30,
            overwrite: false,
        }
    }
}

impl RecordOptions {
    /// No chunk is much of a file.
    pub(crate) fn chunk_bytes_now(&self) -> u64 {
        let most = self.split_bytes.map_or(u64::MAX, |bytes| (bytes / 4).max(256));
        self.chunk_bytes.min(most)
    }

    /// Bytes that may wait to be written: not much of a file, which ends when so many are on disk.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        let most = self.split_bytes.map_or(u64::MAX, |bytes| bytes / 8);
        AHEAD_BYTES.min(most)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let keeps = self.keep_files.or(self.keep_bytes).or(self.free_bytes).is_some();
        if keeps && (!self.splits() || self.last.is_some()) {
            let why = "keep_files, keep_bytes and free_bytes are for a recording that split_bytes \
                       or split_after splits";
            return Err(Error::Usage(why.into()));
        }
        Ok(())
    }

    pub(crate) fn splits(&self) -> bool {
        self.split_bytes.is_some() || self.split_after.is_some()
    }
}

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// LZ4, fast and common.
    #[default]
    Lz4,
    /// zstd: somewhat smaller, several times slower on each core.
    Zstd,
    /// Not at all: for data that does not shrink, such as compressed images.
    None,
}

impl Compression {
    /// For a writer into a [`Sink`](crate::sink::Sink), which compresses.
    pub(crate) fn into_options(self) -> mcap::WriteOptions {
        let options = mcap::WriteOptions::new().disable_seeking(true).compression(None);
        // Of what is compressed the sink has the checksums.
        let sums = self == Self::None;
        options.calculate_data_section_crc(sums).calculate_summary_section_crc(sums)
    }
}

/// The format of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nothing is lost: described types as CDR with a generated definition, so that tools of others
    /// show their fields; MessagePack as JSON; images, point clouds and bytes as they are.
    #[default]
    Outlive,
    /// Messages of ROS 2, for its tools: CDR with definitions. Topics that ROS has no message for
    /// and that nobody described are left out.
    Ros2,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Topics joined.
    pub topics: usize,
    /// Messages recorded; until they are handed over, at most [`RecordOptions::flush_every`] later,
    /// in memory only.
    pub messages: u64,
    /// Bytes of all that were, also of those that went with their file.
    pub payload_bytes: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Bytes in memory, of a recorder that keeps the last seconds.
    pub memory_bytes: u64,
    /// Messages that were overwritten before we read them, or went with a file that was removed.
    pub lost: u64,
    /// Topics that appeared and were gone before they could be joined; at the end also those that
    /// never could be.
    pub missed: u64,
    /// Publishers that are no longer read, or never were: their shared memory is corrupt, or may
    /// not be opened.
    pub corrupt: u64,
    /// At the end: topics of which some publishers could not be read, because there were too many,
    /// or for lack of memory or descriptors.
    pub unread: u64,
    /// After a failure to write: messages that are in no file. They count as recorded before it.
    pub unwritten: u64,
    /// Messages left out because ROS cannot express them.
    pub left_out: u64,
    /// Topics left out because ROS has no message for them.
    pub topics_left_out: u64,
    /// Files begun.
    pub files: u64,
}

impl Progress {
    /// After a failure, with so many messages in the files.
    pub(crate) fn but_only(self, messages: u64) -> Self {
        // The one at which it failed counts nowhere yet, and may be there.
        let unwritten = self.messages.saturating_sub(messages);
        Self { messages, unwritten, ..self }
    }
}
