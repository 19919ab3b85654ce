//! The text of the bridge's file: what is wrong in it, and where. Its sections share this.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use serde::Deserialize;
use toml::Spanned;

use super::pattern::Pattern;

/// What is wrong in the file, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, remedy } = self;
        write!(f, "{file}:{line}:{column}: {what}: {remedy}")
    }
}

/// Which way something is carried, seen from this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// To the others.
    Out,
    /// From the others.
    In,
    /// Both.
    #[default]
    Both,
}

impl Direction {
    pub(crate) fn goes_out(self) -> bool {
        self != Self::In
    }

    pub(crate) fn comes_in(self) -> bool {
        self != Self::Out
    }
}

/// A file's text, to say where in it something is wrong.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn wrong(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        remedy: &str,
    ) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let (file, what, remedy) = (self.file.into(), what.into(), remedy.into());
        ConfigError { file, line, column, what, remedy }
    }

    pub(crate) fn pattern(&self, text: &Spanned<String>) -> Result<Pattern, ConfigError> {
        let wrong = |(what, remedy)| self.wrong(text.span(), what, remedy);
        Pattern::new(text.get_ref()).map_err(wrong)
    }

    /// A rate is more than nothing.
    pub(crate) fn rate(&self, rate: Option<&Spanned<f64>>) -> Result<(), ConfigError> {
        match rate {
            Some(rate) if !(*rate.get_ref() > 0.0 && *rate.get_ref() <= 1e6) => {
                let what =
                    format!("a rate of {} messages per second is out of range", rate.get_ref());
                Err(self.wrong(rate.span(), what, "use more than 0 and at most 1000000"))
            }
            _ => Ok(()),
        }
    }

    /// A number of `range`, or `default`.
    pub(crate) fn number(
        &self,
        value: Option<Spanned<u64>>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        if range.contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        let remedy = format!("use {} to {}", range.start(), range.end());
        Err(self.wrong(value.span(), format!("{} is out of range", value.get_ref()), &remedy))
    }
}
