//! For tools: what a topic's members do, and whether its bytes are sound.
//! Begin with `inspect`; `audit` has the invariants. Both read only.

pub(crate) mod audit;
pub(crate) mod inspect;
