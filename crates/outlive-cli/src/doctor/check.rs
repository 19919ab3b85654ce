//! One thing that was looked at, and how it is told.

use serde::Serialize;

use crate::output::Paint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Warn,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// For scripts; never changes its meaning.
    id: &'static str,
    pub(super) status: Status,
    found: String,
    /// What to do; empty when all is well.
    remedy: String,
}

impl Check {
    pub(super) fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    pub(super) fn warn(
        id: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { id, status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    pub(super) fn bad(
        id: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { id, status: Status::Bad, found: found.into(), remedy: remedy.into() }
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let status = match self.status {
            Status::Ok => paint.good("ok  "),
            Status::Warn => paint.warning("warn"),
            Status::Bad => paint.bad("bad "),
        };
        let mut text = format!("{status}  {:<12}  {}\n", self.id, self.found);
        for line in self.remedy.lines() {
            text += &format!("                    -> {line}\n");
        }
        text
    }
}
