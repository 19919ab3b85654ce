//! A producer's lane: a ring of records that grows from file to file. One writes (`tail`), one
//! reads (`head`) and says how far (`position`); loom models these.

pub(crate) mod head;
pub(crate) mod layout;
pub(crate) mod position;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod tail;
