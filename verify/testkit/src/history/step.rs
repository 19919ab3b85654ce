//! Steps of a history, and their form as text: one line each, the same in a kept file, on the pipe
//! to a member and in a report.
//!
//! ```text
//! 2.1 publisher new=14 node=3 topic=0 depth=4 volatile=0 wait_ms=0 type=0
//! ```
//! is: thread 1 of member 2 opens a publisher, from now on handle 14, of its node, handle 3.
//! Handles and members are never reused, so every subset of a history's steps is a history: what
//! refers to something that is not there is skipped.

use std::fmt;

/// A number that names something a member holds, in the whole history.
pub(super) type Handle = u64;

/// From this type on messages have a fixed size, and travel in batches, too.
pub(super) const FIXED: u64 = 2;
/// Words of a message of the types from [`FIXED`] on: within an entry of a ring, and in a chunk.
pub(super) const FIXED_WORDS: [u64; 2] = [8, 200];

/// Messages of one step at most.
pub(super) const BATCH_MAX: u64 = 40;

/// Words of a message: within an entry, in a chunk, in a large one.
pub(super) const WORDS: [u64; 5] = [4, 8, 13, 40, 2000];

/// Ids of sets are below that.
pub(super) const IDS: u64 = 80;
/// Messages that each publisher of a crowd keeps.
pub(super) const CROWD_DEPTH: u64 = 4;

/// Long enough that a wait which nobody ends counts as a hang before.
pub(super) const FOREVER_MS: u64 = 60_000;
/// Waits from here on are not waited for: the next steps go on meanwhile.
pub(super) const LONG_MS: u64 = 1000;

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident = $name:literal ($($arg:literal),*);)*) => {
        /// What is done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb { $($(#[$doc])* $verb,)* }

        const VERBS: &[(Verb, &str, &[&str])] =
            &[$((Verb::$verb, $name, &[$($arg),*]),)*];
    };
}

