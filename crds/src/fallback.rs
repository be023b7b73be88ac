//! Fallbacks of Models: the Models that a worker asks, in order, if one does not answer.

use std::fmt;

/// The largest number of fallbacks of a Model, including those of its fallbacks.
const MAX_FALLBACKS: usize = 8;

/// An error in the fallbacks of a Model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A fallback does not exist.
    Missing {
        /// The fallback.
        name: String,
        /// The Model that names it.
        of: String,
    },
    /// The fallbacks form a cycle. The names are the path from the resolved Model to the first Model that is on the path twice.
    Cycle(Vec<String>),
    /// There are more than [`MAX_FALLBACKS`].
    TooMany,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, of } => {
                write!(f, "spec.fallback of the Model {of} names the Model {name}, which does not exist")
            }
            Self::Cycle(names) => write!(f, "spec.fallback forms a cycle: {}", names.join(" -> ")),
            Self::TooMany => write!(f, "spec.fallback leads to more than {MAX_FALLBACKS} Models in all"),
        }
    }
}

/// Returns all fallbacks of a Model, each once, in the order in which a worker asks them. Each fallback is followed by its own
/// fallbacks. `fallbacks_of` returns the `spec.fallback` of a Model, or `None` if the Model does not exist.
///
/// # Errors
/// Returns the first error in that order.
pub fn resolve(name: &str, fallbacks_of: impl Fn(&str) -> Option<Vec<String>>) -> Result<Vec<String>, Error> {
    let mut walk = Walk { fallbacks_of: &fallbacks_of, resolved: Vec::new(), path: vec![name.to_owned()] };
    walk.visit(name, name)?;
    Ok(walk.resolved)
}

/// A walk over the fallbacks of a Model, depth first.
struct Walk<'a> {
    fallbacks_of: &'a dyn Fn(&str) -> Option<Vec<String>>,
    resolved: Vec<String>,
    /// The Models from the resolved Model to the one whose fallbacks are visited.
    path: Vec<String>,
}

impl Walk<'_> {
    /// Visits the fallbacks of the Model `name`, which is itself a fallback of the Model `of`.
    fn visit(&mut self, name: &str, of: &str) -> Result<(), Error> {
        let missing = || Error::Missing { name: name.to_owned(), of: of.to_owned() };
        for next in (self.fallbacks_of)(name).ok_or_else(missing)? {
            if self.path.contains(&next) {
                return Err(Error::Cycle(self.path.iter().cloned().chain([next]).collect()));
            }
            if self.resolved.contains(&next) {
                continue;
            }
            if self.resolved.len() == MAX_FALLBACKS {
                return Err(Error::TooMany);
            }
            self.resolved.push(next.clone());
            self.path.push(next.clone());
            self.visit(&next, name)?;
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

    /// Resolves the fallbacks of the Model `a`. `models` has the form `a: b c; b:; c:`.
    fn resolve_a(models: &str) -> Result<Vec<String>, Error> {
        let models: BTreeMap<&str, Vec<String>> = models
            .split(';')
            .map(|model| model.trim().split_once(':').unwrap())
            .map(|(name, rest)| (name, rest.split_whitespace().map(str::to_owned).collect()))
            .collect();
        resolve("a", |name| models.get(name).cloned())
    }

    #[rstest]
    #[case::none("a:", &[])]
    #[case::in_order("a: b c; b:; c:", &["b", "c"])]
    #[case::nested("a: b c; b: d; c: d e; d:; e:", &["b", "d", "c", "e"])]
    #[case::reached_twice("a: b c; b: c; c:", &["b", "c"])]
    fn each_fallback_is_followed_by_its_own_fallbacks(#[case] models: &str, #[case] expected: &[&str]) {
        assert_eq!(resolve_a(models).unwrap(), expected);
    }

    #[rstest]
    #[case::missing("a: b; b: c", "spec.fallback of the Model b names the Model c, which does not exist")]
    #[case::itself("a: a", "spec.fallback forms a cycle: a -> a")]
    #[case::a_cycle("a: b; b: c; c: a", "spec.fallback forms a cycle: a -> b -> c -> a")]
    #[case::a_cycle_of_other_models("a: b; b: c; c: b", "spec.fallback forms a cycle: a -> b -> c -> b")]
    #[case::too_many(
        "a: b c d e; b: f g h i; c: j; d:; e:; f:; g:; h:; i:; j:",
        "spec.fallback leads to more than 8 Models in all"
    )]
    fn an_invalid_fallback_is_reported(#[case] models: &str, #[case] expected: &str) {
        assert_eq!(resolve_a(models).unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn every_result_names_each_model_at_most_once(
            models in proptest::collection::btree_map("[a-f]", proptest::collection::vec("[a-f]", 0..4), 0..6),
        ) {
            if let Ok(names) = resolve("a", |name| models.get(name).cloned()) {
                let mut distinct = names.clone();
                distinct.sort();
                distinct.dedup();
                prop_assert_eq!(distinct.len(), names.len());
                prop_assert!(!names.contains(&"a".to_owned()) && names.iter().all(|name| models.contains_key(name)));
            }
        }
    }
}
