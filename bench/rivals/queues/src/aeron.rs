//! Aeron over IPC: two Java processes that are told what to do, one line a command.
//!
//! The media driver runs inside the first of them. Only the two threads that send and receive are
//! pinned; driver, compiler and collector run where there is room. Both are warm before a figure.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::queues::fresh;
use crate::stage::{Failed, everywhere, pin_thread};

/// As often as it takes until the compiler has nothing left to do.
const WARM_ROUNDS: usize = 6;

pub struct Aeron {
    first: Peer,
    second: Peer,
    directory: PathBuf,
}

struct Peer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Aeron {
    /// Starts both processes and warms them up. Errors name what is missing.
    pub fn start() -> Result<Self, Failed> {
        let path = class_path()?;
        let directory = Path::new("/dev/shm").join(fresh("aeron"));
        let first = Peer::start(&path, "first", &directory, 0)?;
        let second = Peer::start(&path, "second", &directory, 1)?;
        let mut aeron = Self { first, second, directory };
        for _ in 0..WARM_ROUNDS {
            aeron.stream(2_000_000, 8)?;
            aeron.stream(500_000, 64)?;
            aeron.one_way(50_000)?;
        }
        Ok(aeron)
    }

    /// Messages per second of `bytes` each, from the first claim to the last receipt.
    pub fn stream(&mut self, count: u64, bytes: usize) -> Result<f64, Failed> {
        self.second.ask(&format!("receive {count}"))?;
        let [start] = numbers(&self.first.ask(&format!("send {count} {bytes}"))?)?;
        let [end, sum] = numbers(&self.second.answer()?)?;
        if sum != count * (count + 1) / 2 {
            return Err("what came is not what was sent".into());
        }
        Ok(count as f64 * 1e9 / (end - start) as f64)
    }

    /// Half a round trip of 64 B, median in ns.
    pub fn one_way(&mut self, count: u64) -> Result<f64, Failed> {
        self.second.ask(&format!("echo {count}"))?;
        Ok(self.first.ask(&format!("trip {count}"))?.parse()?)
    }
}

impl Drop for Aeron {
    fn drop(&mut self) {
        for peer in [&mut self.second, &mut self.first] {
            let _ = peer.process.kill();
            let _ = peer.process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn class_path() -> Result<String, Failed> {
    let done = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../aeron/prepare")).output()?;
    let (said, why) = (String::from_utf8(done.stdout)?, String::from_utf8(done.stderr)?);
    if done.status.success() { Ok(said.trim().into()) } else { Err(why.trim().into()) }
}

fn numbers<const N: usize>(line: &str) -> Result<[u64; N], Failed> {
    let all: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
    all?.try_into().map_err(|_| format!("Aeron's process said: {line}").into())
}

impl Peer {
    fn start(path: &str, role: &str, directory: &Path, cpu: usize) -> Result<Self, Failed> {
        let mut command = Command::new("java");
        command
            .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
            .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
            .args(["-Dagrona.disable.bounds.checks=true", "-XX:+UseSerialGC", "-Xmx256m"])
            .args(["-cp", path, "AeronPeer", role])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // SAFETY: one system call on the child's own affinity.
        unsafe {
            command.pre_exec(|| {
                everywhere();
                Ok(())
            })
        };
        let mut process = command.spawn()?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("no pipes".into());
        };
        let mut peer = Self { process, to, from: BufReader::new(from) };
        let said = peer.answer()?;
        let tid = said.strip_prefix("tid ").ok_or_else(|| format!("Java said: {said}"))?;
        pin_thread(tid.parse()?, cpu);
        Ok(peer)
    }

    fn ask(&mut self, command: &str) -> Result<String, Failed> {
        writeln!(self.to, "{command}")?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err("its process ended".into()),
            _ => Ok(line.trim_end().into()),
        }
    }
}
