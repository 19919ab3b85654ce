//! For tools: what a topic's members do, and whether its bytes are sound.

pub(crate) mod audit;
pub(crate) mod inspect;