verbs! {
    /// The process begins, in Rust (0), Python (1) or C++ (2); its main thread is thread 0.
    Start = "start"("in");
    /// It gets a signal that ends it, and is reaped.
    Kill = "kill"("signal");
    /// It is stopped.
    Stop = "stop"();
    /// It goes on.
    Continue = "continue"();
    /// Nobody does anything.
    Pause = "pause"("ms");
    /// A thread begins.
    Thread = "thread"("new");
    /// A thread returns; what only it may hold is dropped.
    End = "end"();
    /// A thread panics, and nobody catches it.
    Crash = "crash"();
    /// `exit()`, with everything still open.
    Exit = "exit"();
    /// The program ends as its language ends programs: Rust drops what `main` holds, C++ destroys
    /// what is static, Python closes all nodes.
    Quit = "quit"();
    /// Opens a node.
    Node = "node"("new");
    /// Drops what the handle names.
    Drop = "drop"("on");
    /// Forgets it.
    Leak = "leak"("on");
    /// Drops it in a panic that is caught.
    Unwind = "unwind"("on");
    /// Closes what another thread waits on: that wait ends with a refusal.
    Close = "close"("on");
    /// Opens a publisher.
    Publisher = "publisher"("new", "node", "topic", "depth", "volatile", "wait_ms", "type");
    /// Opens a subscriber.
    Subscriber = "subscriber"("new", "node", "topic", "history", "reliable", "borrows", "type");
    /// Publishes, one after the other, until it is refused.
    Publish = "publish"("on", "count", "words");
    /// Publishes so many at once.
    PublishBatch = "publish-batch"("on", "count", "words");
    /// Publishes one message, and waits as long as it takes for those that have yet to read.
    Insist = "insist"("on", "words", "ms");
    /// Takes a loan, and fills it.
    Loan = "loan"("new", "on", "words");
    /// Publishes a loan.
    Commit = "commit"("on");
    /// Receives until there is nothing, the first time waiting; then looks at all events.
    Receive = "receive"("on", "max", "ms");
    /// Receives what is there at once; then looks at all events.
    ReceiveBatch = "receive-batch"("on", "max");
    /// Receives one message and keeps it.
    Take = "take"("new", "on");
    /// Whether a kept message is still what it was.
    Check = "check"("on");
    /// Opens a producer.
    Producer = "producer"("new", "node", "queue", "bound", "type");
    /// Opens the consumer.
    Consumer = "consumer"("new", "node", "queue", "type");
    /// Sends, one after the other, until it is refused.
    Send = "send"("on", "count", "words");
    /// Sends so many at once: all of them or none.
    SendBatch = "send-batch"("on", "count", "words");
    /// Receives and acknowledges what is there at once.
    GetBatch = "get-batch"("on", "max");
    /// Receives and acknowledges until there is nothing, the first time waiting.
    Get = "get"("on", "max", "ms");
    /// Receives one message and keeps it in hand: dropped it is acknowledged, else not.
    Hold = "hold"("new", "on");
    /// Receives those that lie next to each other, waiting for one, and keeps them in hand: as a
    /// held one, but all together.
    HoldSlice = "hold-slice"("new", "on", "ms");
    /// Opens a mutex.
    Mutex = "mutex"("new", "node", "mutex");
    /// Takes it. What a dead owner left is made whole (`heal`=1), given up (0), or kept as it is.
    Lock = "lock"("new", "on", "ms", "heal");
    /// Writes a value under the lock, whole or half of it.
    Write = "write"("on", "value", "half");
    /// Opens a reader/writer lock. `lock` takes it for writing.
    RwLock = "rwlock"("new", "node", "mutex");
    /// Takes it for reading.
    Read = "read"("new", "on", "ms");
    /// Opens a mutex with priority inheritance.
    PiMutex = "pi-mutex"("new", "node", "mutex");
    /// Opens a condition variable.
    Condvar = "condvar"("new", "node", "condvar");
    /// Lets a mutex go, waits until somebody notifies, and takes it again, as `lock` does.
    Sleep = "sleep"("on", "guard", "ms", "heal");
    /// Notifies one who waits, or all of them.
    Notify = "notify"("on", "all");
    /// Removes a mutex, a reader/writer lock (`rw`=1), or a mutex with priority inheritance
    /// (`rw`=2), that nobody can repair any more.
    RemoveLock = "remove-lock"("node", "mutex", "rw");
    /// Opens a semaphore with so many permits.
    Semaphore = "semaphore"("new", "node", "semaphore", "permits");
    /// Takes one of them.
    Acquire = "acquire"("new", "on", "ms");
    /// Opens a set with room for so many ids.
    Set = "set"("new", "node", "set", "capacity");
    /// Inserts an id.
    Insert = "insert"("on", "id");
    /// Removes one.
    Remove = "remove"("on", "id");
    /// Lists them all, and looks for each from 0 on.
    Ids = "ids"("on");
    /// Opens a segment of 1 KiB or 16 KiB (`large`=1); who makes it fills its first 8 words.
    Segment = "segment"("new", "node", "segment", "large", "value");
    /// Stores one of those words.
    Poke = "poke"("on", "at", "value");
    /// Reads them.
    Peek = "peek"("on");
    /// Finds, or places, in a line of it a mutex (0), a reader/writer lock (1), a condition
    /// variable (2), or a semaphore (3) or set (4) of so many permits or ids.
    Place = "place"("new", "on", "line", "what", "count");
    /// Removes a segment that nobody has open.
    RemoveSegment = "remove-segment"("node", "segment");
    /// Opens a service's client.
    Client = "client"("new", "node", "service", "resume", "type");
    /// Opens its server.
    Server = "server"("new", "node", "service", "type");
    /// Sends a request, whose time is up at once (`late`=1) or never; the handle is its ticket.
    Ask = "ask"("new", "on", "words", "late");
    /// Asks, waits for an answer and gives up.
    Call = "call"("on", "words", "ms");
    /// Takes replies until there are none, the first time waiting.
    Replies = "replies"("on", "ms");
    /// Takes the next reply to one request.
    ReplyFor = "reply-for"("on", "ms");
    /// Gives a request up.
    Cancel = "cancel"("on");
    /// Receives one request and keeps it.
    Serve = "serve"("new", "on", "ms");
    /// Answers a part of it.
    Part = "part"("on", "words");
    /// Answers it for the last time.
    Answer = "answer"("on", "words");
    /// Refuses to.
    Refuse = "refuse"("on");
    /// Whether somebody still waits for the answer.
    Wanted = "wanted"("on");
    /// Makes an end of a real-time channel: of a ring, or of the newest value (`depth`=0).
    RtOpen = "rt-open"("new", "node", "channel", "depth", "writer");
    /// Waits for the other end; without it this one is gone.
    Connect = "connect"("on", "ms");
    /// Waits for the other end's successor.
    Reconnect = "reconnect"("on", "ms");
    /// Writes or pushes values, until one is refused.
    Push = "push"("on", "count");
    /// Pops until there is nothing, or reads the newest.
    Pop = "pop"("on", "max");
    /// Whether the other end seems alive.
    Peer = "peer"("on");
    /// Watches a node of somebody's.
    Watch = "watch"("new", "node", "target");
    /// Waits for the end of the node that is watched.
    Await = "await"("on", "ms");
    /// Waits with a wait set until one of up to three is ready, beside a descriptor that never is
    /// (`fd`=1): subscribers, consumers, clients, servers, watches, timers, interrupts.
    Wait = "wait"("on", "and", "or", "fd", "ms");
    /// Makes a timer that is due in so many us, and then every `period_us` (0: once).
    Timer = "timer"("new", "after_us", "period_us");
    /// How often it became due since it was last asked.
    Fired = "fired"("on");
    /// It is not due any more.
    StopTimer = "stop-timer"("on");
    /// Makes an interrupt.
    Interrupt = "interrupt"("new");
    /// Raises it, from a signal handler (`signal`=1) or not.
    Raise = "raise"("on", "signal");
    /// Whether it is raised.
    Raised = "raised"("on");
    /// It is not raised any more.
    Clear = "clear"("on");
    /// Opens so many publishers (0), producers (1), clients (2) or subscribers (3) one after the
    /// other; each sends one message, and stays (`keep`=1) or is dropped.
    Crowd = "crowd"("new", "node", "what", "name", "count", "keep", "type");
    /// Forks; the child exits (0), execs (1), uses all it inherited (2) and drops it (3), drops
    /// all (4), or outlives its parent (5).
    Fork = "fork"("how");
    /// Its process goes to the directory `/` (0), to the one that the root lies in (1), or to one
    /// that is then removed (2). From there on it names the root by a relative path, where it can.
    Chdir = "chdir"("to");
    /// Lowers a limit: of descriptors (0) or KiB of address space (1), to what is left, or of the
    /// KiB of a file (2).
    Limit = "limit"("what", "left");
    /// Raises it again.
    Unlimit = "unlimit"("what");
    /// The thread gets that priority of SCHED_FIFO, or goes on without (0); with `one`=1 it stays
    /// on the first processor. Where that is not allowed nothing comes of it.
    Priority = "priority"("fifo", "one");
    /// The domain has only so many ordinals left, of nodes and of threads that take locks.
    Ordinals = "ordinals"("nodes", "threads");
    /// Fills the disk that all have their files on, but for so many KiB.
    Fill = "fill"("left");
    /// Makes room on it again.
    Free = "free"();
    /// Removes what the dead left.
    Clean = "clean"();
    /// Checks the invariants of all files.
    Audit = "audit"();
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which process.
    pub member: usize,
    /// Which of its threads.
    pub thread: usize,
    /// What it does.
    pub verb: Verb,
    /// With what, in the order of the verb's names.
    pub args: Vec<u64>,
}

