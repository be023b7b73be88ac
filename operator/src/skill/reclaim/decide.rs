//! Decides how the directory of a deleted Skill is removed: pure, with the clock as an input.

use bloomery_crds::names::MEMORY_CLAIM;
use bloomery_crds::pod;
use bloomery_crds::v1alpha1::ReclaimPolicy;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::jiff::SignedDuration;

/// The time after the deletion of a Skill at which the finalizer lets go.
pub(super) const MAX_DURATION: SignedDuration = SignedDuration::from_mins(5);

/// The inputs of a decision.
#[derive(Debug, Clone)]
pub(super) struct Facts<'a> {
    /// The name of the Skill.
    pub skill: &'a str,
    /// Whether its directory is removed.
    pub policy: ReclaimPolicy,
    /// True if the namespace is being deleted.
    pub is_namespace_terminating: bool,
    /// The memory claim of the namespace, if it exists.
    pub claim: Option<&'a PersistentVolumeClaim>,
    /// The workers and the started Jobs of the Skill that have not ended, for people.
    pub unfinished: Vec<String>,
    /// The pod that removes the directory, if it exists.
    pub pod: Option<&'a Pod>,
    /// The time since the deletion of the Skill.
    pub elapsed: SignedDuration,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait for the running Jobs to end, or for the pod.
    Wait,
    /// Create the pod that removes the directory. It may take this long.
    Create(SignedDuration),
    /// Delete the pod, which has failed. The next step creates it again.
    Recreate,
    /// Delete the pod if there is one, and remove the finalizer. Holds the part of the memory that stays, for people.
    Release(Option<String>),
}

/// Returns the next step.
pub(super) fn next_step(facts: &Facts<'_>) -> Step {
    let Facts { skill, policy, is_namespace_terminating, claim, unfinished, pod, elapsed } = facts;
    if *policy == ReclaimPolicy::Retain || *is_namespace_terminating {
        return Step::Release(None);
    }
    let stays = |why: &str| Step::Release(Some(format!("the directory {skill} of the memory stays: {why}")));
    let Some(claim) = claim else {
        return stays(&format!("the claim {MEMORY_CLAIM} is gone, and its volume may remain"));
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return stays(&format!("the claim {MEMORY_CLAIM} is being deleted, and no new pod can mount it"));
    }
    match claim.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Bound") => {}
        Some("Lost") => return stays(&format!("the claim {MEMORY_CLAIM} lost its volume")),
        // No Job has ever written to it.
        _ => return Step::Release(None),
    }
    let has_removed = pod.and_then(pod::has_succeeded);
    let left = MAX_DURATION - *elapsed;
    if left <= SignedDuration::ZERO && has_removed != Some(true) {
        let why = match (unfinished.first(), pod) {
            (Some(_), _) => format!("these did not end within five minutes: {}", unfinished.join(", ")),
            (None, Some(pod)) => format!("the pod {} did not end within five minutes", pod_name(pod)),
            (None, None) => "no pod to remove it could be created within five minutes".to_owned(),
        };
        return stays(&format!("{why}. Remove it by hand"));
    }
    if !unfinished.is_empty() {
        return Step::Wait;
    }
    match (pod, has_removed) {
        (None, _) => Step::Create(left),
        (Some(pod), Some(true)) => Step::Release(remark(pod)),
        (Some(pod), Some(false)) if pod.metadata.deletion_timestamp.is_none() => Step::Recreate,
        (Some(_), _) => Step::Wait,
    }
}

