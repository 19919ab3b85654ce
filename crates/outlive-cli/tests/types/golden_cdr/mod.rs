//! Messages made by `outlive types import`.

#[allow(dead_code)]
mod outlive_cdr;

#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod builtin_interfaces;

#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod plan_msgs;

#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod route_msgs;

#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod std_msgs;