impl Step {
    /// A step.
    ///
    /// # Panics
    /// When there are not as many arguments as the verb has names.
    pub fn new(member: usize, thread: usize, verb: Verb, args: &[u64]) -> Self {
        assert_eq!(names(verb).len(), args.len(), "arguments of {verb:?}");
        Self { member, thread, verb, args: args.to_vec() }
    }

    /// The argument of that name; 0 where the verb has none.
    pub fn arg(&self, name: &str) -> u64 {
        let at = names(self.verb).iter().position(|n| *n == name);
        at.map_or(0, |at| self.args[at])
    }

    pub(super) fn has(&self, name: &str) -> bool {
        names(self.verb).contains(&name)
    }

    /// Another value for that argument, if the verb has it.
    pub(super) fn set(&mut self, name: &str, value: u64) {
        if let Some(at) = names(self.verb).iter().position(|n| *n == name) {
            self.args[at] = value;
        }
    }

    /// What a wait set waits for, if it is such a step.
    pub(super) fn waited_for(&self) -> Vec<Handle> {
        let names: &[&str] = if self.verb == Verb::Wait { &["on", "and", "or"] } else { &[] };
        names.iter().map(|name| self.arg(name)).filter(|handle| *handle > 0).collect()
    }

    /// The handle it makes.
    pub fn new_handle(&self) -> Option<Handle> {
        let makes = !matches!(self.verb, Verb::Thread | Verb::Crowd)
            && names(self.verb).first() == Some(&"new");
        makes.then(|| self.args[0])
    }

