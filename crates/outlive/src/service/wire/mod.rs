//! What lies in the queues of a service: where they are, the heads, the bodies.

pub(super) mod body;
pub(super) mod frame;
pub(super) mod site;
