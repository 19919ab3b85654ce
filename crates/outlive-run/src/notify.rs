//! Tells systemd how we are (`sd_notify`); nothing where nobody listens.

use std::env;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The way to the service manager.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Said while the manager's queue was full; two lines at most.
    unheard: Vec<&'static str>,
    /// Half of the time after which the watchdog bites.
    every: Option<Duration>,
    next: Option<Instant>,
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
        let every = usec.filter(|_| for_us).map(|usec: u64| Duration::from_micros(usec / 2));
        Self { socket: socket.ok(), unheard: Vec::new(), every, next: None }
    }

    /// Sends lines like `READY=1`; again at the next turns while the manager's queue is full.
    pub(crate) fn send(&mut self, text: &'static str) {
        self.unheard.push(text);
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

    /// Called at each turn: a supervisor that hangs misses it.
    pub(crate) fn alive(&mut self) {
        self.repeat();
        let (Some(every), now) = (self.every, Instant::now()) else { return };
        if self.next.is_none_or(|next| now >= next) {
            // A full queue is full of these.
            self.try_send("WATCHDOG=1");
            self.next = Some(now + every);
        }
    }
}
