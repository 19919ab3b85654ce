//! `outlive record`, `play`, `info`, `convert`: files of messages.

mod convert;
mod info;
mod last;
mod pace;
mod play;
mod save;

use outlive_record::Error;

use crate::exit::{Code, Failure};

pub(crate) use convert::picture::rgb;
pub(crate) use convert::{ConvertArgs, run as convert};
pub(crate) use info::{InfoArgs, run as info};
pub(crate) use play::{PlayArgs, run as play};
pub(crate) use save::{RecordArgs, run as record};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Outlive(error) => error.into(),
            Error::Io { ref source, .. } => {
                let code = match source.kind() {
                    std::io::ErrorKind::NotFound => Code::NotFound,
                    kind => Failure::code_of(kind),
                };
                Self::new(code, error.to_string())
            }
            Error::Corrupt { .. } => Self::new(Code::Corrupt, error.to_string()),
            Error::Usage(why) => Self::new(Code::Usage, why),
            other => Self::new(Code::Failed, other.to_string()),
        }
    }
}

/// Seconds with as many digits as make sense.
fn seconds_text(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
