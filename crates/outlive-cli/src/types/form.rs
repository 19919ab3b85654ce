//! Options that say how messages are carried.

use clap::Args;

use super::model::{Carried, Form};

/// How text and lists without a bound are carried.
#[derive(Args, Debug)]
pub(super) struct FormArgs {
    /// Maximum bytes for unbounded strings.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    text_max: Option<u32>,
    /// Maximum elements for unbounded lists.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    list_max: Option<u32>,
}

impl FormArgs {
    pub(super) fn form(&self, carried: Carried) -> Form {
        let size = |n: Option<u32>| n.map(|n| n as usize);
        Form { carried, text_max: size(self.text_max), list_max: size(self.list_max) }
    }
}
