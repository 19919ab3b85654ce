//! What the demo claims: if it does not hold, the demo has failed.

use crate::exit::{Code, Failure};

/// A claim that turned out not to hold.
pub(super) fn untrue(claim: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("untrue: {claim}"))
}

/// Fails unless the claim holds.
pub(super) fn must(holds: bool, claim: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(untrue(claim())) }
}
