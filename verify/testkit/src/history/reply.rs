//! What a member says it saw in a step, and its form on the pipe.

/// What the library does not say.
pub(super) const UNSAID: u64 = u64::MAX;

/// A message that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Handle of who sent it, as its content says.
    pub(super) from: u64,
    /// Its number, as its content says.
    pub(super) n: u64,
    /// Its number, as the library says.
    pub(super) seq: u64,
    /// Messages lost before it, as the library says; [`UNSAID`] of one in a batch.
    pub(super) lost: u64,
    /// Whether the message is whole.
    pub(super) whole: bool,
    /// Whether it lies in shared memory.
    pub(super) borrowed: bool,
    /// Node and port of who sent it, as the library says; none of one in a batch.
    pub(super) id: (u64, u64),
}

/// What happened to a publisher or producer, as the library says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It was found.
    Joined,
    /// It left in order.
    Left,
    /// It died: whether it was writing, and how many messages were lost with it.
    Died(bool, u64),
    /// It cannot be read.
    Corrupt,
}

/// The answer to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// The thread that did it.
    pub(super) thread: usize,
    /// The kind of error, or `ok`.
    pub(super) outcome: String,
    /// A number: how many were sent, the owner of a lock is dead, a thing was there.
    pub(super) value: u64,
    /// Node and port of what was opened.
    pub(super) id: (u64, u64),
    /// Messages.
    pub(super) seen: Vec<Seen>,
    /// Events.
    pub(super) news: Vec<(News, (u64, u64))>,
    /// The words under a lock.
    pub(super) data: Vec<u64>,
    /// Processor time and time that it took, us.
    pub(super) took: (u64, u64),
    /// When it began and ended, ns of CLOCK_MONOTONIC; 0, 0: it does not say.
    pub(super) at: (u64, u64),
    /// The whole text of an error, for people.
    pub(super) text: String,
}

impl Reply {
    /// Whether the call succeeded.
    pub(super) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }

    /// As a line.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{} {} v={} id={}.{} took={}.{}",
            self.thread, self.outcome, self.value, self.id.0, self.id.1, self.took.0, self.took.1
        );
        for m in &self.seen {
            let bits = (u8::from(m.whole), u8::from(m.borrowed));
            line += &format!(
                " m={}.{}.{}.{}.{}.{}.{}.{}",
                m.from, m.n, m.seq, m.lost, bits.0, bits.1, m.id.0, m.id.1
            );
        }
        for (news, id) in &self.news {
            let (what, a, b) = match *news {
                News::Joined => (0, 0, 0),
                News::Left => (1, 0, 0),
                News::Died(unfinished, lost) => (2, u64::from(unfinished), lost),
                News::Corrupt => (3, 0, 0),
            };
            line += &format!(" e={what}.{a}.{b}.{}.{}", id.0, id.1);
        }
        for word in &self.data {
            line += &format!(" d={word}");
        }
        if self.at.1 > 0 {
            line += &format!(" at={}.{}", self.at.0, self.at.1);
        }
        if !self.text.is_empty() {
            line += &format!(" # {}", self.text.replace('\n', " "));
        }
        line
    }

    /// Reads such a line; `None` for any other.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (line, text) = line.split_once(" # ").unwrap_or((line, ""));
        let mut words = line.split(' ');
        let mut reply = Self { text: text.to_owned(), ..Self::default() };
        reply.thread = words.next()?.parse().ok()?;
        reply.outcome = words.next()?.to_owned();
        for word in words {
            let (key, value) = word.split_once('=')?;
            let n: Vec<u64> = value.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
            match (key, &n[..]) {
                ("v", [v]) => reply.value = *v,
                ("d", [word]) => reply.data.push(*word),
                ("id", [node, port]) => reply.id = (*node, *port),
                ("at", [began, ended]) => reply.at = (*began, *ended),
                ("took", [cpu, wall]) => reply.took = (*cpu, *wall),
                ("m", &[from, n, seq, lost, whole, borrowed, node, port]) => {
                    let (whole, borrowed, id) = (whole == 1, borrowed == 1, (node, port));
                    reply.seen.push(Seen { from, n, seq, lost, whole, borrowed, id });
                }
                ("e", &[what, a, b, node, port]) => {
                    let news = [News::Joined, News::Left, News::Died(a == 1, b), News::Corrupt];
                    reply.news.push((*news.get(what as usize)?, (node, port)));
                }
                _ => return None,
            }
        }
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_it_was_said() {
        let seen =
            Seen { from: 14, n: 3, seq: 3, lost: 1, whole: true, borrowed: false, id: (2, 1) };
        let reply = Reply {
            thread: 1,
            outcome: "Timeout".into(),
            value: 7,
            id: (1, 2),
            seen: vec![seen, seen],
            news: vec![(News::Died(true, 4), (2, 1)), (News::Joined, (3, 1))],
            data: vec![5, 6],
            took: (10, 20),
            at: (3, 4),
            text: "sending: timed out; wait longer".into(),
        };
        assert_eq!(Reply::parse(&reply.line()), Some(reply));
        assert!(Reply::parse("").is_none() && Reply::parse("0 ok x=1").is_none());
    }
}
