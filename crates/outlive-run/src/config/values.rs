//! Times, sizes, signals and users as people write them.

use std::fs;
use std::time::Duration;

use outlive::{Domain, ErrorKind, Node};

use super::spec::User;

/// `250ms`, `2s`, `1.5 s`, `3min`, `1h`; up to a year.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a valid time: write it like 250ms, 2.5s, 3min or 1h");
    let (number, unit) = split(text);
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    seconds_of(value * seconds).ok_or_else(wrong)
}

/// A number of seconds as a duration; `None` for what no supervisor waits for.
pub(crate) fn seconds_of(value: f64) -> Option<Duration> {
    let year = 365.0 * 86400.0;
    (0.0..=year).contains(&value).then(|| Duration::from_secs_f64(value))
}

/// `512MiB`, `10 MB`, `4096`: bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a valid size: write it like 4096, 10MB or 512MiB");
    let (number, unit) = split(text);
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = value * factor as f64;
    if (1.0..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim_end(), &text[end..])
}

/// Signals that may ask a process to end.
pub(crate) const SIGNALS: [(&str, i32); 6] = [
    ("SIGTERM", libc::SIGTERM),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGUSR1", libc::SIGUSR1),
    ("SIGUSR2", libc::SIGUSR2),
    ("SIGKILL", libc::SIGKILL),
];

/// What stands for "none" wherever the kernel takes a uid or gid.
const NO_ID: u32 = u32::MAX;

/// The number of a user or a group.
fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id != NO_ID)
}

/// The user that is called so: a name of /etc/passwd, or `uid:gid`.
pub(crate) fn user(user: &str) -> Result<User, String> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    if let Some((uid, gid)) = user.split_once(':')
        && let (Ok(_), Ok(_)) = (uid.parse::<u32>(), gid.parse::<u32>())
    {
        let (Some(uid), Some(gid)) = (id(uid), id(gid)) else {
            let most = NO_ID - 1;
            return Err(format!("{NO_ID} is not a valid uid or gid: use 0 to {most}"));
        };
        // Known by its number, or by nothing else.
        let known = entry(&passwd, |entry| entry.get(2).and_then(|n| n.parse().ok()) == Some(uid));
        let (name, home) =
            known.map_or((uid.to_string(), "/".into()), |e| (e[0].clone(), home(&e)));
        return Ok(User { uid, gid, groups: Vec::new(), name, home });
    }
    let group = fs::read_to_string("/etc/group").unwrap_or_default();
    from_files(user, &passwd, &group)
        .ok_or_else(|| format!("no user '{user}' in /etc/passwd: name one, or write uid:gid"))
}

fn entry(passwd: &str, is: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    passwd.lines().map(fields).find(|entry| is(entry))
}

fn home(entry: &[String]) -> String {
    entry.get(5).filter(|home| home.starts_with('/')).cloned().unwrap_or_else(|| "/".into())
}

fn from_files(user: &str, passwd: &str, group: &str) -> Option<User> {
    let entry = entry(passwd, |entry| entry[0] == user)?;
    let (uid, gid) = (id(entry.get(2)?)?, id(entry.get(3)?)?);
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let member = |entry: &Vec<String>| {
        entry.get(3).is_some_and(|members| members.split(',').any(|name| name == user))
    };
    let groups = group.lines().map(fields).filter(member);
    let groups = groups.filter_map(|entry| id(entry.get(2)?)).collect();
    Some(User { uid, gid, groups, name: user.into(), home: home(&entry) })
}

/// What to do about a name that no topic or service can have; with `is_part`, no domain or node.
pub(crate) fn name_remedy(name: &str, is_part: bool) -> Option<String> {
    // Nothing is there: only the name can be wrong.
    let nowhere = Node::builder().root("/nonexistent");
    let checked = match is_part {
        true => Domain::of(&nowhere.domain(name)).map(drop),
        false => Domain::of(&nowhere.domain("none")).and_then(|d| d.find_topic(name).map(drop)),
    };
    let wrong = checked.err().filter(|e| e.kind() == ErrorKind::InvalidName);
    wrong.map(|e| e.remedy().into_owned())
}

/// The words of a command line: blanks part them, quotes and backslashes keep them together.
pub(crate) fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => match chars.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("it ends in a backslash".into()),
            },
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(_) => Err("a quote is not closed".into()),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "5 parsecs", "-1s", "nan s", "1e99h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("1.5 MiB"), Ok(3 << 19));
        assert_eq!(bytes("10MB"), Ok(10_000_000));
        for wrong in ["", "0", "-1", "1 furlong", "1e30"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_line_becomes_words() {
        assert_eq!(words("a  'b c' \"d\\\" e\" f\\ g").unwrap(), ["a", "b c", "d\" e", "f g"]);
        assert_eq!(words("a ''").unwrap(), ["a", ""]);
        assert!(words("'a").is_err() && words("a\\").is_err());
        assert!(words("").unwrap().is_empty());
    }

    #[test]
    fn users_come_from_the_files() {
        let passwd = "root:x:0:0::/root:\nann:x:7:8::/of/ann:/bin/sh\nbot:x:9:9:::\n";
        let group = "a:x:8:\nvideo:x:44:bob,ann\n";
        let (name, home) = ("ann".into(), "/of/ann".into());
        let ann = User { uid: 7, gid: 8, groups: vec![44], name, home };
        assert_eq!(from_files("ann", passwd, group), Some(ann));
        assert_eq!(from_files("bot", passwd, group).unwrap().home, "/");
        assert_eq!(from_files("eve", passwd, group), None);
        let (name, home) = ("61234".into(), "/".into());
        assert_eq!(user("61234:4"), Ok(User { uid: 61234, gid: 4, groups: vec![], name, home }));
    }
    /// As a uid or gid it means "none" to the kernel; the child panicked.
    #[test]
    fn nobody_has_the_id_that_stands_for_none() {
        for wrong in ["4294967295:0", "0:4294967295"] {
            let why = user(wrong).unwrap_err();
            assert!(why.contains("4294967295") && why.contains("0 to 4294967294"), "{why}");
        }
        assert!(user("4294967294:4294967294").is_ok());
        let passwd = "uid:x:4294967295:8:::\ngid:x:7:4294967295:::\nann:x:7:8:::\n";
        assert_eq!(from_files("uid", passwd, ""), None);
        assert_eq!(from_files("gid", passwd, ""), None);
        let ann = from_files("ann", passwd, "none:x:4294967295:ann\nvideo:x:44:ann\n").unwrap();
        assert_eq!(ann.groups, [44]);
    }
}
