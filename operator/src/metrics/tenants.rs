//! The labels `namespace`, `skill` and `model`, with a bound on the number of their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The maximum number of pairs of a namespace and a Skill that have series of their own. Each pair has about 20 series, and 8 for each
/// of its Models.
const MAX_TENANTS: usize = 500;

/// The maximum number of Models of a pair that have series of their own.
const MAX_MODELS: usize = 8;

/// The value of the labels for all further pairs and Models.
const OTHER: &str = "other";

/// The namespace and the Skill of a Job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The namespace.
    pub namespace: String,
    /// The Skill.
    pub skill: String,
}

/// The pairs that have series of their own, with their Models.
#[derive(Debug, Default)]
pub(super) struct Tenants(Mutex<BTreeMap<Tenant, BTreeSet<String>>>);

impl Tenants {
    /// Returns the labels of a pair.
    pub(super) fn labels(&self, tenant: &Tenant) -> [(&'static str, String); 2] {
        let [namespace, skill, _] = self.labels_with_model(tenant, "");
        [namespace, skill]
    }

    /// Returns the labels of a pair and a Model. The name of the Model is empty if it is not known.
    pub(super) fn labels_with_model(&self, tenant: &Tenant, model: &str) -> [(&'static str, String); 3] {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_TENANTS {
            known.entry(tenant.clone()).or_default();
        }
        let models = known.get_mut(tenant);
        let (namespace, skill) = if models.is_some() { (&*tenant.namespace, &*tenant.skill) } else { (OTHER, OTHER) };
        let has_series = model.is_empty() || models.is_some_and(|models| admits(models, model));
        let model = if has_series { model } else { OTHER };
        [("namespace", namespace.to_owned()), ("skill", skill.to_owned()), ("model", model.to_owned())]
    }
}

/// Adds a Model if there is room for it. Returns whether it has series of its own.
fn admits(models: &mut BTreeSet<String>, model: &str) -> bool {
    models.contains(model) || (models.len() < MAX_MODELS && models.insert(model.to_owned()))
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

    #[test]
    fn models_beyond_the_maximum_share_one_label() {
        let tenants = Tenants::default();
        let tenant = |name: &str| Tenant { namespace: name.into(), skill: "s".into() };
        let label = |name: &str, nth: usize| tenants.labels_with_model(&tenant(name), &format!("m-{nth}"))[2].1.clone();
        for nth in 0..MAX_MODELS {
            assert_eq!(label("a", nth), format!("m-{nth}"));
        }
        assert_eq!(label("a", MAX_MODELS), "other");
        assert_eq!((label("a", 3), label("b", MAX_MODELS)), ("m-3".into(), "m-8".into()));
        assert_eq!(tenants.labels_with_model(&tenant("a"), "")[2].1, "", "an unknown Model needs no room");
    }
}
