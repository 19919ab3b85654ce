//! Chunks compressed by threads of their own.
//!
//! # Theory of operation
//! As many threads as cores, four at most, take chunks in turn. The one that recorded them asks for
//! each in order. Where no thread can be had, it compresses itself when it asks. A chunk
//! on which the compressor fails or panics stays as it is.

use std::io::Write;
use std::panic;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::options::Compression;

/// In a record of an uncompressed chunk, before the data: opcode, length, times, size, checksum, an
/// empty name, their length.
const DATA_AT: usize = 9 + 28 + 4 + 8;
const THREADS_MAX: usize = 4;

/// Compresses chunks.
pub(crate) struct Packer {
    how: Compression,
    /// Begun with the first chunk.
    threads: Option<Threads>,
}

struct Threads {
    work: Option<Sender<Task>>,
    all: Vec<JoinHandle<()>>,
}

/// A chunk, and where its compressed data goes.
struct Task(Arc<Vec<u8>>, Sender<Option<Vec<u8>>>);

/// A chunk on its way to be compressed.
pub(crate) struct Packing {
    how: Compression,
    record: Arc<Vec<u8>>,
    from: State,
}

enum State {
    /// By a thread, which answers here.
    Under(Receiver<Option<Vec<u8>>>),
    /// By who asks.
    Left,
    Packed(Option<Vec<u8>>),
}

impl Packer {
    /// `None`: nothing is to be compressed.
    pub(crate) fn new(how: Compression) -> Option<Self> {
        (how != Compression::None).then_some(Self { how, threads: None })
    }

    /// What MCAP calls it.
    pub(crate) fn name(&self) -> &'static str {
        name(self.how)
    }

    /// Hands a chunk, a whole record, to one of the threads.
    pub(crate) fn pack(&mut self, record: Vec<u8>) -> Packing {
        let (how, record) = (self.how, Arc::new(record));
        let threads = self.threads.get_or_insert_with(|| Threads::begin(how));
        let (answers, answer) = mpsc::channel();
        let handed = threads.work.as_ref().map(|work| work.send(Task(record.clone(), answers)));
        let from = if matches!(handed, Some(Ok(()))) { State::Under(answer) } else { State::Left };
        Packing { how, record, from }
    }
}

impl Packing {
    /// The chunk as it was given.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Its memory, for another.
    pub(crate) fn into_memory(self) -> Option<Vec<u8>> {
        Arc::into_inner(self.record)
    }

    /// Whether it is compressed by now; `must`: waits for that.
    pub(crate) fn is_ready(&mut self, must: bool) -> bool {
        let packed = match &self.from {
            State::Packed(_) => return true,
            State::Left => compressed(self.how, &self.record),
            State::Under(answer) if must => answer.recv().ok().flatten(),
            State::Under(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return false,
                packed => packed.ok().flatten(),
            },
        };
        self.from = State::Packed(packed);
        true
    }

    /// How it was compressed, and the data; `None` where that saves nothing.
    pub(crate) fn packed(&self) -> Option<(&'static str, &[u8])> {
        match &self.from {
            State::Packed(Some(packed)) => Some((name(self.how), packed)),
            _ => None,
        }
    }
}

impl Threads {
    fn begin(how: Compression) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (work, tasks) = mpsc::channel::<Task>();
        let tasks = Arc::new(Mutex::new(tasks));
        let begin = || {
            let tasks = tasks.clone();
            let next = move || tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let body = move || {
                while let Ok(Task(record, answer)) = next() {
                    let packed = compressed(how, &record);
                    drop(record); // who gets the answer has it alone
                    let _ = answer.send(packed);
                }
            };
            thread::Builder::new().name("compress".into()).spawn(body).ok()
        };
        let all: Vec<_> = (0..cores.min(THREADS_MAX)).map_while(|_| begin()).collect();
        Self { work: (!all.is_empty()).then_some(work), all }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.work = None;
        for thread in self.all.drain(..) {
            let _ = thread.join();
        }
    }
}

fn name(how: Compression) -> &'static str {
    match how {
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
        Compression::None => "",
    }
}

/// The data of a chunk, compressed, if that is less together with the name of how.
fn compressed(how: Compression, record: &[u8]) -> Option<Vec<u8>> {
    let data = record.get(DATA_AT..)?;
    let pack = || match how {
        Compression::None => None,
        Compression::Lz4 => lz4(data),
        Compression::Zstd => zstd(data),
    };
    let packed = panic::catch_unwind(pack).ok().flatten()?;
    (packed.len() + name(how).len() < data.len()).then_some(packed)
}

