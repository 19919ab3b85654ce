//! Turns each page into one item whose documentation is the page's Rust examples.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Before an example: `Node::open` joins a domain that nobody else has.
const BEGIN: &str = "let __dir = outlive::doc_dir(); \
     unsafe { std::env::set_var(\"OUTLIVE_DIR\", __dir.path()) };";
/// After one that is the inside of `main`.
const END: &str = "Ok::<(), outlive::Error>(())";
const MAIN: &str = "fn main() -> outlive::Result<()> {";

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/book"] {
        let folder = root.join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(folder)? {
            pages.push(entry?.path());
        }
    }
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut items = String::new();
    for page in pages {
        println!("cargo:rerun-if-changed={}", page.display());
        let parent = page.parent().and_then(Path::file_name).unwrap_or_default();
        let stem = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{}_{stem}", parent.to_string_lossy());
        let name = name.replace('-', "_").to_lowercase();
        fs::write(out.join(format!("{name}.md")), examples(&fs::read_to_string(&page)?))?;
        let path = "concat!(env!(\"OUT_DIR\"), \"/";
        let _ = writeln!(items, "#[doc = include_str!({path}{name}.md\"))]\nmod {name} {{}}");
    }
    fs::write(out.join("pages.rs"), items)
}

/// The Rust blocks of `page`, all else blank, so that line numbers stay those of the page: the
/// fences move one line out, onto the blank lines around a block.
fn examples(page: &str) -> String {
    let mut lines = vec![String::new()];
    let (mut fence, mut rust, mut whole) = (None, false, false);
    for line in page.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(tag), None) => {
                fence = Some(lines.len() - 1);
                rust = tag == "rust" || tag.starts_with("rust,");
                whole = false;
                if rust && let Some(before) = lines.last_mut() {
                    *before = line.into();
                }
                lines.push(if rust { format!("# {BEGIN}") } else { String::new() });
            }
            (Some(_), Some(at)) => {
                if rust {
                    // A program of its own begins inside its `main`.
                    if whole {
                        lines[at + 1].clear();
                    }
                    lines.push(if whole { String::new() } else { format!("# {END}") });
                    lines.push("```".into());
                } else {
                    lines.push(String::new());
                }
                fence = None;
            }
            (None, Some(_)) if rust && line == MAIN => {
                whole = true;
                lines.push(format!("{line} {BEGIN}"));
            }
            (None, Some(_)) if rust => lines.push(line.into()),
            // The line after a block is its closing fence already.
            (None, None) if lines.last().is_some_and(|l| l == "```") && line.is_empty() => {}
            _ => lines.push(String::new()),
        }
    }
    lines.join("\n")
}
