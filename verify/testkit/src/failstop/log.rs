//! Every round as a line of a file: what a later run goes on from, and what the tables are made of.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use super::judge::{End, Verdict};
use super::machine::Load;
use super::plan::Plan;

/// The columns.
const HEADER: &str = "form,victim,fault,lifeline,priority,period_ns,hit,end,safe_ns,\
    quick_stop_ns,strike_gap_ns,find_gap_ns,act_gap_ns,take_gap_ns,moved_after,stale_moves,core,\
    guard,steal,load";

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Form, victim, fault, lifeline, priority, period: rounds with the same belong together.
    pub key: String,
    /// Phase of the victim.
    pub hit: String,
    /// Name of an [`End`].
    pub end: String,
    /// Time to the first command of the safe state, ns.
    pub safe_ns: Option<u64>,
    /// Time to the quick-stop, ns.
    pub quick_stop_ns: Option<u64>,
    /// For how long the harness, the finder (before and after it looked) and the drives did not
    /// run, ns.
    pub gaps_ns: [u64; 4],
    /// Commands that moved or enabled a motor after the stop.
    pub moved_after: u64,
    /// Stale commands that moved one.
    pub stale_moves: u64,
    /// What the core's lifeline and the guard's tripped on; empty for nothing.
    pub causes: [String; 2],
    /// The machine meanwhile.
    pub load: Load,
}

impl Round {
    /// The key of a plan's rounds.
    pub fn key(plan: &Plan) -> String {
        format!(
            "{},{},{},{},{},{}",
            plan.form.name(),
            plan.victim.name(),
            plan.fault.name(),
            u8::from(plan.lifeline),
            plan.priority,
            plan.period_ns
        )
    }

    /// What came of `plan`.
    pub fn new(plan: &Plan, verdict: &Verdict, load: Load) -> Self {
        let gaps = &verdict.gaps;
        Self {
            key: Self::key(plan),
            hit: verdict.hit.clone(),
            end: verdict.end.name().into(),
            safe_ns: verdict.safe_ns,
            quick_stop_ns: verdict.quick_stop_ns,
            gaps_ns: [gaps.strike_ns, gaps.find_ns, gaps.act_ns, gaps.take_ns],
            moved_after: verdict.moved_after,
            stale_moves: verdict.stale_moves,
            causes: verdict.causes.map(|c| c.map_or(String::new(), |cause| cause.to_string())),
            load,
        }
    }

    /// Whether it ended so.
    pub fn ended(&self, end: End) -> bool {
        self.end == end.name()
    }

    /// The period, ns.
    pub fn period_ns(&self) -> u64 {
        self.key.rsplit(',').next().and_then(|p| p.parse().ok()).unwrap_or(1)
    }

    /// Time to the safe state less the time that those who had to act did not run, ns.
    pub fn net_ns(&self) -> Option<u64> {
        Some(self.safe_ns?.saturating_sub(self.gaps_ns.iter().sum()))
    }

    fn line(&self) -> String {
        let time = |ns: Option<u64>| ns.map_or(String::new(), |ns| ns.to_string());
        let [strike, find, act, take] = self.gaps_ns;
        let [core, guard] = &self.causes;
        format!(
            "{},{},{},{},{},{strike},{find},{act},{take},{},{},{core},{guard},{:.4},{:.2}",
            self.key,
            self.hit,
            self.end,
            time(self.safe_ns),
            time(self.quick_stop_ns),
            self.moved_after,
            self.stale_moves,
            self.load.steal,
            self.load.running
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().ok();
        if cells.len() != HEADER.split(',').count() {
            return None;
        }
        Some(Self {
            key: cells[..6].join(","),
            hit: cells[6].into(),
            end: cells[7].into(),
            safe_ns: number(8),
            quick_stop_ns: number(9),
            gaps_ns: [number(10)?, number(11)?, number(12)?, number(13)?],
            moved_after: number(14)?,
            stale_moves: number(15)?,
            causes: [cells[16].into(), cells[17].into()],
            load: Load { steal: cells[18].parse().ok()?, running: cells[19].parse().ok()? },
        })
    }
}

/// Rounds of this run and of those before it.
#[derive(Debug)]
pub struct Log {
    rounds: Vec<Round>,
    file: Option<File>,
}

impl Log {
    /// In memory, or in a file from which a run that was ended goes on.
    ///
    /// # Errors
    /// When the file cannot be read or written; a line cut short by a kill is left out.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { rounds: Vec::new(), file: None }) };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let lines = BufReader::new(&file).lines().collect::<io::Result<Vec<_>>>()?;
        if lines.is_empty() {
            writeln!(file, "{HEADER}")?;
        } else if lines[0] != HEADER {
            return Err(io::Error::other("other columns: remove it or give another --log"));
        }
        let rounds = lines.iter().skip(1).filter_map(|line| Round::parse(line)).collect();
        Ok(Self { rounds, file: Some(file) })
    }

    /// Adds a round.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, round: Round) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", round.line())?;
        }
        self.rounds.push(round);
        Ok(())
    }

    /// Those of one key.
    pub fn of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Round> {
        self.rounds.iter().filter(move |round| round.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_goes_on_and_leaves_out_a_line_cut_short() {
        let dir = crate::TempDomain::new("failstop-log").unwrap();
        let path = dir.path().join("log.csv");
        let round = Round {
            key: "processes,ik,SIGKILL,1,50,2000000".into(),
            hit: "in its work".into(),
            end: End::Told.name().into(),
            safe_ns: Some(1_500_000),
            quick_stop_ns: None,
            gaps_ns: [1, 2, 3, 400_000],
            moved_after: 0,
            stale_moves: 0,
            causes: ["died".into(), String::new()],
            load: Load { steal: 0.25, running: 1.5 },
        };
        Log::open(Some(&path)).unwrap().add(round.clone()).unwrap();
        let cut = format!("{}\nprocesses,ik,SIG", std::fs::read_to_string(&path).unwrap().trim());
        std::fs::write(&path, cut).unwrap();
        let log = Log::open(Some(&path)).unwrap();
        assert_eq!(log.of(&round.key).collect::<Vec<_>>(), [&round]);
        assert_eq!(round.net_ns(), Some(1_099_994));
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Log::open(Some(&path)).is_err());
    }
}
