//! The plots of the report, as SVG.

use std::fmt::Write;

use super::results::{Line, Results};

/// Colours that stay apart for most kinds of colour blindness (Okabe and Ito).
pub(super) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Name, colour, value.
type Mark = (&'static str, &'static str, fn(&Line) -> Option<f64>);

/// A power of ten of microseconds, in the unit that keeps it short.
fn duration(decade: i32) -> String {
    let us = 10f64.powi(decade);
    match decade {
        6.. => format!("{} s", us / 1e6),
        3..6 => format!("{} ms", us / 1e3),
        _ => format!("{us} us"),
    }
}

/// Powers of ten that enclose the values.
fn decades(low: f64, high: f64) -> (i32, i32) {
    let (low, high) = (low.max(1e-3), high.max(1e-2));
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (from, to.max(from + 1))
}

/// The first period's percentiles as a file of its own.
pub(super) fn file(results: &Results) -> String {
    let Some(period_us) = results.lines.first().map(|l| l.period_us) else { return String::new() };
    let lines: Vec<&Line> = results.lines.iter().filter(|l| l.period_us == period_us).collect();
    let title = format!(
        "<title>Latency from the scheduled release, period {period_us} us, {}, {} cores, {}</title>\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
        escape(&results.machine.cpu),
        results.machine.cores,
        escape(&results.scheduler)
    );
    let svg = percentiles(&lines).replacen(
        "<svg ",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"system-ui,sans-serif\" \
         font-size=\"12\" ",
        1,
    );
    svg.replacen('>', &format!(">{title}"), 1) + "\n"
}

/// p50 to maximum of every row, on a logarithmic axis.
pub(super) fn percentiles(lines: &[&Line]) -> String {
    const LEFT: f64 = 190.0;
    const RIGHT: f64 = 1025.0;
    const TOP: f64 = 40.0;
    const STEP: f64 = 26.0;
    let low = lines.iter().filter_map(|l| l.p50_us).fold(f64::MAX, f64::min).min(1e6);
    let high = lines.iter().map(|l| l.max_us).fold(1.0, f64::max);
    let (from, to) = decades(low, high);
    let x = |us: f64| {
        let share = (us.max(1e-3).log10() - f64::from(from)) / f64::from(to - from);
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    };
    let height = TOP + STEP * lines.len() as f64 + 30.0;
    let mut out = format!("<svg viewBox=\"0 0 1060 {height}\" role=\"img\">");
    for decade in from..=to {
        let at = x(10f64.powi(decade));
        let label = duration(decade);
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            TOP - 8.0,
            height - 24.0,
            height - 8.0
        );
    }
    let marks: [Mark; 5] = [
        ("p50", COLOURS[0], |l| l.p50_us),
        ("p95", COLOURS[2], |l| l.p95_us),
        ("p99", COLOURS[4], |l| l.p99_us),
        ("p99.9", COLOURS[3], |l| l.p999_us),
        ("max", COLOURS[1], |l| Some(l.max_us)),
    ];
    for (at, (name, colour, _)) in marks.iter().enumerate() {
        let x = LEFT + 90.0 * at as f64;
        let _ = write!(
            out,
            "<circle cx=\"{x}\" cy=\"14\" r=\"5\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"18\">{name}</text>",
            x + 10.0
        );
    }
    for (at, line) in lines.iter().enumerate() {
        let y = TOP + STEP * at as f64 + 8.0;
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#bbb\" \
             stroke-width=\"2\"/>",
            LEFT - 10.0,
            y + 4.0,
            escape(line.name),
            x(line.p50_us.unwrap_or(line.max_us)),
            x(line.max_us)
        );
        for (_, colour, of) in &marks {
            if let Some(us) = of(line) {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/>",
                    x(us)
                );
            }
        }
    }
    out.push_str("</svg>");
    out
}

/// Size of a small plot, and where its axes are.
const W: f64 = 360.0;
const H: f64 = 170.0;
const X0: f64 = 54.0;
const X1: f64 = 350.0;
const Y0: f64 = 26.0;
const Y1: f64 = 140.0;

