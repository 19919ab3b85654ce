//! Chromium without a screen, spoken to in its DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What takes so long never comes, on a busy machine too.
const HANGS: Duration = Duration::from_secs(100);

/// One page of a browser.
pub(crate) struct Page {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    /// What went wrong in the page: exceptions, and what its content policy forbade.
    pub(crate) faults: Vec<String>,
}

impl Page {
    /// An empty page of this size.
    pub(crate) fn open(program: &Path, profile: &Path, width: u32, height: u32) -> Self {
        let mut child = Command::new("sh")
            // The protocol's pipes are descriptors 3 and 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from);
        let mut page = Self { child, to, from, session: None, next: 0, faults: Vec::new() };
        let target = page.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = page.ask("Target.attachToTarget", attach);
        page.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            page.ask(domain, json!({}));
        }
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1,
                          "mobile": false});
        page.ask("Emulation.setDeviceMetricsOverride", size);
        page
    }

    pub(crate) fn go(&mut self, address: &str) {
        self.ask("Page.navigate", json!({"url": address}));
    }

    /// Runs a script in the page; its value.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let done = self.ask("Runtime.evaluate", params);
        assert!(done["exceptionDetails"].is_null(), "{script}: {}", done["exceptionDetails"]);
        done["result"]["value"].clone()
    }

    /// Waits until a script says true, and names the one that never does.
    pub(crate) fn wait_for(&mut self, script: &str) {
        let began = Instant::now();
        while self.run(script) != true {
            assert!(began.elapsed() < HANGS, "never: {script}\n{:#?}", self.faults);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What is to be seen, as a PNG.
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        base64(shot["data"].as_str().unwrap())
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser ended amid {method}");
            let news: Value = serde_json::from_slice(&bytes).unwrap();
            if news["id"] == self.next {
                assert!(news["error"].is_null(), "{method}: {}", news["error"]);
                return news["result"].clone();
            }
            match news["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.faults.push(news["params"].to_string()),
                Some("Log.entryAdded") if news["params"]["entry"]["level"] == "error" => {
                    self.faults.push(news["params"]["entry"].to_string());
                }
                _ => {}
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let plain = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::new();
    for four in plain.chunks(4) {
        let word = four.iter().fold(0u32, |word, c| word << 6 | u32::from(value(*c)));
        let word = word << (6 * (4 - four.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    out
}
