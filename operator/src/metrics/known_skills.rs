//! The labels `namespace`, `skill` and `model`, with a bound on the number of their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The maximum number of Skills that have series of their own. Each Skill has about 20 series, and 8 for each of its Models.
const MAX_SKILLS: usize = 500;

/// The maximum number of Models of a Skill that have series of their own.
const MAX_MODELS: usize = 8;

/// The value of the labels for all further Skills and Models.
const OTHER: &str = "other";

/// The name of a Skill with its namespace. Skills of two namespaces may have the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillKey {
    /// The namespace.
    pub namespace: String,
    /// The name of the Skill.
    pub skill: String,
}

/// The Skills that have series of their own, with their Models.
#[derive(Debug, Default)]
pub(super) struct KnownSkills(Mutex<BTreeMap<SkillKey, BTreeSet<String>>>);

impl KnownSkills {
    /// Returns the labels of a Skill.
    pub(super) fn labels(&self, skill_key: &SkillKey) -> [(&'static str, String); 2] {
        let [namespace, skill, _] = self.labels_with_model(skill_key, "");
        [namespace, skill]
    }

    /// Returns the labels of a Skill and a Model. The name of the Model is empty if it is not known.
    pub(super) fn labels_with_model(&self, skill_key: &SkillKey, model: &str) -> [(&'static str, String); 3] {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_SKILLS {
            known.entry(skill_key.clone()).or_default();
        }
        let models = known.get_mut(skill_key);
        let (namespace, skill) =
            if models.is_some() { (&*skill_key.namespace, &*skill_key.skill) } else { (OTHER, OTHER) };
        let has_series = model.is_empty() || models.is_some_and(|models| admits(models, model));
        let model = if has_series { model } else { OTHER };
        [("namespace", namespace.to_owned()), ("skill", skill.to_owned()), ("model", model.to_owned())]
    }
}

/// Adds a Model if there is room for it. Returns whether the Model has series of its own.
fn admits(models: &mut BTreeSet<String>, model: &str) -> bool {
    models.contains(model) || (models.len() < MAX_MODELS && models.insert(model.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_beyond_the_maximum_share_one_label() {
        let known_skills = KnownSkills::default();
        let labels = |nth: usize| known_skills.labels(&SkillKey { namespace: format!("n-{nth}"), skill: "s".into() });
        for nth in 0..MAX_SKILLS {
            assert_eq!(labels(nth)[0].1, format!("n-{nth}"));
        }
        assert_eq!(labels(MAX_SKILLS), [("namespace", "other".to_owned()), ("skill", "other".to_owned())]);
        assert_eq!(labels(3)[0].1, "n-3", "a known Skill keeps its series");
    }

    #[test]
    fn models_beyond_the_maximum_share_one_label() {
        let known_skills = KnownSkills::default();
        let skill_key = |name: &str| SkillKey { namespace: name.into(), skill: "s".into() };
        let label =
            |name: &str, nth: usize| known_skills.labels_with_model(&skill_key(name), &format!("m-{nth}"))[2].1.clone();
        for nth in 0..MAX_MODELS {
            assert_eq!(label("a", nth), format!("m-{nth}"));
        }
        assert_eq!(label("a", MAX_MODELS), "other");
        assert_eq!((label("a", 3), label("b", MAX_MODELS)), ("m-3".into(), "m-8".into()));
        assert_eq!(known_skills.labels_with_model(&skill_key("a"), "")[2].1, "", "an unknown Model needs no room");
    }
}
