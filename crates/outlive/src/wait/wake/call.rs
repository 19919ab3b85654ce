//! A writer's side of waking one sleeper that cannot be woken by the words alone.

use std::path::PathBuf;

use super::bells::Doorbells;
use super::bridge::socket_path;
use super::handshake::{DOORBELL_SHIFT, KIND_MASK, Request, WAITING_DOORBELL, WAITING_FD};
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::node::peer::PortView;
use crate::os::sleep::socket;
use crate::os::sleep::socket::Sent;
use crate::sync::Ordering::Acquire;
use crate::sync::fault;

/// The request in a subscriber's port block.
pub(crate) fn request(view: PortView<'_>) -> Request<'_> {
    Request { flag: view.waiting(), socket: view.socket(), generation: view.generation() }
}

/// What a writer remembers of one sleeper.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    bells: Option<Doorbells>,
    /// The socket called last, and where it is.
    socket: Option<(u64, PathBuf)>,
    /// The generation it was called for.
    called: u64,
}

impl Caller {
    /// Rings or calls a sleeper of `node` if it asked for that. Do it after a commit or a change of
    /// membership. `false`: it asked, and could not be reached.
    ///
    /// # Crash safety
    /// **Strict.** Dying before the call: who waits for a descriptor hears of the death itself.
    ///
    /// # Real-time
    /// A system call for a doorbell; for a descriptor one per wait of the sleeper.
    #[cold]
    pub(crate) fn call(&mut self, domain: &DomainPath, node: NodeId, request: Request<'_>) -> bool {
        if fault("call.missing") {
            return true;
        }
        let flag = request.flag.load(Acquire);
        match flag & KIND_MASK {
            WAITING_DOORBELL => {
                if self.bells.is_none() {
                    self.bells = Doorbells::open_peer(domain, node).ok();
                }
                let Some(bells) = &self.bells else { return false };
                bells.ring(flag >> DOORBELL_SHIFT);
                true
            }
            WAITING_FD => self.call_socket(domain, node, request),
            _ => true,
        }
    }

    fn call_socket(&mut self, domain: &DomainPath, node: NodeId, request: Request<'_>) -> bool {
        let Some((number, generation)) = request.due(self.called) else { return true };
        let path = match &mut self.socket {
            Some((known, path)) if *known == number => path,
            socket => &mut socket.insert((number, socket_path(domain, node, number))).1,
        };
        crate::crash_point!("publish.before_call");
        let sent = socket::call(path);
        if sent == Sent::Readable {
            self.called = generation;
        }
        sent != Sent::Failed
    }
}
