//! Messages made by `outlive types import`.

#[allow(missing_docs, non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod builtin_interfaces;

#[allow(missing_docs, non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod plan_msgs;

#[allow(missing_docs, non_snake_case, non_upper_case_globals)]
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub mod std_msgs;
