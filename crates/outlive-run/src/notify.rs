//! Tells systemd how we are (`sd_notify`); nothing where nobody listens.

use std::env;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// How much more time is asked for where there is no watchdog to say.
const MORE: Duration = Duration::from_secs(10);

/// The way to the service manager.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Said while the manager's queue was full; two lines at most.
    unheard: Vec<&'static str>,
    /// Whether the watchdog waits for us.
    watched: bool,
    /// After so long a supervisor that says nothing counts as hanging.
    patience: Duration,
    next: Option<Instant>,
    /// What was last told to people.
    status: String,
}

impl Notify {
    /// By `$NOTIFY_SOCKET`, `$WATCHDOG_USEC` and `$WATCHDOG_PID`.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Self::default() };
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
            _ => SocketAddr::from_pathname(&name),
        };
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            Ok((socket, address))
        });
        let for_us =
            env::var("WATCHDOG_PID").map_or(true, |pid| pid.parse() == Ok(std::process::id()));
        let usec = env::var("WATCHDOG_USEC").ok().and_then(|usec| usec.parse().ok());
        let watchdog = usec.filter(|_| for_us).map(Duration::from_micros);
        Self {
            socket: socket.ok(),
            watched: watchdog.is_some(),
            patience: watchdog.unwrap_or(MORE),
            ..Self::default()
        }
    }

    /// Sends lines like `READY=1`; again at the next turns while the manager's queue is full.
    pub(crate) fn send(&mut self, text: &'static str) {
        self.unheard.push(text);
        self.next = None;
        self.repeat();
    }

    fn repeat(&mut self) {
        while let Some(text) = self.unheard.first()
            && self.try_send(text)
        {
            self.unheard.remove(0);
        }
    }

    /// False if the queue of the manager is full; one that is gone needs nothing.
    fn try_send(&self, text: &str) -> bool {
        let Some((socket, address)) = &self.socket else { return true };
        let sent = socket.send_to_addr(text.as_bytes(), address);
        !sent.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }

    /// Shows people how things are, in one line; the same text is told once.
    pub(crate) fn status(&mut self, text: &str) {
        let text = text.replace('\n', " ");
        if text != self.status && self.try_send(&format!("STATUS={text}")) {
            self.status = text;
        }
    }

    /// Called at each turn: a supervisor that hangs misses it. `busy` while it starts or stops the
    /// robot, which takes as long as the file allows and not as the unit does.
    pub(crate) fn alive(&mut self, busy: bool) {
        self.repeat();
        let now = Instant::now();
        if self.socket.is_none() || self.next.is_some_and(|next| now < next) {
            return;
        }
        // A full queue is full of these.
        if self.watched {
            self.try_send("WATCHDOG=1");
        }
        if busy {
            self.try_send(&format!("EXTEND_TIMEOUT_USEC={}", self.patience.as_micros()));
        }
        self.next = Some(now + self.patience / 2);
    }
}
