//! What lies in the queues of a service: where they are (`site`), the heads of requests and replies
//! (`frame`), and bodies that were copied out, so that they can be checked and then trusted
//! (`body`).
//! Begin with `frame`.

pub(super) mod body;
pub(super) mod frame;
pub(super) mod site;
