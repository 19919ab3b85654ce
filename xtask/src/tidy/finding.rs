//! What rules answer.

/// One place that breaks a rule. A hint is printed and does not fail the run.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) hint: bool,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, text: text.into(), hint: false }
    }

    pub(crate) fn hint(self) -> Self {
        Self { hint: true, ..self }
    }
}
