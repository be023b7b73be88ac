//! The waits of Jobs in the queue, with their messages.

use super::maxima::NamespaceMaximum;
use super::quota::MAX_BACKOFF;
use super::values::Scope;
use crate::job::plan::Wait;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::jiff::SignedDuration;
use kube::core::ResourceExt;

/// What every queued Job does next.
const IN_TURN: &str = "the Job waits in the queue, and starts by itself in its turn";

/// The wait of a Job for a place within a maximum. `taken` is the number of places that were taken, and the maximum.
pub(super) fn full(job: &Job, scope: Scope, (running, maximum): (u32, u32), namespace: &NamespaceMaximum) -> Wait {
    let (skill, annotation) = (&job.spec.skill, names::ANNOTATION_MAX_RUNNING_JOBS);
    let name = job.namespace().unwrap_or_default();
    let (whose, origin) = match (scope, namespace) {
        (Scope::Skill, _) => (format!("of the Skill {skill}"), "spec.maxRunningJobs of the Skill".to_owned()),
        (Scope::Namespace, NamespaceMaximum::Unreadable(text)) => {
            let message = format!(
                "no Job starts in the namespace {name}, because its annotation {annotation} is not a number: {text:?}. Correct or remove \
                 the annotation"
            );
            return Wait::new(Reason::Queued, message);
        }
        (Scope::Namespace, NamespaceMaximum::Annotation(_)) => {
            (format!("of the namespace {name}"), format!("the annotation {annotation} of the namespace"))
        }
        (Scope::Namespace, NamespaceMaximum::Installation(_)) => {
            (format!("of the namespace {name}"), "jobs.maxRunningPerNamespace of the chart".to_owned())
        }
        (Scope::Cluster, _) => ("of the cluster".to_owned(), "jobs.maxRunning of the chart".to_owned()),
    };
    let message = format!("{running} of at most {maximum} Jobs {whose} run ({origin}): {IN_TURN}");
    Wait::new(Reason::Queued, message)
}

/// The wait of a Job whose pods a quota refuses. The Job asks again after `retry`; without it, another Job of the namespace does.
pub(super) fn quota(refusal: &str, retry: Option<SignedDuration>) -> Wait {
    Wait { reason: Reason::QuotaExceeded, message: quota_message(refusal), retry }
}

/// The message for a pod that a quota refused, from the message of the API server.
pub(in crate::job) fn quota_message(refusal: &str) -> String {
    let seconds = MAX_BACKOFF.as_secs();
    let begins = "a quota of the namespace refuses the pod";
    if refusal.starts_with(begins) {
        return refusal.to_owned();
    }
    // The message begins with the name of the pod, which differs between the Jobs.
    let quota = refusal.find("exceeded quota").or_else(|| refusal.find("failed quota"));
    let why = quota.and_then(|from| refusal.get(from..)).unwrap_or(refusal);
    format!(
        "{begins}: {why}. One Job of the namespace tries again when a pod ends, and otherwise at least every {seconds} s; the others start \
         in their turn"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures;
    use rstest::rstest;

    #[rstest]
    #[case::skill(
        Scope::Skill,
        NamespaceMaximum::Installation(None),
        "of the Skill cs-tier-1 run (spec.maxRunningJobs of the Skill)"
    )]
    #[case::chart(
        Scope::Namespace,
        NamespaceMaximum::Installation(Some(2)),
        "of the namespace acme run (jobs.maxRunningPerNamespace of the chart)"
    )]
    #[case::annotation(
        Scope::Namespace,
        NamespaceMaximum::Annotation(2),
        "the annotation bloomery.dev/max-running-jobs of the namespace"
    )]
    #[case::cluster(
        Scope::Cluster,
        NamespaceMaximum::Annotation(2),
        "2 of at most 2 Jobs of the cluster run (jobs.maxRunning of the chart)"
    )]
    #[case::unreadable(Scope::Namespace, NamespaceMaximum::Unreadable("ten".into()), "is not a number: \"ten\"")]
    fn the_message_names_the_maximum_and_its_origin(
        #[case] scope: Scope,
        #[case] namespace: NamespaceMaximum,
        #[case] expected: &str,
    ) {
        let wait = full(&fixtures::job(), scope, (2, 2), &namespace);
        assert_eq!((wait.reason, wait.retry), (Reason::Queued, None));
        assert!(wait.message.contains(expected), "{}", wait.message);
    }

    #[test]
    fn the_message_of_a_quota_names_no_pod_and_is_built_once() {
        let refusal = "pods \"refund-1-01234\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
        let message = quota_message(refusal);
        assert!(
            message.starts_with("a quota of the namespace refuses the pod: exceeded quota: small, requested"),
            "{message}"
        );
        assert_eq!(quota_message(&message), message);
    }
}
