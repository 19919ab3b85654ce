//! Why something could not be carried.

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;