fn lz4(data: &[u8]) -> Option<Vec<u8>> {
    // As in `mcap`: some readers get the checksum of blocks wrong, and chunks have one.
    let no_sums = lz4::liblz4::BlockChecksum::NoBlockChecksum;
    let mut encoder = lz4::EncoderBuilder::new().block_checksum(no_sums).build(Vec::new()).ok()?;
    encoder.write_all(data).ok()?;
    let (packed, done) = encoder.finish();
    done.is_ok().then_some(packed)
}

/// The compressor is young: what it wrote is read once.
fn zstd(data: &[u8]) -> Option<Vec<u8>> {
    let packed = compress_to_vec(data, CompressionLevel::Fastest);
    let mut again = vec![0; data.len()];
    let read = FrameDecoder::new().decode_all(&packed, &mut again);
    (read.is_ok_and(|n| n == data.len()) && again == data).then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever it is given, no chunk is compressed into something else.
    #[test]
    fn what_is_compressed_comes_back() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let mut smaller = 0;
        for round in 0..300 {
            let size = (next() % [10, 1000, 200_000][round % 3]) as usize;
            let kinds = 1 + next() % 5;
            let mut data = Vec::with_capacity(size);
            while data.len() < size {
                let n = 1 + (next() % 400) as usize;
                match next() % kinds {
                    0 => data.extend(std::iter::repeat_n(next() as u8, n)),
                    1 => (0..n).for_each(|_| data.push(next() as u8)),
                    2 => (0..n).for_each(|i| data.extend((i as f32 * 0.1).to_le_bytes())),
                    3 => data.extend(b"a text of which there is more, ".repeat(n % 7)),
                    _ => {
                        let from = data.len() - data.len().min(1 + next() as usize % 5000);
                        data.extend_from_within(from..data.len().min(from + n));
                    }
                }
                if data.is_empty() {
                    data.push(0);
                }
            }
            let packed = compress_to_vec(&data[..], CompressionLevel::Fastest);
            let mut again = vec![0; data.len()];
            let read = FrameDecoder::new().decode_all(&packed, &mut again).unwrap();
            assert!(read == data.len() && again == data, "round {round}");
            let record = [&[0; DATA_AT][..], &data].concat();
            smaller += u32::from(compressed(Compression::Zstd, &record).is_some());
        }
        assert!(smaller > 100, "only {smaller} became smaller");
    }

    /// By threads, and by who asks where there are none; what does not shrink stays as it is.
    #[test]
    fn chunks_come_back_in_order_also_without_threads() {
        let chunk = |n: u8, bytes: usize| [&[n; DATA_AT][..], &vec![n; bytes]].concat();
        for how in [Compression::Lz4, Compression::Zstd] {
            let mut packer = Packer::new(how).unwrap();
            let none = Threads { work: None, all: Vec::new() };
            let mut alone = Packer { how, threads: Some(none) };
            let all = (0..20).map(|n| chunk(n, 1 + 10_000 * usize::from(n)));
            let all: Vec<_> =
                all.map(|c| (packer.pack(c.clone()), alone.pack(c.clone()), c)).collect();
            for (mut by_thread, mut by_us, chunk) in all {
                assert!(by_thread.is_ready(true) && by_us.is_ready(false));
                assert_eq!(by_thread.packed(), by_us.packed());
                assert_eq!((by_thread.record(), by_us.record()), (&chunk[..], &chunk[..]));
                assert_eq!(by_thread.packed().is_some(), chunk.len() > DATA_AT + 1, "{how:?}");
            }
        }
    }

    /// The index tells a compressed chunk from another by its length: one that was as long, with
    /// the name of its compression, was listed as not compressed.
    #[test]
    fn a_compressed_chunk_is_never_as_long_as_it_was() {
        let mut state = 1u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        let noise: Vec<u8> = noise.take(1000).collect();
        for how in [Compression::Lz4, Compression::Zstd] {
            let mut smaller = 0;
            for zeros in 0..200 {
                let record = [&[0; DATA_AT], &noise[..], &vec![0; zeros]].concat();
                let packed = compressed(how, &record);
                let whole = packed.map_or(0, |packed| packed.len() + name(how).len());
                assert!(whole < noise.len() + zeros, "{how:?}, {zeros} zeros: {whole}");
                smaller += usize::from(whole > 0);
            }
            assert!((50..200).contains(&smaller), "{how:?}: {smaller}");
        }
    }
}
