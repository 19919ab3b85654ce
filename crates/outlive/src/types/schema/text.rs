//! Schemas that are text: JSON Schema, and definitions of ROS.

/// Deepest nesting of a JSON Schema.
const DEPTH_MAX: usize = 128;
/// Shown of a JSON Schema where two differ, bytes.
const SHOWN_BYTES: usize = 40;

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| format!("it is not UTF-8 from byte {}", e.valid_up_to()))
}

/// JSON without white space between its parts, so that how it was written does not count.
pub(super) fn compact(json: &[u8]) -> Result<Vec<u8>, String> {
    let json = utf8(json)?;
    let (mut out, mut open) = (Vec::with_capacity(json.len()), Vec::new());
    let mut bytes = json.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        let wrong = |what: &str| format!("it is not JSON: byte {at} {what}");
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'"' => {
                out.push(byte);
                let mut escaped = false;
                loop {
                    let (_, byte) = bytes.next().ok_or_else(|| wrong("begins text without end"))?;
                    out.push(byte);
                    match byte {
                        b'"' if !escaped => break,
                        byte => escaped = byte == b'\\' && !escaped,
                    }
                }
                continue;
            }
            b'{' | b'[' if open.len() == DEPTH_MAX => {
                return Err(format!("it is nested more than {DEPTH_MAX} deep"));
            }
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.pop() != Some(byte) => return Err(wrong("closes nothing")),
            _ => {}
        }
        out.push(byte);
    }
    match (out.first(), open.is_empty()) {
        (Some(b'{'), true) => Ok(out),
        (Some(b'{'), false) => Err("it is not JSON: its end is missing".into()),
        _ => Err("it is not a JSON object".into()),
    }
}

/// Where two texts begin to differ, as one line.
pub(super) fn first_difference(topic: &[u8], ours: &[u8]) -> Vec<String> {
    let same = topic.iter().zip(ours).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(SHOWN_BYTES / 2);
    let part = |of: &[u8]| {
        let end = of.len().min(from + SHOWN_BYTES);
        String::from_utf8_lossy(&of[from.min(end)..end]).into_owned()
    };
    let (has, want) = (part(topic), part(ours));
    vec![format!("its schema has '{has}' from byte {from}, this program has '{want}'")]
}

/// The first lines that differ between two definitions of ROS; none if only comments, white space,
/// the order of the types within, and `pkg/msg/T` in place of `pkg/T` do.
pub(super) fn differing_lines(topic: &[u8], ours: &[u8]) -> Vec<String> {
    let [topic, ours] = [topic, ours].map(String::from_utf8_lossy);
    let (mut has, mut want) = (statements(&topic).into_iter(), statements(&ours).into_iter());
    loop {
        match (has.next(), want.next()) {
            (None, None) => return Vec::new(),
            (a, b) if a == b => {}
            (a, b) => {
                let text = |line: Option<String>| line.unwrap_or("nothing more".into());
                let (a, b) = (text(a), text(b));
                return vec![format!("its definition has '{a}', this program has '{b}'")];
            }
        }
    }
}

/// Lines that say something, each with single spaces and without its comment: those of the type
/// itself, then those of the types within in order of their names.
fn statements(text: &str) -> Vec<String> {
    let mut of_types = vec![Vec::new()];
    for line in text.lines() {
        let mut words: Vec<_> = without_comment(line).split_whitespace().collect();
        match words[..] {
            [] => {}
            [rule] if rule.len() > 2 && rule.bytes().all(|byte| byte == b'=') => {
                of_types.push(Vec::new());
            }
            _ => {
                let of = usize::from(words[0] == "MSG:" && words.len() > 1);
                let name = words[of].replacen("/msg/", "/", 1);
                words[of] = &name;
                of_types.last_mut().into_iter().for_each(|lines| lines.push(words.join(" ")));
            }
        }
    }
    of_types[1..].sort();
    of_types.concat()
}

/// Up to the first `#` outside of quotes. A quote that nobody closes is none.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (i, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (None, '#') => return &line[..i],
            (None, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    let end = quote.and_then(|_| line.find('#')).unwrap_or(line.len());
    &line[..end]
}
