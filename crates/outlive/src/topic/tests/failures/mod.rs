//! What holds while something fails: system calls, opening a subscriber, the clock.
//! Begin with `refused`.

mod clock;
mod refused;
mod unopened;
