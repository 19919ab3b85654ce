//! `outlive record`, `play`, `info`, `convert`, `recover`: files of messages.

mod asked;
mod control;
mod convert;
mod info;
mod last;
mod pace;
mod play;
mod recover;
mod save;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, value_parser};
use outlive_record::{Compression, Damage, Error, Limits, Recording};

use crate::exit::{Code, Failure};

pub(crate) use convert::picture::rgb;
pub(crate) use convert::{ConvertArgs, run as convert};
pub(crate) use info::{InfoArgs, run as info};
pub(crate) use play::{PlayArgs, run as play};
pub(crate) use recover::{RecoverArgs, run as recover};
pub(crate) use save::{RecordArgs, run as record};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Outlive(error) => error.into(),
            Error::Io { ref path, ref source, .. }
                if source.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                let message = format!("{} exists: --overwrite replaces it", path.display());
                Self::new(Code::Failed, message)
            }
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

/// How files are compressed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum How {
    Lz4,
    Zstd,
    None,
}

impl From<How> for Compression {
    fn from(how: How) -> Self {
        match how {
            How::Lz4 => Self::Lz4,
            How::Zstd => Self::Zstd,
            How::None => Self::None,
        }
    }
}

/// How much of a file is trusted.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Believed {
    /// Largest chunk to unpack, and largest message: a small chunk may hold gigabytes. Larger ones
    /// count as damaged.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().chunk_bytes_max,
          value_parser = value_parser!(u64).range(1..))]
    chunk_bytes_max: u64,
}

impl Believed {
    pub(crate) fn limits(self) -> Limits {
        Limits { chunk_bytes_max: self.chunk_bytes_max }
    }
}

/// What is read.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// MCAP file, directory of a ROS 2 bag, or any file of a split recording, read as one.
    file: PathBuf,
    /// Read only FILE of a split recording.
    #[arg(long)]
    part: bool,
    #[command(flatten)]
    believed: Believed,
}

impl Input {
    /// With `check` all of it is read.
    pub(crate) fn open(&self, check: bool) -> Result<Recording, Failure> {
        let open = if self.part { Recording::open_part } else { Recording::open_within };
        Ok(open(&self.file, self.believed.limits(), check)?)
    }

    /// Why nothing of it is read: what was asked for may have been in a damaged part.
    fn without(&self, damage: &Damage, what: &str) -> Failure {
        let file = self.file.display();
        if damage.is_some() {
            let message = format!("{file} has no readable {what}: {damage}");
            return Failure::new(Code::Corrupt, message);
        }
        let message = format!("{file} has no {what}: 'outlive info' lists its topics");
        Failure::new(Code::NotFound, message)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }
}
