//! What a Rust file defines, imports and uses, read word by word.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Source;

/// Modules and a name, from the root of the crate.
pub(crate) type Path<'a> = Vec<&'a str>;

#[derive(Default)]
pub(crate) struct Module<'a> {
    pub(crate) defines: BTreeSet<&'a str>,
    /// By the name that each gets here, also those for itself alone: its children see them.
    pub(crate) imports: BTreeMap<&'a str, Path<'a>>,
    /// Of these it imports all.
    pub(crate) globs: Vec<Path<'a>>,
    /// What its code names and what is imported for it; what it passes on by `pub use` only if its
    /// own code names that, too.
    pub(crate) uses: Vec<Path<'a>>,
}

const DEFINE: [&str; 9] =
    ["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"];

impl<'a> Module<'a> {
    /// Reads `file`, which is at `path` in its crate, without its tests.
    pub(crate) fn read(file: &'a Source, path: Path<'a>) -> Self {
        let words: Vec<_> = file.product_code().flat_map(|(_, line)| words(line)).collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let mut module = Self::default();
        let (mut inside, mut depth, mut blocks) = (path, 0_usize, Vec::new());
        let (mut children, mut paths, mut at) = (BTreeSet::new(), Vec::new(), 0);
        let mut passed_on = BTreeSet::new();
        while at < words.len() {
            let before = |n: usize| at.checked_sub(n).map_or("", word);
            let behind = before(1);
            match word(at) {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if blocks.pop_if(|block| *block == depth).is_some() {
                        inside.pop();
                    }
                }
                "use" if word(at + 1) != "<" => {
                    let public = ["pub", ")"].contains(&behind);
                    let mut leaves = Vec::new();
                    at = leaves_of(&words, at + 1, &[], &mut leaves);
                    for (path, name) in leaves {
                        passed_on.extend(Some(name).filter(|_| public));
                        module.import(absolute(&inside, &path), name, public);
                    }
                    continue;
                }
                name if DEFINE.contains(&behind) || before(2) == "macro_rules" => {
                    module.defines.insert(name);
                    if behind == "mod" && word(at + 1) == "{" {
                        inside.push(name);
                        blocks.push(depth);
                    } else if behind == "mod" {
                        children.insert(name);
                    }
                }
                name if passed_on.contains(name)
                    && !["::", "$", "."].contains(&behind)
                    // A variant of that name.
                    && !(word(at + 1) == "{" && [",", "{"].contains(&behind))
                    && (name.starts_with(char::is_uppercase) || word(at + 1) == "(") =>
                {
                    module.uses.push(absolute(&inside, &[name]));
                }
                // Not what goes on behind `<T>::` or `$crate::`, nor the path of `pub(in path)`.
                first if word(at + 1) == "::" && is_name(first) => {
                    let scope = behind == "in" && before(2) == "(";
                    let mut path = vec![first];
                    while word(at + 1) == "::" && is_name(word(at + 2)) {
                        at += 2;
                        path.push(word(at));
                    }
                    if path.len() > 1 && !scope && !["::", "$"].contains(&behind) {
                        paths.push((first, absolute(&inside, &path)));
                    }
                }
                _ => {}
            }
            at += 1;
        }
        children.extend(["crate", "self", "super"]);
        let of_crate = paths.into_iter().filter(|(first, _)| children.contains(first));
        module.uses.extend(of_crate.map(|(_, path)| path));
        module
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.defines.contains(name) || self.imports.contains_key(name)
    }

    fn import(&mut self, mut path: Path<'a>, name: &'a str, passed_on: bool) {
        if name == "*" {
            path.pop();
            self.globs.push(path.clone());
        } else {
            self.imports.insert(name, path.clone());
        }
        if !passed_on {
            self.uses.push(path);
        }
    }
}

/// Adds the paths of the tree of a `use` that begins at `at`, each with the name that it gets;
/// returns where the tree ends.
fn leaves_of<'a>(
    words: &[&'a str],
    mut at: usize,
    head: &[&'a str],
    leaves: &mut Vec<(Path<'a>, &'a str)>,
) -> usize {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let mut path = head.to_vec();
    while word(at) != "{" {
        path.push(word(at));
        at += 1;
        if word(at) == "::" {
            at += 1;
            continue;
        }
        path.pop_if(|last| *last == "self");
        let renamed = word(at) == "as";
        let name = if renamed { Some(word(at + 1)) } else { path.last().copied() };
        leaves.push((path, name.unwrap_or_default()));
        return at + if renamed { 2 } else { 0 };
    }
    at += 1;
    while at < words.len() && word(at) != "}" {
        at = leaves_of(words, at, &path, leaves);
        at += usize::from(word(at) == ",");
    }
    at + 1
}

/// `path`, written inside a module, from the root of the crate. A name from another crate seems to
/// be one of this module, which does no harm.
fn absolute<'a>(inside: &[&'a str], path: &[&'a str]) -> Path<'a> {
    let (mut from, mut rest) = (inside.to_vec(), path);
    while let [first, further @ ..] = rest {
        match *first {
            "crate" => from.clear(),
            "super" => drop(from.pop()),
            "self" => {}
            _ => break,
        }
        rest = further;
    }
    from.extend(rest);
    from
}

/// Names, `::`, and each other character alone.
fn words(mut line: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        line = line.trim_start();
        let first = line.chars().next()?;
        let length = if is_part_of_name(first) {
            line.find(|c| !is_part_of_name(c)).unwrap_or(line.len())
        } else if line.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (word, rest) = line.split_at(length);
        line = rest;
        Some(word)
    })
}

fn is_name(word: &str) -> bool {
    word.starts_with(is_part_of_name)
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    /// What a file at `a::b` uses and imports.
    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let tree = Tree::of(&[("x/src/a/b.rs", text)]);
        let module = Module::read(&tree.files[0], vec!["a", "b"]);
        let imports =
            module.imports.iter().map(|(name, path)| format!("{name}={}", path.join("::")));
        (module.uses.iter().map(|path| path.join("::")).collect(), imports.collect())
    }

    #[test]
    fn a_use_is_read_leaf_by_leaf() {
        let (uses, imports) = read("use super::{\n    c::{self, D as E, f::*},\n    G,\n};\n");
        assert_eq!(uses, ["a::c", "a::c::D", "a::c::f", "a::G"]);
        assert_eq!(imports, ["E=a::c::D", "G=a::G", "c=a::c"]);
        assert_eq!(read("pub(crate) use crate::c::{D, E};").0, [""; 0]);
        let own =
            "pub use c::{D, E, f, g};\nfn h(d: D) { f(d.g(), D::E) }\nenum K { E { a: K }, J }\n";
        assert_eq!(read(own).0, ["a::b::D", "a::b::f", "a::b::D"]);
        assert_eq!(read("fn f() -> impl Sized + use<'a> { crate::c::D }").0, ["c::D"]);
        for broken in ["use super::{", "use crate::c as", "use", "mod"] {
            read(broken); // and it ends
        }
    }

    #[test]
    fn paths_are_of_the_module_that_they_are_in() {
        let text = "mod c;\nmod d {\n    fn f() { super::g(); super::super::h() }\n}\n\
                    fn g() { c::i::<u8>(self::j); k::l(); <u8 as m::N>::o::p() }\n";
        assert_eq!(read(text).0, ["a::b::g", "a::h", "a::b::c::i", "a::b::j"]);
    }
}
