//! What a program says to whoever runs it, on standard error; of the bridge and of the view, which
//! link to it, so that the package of each has all of its own source.
//!
//! A thread of its own writes it: while its reader takes no more nobody waits. There is room for
//! some lines; those that do not fit are skipped and counted.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// What each line begins with.
const NAME: &str = env!("CARGO_PKG_NAME");
/// Lines that wait for their reader at most.
const WAITING_MAX: usize = 256;
/// How long the last of them are waited for at the end.
const LAST_WAIT: Duration = Duration::from_secs(1);

static LOG: OnceLock<Log> = OnceLock::new();

/// A line. Until [`start`] it is written at once.
pub(crate) fn say(line: impl fmt::Display) {
    // In one piece: others may write there, too.
    let line = format!("{NAME}: {line}\n");
    match LOG.get() {
        Some(log) => log.say(line),
        None => drop(io::stderr().write_all(line.as_bytes())),
    }
}

/// From here on nobody waits for who reads the lines.
pub(crate) fn start() -> io::Result<()> {
    let log = Log::to(io::stderr())?;
    LOG.get_or_init(|| log);
    Ok(())
}

/// Waits until the last lines are written, but not for ever.
pub(crate) fn finish() {
    if let Some(log) = LOG.get() {
        log.finish(LAST_WAIT);
    }
}

struct Log {
    to: SyncSender<String>,
    counted: Arc<Counted>,
}

#[derive(Default)]
struct Counted {
    /// Lines that are not written yet.
    waiting: AtomicU64,
    /// Those that there was no room for since it was last said.
    skipped: AtomicU64,
}

impl Log {
    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (to, lines) = sync_channel(WAITING_MAX);
        let counted = Arc::<Counted>::default();
        let by = counted.clone();
        thread::Builder::new().name("log".into()).spawn(move || write(out, &lines, &by))?;
        Ok(Self { to, counted })
    }

    fn say(&self, line: String) {
        self.counted.waiting.fetch_add(1, Relaxed);
        if self.to.try_send(line).is_err() {
            self.counted.waiting.fetch_sub(1, Relaxed);
            self.counted.skipped.fetch_add(1, Relaxed);
        }
    }

    fn finish(&self, most: Duration) {
        let until = Instant::now() + most;
        while self.counted.waiting.load(Relaxed) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A reader that went away is no reason to fail.
fn write(mut out: impl Write, lines: &Receiver<String>, counted: &Counted) {
    for line in lines {
        let _ = out.write_all(line.as_bytes());
        let skipped = counted.skipped.swap(0, Relaxed);
        if skipped > 0 {
            let _ = writeln!(out, "{NAME}: {skipped} lines were not written in time");
        }
        counted.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Lets nothing be written while somebody else has it.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        fn take(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.take().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Who said something waited for who read it, also the thread that others wait for.
    #[test]
    fn nobody_waits_for_who_reads_nothing_and_what_is_skipped_is_counted() {
        const SAID: usize = 2 * WAITING_MAX;
        let paper = Paper::default();
        let log = Log::to(paper.clone()).expect("a thread");
        let held = paper.take();
        for n in 0..SAID {
            log.say(format!("{n}\n"));
        }
        log.finish(Duration::from_millis(10));
        drop(held);
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(paper.take().clone()).expect("text");
        let told =
            text.lines().find_map(|line| line.strip_suffix(" lines were not written in time"));
        let skipped = told.and_then(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        let numbers: Vec<usize> = text.lines().filter_map(|line| line.parse().ok()).collect();
        // The writer takes one out of the full channel when it gets to it; that makes room once.
        assert!(numbers.is_sorted(), "in order: {numbers:?}");
        assert_eq!(numbers[..WAITING_MAX], Vec::from_iter(0..WAITING_MAX), "the first of them");
        assert!(numbers.len() <= WAITING_MAX + 1, "{} had room", numbers.len());
        assert_eq!(numbers.len() + skipped.expect("how many"), SAID);
    }
}
