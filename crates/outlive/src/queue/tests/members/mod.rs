//! Who comes and who goes.
//! Begin with `leave`; in `crowd` there are as many producers as there may be.

use super::*;

mod crowd;
mod leave;
