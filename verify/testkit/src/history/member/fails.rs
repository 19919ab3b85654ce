//! How a step fails, and what is said of it.

pub(super) type Fails = Box<dyn std::error::Error>;

/// The kind of an error of the library, with its text.
pub(super) fn refusal(e: &outlive::Error) -> (String, String) {
    (format!("{:?}", e.kind()), e.to_string())
}
