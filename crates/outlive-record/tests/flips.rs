//! One wrong bit, anywhere in a file: whoever reads it gets all of it, or is told of damage.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use outlive::msg::Pose;
use outlive::{Deadline, Node};
use outlive_record::{Compression, Error, Limits, RecordOptions, Recorder, Recording, Selection};
use testkit::{TempDomain, Watchdog};

const ALL: [Compression; 3] = [Compression::Lz4, Compression::Zstd, Compression::None];
/// The magic bytes at the end, and the checksum before them.
const END: usize = mcap::MAGIC.len();
const CRC: usize = END + 4;
/// A footer with its opcode and length.
const FOOTER: usize = 9 + 20;

struct Home {
    temp: TempDomain,
    _watchdog: Watchdog,
}

impl Home {
    fn new(label: &str) -> Self {
        let temp = TempDomain::new(&format!("flips-{label}")).unwrap();
        Self { temp, _watchdog: Watchdog::start(label, Duration::from_secs(600)) }
    }

    /// A small file of several chunks, topics and a schema, with losses.
    fn sample(&self, compression: Compression) -> Vec<u8> {
        let node = Node::builder().root(self.temp.path().join("root")).open().unwrap();
        let bytes = node.topic::<[u8]>("/bytes").unwrap().depth(4).publisher().unwrap();
        let pose = node.topic::<Pose>("/pose").unwrap().depth(4).publisher().unwrap();
        let options = RecordOptions { compression, chunk_bytes: 400, ..RecordOptions::default() };
        let path = self.temp.path().join("whole.mcap");
        let options = RecordOptions { overwrite: true, ..options };
        let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
        for i in 0..6u8 {
            bytes.publish(&[i; 300]).unwrap();
        }
        pose.publish(&Pose::default()).unwrap();
        while recorder.progress().messages < 5 {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
        assert_eq!(recorder.finish().unwrap().lost, 2);
        std::fs::read(&path).unwrap()
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.temp.path().join("flipped.mcap");
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Topic, number, time and data of each message.
type Content = Vec<(String, u32, u64, Vec<u8>)>;

/// What is read of a file from a time on, how many messages it counts, and whether damage is told.
fn read(path: &Path, check: bool, from_ns: u64) -> (Content, u64, bool) {
    let recording = match Recording::open_within(path, Limits::default(), check) {
        Ok(recording) => recording,
        Err(Error::Corrupt { .. }) => return (Vec::new(), 0, true),
        Err(e) => panic!("{e}"),
    };
    let mut messages = recording.messages_between(from_ns, u64::MAX).unwrap();
    let all = messages.by_ref().map(|message| {
        let m = message.unwrap();
        (m.channel.topic.clone(), m.sequence, m.log_time, m.data.to_vec())
    });
    let all = all.collect();
    let told = recording.damage.is_some() || messages.damage().is_some();
    let counted = recording.sources.iter().map(|s| s.messages).sum();
    (all, counted, told)
}

/// Where the index begins.
fn index_at(bytes: &[u8]) -> usize {
    let at = bytes.len() - CRC - 16;
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Reads the file with each of `flipped` wrong: all of it, a part by the index, and with a check.
fn check_each(home: &Home, bytes: &[u8], flipped: Range<usize>, bits: &[u8], must_tell: bool) {
    let path = home.file(bytes);
    let (whole, count, told) = read(&path, false, 0);
    assert_eq!((whole.len(), count, told), (5, 5, false));
    assert!(!read(&path, true, 0).2, "it is as it should be");
    let late_ns = whole[3].2;
    let late: Content = whole.iter().filter(|m| m.2 >= late_ns).cloned().collect();
    let mut wrong = Vec::new();
    for (place, bit) in flipped.flat_map(|place| bits.iter().map(move |bit| (place, bit))) {
        let mut copy = bytes.to_vec();
        copy[place] ^= 1 << bit;
        let path = home.file(&copy);
        let (all, counted, told) = read(&path, false, 0);
        if !told && (&all, counted) != (&whole, 5) {
            wrong.push(format!("bit {bit} of byte {place}: {} of 5, {counted} counted", all.len()));
        }
        let (all, _, told) = read(&path, false, late_ns);
        if !told && all != late {
            wrong.push(format!(
                "bit {bit} of byte {place}: {} of {} late ones",
                all.len(),
                late.len()
            ));
        }
        let (all, counted, told) = read(&path, true, 0);
        if !told && (must_tell || (&all, counted) != (&whole, 5)) {
            wrong.push(format!("bit {bit} of byte {place}: a check finds nothing"));
        }
    }
    let (n, index) = (wrong.len(), index_at(bytes));
    assert!(n == 0, "{n} of a file of {} bytes, index at {index}:\n{}", bytes.len(), {
        wrong.join("\n")
    });
}

/// Messages were left out in silence, and a check of the file found nothing.
#[test]
fn one_wrong_bit_costs_nothing_in_silence_and_a_check_finds_it() {
    let home = Home::new("all");
    for compression in ALL {
        let bytes = home.sample(compression);
        // The highest makes a record of it that may be anybody's.
        let bits: &[u8] = if compression == Compression::Lz4 { &[0, 7] } else { &[0] };
        check_each(&home, &bytes, 0..bytes.len(), bits, true);
    }
}

/// Files of others may have no checksums.
#[test]
fn an_index_without_a_checksum_is_not_believed() {
    let home = Home::new("none");
    let mut bytes = home.sample(Compression::Lz4);
    let (index, crc) = (index_at(&bytes), bytes.len() - CRC);
    bytes[crc..crc + 4].fill(0);
    // The checksum of the data, as well.
    bytes[index - 4..index].fill(0);
    check_each(&home, &bytes, index..crc - FOOTER, &[0, 7], false);
}

#[test]
fn files_have_checksums_that_other_readers_find_right() {
    let home = Home::new("written");
    for compression in ALL {
        let bytes = home.sample(compression);
        let (index, crc) = (index_at(&bytes), bytes.len() - CRC);
        assert_ne!(bytes[crc..crc + 4], [0; 4], "{compression:?}");
        assert_ne!(bytes[index - 4..index], [0; 4], "{compression:?}");
        let options = LinearReaderOptions::default()
            .with_emit_chunks(true)
            .with_validate_data_section_crc(true)
            .with_validate_summary_section_crc(true);
        let (mut reader, mut rest) = (LinearReader::new_with_options(options), &bytes[..]);
        while let Some(event) = reader.next_event() {
            if let LinearReadEvent::ReadRequest(n) = event.unwrap() {
                let (next, behind) = rest.split_at(n.min(rest.len()));
                reader.insert(next.len()).copy_from_slice(next);
                reader.notify_read(next.len());
                rest = behind;
            }
        }
    }
}
