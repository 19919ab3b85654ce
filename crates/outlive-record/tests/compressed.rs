//! Files whose chunks are compressed on their way: whole for every reader, also by their index.

use outlive::Deadline;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlive_record::{Compression, RecordOptions, Recorder, Recording, Selection, recover};
use testkit::{Rng, TempDomain, Watchdog};

/// Records what shrinks and what does not: 200 messages of a chunk each.
fn record(temp: &TempDomain, compression: Compression) -> PathBuf {
    let node = outlive::Node::builder().root(temp.path().join("root")).open().unwrap();
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(256).publisher().unwrap();
    let mut rng = Rng::new(7);
    for i in 0..200u8 {
        let noise = (i / 40) % 2 == 1;
        let byte = |n: usize, rng: &mut Rng| if noise { rng.next_u64() as u8 } else { n as u8 / 4 };
        let bytes: Vec<u8> = (0..6000).map(|n| byte(n, &mut rng)).collect();
        publisher.publish(&[&[i][..], &bytes].concat()).unwrap();
    }
    let options =
        RecordOptions { compression, history: 256, chunk_bytes: 5000, ..RecordOptions::default() };
    let path = temp.path().join(format!("{compression:?}.mcap"));
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 200 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    assert_eq!(recorder.finish().unwrap().file_bytes, std::fs::metadata(&path).unwrap().len());
    path
}

/// Every offset and length that the index of `bytes` tells is that of such a record, and so is
/// every checksum.
fn check_index(bytes: &[u8]) -> Vec<String> {
    let summary = mcap::Summary::read(bytes).unwrap().expect("an index");
    let opcode = |at: u64| bytes[at as usize];
    let number = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
    let length = |at: u64| 9 + number(at + 1);
    let sum = |at: u64| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
    let footer = bytes.len() as u64 - 8 - (9 + 20);
    assert_eq!((opcode(footer), length(footer)), (2, 9 + 20));
    let [index, groups] = [number(footer + 9), number(footer + 17)];
    assert_eq!(sum(footer + 25), crc32fast::hash(&bytes[index as usize..footer as usize + 25]));
    let end = index - (9 + 4);
    assert_eq!((opcode(end), length(end)), (15, 9 + 4));
    assert_eq!(sum(end + 9), crc32fast::hash(&bytes[..end as usize]));
    // The table of contents: groups of equal records, one behind the other.
    let (mut group, mut at) = (groups, index);
    while group < footer {
        assert_eq!((opcode(group), number(group + 10)), (14, at));
        let behind = at + number(group + 18);
        while at < behind {
            assert_eq!(opcode(at), bytes[group as usize + 9]);
            at += length(at);
        }
        assert_eq!(at, behind);
        group += length(group);
    }
    assert_eq!((at, group), (groups, footer));
    for index in &summary.chunk_indexes {
        let at = index.chunk_start_offset;
        assert_eq!((opcode(at), length(at)), (6, index.chunk_length), "{index:?}");
        let header = 8 * 4 + 4 + 4 + index.compression.len() as u64;
        assert_eq!(index.chunk_length, 9 + header + index.compressed_size, "{index:?}");
        for place in index.message_index_offsets.values() {
            assert_eq!(opcode(*place), 7, "{index:?}");
        }
        let behind = at + index.chunk_length + index.message_index_length;
        assert!([6, 12, 15].contains(&opcode(behind)), "{index:?}");
    }
    for index in &summary.metadata_indexes {
        assert_eq!((opcode(index.offset), length(index.offset)), (12, index.length));
    }
    let mut names: Vec<_> = summary.chunk_indexes.iter().map(|c| c.compression.clone()).collect();
    names.dedup();
    names
}

fn messages(path: &Path) -> Vec<mcap::Message<'static>> {
    let recording = Recording::open(path).unwrap();
    assert!(recording.finished && !recording.damage.is_some());
    recording.messages().unwrap().map(|m| m.unwrap()).collect()
}

#[test]
fn a_compressed_file_is_whole_smaller_and_has_a_true_index() {
    let temp = TempDomain::new("compressed").unwrap();
    let _watchdog = Watchdog::start("compressed", Duration::from_secs(120));
    let (lz4, zstd) = (record(&temp, Compression::Lz4), record(&temp, Compression::Zstd));
    let bytes = std::fs::read(&zstd).unwrap();
    let names = check_index(&bytes);
    // What does not shrink stays as it is.
    assert_eq!(names, ["zstd", "", "zstd", "", "zstd"], "{names:?}");
    let names = check_index(&std::fs::read(&lz4).unwrap());
    assert_eq!(names, ["lz4", "", "lz4", "", "lz4"], "{names:?}");
    let (a, b) = (messages(&lz4), messages(&zstd));
    assert!(a.len() == 200 && a.iter().zip(&b).all(|(a, b)| a.data == b.data));
    // From the middle, by the index.
    let recording = Recording::open(&zstd).unwrap();
    let from = b[150].log_time;
    let late = recording.messages_between(from, u64::MAX).unwrap();
    let expected = b.iter().filter(|m| m.log_time >= from).count();
    assert_eq!(late.filter(|m| m.is_ok()).count(), expected);
    // A file of LZ4 becomes one of zstd, and the other way around.
    for (from, to) in [(&lz4, Compression::Zstd), (&zstd, Compression::Lz4)] {
        let path = temp.path().join(format!("to-{to:?}.mcap"));
        let done = recover(&Recording::open(from).unwrap(), &path, to, false).unwrap();
        assert!(done.messages == 200 && !done.damage.is_some());
        check_index(&std::fs::read(&path).unwrap());
        assert!(messages(&path).iter().zip(&a).all(|(a, b)| a.data == b.data));
    }
}
