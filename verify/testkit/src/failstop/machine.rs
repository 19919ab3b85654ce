//! What the machine did meanwhile: without it a time says nothing.

use std::fs;

/// Load of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Share of all processors' time that the host gave to others, 0 to 1.
    pub steal: f64,
    /// Threads that ran or wanted to, mean of the last minute; this harness adds to it.
    pub running: f64,
}

/// Begin of a time over which load is measured.
#[derive(Clone, Copy, Debug)]
pub struct Since {
    stolen: u64,
    all: u64,
}

impl Since {
    /// From now on.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
        // user nice system idle iowait irq softirq steal, in ticks.
        let ticks: Vec<u64> = line.split_whitespace().map_while(|t| t.parse().ok()).collect();
        let stolen = ticks.get(7).copied().unwrap_or(0);
        Self { stolen, all: ticks.iter().take(8).sum() }
    }

    /// Until now.
    pub fn load(self) -> Load {
        let now = Self::now();
        let steal = (now.stolen - self.stolen.min(now.stolen)) as f64;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Load {
            steal: steal / now.all.saturating_sub(self.all).max(1) as f64,
            running: load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0),
        }
    }
}
