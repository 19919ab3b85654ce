//! All that is carried is work: it begins, rests while there is nothing to do, and ends by itself
//! once it was asked to. Begin with [`Job`] and [`Worker`]; what they carry is elsewhere.
//!
//! | file | what |
//! |---|---|
//! | `stop` | how work is asked to end, and says that nothing is left of it |
//! | `job` | work that may pause, and where it rests then |
//! | `worker` | work as whoever has begun it sees it: it hears news, and can be stopped |
//! | `routes` | the table of all of them |

mod job;
pub(crate) mod routes;
mod stop;
mod worker;

pub(crate) use job::{Job, QUIET, Rests, Slot, Turn, Workers};
pub(crate) use stop::Stop;
pub(crate) use worker::{News, Worker};
