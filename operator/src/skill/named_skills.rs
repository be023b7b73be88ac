//! The Skills that a Skill names: those that do not exist, and a cycle of subskills that contains it.

use crate::caches::{Cache, Guarded};
use crate::controller::Wake;
use crate::status::checked_status;
use bloomery_crds::nearest::{nearest, suggestion};
use bloomery_crds::subskills::{self, Cycle};
use bloomery_crds::v1alpha1::Skill;
use kube::core::{Resource, ResourceExt};
use kube::runtime::reflector::{ObjectRef, Store};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of missing Skills for which a similar name is searched. The message has no room for more.
const MAX_SUGGESTIONS: usize = 8;

/// The faults of the Skills that a Skill names.
#[derive(Debug, Default)]
pub struct NamedSkills {
    /// A cycle of subskills that contains the Skill.
    pub cycle: Option<Cycle>,
    /// A sentence about each named Skill that does not exist in the namespace.
    pub missing: Vec<String>,
}

/// Reads the Skills that a Skill names.
pub fn fetch(skill: &Skill, cache: &Cache<Guarded<Skill>>) -> NamedSkills {
    let (namespace, own) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let owned = |skill: &Skill| subskills::of_features(&skill.spec).map(str::to_owned).collect::<Vec<String>>();
    // The subskills of this Skill come from the reconciled object, because the cached one may differ.
    let subskills_of = |name: &str| match cache.get(&namespace, name) {
        _ if name == own => owned(skill),
        Some(other) => other.0.as_ref().map(owned).unwrap_or_default(),
        None => Vec::new(),
    };
    let cycle = subskills::cycle_through(&own, subskills_of);
    let exists = |name: &str| name == own || cache.get(&namespace, name).is_some();
    let missing: Vec<&str> = subskills::named(&skill.spec).into_iter().filter(|name| !exists(name)).collect();
    if missing.is_empty() {
        return NamedSkills { cycle, missing: Vec::new() };
    }
    let others: Vec<String> = cache.select(&namespace, |_| true).iter().map(|other| other.name_any()).collect();
    let sentence = |(at, name): (usize, &str)| {
        let candidates = others.iter().map(String::as_str).filter(|other| *other != own);
        let near = (at < MAX_SUGGESTIONS).then(|| nearest(name, candidates)).flatten();
        format!(
            "There is no Skill {name:?} in the namespace{}: create it, or correct spec.skills and spec.features.",
            suggestion(near)
        )
    };
    NamedSkills { cycle, missing: missing.into_iter().enumerate().map(sentence).collect() }
}

/// Returns the Skills whose named Skills lead to a Skill that was created, changed or deleted. A change of its status wakes none.
pub fn invokers(store: &Store<Guarded<Skill>>, changed: &Guarded<Skill>) -> Vec<Wake<Skill>> {
    let is_cached = store.get(&ObjectRef::from_obj(changed)).is_some();
    if is_cached && changed.0.as_ref().is_ok_and(|skill| checked_status(skill).is_some()) {
        return Vec::new();
    }
    let Some(namespace) = &changed.meta().namespace else { return Vec::new() };
    let mut invokers_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for skill in store.state_filter(|skill| skill.meta().namespace.as_ref() == Some(namespace)) {
        let Ok(readable) = &skill.0 else { continue };
        for named in subskills::named(&readable.spec) {
            invokers_of.entry(named.to_owned()).or_default().push(readable.name_any());
        }
    }
    let mut found = BTreeSet::new();
    let mut next = vec![changed.name_any()];
    while let Some(name) = next.pop() {
        for invoker in invokers_of.remove(&name).unwrap_or_default() {
            if found.insert(invoker.clone()) {
                next.push(invoker);
            }
        }
    }
    found.iter().map(|name| ObjectRef::new(name).within(namespace)).collect()
}
