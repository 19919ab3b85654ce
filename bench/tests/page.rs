//! The report of `outlive-bench pipeline` in a browser: it renders, nothing overlaps, and a
//! screenshot is left in the test's directory for people to look at.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::Watchdog;
use testkit::browser::{chromium, png_size};
use testkit::spawn::spawn_program;

/// Measures the rendered page: labels that lie on another or outside their plot.
const PROBE: &str = r#"<script>
const found = [];
const box = e => e.getBoundingClientRect();
const plots = [...document.querySelectorAll("svg")];
for (const plot of plots) {
  const frame = box(plot), texts = [...plot.querySelectorAll("text")];
  texts.forEach((text, at) => {
    const a = box(text);
    if (a.width === 0) found.push(`${text.textContent}: not drawn`);
    if (a.left < frame.left - 1 || a.right > frame.right + 1 ||
        a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push(`${text.textContent}: outside its plot`);
    for (const other of texts.slice(at + 1)) {
      const b = box(other);
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 2) found.push(`${text.textContent} lies on ${other.textContent}`);
    }
  });
}
for (const table of document.querySelectorAll("table")) {
  if (box(table).right > innerWidth) found.push("a table is wider than the page");
}
const verdict = document.createElement("pre");
verdict.id = "verdict";
verdict.textContent = `plots ${plots.length}; found ${JSON.stringify(found)}; end`;
document.body.append(verdict);
</script>"#;

/// Runs the browser on a page; what it prints. `None` when it hangs.
fn browse(program: &Path, profile: &Path, args: &[String], page: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--window-size=1200,3700", "--hide-scrollbars", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut out = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
    });
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() > Duration::from_secs(300) {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    reader.join().ok()?.ok()
}

#[test]
fn the_report_renders_in_a_browser_and_no_label_lies_on_another() {
    let Some(program) = chromium() else { return };
    // A browser that starts on a busy machine may take a minute.
    let _watchdog = Watchdog::start("page", Duration::from_secs(800));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&dir).unwrap();
    let (page, probed) = (dir.join("report.html"), dir.join("probed.html"));
    // Sixteen rows on any machine, two plots each, one of all: those that spin are not everywhere.
    let args = "pipeline --quick --rounds 6 --rows thread,sleep,pipe,socket,yield --html";
    let mut bench = spawn_program(env!("CARGO_BIN_EXE_outlive-bench"));
    let status = bench.args(args.split_whitespace()).arg(&page).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());

    // The page has no scripts; a copy gets one that measures it.
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(!html.contains("<script"), "the report stands without scripts");
    std::fs::write(&probed, html.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let profile = dir.join("profile");
    let dumped = browse(&program, &profile, &["--dump-dom".into()], &probed)
        .expect("the browser prints the page and ends");
    let verdict = dumped.split("id=\"verdict\">").nth(1).expect("the probe ran");
    let verdict = verdict.split("; end").next().unwrap();
    assert_eq!(verdict, "plots 33; found []", "see {}", page.display());

    let shot = dir.join("report.png");
    let _ = std::fs::remove_file(&shot);
    browse(&program, &profile, &[format!("--screenshot={}", shot.display())], &page)
        .expect("the browser ends");
    let bytes = std::fs::read(&shot).expect("a screenshot");
    assert_eq!(png_size(&bytes), Some((1200, 3700)));
    // A blank page of this size packs into a few kilobytes.
    assert!(bytes.len() > 60_000, "{} bytes: nothing on it?", bytes.len());
    println!("screenshot: {}", shot.display());
}
