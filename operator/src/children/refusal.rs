//! Decides whether a requested child may be created: pure.

use super::build::passed_bindings;
use super::family::depth;
use crate::caches::Guarded;
use crate::listing::join_sentences;
use crate::status::{checked_status, unmet_message};
use bloomery_crds::children::{MAX_DEPTH, may_invoke};
use bloomery_crds::conditions::ConditionType;
use bloomery_crds::resources;
use bloomery_crds::v1alpha1::{ChildJob, Job, RequestedChild, Skill};

/// A requested child, and the facts that decide whether it may be created.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The Job that requests it.
    pub parent: &'a Job,
    /// The name of the invoked Skill.
    pub skill: &'a str,
    /// The request.
    pub request: &'a RequestedChild,
    /// The Skills that the revision of the parent may invoke.
    pub allowed: &'a [String],
    /// The Skills of the parent and of its ancestors; none if they are not known.
    pub lineage: Option<&'a [String]>,
    /// The invoked Skill, if it exists.
    pub target: Option<&'a Guarded<Skill>>,
}

/// Returns the Skill, or why a Job cannot start with it.
pub fn ready_skill<'a>(name: &str, target: Option<&'a Guarded<Skill>>) -> Result<&'a Skill, String> {
    let skill = match target.map(|target| &target.0) {
        None => return Err(format!("the Skill {name} does not exist in the namespace")),
        Some(Err(_)) => return Err(format!("the Skill {name} cannot be read by this version of the operator")),
        Some(Ok(skill)) => skill,
    };
    if skill.metadata.deletion_timestamp.is_some() {
        return Err(format!("the Skill {name} is being deleted"));
    }
    let Some(status) = checked_status(skill) else {
        return Err(format!("the Skill {name} was changed, and the operator has not checked it yet"));
    };
    match unmet_message(&status.conditions, ConditionType::Ready) {
        Some(unmet) => Err(format!("the Skill {name} is not ready: {unmet}")),
        None => Ok(skill),
    }
}

/// Returns why a child is not created; none if it may be.
pub fn refusal(invocation: &Invocation<'_>) -> Option<String> {
    let Invocation { parent, skill, request, allowed, lineage, target } = *invocation;
    let own = &parent.spec.skill;
    if parent.spec.validates() {
        return Some("the Job tests the features of its Skill, and a validation has no children".to_owned());
    }
    if !may_invoke(allowed, skill) {
        return Some(format!("the Skill {own} may not invoke {skill}: its spec.skills does not name that Skill"));
    }
    let Some(lineage) = lineage else {
        return Some("an ancestor of the Job cannot be read, so its depth is not known".to_owned());
    };
    if depth(lineage) >= MAX_DEPTH {
        return Some(format!("the Job has the depth {}, and the largest depth is {MAX_DEPTH}", depth(lineage)));
    }
    if lineage.iter().any(|ancestor| ancestor == skill) {
        return Some(format!("{skill} is the Skill of the Job or of an ancestor, which would be a cycle"));
    }
    let target = match ready_skill(skill, target) {
        Ok(target) => target,
        Err(why) => return Some(why),
    };
    resources_fault(parent, request, target)
}

