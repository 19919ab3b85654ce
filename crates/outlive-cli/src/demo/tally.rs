//! The accounts of all receivers, and whether they add up.

use super::claim::{must, untrue};
use super::protocol::{Account, End};
use crate::exit::Failure;
use crate::output::table;

/// One receiver's account of one camera, with what that camera really published.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) receiver: &'static str,
    pub(super) account: Account,
    pub(super) published: u64,
}

/// All accounts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    entries: Vec<Entry>,
}

impl Tally {
    /// Takes an account if it is true: nothing torn, every frame received or counted as lost.
    pub(super) fn add(&mut self, entry: Entry, end: End) -> Result<(), Failure> {
        let Entry { receiver, account: a, published } = &entry;
        must(a.torn == 0, || {
            format!("nothing torn is read: the {receiver} found {} bad frames", a.torn)
        })?;
        must(a.misnumbered == 0, || {
            format!("losses are counted: {} gaps of the {receiver} do not match", a.misnumbered)
        })?;
        must(a.next() == *published, || {
            format!(
                "every frame is received or counted as lost: the {receiver} has {} + {} from \
                 number {} on, published were {published}",
                a.received, a.lost, a.first
            )
        })?;
        if a.end != end {
            return Err(untrue(format!(
                "the {receiver} saw the camera go as {end:?}: {:?}",
                a.end
            )));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// One line per receiver.
    pub(super) fn text(&self) -> String {
        let head = ["", "frames for it", "received", "lost", "largest gap", "torn"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for receiver in ["recorder", "fast viewer", "slow viewer"] {
            let mine: Vec<_> = self.entries.iter().filter(|e| e.receiver == receiver).collect();
            let sum = |of: fn(&Account) -> u64| mine.iter().map(|e| of(&e.account)).sum::<u64>();
            let gap = mine.iter().map(|e| e.account.gap_max).max().unwrap_or(0);
            let mut row = vec![receiver.to_owned()];
            let all = mine.iter().map(|e| e.published - e.account.first).sum();
            let numbers: [u64; 5] =
                [all, sum(|a| a.received), sum(|a| a.lost), gap, sum(|a| a.torn)];
            row.extend(numbers.iter().map(u64::to_string));
            rows.push(row);
        }
        table(&rows, &[1, 2, 3, 4, 5])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(received: u64, lost: u64, published: u64) -> Entry {
        let account = Account { received, lost, end: End::Died, ..Account::default() };
        Entry { receiver: "recorder", account, published }
    }

    #[test]
    fn an_account_that_does_not_add_up_is_untrue() {
        let mut tally = Tally::default();
        tally.add(entry(8, 2, 10), End::Died).unwrap();
        let fails = |entry, end| Tally::default().add(entry, end).unwrap_err().to_string();
        assert!(fails(entry(8, 2, 11), End::Died).contains("8 + 2"));
        assert!(fails(entry(8, 2, 9), End::Died).contains("received or counted"));
        assert!(fails(entry(8, 2, 10), End::Left).contains("Died"));
        let with = |change: fn(&mut Account)| {
            let mut entry = entry(8, 2, 10);
            change(&mut entry.account);
            entry
        };
        assert!(fails(with(|a| a.torn = 1), End::Died).contains("torn"));
        assert!(fails(with(|a| a.misnumbered = 1), End::Died).contains("gaps"));
        assert!(tally.text().contains("recorder"));
    }
}
