//! Ends of services, and a request in a server's hand.

use outlive::service::Request;
use outlive::{Client, Server};

use crate::history::step::Handle;

pub(crate) type Asking = Client<[u8], [u8]>;
pub(crate) type Serving = Server<[u8], [u8]>;

/// A request in a server's hand.
pub(crate) struct InHand {
    pub(crate) it: Request<[u8]>,
    pub(crate) server: Handle,
    /// Which of its client's, as its content says.
    pub(crate) ticket: u64,
    pub(crate) parts: u64,
}
