//! Columns of a table by a schema, so that what the first message has not set is not missing.

use std::collections::HashSet;

use super::tree::{Key, Path};

/// Deepest nesting that has columns of its own.
const DEPTH_MAX: usize = 32;
/// With so many columns, a message that follows is one: a schema of 64 KiB can nest to very many.
const COLUMNS_MAX: usize = 1024;

/// What the values of a field may be: messages of a sort, or `None` for what has no fields.
pub(super) type Sorts<T> = Vec<Option<T>>;

/// A column for each field of `root` and of the messages in it, whose fields `fields` tells; one
/// for all of a message inside itself.
pub(super) fn columns<T: PartialEq>(
    root: T,
    fields: impl Fn(&T) -> Vec<(String, Sorts<T>)>,
) -> Vec<Path> {
    let mut walk = Walk { fields, above: Vec::new(), seen: HashSet::new(), out: Vec::new() };
    walk.message(root, &Path::default());
    walk.out
}

struct Walk<T, F> {
    fields: F,
    /// The messages around.
    above: Vec<T>,
    /// Sorts of a field may have fields of the same name.
    seen: HashSet<Path>,
    out: Vec<Path>,
}

impl<T: PartialEq, F: Fn(&T) -> Vec<(String, Sorts<T>)>> Walk<T, F> {
    fn message(&mut self, of: T, at: &Path) {
        let fields = (self.fields)(&of);
        self.above.push(of);
        for (name, sorts) in fields {
            let at = at.below(Key::Field(name));
            for sort in sorts {
                match sort {
                    Some(of) if self.has_columns(&of) => self.message(of, &at),
                    _ if self.seen.insert(at.clone()) => self.out.push(at.clone()),
                    _ => {}
                }
            }
        }
        self.above.pop();
    }

    fn has_columns(&self, of: &T) -> bool {
        let is_small = self.above.len() < DEPTH_MAX && self.out.len() < COLUMNS_MAX;
        is_small && !self.above.contains(of) && !(self.fields)(of).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_nests_to_very_many_has_a_bounded_number_of_columns() {
        // Each message has the next one twice, and itself.
        let fields = |of: &u32| {
            let next = |name: &str| (name.to_owned(), vec![Some(of + 1)]);
            vec![next("a"), next("b"), ("c".into(), vec![Some(*of)])]
        };
        let all = columns(0, fields);
        assert!((COLUMNS_MAX..2 * COLUMNS_MAX).contains(&all.len()), "{}", all.len());
        assert!(all.iter().all(|path| path.0.len() <= DEPTH_MAX));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn what_may_be_of_several_sorts_has_the_columns_of_all() {
        let fields = |of: &u32| match of {
            0 => vec![("x".to_owned(), vec![Some(1), Some(2), None, Some(3)])],
            1 => vec![("a".into(), vec![None]), ("b".into(), vec![None])],
            2 => vec![("b".into(), vec![Some(3)]), ("c".into(), vec![None])],
            _ => vec![],
        };
        let all = columns(0, fields).iter().map(Path::to_string).collect::<Vec<_>>();
        assert_eq!(all, ["x.a", "x.b", "x.c", "x"]);
    }
}