/// Describes why the bindings that are passed on do not fit the invoked Skill; none if they do.
fn resources_fault(parent: &Job, request: &RequestedChild, target: &Skill) -> Option<String> {
    let unbound = request.resources.iter().find(|name| !parent.spec.resources.contains_key(*name));
    if let Some(name) = unbound {
        return Some(format!("resources: the Job has no binding {name} to pass on"));
    }
    let faults = resources::faults(&target.spec.resources, &passed_bindings(parent, request));
    (!faults.is_empty()).then(|| join_sentences(&faults, ChildJob::MAX_REFUSED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::job;
    use bloomery_crds::v1alpha1::JobMode;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// A Skill with one required resource, and a condition `Ready` of this status.
    fn skill(ready: &str, generation: i64) -> Guarded<Skill> {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "ModelNotFound", "message": "no Model",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let skill = json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill",
            "metadata": { "name": "reviewer", "namespace": "acme", "generation": generation },
            "spec": {
                "problem": { "statement": "reviews" },
                "resources": [{ "name": "docs", "type": "api_endpoint", "required": true }],
            },
            "status": { "observedGeneration": 2, "conditions": [condition] },
        });
        Guarded(Ok(serde_json::from_value(skill).unwrap()))
    }

    /// The refusal of a child with these Skills, lineage, passed bindings and Skill.
    fn refused(allowed: &[&str], lineage: &[&str], resources: &Value, target: Option<&Guarded<Skill>>) -> String {
        let mut parent = job();
        parent.spec.resources = serde_json::from_value(
            json!({ "docs": { "value": "https://docs.example" }, "shop": { "value": "https://x" } }),
        )
        .unwrap();
        let request = RequestedChild {
            goal: "Review".into(),
            resources: serde_json::from_value(resources.clone()).unwrap(),
            ..RequestedChild::default()
        };
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (allowed, lineage) = (own(allowed), own(lineage));
        let lineage = (!lineage.is_empty()).then_some(lineage.as_slice());
        let invocation =
            Invocation { parent: &parent, skill: "reviewer", request: &request, allowed: &allowed, lineage, target };
        refusal(&invocation).unwrap_or_else(|| "created".to_owned())
    }

    #[rstest]
    #[case::named(&["other", "reviewer"], &["cs-tier-1"], "created")]
    #[case::all(&["*"], &["cs-tier-1", "root"], "created")]
    #[case::not_named(&["review"], &["cs-tier-1"], "may not invoke reviewer: its spec.skills")]
    #[case::none(&[], &["cs-tier-1"], "may not invoke reviewer")]
    #[case::unknown_depth(&["*"], &[], "its depth is not known")]
    #[case::third_level(&["*"], &["cs-tier-1", "b", "a"], "created")]
    #[case::too_deep(&["*"], &["cs-tier-1", "c", "b", "a"], "the Job has the depth 4")]
    #[case::itself(&["*"], &["reviewer"], "would be a cycle")]
    #[case::its_ancestor(&["*"], &["cs-tier-1", "reviewer"], "would be a cycle")]
    fn the_skills_and_the_ancestors_of_the_parent_decide(
        #[case] allowed: &[&str],
        #[case] lineage: &[&str],
        #[case] expected: &str,
    ) {
        let found = refused(allowed, lineage, &json!(["docs"]), Some(&skill("True", 2)));
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn a_validation_has_no_children() {
        let mut parent = job();
        parent.spec.mode = Some(JobMode::Validate);
        let (allowed, lineage, target) = (["*".to_owned()], ["cs-tier-1".to_owned()], skill("True", 2));
        let invocation = Invocation {
            parent: &parent,
            skill: "reviewer",
            request: &RequestedChild::default(),
            allowed: &allowed,
            lineage: Some(&lineage),
            target: Some(&target),
        };
        assert!(refusal(&invocation).unwrap().contains("a validation has no children"));
    }

    #[rstest]
    #[case::ready(Some(skill("True", 2)), "created")]
    #[case::missing(None, "does not exist")]
    #[case::not_ready(Some(skill("False", 2)), "is not ready: Ready=False (ModelNotFound): no Model")]
    #[case::edited(Some(skill("True", 3)), "has not checked it yet")]
    fn the_invoked_skill_must_be_ready(#[case] target: Option<Guarded<Skill>>, #[case] expected: &str) {
        let found = refused(&["*"], &["cs-tier-1"], &json!(["docs"]), target.as_ref());
        assert!(found.contains(expected), "{found}");
    }

    #[rstest]
    #[case::not_bound(json!(["docs", "ledger"]), "the Job has no binding ledger")]
    #[case::required(json!([]), "spec.resources.docs: the Skill requires this api_endpoint")]
    #[case::undeclared(json!(["docs", "shop"]), "spec.resources.shop: ")]
    fn the_bindings_must_be_those_of_the_parent_and_fit_the_skill(#[case] resources: Value, #[case] expected: &str) {
        let found = refused(&["*"], &["cs-tier-1"], &resources, Some(&skill("True", 2)));
        assert!(found.contains(expected), "{found}");
    }
}