    /// Whether it may wait so long that others go on meanwhile. Who waits for a notification waits
    /// for the mutex after it, however short the time is.
    pub fn is_long(&self) -> bool {
        self.verb == Verb::Sleep || self.verb != Verb::Pause && self.arg("ms") >= LONG_MS
    }

    /// Reads a line as [`Display`](fmt::Display) writes it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Self, String> {
        let wrong = || format!("no step: '{line}'");
        let mut words = line.split_whitespace();
        let (member, thread) =
            words.next().and_then(|who| who.split_once('.')).ok_or_else(wrong)?;
        let verb = words.next().ok_or_else(wrong)?;
        let (verb, _, names) = VERBS.iter().find(|(_, name, _)| *name == verb).ok_or_else(wrong)?;
        let mut args = vec![0; names.len()];
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(wrong)?;
            let at = names.iter().position(|n| *n == name).ok_or_else(wrong)?;
            args[at] = value.parse().map_err(|_| wrong())?;
        }
        Ok(Self {
            member: member.parse().map_err(|_| wrong())?,
            thread: thread.parse().map_err(|_| wrong())?,
            verb: *verb,
            args,
        })
    }
}

fn entry(verb: Verb) -> &'static (Verb, &'static str, &'static [&'static str]) {
    VERBS.iter().find(|(v, ..)| *v == verb).expect("every verb is in the table")
}

fn names(verb: Verb) -> &'static [&'static str] {
    entry(verb).2
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, verb, names) = entry(self.verb);
        write!(f, "{}.{} {verb}", self.member, self.thread)?;
        names.iter().zip(&self.args).try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// The steps of a text, one a line; `#` begins a remark.
///
/// # Errors
/// The first line that is none.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(Step::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_as_it_was_written() {
        let step = Step::new(2, 1, Verb::Publisher, &[14, 3, 0, 4, 0, 20, 1]);
        let line = step.to_string();
        assert_eq!(Step::parse(&line), Ok(step.clone()));
        assert_eq!((step.arg("depth"), step.new_handle()), (4, Some(14)));
        for line in ["", "1 start", "1.0 fly", "1.0 kill signal", "1.0 kill strength=9", "x.0 exit"]
        {
            assert!(Step::parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("# nothing\n\n1.0 start # first\n").unwrap().len(), 1);
    }
}
