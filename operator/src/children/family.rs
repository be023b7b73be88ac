//! The ancestors of a Job, as the caches show them.

use crate::caches::Caches;
use bloomery_crds::children::{self, MAX_DEPTH};
use bloomery_crds::v1alpha1::{Job, JobStatus};
use kube::core::ResourceExt;

/// Returns the Skills of a Job and of its ancestors, beginning with its own. Returns `None` if an ancestor cannot be read, or if there are
/// more than a Job may have.
pub fn lineage(caches: &Caches, job: &Job) -> Option<Vec<String>> {
    let namespace = job.namespace().unwrap_or_default();
    let mut skills = vec![job.spec.skill.clone()];
    let mut next = job.spec.parent.clone();
    while let Some(parent) = next.take() {
        if depth(&skills) >= MAX_DEPTH {
            return None;
        }
        let found = caches.jobs.get(&namespace, &parent.name)?;
        let parent = found.0.as_ref().ok()?;
        skills.push(parent.spec.skill.clone());
        next.clone_from(&parent.spec.parent);
    }
    Some(skills)
}

/// Returns the depth of the Job of a lineage.
pub fn depth(lineage: &[String]) -> u32 {
    u32::try_from(lineage.len()).unwrap_or(u32::MAX)
}

/// Returns whether a Job is cancelled, by its spec or because it is a child that has lost its parent.
pub fn is_cancelled(caches: &Caches, job: &Job) -> bool {
    job.spec.cancel == Some(true) || has_lost_parent(caches, job)
}

/// Returns whether the parent of a child has ended, is cancelled or was deleted. Nothing reads the result of such a child, so it is
/// cancelled too. A Job that was created again with the run key of the parent counts as the parent.
fn has_lost_parent(caches: &Caches, job: &Job) -> bool {
    let Some(named) = &job.spec.parent else { return false };
    let (namespace, name) = (job.namespace().unwrap_or_default(), job.name_any());
    // A cache without the child is not filled yet.
    if caches.jobs.get(&namespace, &name).is_none() {
        return false;
    }
    let Some(parent) = caches.jobs.get(&namespace, &named.name) else { return true };
    // A parent that this version cannot read may still work.
    let Ok(parent) = &parent.0 else { return false };
    let has_ended = parent.status.as_ref().is_some_and(JobStatus::is_terminal);
    let is_parent =
        parent.run_key().is_some_and(|key| children::name(&named.name, &parent.spec.skill, key, &named.call) == name);
    has_ended || parent.spec.cancel == Some(true) || !is_parent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::api::FakeApi;
    use crate::job::fixtures::{self, UID, status};
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::ParentJob;

    const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";

    fn put(api: &FakeApi, job: &Job) {
        api.put(&format!("{JOBS}/{}", job.name_any()), serde_json::to_value(job).unwrap());
    }

    /// The child of a Job for the call `c-1`.
    fn child_of(parent: &Job, skill: &str) -> Job {
        let mut child = fixtures::job();
        let (name, uid) = (parent.name_any(), parent.uid().unwrap());
        child.metadata.name = Some(children::name(&name, &parent.spec.skill, parent.run_key().unwrap(), "c-1"));
        child.metadata.uid = Some(format!("{skill}-uid"));
        child.spec.skill = skill.to_owned();
        child.spec.parent = Some(ParentJob { name, uid, call: "c-1".into() });
        child
    }

    #[tokio::test]
    async fn the_lineage_ends_at_the_root_and_is_unknown_without_an_ancestor() {
        let api = FakeApi::default();
        let root = fixtures::job();
        let child = child_of(&root, "reviewer");
        let grandchild = child_of(&child, "auditor");
        put(&api, &root);
        put(&api, &child);
        let context = api.operator().await;
        let caches = &context.caches;
        assert_eq!(lineage(caches, &root).unwrap(), ["cs-tier-1"]);
        assert_eq!(lineage(caches, &grandchild).unwrap(), ["auditor", "reviewer", "cs-tier-1"]);
        let mut orphan = child.clone();
        orphan.spec.parent.as_mut().unwrap().name = "gone".into();
        assert_eq!(lineage(caches, &orphan), None);
        let mut own_parent = child;
        own_parent.spec.parent.as_mut().unwrap().name = own_parent.name_any();
        put(&api, &own_parent);
        assert_eq!(lineage(&api.operator().await.caches, &own_parent), None, "a circle has no root");
    }

    #[tokio::test]
    async fn a_child_loses_its_parent_with_its_end_its_cancellation_or_its_deletion() {
        let root = fixtures::job();
        let is_lost = async |parent: Option<&Job>| {
            let api = FakeApi::default();
            let child = child_of(&root, "reviewer");
            put(&api, &child);
            if let Some(parent) = parent {
                put(&api, parent);
            }
            has_lost_parent(&api.operator().await.caches, &child)
        };
        let changed = |change: fn(&mut Job)| {
            let mut parent = root.clone();
            change(&mut parent);
            parent
        };
        assert!(!is_lost(Some(&root)).await);
        assert!(is_lost(None).await);
        assert!(is_lost(Some(&changed(|job| job.spec.cancel = Some(true)))).await);
        assert!(is_lost(Some(&changed(|job| job.status = Some(status(1, Phase::Failed))))).await);
        assert!(is_lost(Some(&changed(|job| job.metadata.uid = Some("another".into())))).await);
        let again = changed(|job| {
            job.metadata.uid = Some("another".into());
            job.spec.run_key = Some(UID.into());
        });
        assert!(!is_lost(Some(&again)).await, "it continues the run of the parent");
        let unfilled = FakeApi::default().operator().await;
        assert!(!has_lost_parent(&unfilled.caches, &child_of(&root, "reviewer")));
    }
}
