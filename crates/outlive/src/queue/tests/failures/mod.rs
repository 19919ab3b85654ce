//! What holds while something fails: system calls, room on the disk, descriptors, the clock.
//! Begin with `refused`.

use super::*;

mod clock;
mod few_descriptors;
mod full_disk;
mod refused;
