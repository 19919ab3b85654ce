//! Who is woken and how: the handshake of a word, the calls to those who wait for many words,
//! doorbells of a domain, deaths, and the descriptor of an event loop.
//! Begin with `handshake`.

pub(crate) mod bells;
pub(crate) mod bridge;
pub(crate) mod call;
pub(super) mod death;
pub(crate) mod handshake;
