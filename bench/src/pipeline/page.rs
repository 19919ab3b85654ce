//! The report as one HTML page with everything in it: no scripts, no fonts, nothing from elsewhere.

use std::fmt::Write;

use super::plot::{self, COLOURS, escape};
use super::results::{Line, Results};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;\
padding:0 1em;color:#1b1b1b;background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;\
margin-top:2em}table{border-collapse:collapse;font-size:13px}th,td{padding:.2em .6em;\
border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}th:first-child,\
td:first-child,.pairs th:nth-child(2),.pairs td:nth-child(2)\
{text-align:left}.wide{overflow-x:auto}svg{max-width:100%;height:auto}\
svg text{font:12px system-ui,sans-serif;fill:#1b1b1b}.grid{display:grid;\
grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:1em}p.note{color:#555}";

/// The whole page.
pub(super) fn render(results: &Results) -> String {
    let m = &results.machine;
    let mut page =
        String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    let _ = write!(
        page,
        "<title>outlive-bench pipeline</title><style>{STYLE}</style></head><body>\
         <h1>A robot's control loop over every mechanism</h1>\
         <p>Planner, inverse kinematics, EtherCAT master and mock hardware, released every period. \
         outlive {}, commit {}, rustc {}. {}, {} cores, Linux {}, {}.</p>",
        escape(m.version),
        escape(&m.commit),
        escape(&m.rustc),
        escape(&m.cpu),
        m.cores,
        escape(&m.kernel),
        escape(&results.scheduler)
    );
    let mut periods: Vec<u64> = results.lines.iter().map(|l| l.period_us).collect();
    periods.dedup();
    for period in periods {
        let lines: Vec<&Line> = results.lines.iter().filter(|l| l.period_us == period).collect();
        let _ =
            write!(page, "<h2>Period {} ms: latency from the scheduled release</h2>", ms(period));
        page.push_str(&plot::percentiles(&lines));
        page.push_str("<div class=\"wide\">");
        page.push_str(&table(&lines));
        page.push_str("</div>");
        let _ = write!(
            page,
            "<h2>Period {} ms: latency over time</h2><div class=\"grid\">",
            ms(period)
        );
        let range = plot::range(&lines);
        for (at, line) in lines.iter().enumerate() {
            page.push_str(&plot::series(line, COLOURS[at % COLOURS.len()], range));
        }
        let _ = write!(
            page,
            "</div><h2>Period {} ms: jitter, distance of following ends less the period</h2>\
             <p class=\"note\">Cycles on a logarithmic axis, the number of the tallest bar beside \
             it. Each plot has its own reach, the central 99 %; the outermost bars hold what lies \
             beyond.</p><div class=\"grid\">",
            ms(period)
        );
        for (at, line) in lines.iter().enumerate() {
            page.push_str(&plot::histogram(line, COLOURS[at % COLOURS.len()]));
        }
        page.push_str("</div>");
    }
    page.push_str("<h2>Ratios of medians, 95 % interval over rounds</h2>");
    page.push_str("<table class=\"pairs\"><tr><th>of</th>");
    page.push_str("<th>to</th><th>period</th><th>rounds</th><th>ratio</th><th>95 %</th></tr>");
    for p in &results.pairs {
        let (ratio, interval) = p.ratio.map_or(("-".into(), "too few rounds".into()), |r| {
            (format!("{:.2}", r.median), format!("{:.2} to {:.2}", r.low, r.high))
        });
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{} ms</td><td>{}</td><td>{ratio}</td>\
             <td>{interval}</td></tr>",
            escape(p.of),
            escape(p.to),
            ms(p.period_us),
            p.rounds
        );
    }
    page.push_str("</table><h2>What the primitives cost</h2><table><tr><th>primitive</th>");
    page.push_str("<th>p50, ns</th><th>p99, ns</th><th>max, ns</th></tr>");
    for row in &results.primitives {
        let (name, p50, p99, max) = row.figures();
        let p99 = p99.map_or("-".into(), |v| format!("{v:.1}"));
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{p50:.1}</td><td>{p99}</td><td>{max:.1}</td></tr>",
            escape(name)
        );
    }
    page.push_str("</table>");
    for note in &results.notes {
        let _ = write!(page, "<p class=\"note\">{}</p>", escape(note));
    }
    page.push_str("</body></html>\n");
    page
}

fn ms(us: u64) -> String {
    if us % 1000 == 0 { (us / 1000).to_string() } else { format!("{:.3}", us as f64 / 1e3) }
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

fn table(lines: &[&Line]) -> String {
    let mut out = String::from(
        "<table><tr><th>times in us</th><th>cycles</th><th>mean</th><th>p50</th><th>p95</th>\
         <th>p99</th><th>p99.9</th><th>max</th><th>jitter</th><th>worst</th>\
         <th>period - mean</th><th>misses</th><th>cpu %</th><th>steal %</th></tr>",
    );
    for l in lines {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{}</td><td>{:.1}</td>\
             <td>{:.1}</td></tr>",
            escape(l.name),
            l.cycles,
            l.mean_us,
            number(l.p50_us),
            number(l.p95_us),
            number(l.p99_us),
            number(l.p999_us),
            l.max_us,
            l.jitter_us,
            l.jitter_max_us,
            l.article_jitter_us,
            l.misses,
            l.cpu * 100.0,
            l.steal * 100.0
        );
    }
    out.push_str("</table>");
    out
}
