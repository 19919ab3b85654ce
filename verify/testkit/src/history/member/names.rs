//! Names and types of what a member opens, by the numbers of steps.

use outlive::PayloadType;

use super::things::batches::{Large, Small};
use crate::history::step::FIXED;

pub(super) fn topic(number: u64) -> String {
    format!("/h/topic{number}")
}

pub(super) fn queue(number: u64) -> String {
    format!("/h/queue{number}")
}

/// Type 0: slices of `u64`; 1: of `u32`, another type of the same name of topic; others: of a
/// fixed size.
pub(super) fn payload_type(number: u64) -> PayloadType {
    let slices =
        || if number == 0 { PayloadType::of::<[u64]>() } else { PayloadType::of::<[u32]>() };
    fixed_type(number).unwrap_or_else(slices)
}

/// The type of that number, if it is one of a fixed size.
fn fixed_type(number: u64) -> Option<PayloadType> {
    match number {
        FIXED => Some(PayloadType::of::<Small>()),
        _ if number > FIXED => Some(PayloadType::of::<Large>()),
        _ => None,
    }
}
