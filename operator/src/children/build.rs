//! Builds a child Job: pure.

use crate::owned;
use bloomery_crds::children;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Binding, Job, JobSpec, ParentJob, RequestedChild};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ResourceExt;
use std::collections::BTreeMap;

/// Returns the child for a call of this Job, with bindings that the Job has. Returns `None` for a Job that is not stored.
pub fn child_job(parent: &Job, (call, skill): (&str, &str), request: &RequestedChild) -> Option<Job> {
    let (parent_name, uid, run_key) = (parent.name_any(), parent.uid()?, parent.run_key()?);
    let spec = JobSpec {
        skill: skill.to_owned(),
        run_key: Some(children::run_key(&parent.spec.skill, run_key, call)),
        goal: request.goal.clone(),
        resources: passed_bindings(parent, request),
        limits: Some(request.limits.clone()),
        parent: Some(ParentJob { name: parent_name.clone(), uid, call: call.to_owned() }),
        ..JobSpec::default()
    };
    let mut child = Job::new(&children::name(&parent_name, &parent.spec.skill, run_key, call), spec);
    let mut labels = owned::labels("child");
    labels.insert(names::LABEL_SKILL.to_owned(), skill.to_owned());
    labels.insert(names::LABEL_JOB.to_owned(), parent_name);
    child.metadata.labels = Some(labels);
    child.metadata.namespace = parent.namespace();
    child.metadata.owner_references = Some(vec![owned::owner_reference(parent)?]);
    Some(child)
}

/// Returns the bindings of a Job that a request passes on.
pub fn passed_bindings(parent: &Job, request: &RequestedChild) -> BTreeMap<String, Binding> {
    let passed = parent.spec.resources.iter().filter(|(name, _)| request.resources.contains(name));
    passed.map(|(name, binding)| (name.clone(), binding.clone())).collect()
}

/// Returns whether an existing Job is the child that would be created. It may be of an earlier parent with the same name and run key.
pub fn is_same_child(existing: &Job, wanted: &Job) -> bool {
    let parent = |job: &Job| job.spec.parent.as_ref().map(|parent| (parent.name.clone(), parent.call.clone()));
    parent(existing).is_some()
        && parent(existing) == parent(wanted)
        && existing.spec.skill == wanted.spec.skill
        && existing.spec.goal == wanted.spec.goal
}

/// Returns whether an existing child is being deleted, or is deleted soon: Kubernetes deletes it because an earlier parent owned it.
pub fn is_deleted(existing: &Job, parent_uid: &str) -> bool {
    let is_earlier = |owner: &OwnerReference| owner.controller == Some(true) && owner.uid != parent_uid;
    existing.metadata.deletion_timestamp.is_some() || existing.owner_references().iter().any(is_earlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::job;
    use bloomery_crds::v1alpha1::Limits;

    fn request() -> RequestedChild {
        let limits = Limits { steps: Some(9), duration: Some("5m".parse().unwrap()), ..Limits::default() };
        RequestedChild { goal: "Review the refund".into(), resources: vec!["docs".into()], limits }
    }

    fn parent() -> Job {
        let mut parent = job();
        let url = |url: &str| Binding { value: Some(url.into()), ..Binding::default() };
        parent.spec.resources =
            [("docs".to_owned(), url("https://docs.example")), ("shop".to_owned(), url("https://shop.example"))].into();
        parent
    }

    #[test]
    fn a_child_has_only_the_bindings_that_are_passed_on() {
        let child = child_job(&parent(), ("c-4", "reviewer"), &request()).unwrap();
        insta::assert_snapshot!(serde_yaml::to_string(&serde_json::to_value(&child).unwrap()).unwrap());
    }

    #[test]
    fn a_child_of_an_earlier_parent_with_the_same_run_key_is_the_same_one() {
        let of = |uid: &str, goal: &str| {
            let mut parent = parent();
            parent.metadata.uid = Some(uid.to_owned());
            parent.spec.run_key = Some("week-3".to_owned());
            child_job(&parent, ("c-4", "reviewer"), &RequestedChild { goal: goal.into(), ..request() }).unwrap()
        };
        let (earlier, later) = (of("uid-1", "Review"), of("uid-2", "Review"));
        assert_eq!((&earlier.metadata.name, &earlier.spec.run_key), (&later.metadata.name, &later.spec.run_key));
        assert!(is_same_child(&earlier, &later));
        assert!(is_deleted(&earlier, "uid-2") && !is_deleted(&later, "uid-2"));
        assert!(!is_same_child(&of("uid-1", "Approve"), &later));
        let mut orphan = earlier.clone();
        orphan.metadata.owner_references = None;
        assert!(!is_deleted(&orphan, "uid-2"), "Kubernetes has kept it");
        let mut foreign = earlier;
        foreign.spec.parent = None;
        assert!(!is_same_child(&foreign, &later), "a person has created it");
    }
}
