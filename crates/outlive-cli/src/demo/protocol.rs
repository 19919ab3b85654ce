//! What the director and its actors say to each other: one JSON object per line, orders on an
//! actor's standard input, reports on its standard output. Frames travel on the topic.

use serde::{Deserialize, Serialize};

/// To an actor.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Order {
    /// Watch this node, say when you do and when it is gone.
    Watch(u64),
    /// Receive a frame and keep it.
    Hold,
    /// Stop half-way through the next frame.
    Stall,
    /// Leave in order.
    Quit,
}

/// From an actor. Times are ns of CLOCK_MONOTONIC, the same clock for all processes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Report {
    /// About to join the domain.
    Starting { at_ns: u64 },
    /// Joined, ports open.
    Ready { node: u64, at_ns: u64 },
    /// Watching this node from now on.
    Watching { node: u64 },
    /// This node is gone.
    Gone { node: u64, at_ns: u64 },
    /// The first frame of this camera came.
    First { camera: u64, at_ns: u64 },
    /// Holding this frame, until killed.
    Holding { camera: u64, seq: u64 },
    /// Half of this frame is written, the rest never will be.
    MidFrame { seq: u64 },
    /// A camera is gone, or the actor leaves: what it had of it.
    Account(Account),
    /// A camera leaves: what it published, and its shared memory.
    Published { frames: u64, memory_bytes: u64 },
}

/// What one receiver had of one camera.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Account {
    /// Node of the camera.
    pub(super) camera: u64,
    /// Number of the first frame that was for this receiver.
    pub(super) first: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    /// Most frames lost between two received ones.
    pub(super) gap_max: u64,
    /// Frames with a word of another frame, or of none.
    pub(super) torn: u64,
    /// Frames whose number does not follow from the one before and the losses.
    pub(super) misnumbered: u64,
    pub(super) end: End,
}

/// How a receiver saw a camera go.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) enum End {
    /// Not at all; the receiver itself leaves.
    #[default]
    Open,
    Left,
    Died,
}

impl Account {
    /// Notes a frame.
    pub(super) fn take(&mut self, seq: u64, lost_before: u64, whole: bool) {
        if self.received == 0 {
            self.first = seq.saturating_sub(lost_before);
        }
        let due = self.first + self.received + self.lost + lost_before;
        self.misnumbered += u64::from(due != seq);
        self.received += 1;
        self.lost += lost_before;
        self.gap_max = self.gap_max.max(lost_before);
        self.torn += u64::from(!whole);
    }

    /// The number of the next frame, if all were counted.
    pub(super) fn next(&self) -> u64 {
        self.first + self.received + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_adds_up_to_the_next_number() {
        let mut account = Account::default();
        for (seq, lost) in [(5, 0), (6, 0), (9, 2), (10, 0)] {
            account.take(seq, lost, true);
        }
        assert_eq!((account.received, account.lost, account.gap_max), (4, 2, 2));
        assert_eq!((account.next(), account.misnumbered), (11, 0));
        account.take(12, 0, false);
        assert_eq!((account.misnumbered, account.torn), (1, 1));
    }

    #[test]
    fn reports_survive_the_pipe() {
        let reports = [
            Report::Starting { at_ns: 1 },
            Report::Gone { node: 7, at_ns: u64::MAX },
            Report::Account(Account { camera: 3, end: End::Died, ..Account::default() }),
        ];
        for report in reports {
            let line = serde_json::to_string(&report).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Report>(&line).unwrap(), report);
        }
    }
}