fn pod_name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Returns what the pod left in the memory, according to its termination message.
fn remark(pod: &Pod) -> Option<String> {
    let message = pod::worker_status(pod)?.state.as_ref()?.terminated.as_ref()?.message.as_deref()?;
    Some(message.trim().to_owned()).filter(|message| !message.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn claim(phase: &str) -> PersistentVolumeClaim {
        serde_json::from_value(json!({"metadata": {"name": MEMORY_CLAIM}, "status": {"phase": phase}})).unwrap()
    }

    /// A pod in a phase. Its container has ended if `exit_code` has a value.
    fn pod_with(phase: &str, exit_code: Option<i32>, message: &str) -> Pod {
        let state = match exit_code {
            None => json!({}),
            Some(code) => json!({"terminated": {"exitCode": code, "message": message}}),
        };
        serde_json::from_value(json!({
            "metadata": {"name": "orders-memory-u-ski"},
            "status": {"phase": phase, "containerStatuses": [
                {"name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
            ]},
        }))
        .unwrap()
    }

    fn pod(phase: &str, message: &str) -> Pod {
        let exit_code = match phase {
            "Succeeded" => Some(0),
            "Failed" => Some(1),
            _ => None,
        };
        pod_with(phase, exit_code, message)
    }

    fn facts<'a>(claim: Option<&'a PersistentVolumeClaim>, pod: Option<&'a Pod>) -> Facts<'a> {
        Facts {
            skill: "orders",
            policy: ReclaimPolicy::Delete,
            is_namespace_terminating: false,
            claim,
            unfinished: Vec::new(),
            pod,
            elapsed: SignedDuration::from_secs(20),
        }
    }

    fn stays(step: &Step) -> &str {
        match step {
            Step::Release(Some(stays)) => stays,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_directory_is_removed_by_a_pod_once_the_jobs_have_ended() {
        let bound = claim("Bound");
        let running = Facts { unfinished: vec!["the pod refund-1-01234".into()], ..facts(Some(&bound), None) };
        assert_eq!(next_step(&running), Step::Wait);
        assert_eq!(next_step(&facts(Some(&bound), None)), Step::Create(SignedDuration::from_secs(280)));
        for phase in ["Pending", "Running"] {
            assert_eq!(next_step(&facts(Some(&bound), Some(&pod(phase, "")))), Step::Wait);
        }
        assert_eq!(next_step(&facts(Some(&bound), Some(&pod("Failed", "")))), Step::Recreate);
        assert_eq!(next_step(&facts(Some(&bound), Some(&pod("Succeeded", "")))), Step::Release(None));
        let emptied = pod("Succeeded", "the empty directory orders stays\n");
        assert_eq!(stays(&next_step(&facts(Some(&bound), Some(&emptied)))), "the empty directory orders stays");
    }

    #[rstest]
    #[case::removed("Running", Some(0), Step::Release(None))]
    #[case::failed("Running", Some(1), Step::Recreate)]
    #[case::evicted("Failed", None, Step::Recreate)]
    fn the_end_of_the_container_counts_and_not_the_phase(
        #[case] phase: &str,
        #[case] exit_code: Option<i32>,
        #[case] expected: Step,
    ) {
        let bound = claim("Bound");
        assert_eq!(next_step(&facts(Some(&bound), Some(&pod_with(phase, exit_code, "")))), expected);
    }

    #[test]
    fn a_failed_pod_is_created_again_only_when_it_is_gone() {
        let bound = claim("Bound");
        let mut deleted = pod("Failed", "");
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert_eq!(next_step(&facts(Some(&bound), Some(&deleted))), Step::Wait);
    }

    #[rstest]
    #[case::workers(vec!["the Job refund".to_owned()], false, "the Job refund")]
    #[case::pod(Vec::new(), true, "the pod orders-memory-u-ski did not end")]
    #[case::refused_pod(Vec::new(), false, "no pod")]
    fn after_five_minutes_the_skill_goes_and_the_directory_stays(
        #[case] unfinished: Vec<String>,
        #[case] has_pod: bool,
        #[case] why: &str,
    ) {
        let (bound, pending) = (claim("Bound"), pod("Pending", ""));
        let facts = Facts { unfinished, elapsed: MAX_DURATION, ..facts(Some(&bound), has_pod.then_some(&pending)) };
        let step = next_step(&facts);
        assert!(stays(&step).contains("the directory orders") && stays(&step).contains(why), "{step:?}");
    }

    #[test]
    fn a_removal_that_ends_after_five_minutes_counts() {
        let (bound, ended) = (claim("Bound"), pod("Succeeded", ""));
        let facts = Facts { elapsed: MAX_DURATION * 2, ..facts(Some(&bound), Some(&ended)) };
        assert_eq!(next_step(&facts), Step::Release(None));
    }

    #[test]
    fn without_a_usable_claim_the_skill_goes_at_once() {
        assert!(stays(&next_step(&facts(None, None))).contains("is gone"));
        assert!(stays(&next_step(&facts(Some(&claim("Lost")), None))).contains("lost its volume"));
        let mut deleted = claim("Bound");
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert!(stays(&next_step(&facts(Some(&deleted), None))).contains("is being deleted"));
        assert_eq!(next_step(&facts(Some(&claim("Pending")), None)), Step::Release(None), "nothing was ever written");
    }

    #[test]
    fn in_a_terminating_namespace_and_with_the_policy_retain_the_skill_goes_at_once() {
        let bound = claim("Bound");
        let running = Facts { unfinished: vec!["the Job refund".into()], ..facts(Some(&bound), None) };
        let terminating = Facts { is_namespace_terminating: true, ..running.clone() };
        assert_eq!(next_step(&terminating), Step::Release(None));
        assert_eq!(next_step(&Facts { policy: ReclaimPolicy::Retain, ..running }), Step::Release(None));
    }
}
