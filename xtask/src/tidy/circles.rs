//! Files that use each other in a circle: none of them can be read, tested or moved alone.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::imports::{Module, Path};
use super::tree::Tree;

/// Roots see all of their crate, and everybody uses the door to the atomics.
const NO_ARROWS: [&str; 3] = ["lib.rs", "main.rs", "sync.rs"];
/// Imports on the way from a name to its home; where there are more they go round.
const HOPS_MAX: usize = 12;

/// An arrow leads from a file to the home of a name that it uses: where the name is defined, not
/// where it is passed on. Where arrows lead back to a file it is in a circle.
pub(super) fn of_files(tree: &Tree) -> Vec<Finding> {
    let paths = tree.files.iter().map(|file| file.path.as_str());
    let roots = paths.filter_map(|path| {
        let root = path.strip_suffix("/lib.rs").or_else(|| path.strip_suffix("/main.rs"))?;
        root.ends_with("/src").then_some(root)
    });
    let roots: BTreeSet<_> = roots.collect();
    roots.into_iter().flat_map(|root| of_crate(tree, root)).collect()
}

fn of_crate(tree: &Tree, source: &str) -> Vec<Finding> {
    let modules = Crate::read(tree, source);
    let arrows = modules.arrows();
    let told = |circle: BTreeSet<&str>| {
        let of_circle = |arrow: &(&str, &str)| circle.contains(arrow.0) && circle.contains(arrow.1);
        let mut text = format!("{} files in a circle", circle.len());
        for ((from, to), names) in arrows.iter().filter(|(arrow, _)| of_circle(arrow)) {
            let names: Vec<_> = names.iter().copied().collect();
            text += &format!("; {from} uses {} of {to}", names.join(", "));
        }
        Finding::new(&format!("{source}/{}", circle.first().unwrap_or(&"")), 1, text)
    };
    circles(&arrows).into_iter().map(told).collect()
}

/// Names by the file that uses them and the one that is their home.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// Groups of files that all lead to each other.
fn circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached = |start: &'a str| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(file) = next.pop() {
            let from_here = arrows.range((file, "")..).take_while(|((from, _), _)| *from == file);
            next.extend(from_here.map(|((_, to), _)| *to).filter(|to| reached.insert(*to)));
        }
        reached
    };
    let all: BTreeMap<_, _> = arrows.keys().map(|(from, _)| (*from, reached(from))).collect();
    let leads_back = |to: &&str, file: &str| all.get(to).is_some_and(|there| there.contains(file));
    let circle = |(file, reached): (&&str, &BTreeSet<&'a str>)| {
        reached.iter().copied().filter(|to| leads_back(to, file)).collect()
    };
    all.iter().map(circle).filter(|circle: &BTreeSet<_>| !circle.is_empty()).collect()
}

/// Modules that have a file, which is named with each, by their paths.
struct Crate<'a>(BTreeMap<Path<'a>, (&'a str, Module<'a>)>);

impl<'a> Crate<'a> {
    fn read(tree: &'a Tree, source: &str) -> Self {
        let mut modules = BTreeMap::new();
        for file in tree.files.iter().filter(|f| f.is_rust() && !f.is_test_file()) {
            let inside = file.path.strip_prefix(source).and_then(|rest| rest.strip_prefix('/'));
            let Some(inside) = inside else { continue };
            let mut path: Path<'_> = inside.trim_end_matches(".rs").split('/').collect();
            path.pop_if(|last| ["mod", "lib", "main"].contains(last));
            // Of a library and a program in one folder, the library's root is the modules'.
            modules.entry(path.clone()).or_insert_with(|| (inside, Module::read(file, path)));
        }
        Self(modules)
    }

