//! The report as a table and as CSV.

use std::io::{self, Write};

use super::results::Results;

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

/// For people.
pub(super) fn table(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let m = &results.machine;
    writeln!(out, "outlive {}, commit {}, rustc {}", m.version, m.commit, m.rustc)?;
    writeln!(out, "{}, {} cores, Linux {}, {}\n", m.cpu, m.cores, m.kernel, results.scheduler)?;
    writeln!(
        out,
        "{:<26} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9} {:>6} {:>6} {:>6}",
        "times in us",
        "period",
        "cycles",
        "mean",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "jitter",
        "worst",
        "misses",
        "cpu %",
        "steal"
    )?;
    for l in &results.lines {
        writeln!(
            out,
            "{:<26} {:>6} {:>6} {:>8.1} {:>8} {:>8} {:>8} {:>8} {:>9.1} {:>8.1} {:>9.1} {:>6} \
             {:>6.1} {:>6.1}",
            l.name,
            l.period_us,
            l.cycles,
            l.mean_us,
            number(l.p50_us),
            number(l.p95_us),
            number(l.p99_us),
            number(l.p999_us),
            l.max_us,
            l.jitter_us,
            l.jitter_max_us,
            l.misses,
            l.cpu * 100.0,
            l.steal * 100.0
        )?;
    }
    writeln!(out, "\nmedian of the first over median of the second, rounds as observations")?;
    for p in &results.pairs {
        let ratio = p.ratio.map_or("too few rounds".into(), |r| {
            format!("{:.2} (95 %: {:.2}-{:.2})", r.median, r.low, r.high)
        });
        writeln!(out, "{:>6} us  {} : {}  {ratio}, {} rounds", p.period_us, p.of, p.to, p.rounds)?;
    }
    writeln!(out, "\n{:<44} {:>10} {:>10} {:>10}", "primitives, ns", "p50", "p99", "max")?;
    for row in &results.primitives {
        let (name, p50, p99, max) = row.figures();
        let p99 = p99.map_or("-".into(), |v| format!("{v:.1}"));
        writeln!(out, "{name:<44} {p50:>10.1} {p99:>10} {max:>10.1}")?;
    }
    for note in &results.notes {
        writeln!(out, "\n{note}")?;
    }
    Ok(())
}

/// For programs: rows, then ratios, then primitives.
pub(super) fn csv(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "name,period_us,cycles,mean_us,p50_us,p95_us,p99_us,p999_us,max_us,jitter_us,\
         jitter_max_us,article_jitter_us,misses,cpu,steal"
    )?;
    let empty = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    for l in &results.lines {
        let percentiles = [l.p50_us, l.p95_us, l.p99_us, l.p999_us].map(empty).join(",");
        writeln!(
            out,
            "\"{}\",{},{},{},{percentiles},{},{},{},{},{},{},{}",
            l.name,
            l.period_us,
            l.cycles,
            l.mean_us,
            l.max_us,
            l.jitter_us,
            l.jitter_max_us,
            l.article_jitter_us,
            l.misses,
            l.cpu,
            l.steal
        )?;
    }
    for p in &results.pairs {
        let r = p.ratio.map_or(",,".into(), |r| format!("{},{},{}", r.median, r.low, r.high));
        writeln!(out, "\"{} : {}\",{},{},{r}", p.of, p.to, p.period_us, p.rounds)?;
    }
    for row in &results.primitives {
        let (name, p50, p99, max) = row.figures();
        writeln!(out, "\"{name}\",ns,{p50},{},{max}", empty(p99))?;
    }
    Ok(())
}
