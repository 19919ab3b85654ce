//! How all subcommands read their arguments.

use std::process::Command;
use std::time::Duration;

use clap::Args;
use testkit::rng::parse_u64;

/// For what can be thinned out.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Quick {
    /// Only a part of it, in a minute or so
    #[arg(long)]
    pub(crate) quick: bool,
}

/// For what depends on time.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// This machine, an emulated one say, is N times slower than usual
    #[arg(long, value_name = "N", default_value_t = 1)]
    slow: u32,
}

impl Slow {
    pub(crate) fn apply(self) {
        testkit::slow::set_times(self.slow);
    }

    /// To another process of this program.
    pub(crate) fn pass_on(self, to: &mut Command) {
        to.args(["--slow", &self.slow.to_string()]);
    }
}

/// A decimal number, or a hexadecimal one that starts with 0x.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    parse_u64(text).ok_or_else(|| "not a number such as 12 or 0x1f".into())
}

const NO_TIME: &str = "not a time such as 500ms, 90s, 30m or 8h";

/// A time like `90s`, `500ms`, `30m` or `8h`; without a unit, seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(NO_TIME.into()),
    };
    let ms = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit_ms));
    ms.map(Duration::from_millis).ok_or_else(|| NO_TIME.into())
}

/// As [`time`] reads it.
pub(crate) fn in_words(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// A seed of the clock, of 32 bits: short enough to be typed again.
pub(crate) fn fresh_seed() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64 >> 8 & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_printed_as_they_are_read() {
        for (text, ms) in [("2", 2000), ("90s", 90_000), ("15ms", 15), ("30m", 1_800_000)] {
            let read = time(text).unwrap();
            assert_eq!(read, Duration::from_millis(ms), "{text}");
            assert_eq!(time(&in_words(read)).unwrap(), read, "{text}");
        }
        assert_eq!(time("8h").unwrap(), Duration::from_secs(8 * 3600));
        for text in ["", "s", "5d", "-1s", "1.5s", "99999999999999999999s", "9999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
