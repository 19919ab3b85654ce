//! Fail-stop of the reference robot: processes are killed, stopped or sent into endless loops, and
//! the mock drives say what moved them.
//!
//! | file | what |
//! |---|---|
//! | `drives` | the thread that plays the drives |
//! | `parts` | the processes of a form, and what they do on an order |
//! | `plan` | whom a fault hits, how, where and when |
//! | `round` | one robot, one fault |
//! | `judge` | what came of it |
//! | `machine` | what the machine did meanwhile |
//! | `log` | rounds as lines of a file |
//! | `report` | many rounds as tables |

mod drives;
mod judge;
mod log;
mod machine;
mod parts;
mod plan;
mod report;
mod round;

pub use judge::{End, Gaps, Verdict};
pub use log::{Log, Round};
pub use machine::{Load, Since};
pub use parts::{Form, GUARD, STAGES, play};
pub use plan::{Fault, Moment, Plan, Victim, When};
pub use report::{Tally, print_time_header, print_verdict_header};
pub use round::run;