fn frame(title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {W} {H}\" role=\"img\"><text x=\"{X0}\" y=\"16\" \
         font-weight=\"bold\">{}</text><line x1=\"{X0}\" x2=\"{X1}\" y1=\"{Y1}\" y2=\"{Y1}\" \
         stroke=\"#888\"/><line x1=\"{X0}\" x2=\"{X0}\" y1=\"{Y0}\" y2=\"{Y1}\" stroke=\"#888\"/>",
        escape(title)
    )
}

/// The decades of all latencies of some rows, so that their plots compare.
pub(super) fn range(lines: &[&Line]) -> (i32, i32) {
    let all = || lines.iter().flat_map(|l| l.latency_ns.iter().copied());
    decades(all().fold(f64::MAX, f64::min) / 1e3, all().fold(0.0, f64::max) / 1e3)
}

/// Latency of each cycle, in order; of many neighbours the largest. `from` and `to` are decades.
pub(super) fn series(line: &Line, colour: &str, (from, to): (i32, i32)) -> String {
    const POINTS: usize = 592;
    let mut out = frame(line.name);
    let values = &line.latency_ns;
    if values.is_empty() {
        return out + "</svg>";
    }
    let y =
        |us: f64| Y1 - (us.max(1e-3).log10() - f64::from(from)) / f64::from(to - from) * (Y1 - Y0);
    for decade in from..=to {
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            X0 - 5.0,
            y(10f64.powi(decade)) + 4.0,
            duration(decade)
        );
    }
    let step = values.len().div_ceil(POINTS);
    let count = values.len().div_ceil(step);
    let mut path = String::new();
    for (at, part) in values.chunks(step).enumerate() {
        let x = X0 + (X1 - X0) * at as f64 / count.max(2).saturating_sub(1) as f64;
        let largest = part.iter().copied().fold(0.0, f64::max) / 1e3;
        let _ = write!(path, "{}{x:.1},{:.1}", if at == 0 { "M" } else { "L" }, y(largest));
    }
    let _ = write!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\"/><text x=\"{X0}\" y=\"158\">\
         cycle 1</text><text x=\"{X1}\" y=\"158\" text-anchor=\"end\">cycle {}</text></svg>",
        values.len()
    );
    out
}

/// How often the period deviated by how much; the count on a logarithmic axis.
pub(super) fn histogram(line: &Line, colour: &str) -> String {
    const BARS: usize = 74;
    let mut out = frame(line.name);
    let values = &line.deviation_ns;
    if values.is_empty() {
        return out + "</svg>";
    }
    // The central 99 % on the axis; what lies outside falls into the outermost bars.
    let mut sizes: Vec<f64> = values.iter().map(|d| d.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let reach = sizes[(sizes.len() - 1) * 99 / 100].max(1000.0);
    let mut bars = [0usize; BARS];
    for value in values {
        let share = (value / reach + 1.0) / 2.0;
        bars[(share.clamp(0.0, 0.999_999) * BARS as f64) as usize] += 1;
    }
    let most = (bars.iter().copied().max().unwrap_or(1) as f64).max(2.0).ln();
    let width = (X1 - X0) / BARS as f64;
    for (at, count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = ((*count as f64).ln() + 0.4) / (most + 0.4) * (Y1 - Y0);
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\"/>",
            X0 + width * at as f64,
            Y1 - height,
            width - 0.5
        );
    }
    let _ = write!(
        out,
        "<text x=\"{X0}\" y=\"158\">-{0:.0} us</text><text x=\"{1}\" y=\"158\" \
         text-anchor=\"middle\">on time</text><text x=\"{X1}\" y=\"158\" text-anchor=\"end\">\
         +{0:.0} us</text><text x=\"{2}\" y=\"{3}\" text-anchor=\"end\">{4}</text></svg>",
        reach / 1e3,
        (X0 + X1) / 2.0,
        X0 - 5.0,
        Y0 + 8.0,
        bars.iter().max().unwrap_or(&0)
    );
    out
}
