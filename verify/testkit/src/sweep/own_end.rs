//! How a victim may end that is not killed: its calls failed, and then no more.

use crate::process::Exit;

/// What a victim says first when it does not work although nothing fails any more.
const AFTERWARDS: &str = "afterwards: ";

/// Whether a victim that ended so has kept the rules of a call that failed.
pub(crate) fn accept(exit: Exit, said: &str) -> Result<bool, String> {
    match exit {
        Exit::Code(0) => Ok(true),
        // What `Driver::be_victim` makes of an error.
        Exit::Code(3) if said.starts_with(AFTERWARDS) => Err(said.to_owned()),
        Exit::Code(3) => Ok(false),
        // The allocator's way to say that there is no memory.
        Exit::Signal(libc::SIGABRT) => Ok(false),
        exit => Err(format!("the victim ended by itself: {exit} {said}")),
    }
}
