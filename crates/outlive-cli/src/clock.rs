//! Times for people: the local time of an instant, and durations.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::os::{self, LocalTime};

/// `14:03:05.123`, the local time of an instant of CLOCK_MONOTONIC; before it the date unless it
/// is today's. `-`: no such instant was stored.
pub(crate) fn local(at_ns: u64) -> String {
    if at_ns == 0 {
        return "-".into();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
    let at = now + i128::from(at_ns) - i128::from(outlive::now_ns());
    let (seconds, ms) =
        (at.div_euclid(1_000_000_000) as i64, at.rem_euclid(1_000_000_000) / 1_000_000);
    let at = os::local_time(seconds);
    let today = os::local_time((now / 1_000_000_000) as i64);
    let LocalTime { hour, minute, second, .. } = at;
    let date = if at.date() == today.date() { String::new() } else { format!("{} ", at.date()) };
    format!("{date}{hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// The local time now, for the name of a file: `2026-01-31_14-03-05`.
pub(crate) fn file_stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = os::local_time(now.as_secs() as i64);
    format!("{}_{:02}-{:02}-{:02}", at.date(), at.hour, at.minute, at.second)
}

/// `250 ns`, `12.5 us`, `3.2 s`, `5 min 20 s`, `3 h 12 min`, `2 d 4 h`.
pub(crate) fn duration(of: Duration) -> String {
    let (ns, s) = (of.as_nanos(), of.as_secs());
    // What would be printed as 1000.0 is one of the next unit.
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_950 => format!("{:.1} us", ns as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ if s < 120 => format!("{:.1} s", of.as_secs_f64()),
        _ if s < 7200 => format!("{} min {} s", s / 60, s % 60),
        _ if s < 48 * 3600 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

/// As [`duration`].
pub(crate) fn duration_ns(ns: u64) -> String {
    duration(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_a_person_would_take() {
        let of = |s: f64| duration(Duration::from_secs_f64(s));
        for (seconds, text) in [
            (0.0, "0 ns"),
            (250e-9, "250 ns"),
            (12.5e-6, "12.5 us"),
            (999.96e-6, "1.0 ms"),
            (0.0332, "33.2 ms"),
            (0.99996, "1.0 s"),
            (3.2, "3.2 s"),
            (320.0, "5 min 20 s"),
            (11_520.0, "3 h 12 min"),
            (187_200.0, "2 d 4 h"),
        ] {
            assert_eq!(of(seconds), text);
        }
    }

    #[test]
    fn an_instant_of_today_has_no_date_and_others_have() {
        let now = outlive::now_ns();
        let digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "#");
        // A second ago may have been yesterday.
        assert!(digits(&local(now)).ends_with("##:##:##.###"), "{}", local(now));
        let past = local(now.saturating_sub(3 * 86_400 * 1_000_000_000).max(1));
        assert!(digits(&past).ends_with("##:##:##.###"), "{past}");
        let far = local(now + 3 * 86_400 * 1_000_000_000);
        assert_eq!(digits(&far), "####-##-## ##:##:##.###");
        assert_eq!(local(0), "-");
    }
}