    fn arrows(&self) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for (file, module) in self.0.values() {
            for (home, name) in module.uses.iter().filter_map(|path| self.home(path, 0)) {
                if home != *file && ![home, *file].iter().any(|f| NO_ARROWS.contains(f)) {
                    arrows.entry((*file, home)).or_default().insert(name);
                }
            }
        }
        arrows
    }

    /// The file that has what `path` names, and its name there.
    fn home(&self, path: &[&'a str], hops: usize) -> Option<(&'a str, &'a str)> {
        let module_at = |end: usize| Some((end, self.0.get(&path[..end])?));
        let (end, (file, module)) = (0..=path.len()).rev().find_map(module_at)?;
        let Some(name) = path.get(end) else {
            return Some((file, path.last().copied().unwrap_or("crate")));
        };
        let imported = module.imports.get(name).filter(|import| **import != path[..=end]);
        let has = |glob: &&Path<'_>| self.0.get(*glob).is_some_and(|(_, module)| module.has(name));
        let further = match imported {
            _ if hops == HOPS_MAX => None,
            Some(import) => Some([import, &path[end + 1..]].concat()),
            None if module.defines.contains(name) => None,
            None => module.globs.iter().find(has).map(|glob| [glob, &path[end..]].concat()),
        };
        further.map_or(Some((*file, *name)), |path| self.home(&path, hops + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate in `x/src`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (format!("x/src/{path}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = ("x/src/lib.rs", "");
        let root = [root].into_iter().filter(|(path, _)| files.iter().all(|(p, _)| p != path));
        let files: Vec<_> = root.chain(files.iter().copied()).collect();
        of_files(&Tree::of(&files)).into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn files_that_use_each_other_are_named_with_what_they_use() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::{B, more as m};\nstruct A;\n"),
            ("b.rs", "struct B;\nfn more(_: crate::c::C) {}\n"),
            ("c.rs", "struct C(super::a::A);\n"),
        ];
        let told = "3 files in a circle; a.rs uses B, more of b.rs; b.rs uses C of c.rs; \
                    c.rs uses A of a.rs";
        assert_eq!(found(&files), [told]);
        assert_eq!(found(&files[..3]), [""; 0]);
    }

    #[test]
    fn a_parent_and_its_child_can_be_a_circle_but_not_by_declaring_and_passing_on() {
        let child = ("a/b.rs", "use super::A;\npub struct B;\n");
        assert_eq!(found(&[("a/mod.rs", "mod b;\npub use b::B;\nstruct A;\n"), child]), [""; 0]);
        for uses in ["use b::B;", "use self::b::B;", "fn f() -> b::B {}", "type C = self::b::B;"] {
            let parent = format!("mod b;\n{uses}\nstruct A;\n");
            assert_eq!(found(&[("a/mod.rs", &parent), child]).len(), 1, "{uses}");
            assert_eq!(found(&[("a.rs", &parent), child]).len(), 1, "{uses}");
        }
    }

    #[test]
    fn a_name_that_is_passed_on_counts_where_its_home_is() {
        for passes_on in ["pub use b::B;", "pub(crate) use b::*;", "use self::{b::B, c::C};"] {
            let files = [
                ("lib.rs", "mod a;\npub use a::B;\n"),
                ("a/mod.rs", &format!("mod b;\nmod c;\n{passes_on}\n")),
                ("a/b.rs", "pub struct B;\nuse super::c::C;\n"),
                ("a/c.rs", "pub struct C(super::B, crate::B);\n"),
            ];
            let told = "2 files in a circle; a/b.rs uses C of a/c.rs; a/c.rs uses B of a/b.rs";
            assert_eq!(found(&files), [told], "{passes_on}");
        }
    }

    #[test]
    fn a_wrong_name_goes_round_but_once() {
        let files = [("a.rs", "pub use crate::b::X;"), ("b.rs", "pub use crate::a::X;")];
        assert_eq!(found(&[files[0], files[1], ("c.rs", "use crate::a::X;")]), [""; 0]);
    }

    #[test]
    fn roots_the_door_and_tests_are_in_no_circle() {
        let b = ("b.rs", "use crate::a::A;\npub struct B;\n");
        for text in [
            "// use crate::b::B;\nconst A: &str = \"crate::b::B\";",
            "struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
            "pub(in crate::b) struct A;\nfn f() -> $crate::b::B {}",
            "struct A;\nmod inside {\n    use super::b::B;\n}\nfn b() { std::b::B }",
        ] {
            assert_eq!(found(&[("a.rs", text), b]), [""; 0], "{text}");
        }
        for path in ["lib.rs", "main.rs", "sync.rs", "a/tests.rs", "a/tests/c.rs"] {
            let files = [("d.rs", "use crate::A;\nuse crate::sync::A;\nstruct D;")];
            assert_eq!(
                found(&[files[0], (path, "use crate::d::D;\nstruct A;")]),
                [""; 0],
                "{path}"
            );
        }
    }
}
