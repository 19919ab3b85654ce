//! Who comes, who goes, and what is left of them.
//! Begin with `join`; `leave` is the way out, `age` what the dead keep and the next ones find.

mod age;
mod join;
mod leave;
