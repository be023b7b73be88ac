//! Which node a pod wants: that of the other pods of a volume which one node can mount.

use crate::job::validate::ValidAttempt;
use bloomery_crds::Digest;
use bloomery_crds::{names, pod};
use k8s_openapi::api::core::v1::Affinity;
use std::collections::{BTreeMap, BTreeSet};

/// Begins the label of a claim that a Job binds and one node can mount. A claim's name may be longer than a label.
const CLAIM_LABEL: &str = "claim.bloomery.dev/";

/// How many hex digits of its digest stand for a claim.
const DIGITS: usize = 16;

/// The labels by which pods that bind the same claim find each other.
pub(super) fn labels(attempt: &ValidAttempt) -> BTreeMap<String, String> {
    of_one_node(attempt).into_iter().map(label).collect()
}

/// Demands the node of the other pods of the same volume, or the second one would hang in attaching it.
/// The first one may go anywhere: a pod that matches its own term counts as its own company.
///
/// There is one term only, because the scheduler counts a pod as company if it matches all of them. The memory's
/// is enough where all pods of the tenant share a node; of several claims the first decides, and a pod that needs
/// another one elsewhere waits until that is free.
pub(super) fn affinity(attempt: &ValidAttempt) -> Option<Affinity> {
    let memory = || (names::LABEL_MEMORY.to_owned(), names::MEMORY_CLAIM.to_owned());
    let company = if attempt.one_node { Some(memory()) } else { of_one_node(attempt).into_iter().next().map(label) };
    company.map(pod::beside)
}

fn of_one_node(attempt: &ValidAttempt) -> BTreeSet<&str> {
    let bound = attempt.bound.filesystems.iter();
    bound.filter(|filesystem| filesystem.one_node).map(|filesystem| filesystem.claim.as_str()).collect()
}

fn label(claim: &str) -> (String, String) {
    (format!("{CLAIM_LABEL}{}", Digest::of_bytes(claim.as_bytes()).short(DIGITS)), "bound".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::valid_attempt;

    /// The labels of the pods that this one wants to be with.
    fn company(attempt: &ValidAttempt) -> Option<BTreeMap<String, String>> {
        let terms = affinity(attempt)?.pod_affinity?.required_during_scheduling_ignored_during_execution?;
        assert_eq!(terms.len(), 1, "more would have to be met by one pod");
        terms.into_iter().next()?.label_selector?.match_labels
    }

    fn with(one_node: bool, claims: &[(&str, bool)]) -> ValidAttempt {
        let mut attempt = valid_attempt();
        attempt.one_node = one_node;
        let example = attempt.bound.filesystems[0].clone();
        attempt.bound.filesystems = claims
            .iter()
            .map(|(claim, one_node)| {
                let mut filesystem = example.clone();
                (filesystem.claim, filesystem.one_node) = ((*claim).to_owned(), *one_node);
                filesystem
            })
            .collect();
        attempt
    }

    #[test]
    fn a_memory_of_one_node_decides_for_all_claims() {
        let wanted = company(&with(true, &[("src", true)])).unwrap();
        assert_eq!(wanted, BTreeMap::from([("bloomery.dev/memory".into(), "bloomery-memory".into())]));
    }

    #[test]
    fn with_a_shared_memory_a_claim_of_one_node_decides() {
        let attempt = with(false, &[("src", true), ("docs", false)]);
        let wanted = company(&attempt).unwrap();
        assert_eq!(wanted, labels(&attempt), "a pod is its own company");
        assert_eq!(labels(&with(false, &[("src", true), ("other", true)])).len(), 2);
        assert_eq!(company(&with(false, &[("docs", false)])), None);
    }

    #[test]
    fn jobs_that_bind_a_claim_want_the_same_node_in_whatever_order_they_name_it() {
        let one = company(&with(false, &[("a", true), ("b", true)]));
        assert_eq!(one, company(&with(false, &[("b", true), ("a", true)])));
        let labels = labels(&with(false, &[("b", true), ("a", true)]));
        assert!(one.unwrap().iter().all(|(label, value)| labels.get(label) == Some(value)));
    }
}
