//! A process of a test that plays a part and talks to the test over its standard streams.
//!
//! The test starts this program again in a role (see [`crate::spawn`]). What the actor says is one
//! line that begins with `@`, so that the chatter of the test runner does not count.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::process::Exit;
use crate::spawn::spawn_test;

const MARK: char = '@';

/// The test's end; the actor is killed and reaped on drop.
///
/// It is killed too when the thread that started it ends. Every wait may last for ever: use a
/// [`crate::Watchdog`].
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    name: String,
}

impl Actor {
    /// Starts `role` of the test function `test`, which looks at [`crate::role`] first.
    pub fn start(test: &str, role: &str, args: &[&str]) -> Self {
        Self::start_command(spawn_test(test, role, args), role)
    }

    /// As [`Actor::start`], for a command that was changed by the caller.
    pub fn start_command(mut command: Command, name: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program starts again");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        Self { child, input, output, name: name.into() }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The next line that it says; `None` once it has closed its output.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).expect("what an actor says is UTF-8") == 0 {
                return None;
            }
            // The test runner may have begun the line with the name of the test.
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    /// Waits until it says `line`.
    ///
    /// # Panics
    /// When it says something else or ends.
    #[track_caller]
    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.hear().as_deref(), Some(line), "said by {}", self.name);
    }

    /// Waits until it says `word` and a number.
    ///
    /// # Panics
    /// When it says something else or ends.
    #[track_caller]
    pub fn expect_number(&mut self, word: &str) -> u64 {
        let said = self.hear().unwrap_or_default();
        let number = said.strip_prefix(word).and_then(|n| n.trim().parse().ok());
        number.unwrap_or_else(|| panic!("{} said '{said}', not '{word} <number>'", self.name))
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it still listens");
        writeln!(input, "{line}").expect("it still listens");
    }

    /// Tells it a line and waits for the same line as the answer.
    #[track_caller]
    pub fn cue(&mut self, line: &str) {
        self.tell(line);
        self.expect(line);
    }

    /// Nothing more will be told: [`listen`] ends.
    pub fn dismiss(&mut self) {
        self.input = None;
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child is not reaped before `wait`, which takes the actor.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// SIGKILL; reaped, so that nothing of it is left when this returns.
    pub fn kill(&mut self) -> Exit {
        self.signal(libc::SIGKILL);
        self.wait()
    }

    /// Dismisses it and waits for its end.
    pub fn wait(&mut self) -> Exit {
        self.dismiss();
        let status = self.child.wait().expect("our own child");
        match status.signal() {
            Some(signal) => Exit::Signal(signal),
            None => Exit::Code(status.code().unwrap_or(-1)),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The actor's end: says a line.
pub fn say(line: &str) {
    // One write past the test runner's capture and past every lock: also in a forked child.
    let line = format!("\n{MARK}{line}\n");
    // SAFETY: the pointer and length describe `line`.
    unsafe { libc::write(1, line.as_ptr().cast(), line.len()) };
}

/// The actor's end: waits for a line; `None` when the test is over.
pub fn listen() -> Option<String> {
    // Byte by byte past std's buffer: a forked child shares the stream, not the buffer.
    let mut line = Vec::new();
    loop {
        let mut byte = 0u8;
        // SAFETY: one byte of this frame.
        match unsafe { libc::read(0, (&raw mut byte).cast(), 1) } {
            1 if byte == b'\n' => return String::from_utf8(line).ok(),
            1 => line.push(byte),
            _ => return None,
        }
    }
}

/// The actor's end: waits for exactly this line; ends the process when the test is over.
///
/// # Panics
/// When it is told something else.
#[track_caller]
pub fn await_cue(line: &str) {
    match listen() {
        Some(told) => assert_eq!(told, line),
        None => std::process::exit(0),
    }
}
