//! The Models that are asked where one gives no answer: its fallbacks, and after each of them that one's own.

use std::fmt;

/// How many fallbacks a Model may have in all.
const MAX: usize = 8;

/// Why the fallbacks of a Model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// One of them does not exist.
    Missing {
        /// Which.
        name: String,
        /// The Model that names it.
        of: String,
    },
    /// One of them leads back to a Model before it.
    Circle(Vec<String>),
    /// There are too many.
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, of } => {
                write!(f, "spec.fallback of the Model {of} names the Model {name}, which does not exist")
            }
            Self::Circle(names) => write!(f, "spec.fallback leads in a circle: {}", names.join(" -> ")),
            Self::TooMany => write!(f, "spec.fallback leads to more than {MAX} Models in all"),
        }
    }
}

/// The fallbacks of a Model, in the order in which they are asked, each once. `find` gives the fallbacks that a Model
/// names itself; none where it does not exist.
///
/// # Errors
/// The first fault on the way.
pub fn chain(name: &str, find: impl Fn(&str) -> Option<Vec<String>>) -> Result<Vec<String>, Fault> {
    let mut walk = Walk { find: &find, found: Vec::new(), path: vec![name.to_owned()] };
    walk.follow(name, name)?;
    Ok(walk.found)
}

struct Walk<'a> {
    find: &'a dyn Fn(&str) -> Option<Vec<String>>,
    found: Vec<String>,
    path: Vec<String>,
}

impl Walk<'_> {
    fn follow(&mut self, name: &str, of: &str) -> Result<(), Fault> {
        let missing = || Fault::Missing { name: name.to_owned(), of: of.to_owned() };
        for next in (self.find)(name).ok_or_else(missing)? {
            if self.path.contains(&next) {
                return Err(Fault::Circle(self.path.iter().cloned().chain([next]).collect()));
            }
            if self.found.contains(&next) {
                continue;
            }
            if self.found.len() == MAX {
                return Err(Fault::TooMany);
            }
            self.found.push(next.clone());
            self.path.push(next.clone());
            self.follow(&next, name)?;
            self.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use std::collections::BTreeMap;

    fn of(models: &str) -> Result<Vec<String>, Fault> {
        let models: BTreeMap<&str, Vec<String>> = models
            .split(';')
            .map(|model| model.trim().split_once(':').unwrap())
            .map(|(name, rest)| (name, rest.split_whitespace().map(str::to_owned).collect()))
            .collect();
        chain("a", |name| models.get(name).cloned())
    }

    #[rstest]
    #[case::none("a:", &[])]
    #[case::in_their_order("a: b c; b:; c:", &["b", "c"])]
    #[case::after_each_its_own("a: b c; b: d; c: d e; d:; e:", &["b", "d", "c", "e"])]
    #[case::named_before("a: b c; b: c; c:", &["b", "c"])]
    fn each_is_asked_once_and_before_its_own(#[case] models: &str, #[case] expected: &[&str]) {
        assert_eq!(of(models).unwrap(), expected);
    }

    #[rstest]
    #[case::missing("a: b; b: c", "spec.fallback of the Model b names the Model c, which does not exist")]
    #[case::itself("a: a", "spec.fallback leads in a circle: a -> a")]
    #[case::round("a: b; b: c; c: a", "spec.fallback leads in a circle: a -> b -> c -> a")]
    #[case::round_elsewhere("a: b; b: c; c: b", "spec.fallback leads in a circle: a -> b -> c -> b")]
    #[case::too_many(
        "a: b c d e; b: f g h i; c: j; d:; e:; f:; g:; h:; i:; j:",
        "spec.fallback leads to more than 8 Models in all"
    )]
    fn what_cannot_be_is_named(#[case] models: &str, #[case] expected: &str) {
        assert_eq!(of(models).unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn it_ends_and_names_each_at_most_once(
            models in proptest::collection::btree_map("[a-f]", proptest::collection::vec("[a-f]", 0..4), 0..6),
        ) {
            if let Ok(names) = chain("a", |name| models.get(name).cloned()) {
                let mut once = names.clone();
                once.sort();
                once.dedup();
                prop_assert_eq!(once.len(), names.len());
                prop_assert!(!names.contains(&"a".to_owned()) && names.iter().all(|name| models.contains_key(name)));
            }
        }
    }
}
