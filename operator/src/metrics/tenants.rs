//! The labels `namespace` and `skill`, with a bound on the number of their values.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The maximum number of pairs of a namespace and a Skill that have series of their own. Each pair has about 20 series.
const MAX_TENANTS: usize = 500;

/// The value of both labels for all further pairs.
const OTHER: &str = "other";

/// The namespace and the Skill of a Job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The namespace.
    pub namespace: String,
    /// The Skill.
    pub skill: String,
}

/// The pairs that have series of their own.
#[derive(Debug, Default)]
pub(super) struct Tenants(Mutex<BTreeSet<Tenant>>);

impl Tenants {
    /// Returns the labels of a pair.
    pub(super) fn labels(&self, tenant: &Tenant) -> [(&'static str, String); 2] {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_series = known.contains(tenant) || (known.len() < MAX_TENANTS && known.insert(tenant.clone()));
        let (namespace, skill) = if has_series { (&*tenant.namespace, &*tenant.skill) } else { (OTHER, OTHER) };
        [("namespace", namespace.to_owned()), ("skill", skill.to_owned())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_beyond_the_maximum_share_one_label() {
        let tenants = Tenants::default();
        let labels = |nth: usize| tenants.labels(&Tenant { namespace: format!("n-{nth}"), skill: "s".into() });
        for nth in 0..MAX_TENANTS {
            assert_eq!(labels(nth)[0].1, format!("n-{nth}"));
        }
        assert_eq!(labels(MAX_TENANTS), [("namespace", "other".to_owned()), ("skill", "other".to_owned())]);
        assert_eq!(labels(3)[0].1, "n-3", "a known pair keeps its series");
    }
}
