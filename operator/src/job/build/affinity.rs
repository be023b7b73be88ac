//! Affinity of a worker pod: pods that share a volume run on one node if only one node can mount the volume.

use crate::job::validate::ValidAttempt;
use bloomery_crds::Digest;
use bloomery_crds::{names, pod};
use k8s_openapi::api::core::v1::Affinity;
use std::collections::{BTreeMap, BTreeSet};

/// The prefix of the label for a bound claim that only one node can mount. A claim's name may be longer than a label
/// allows, so the label holds a digest.
const CLAIM_LABEL_PREFIX: &str = "claim.bloomery.dev/";

/// The number of hex digits of the digest of a claim.
const DIGEST_DIGITS: usize = 16;

/// The labels by which pods that bind the same claim find each other.
pub(super) fn labels(attempt: &ValidAttempt) -> BTreeMap<String, String> {
    single_node_claims(attempt).into_iter().map(label).collect()
}

/// Requires that the pod runs on the node of the other pods that mount the same volume, because it could not mount the
/// volume elsewhere. The first pod may run on any node, because it matches its own term.
///
/// There is only one term: if there were several, the scheduler would look for one other pod that matches all of them.
/// If only one node can mount the memory, the term of the memory is enough, because all pods of the tenant share that
/// node. Otherwise the claim that is first by name decides the node. A pod whose other claims are mounted on another
/// node waits until they are free.
pub(super) fn affinity(attempt: &ValidAttempt) -> Option<Affinity> {
    let required_label = if attempt.memory_single_node {
        Some((names::LABEL_MEMORY.to_owned(), names::MEMORY_CLAIM.to_owned()))
    } else {
        single_node_claims(attempt).into_iter().next().map(label)
    };
    required_label.map(pod::same_node_as)
}

/// The bound claims that only one node can mount, in the order of their names.
fn single_node_claims(attempt: &ValidAttempt) -> BTreeSet<&str> {
    let bound = attempt.bound.filesystems.iter();
    bound.filter(|filesystem| filesystem.single_node).map(|filesystem| filesystem.claim.as_str()).collect()
}

fn label(claim: &str) -> (String, String) {
    (format!("{CLAIM_LABEL_PREFIX}{}", Digest::of_bytes(claim.as_bytes()).short(DIGEST_DIGITS)), "bound".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::valid_attempt;

    /// The labels that select the pods whose node is required.
    fn required_label(attempt: &ValidAttempt) -> Option<BTreeMap<String, String>> {
        let terms = affinity(attempt)?.pod_affinity?.required_during_scheduling_ignored_during_execution?;
        assert_eq!(terms.len(), 1, "one other pod would have to match all terms");
        terms.into_iter().next()?.label_selector?.match_labels
    }

    fn attempt_with(memory_single_node: bool, claims: &[(&str, bool)]) -> ValidAttempt {
        let mut attempt = valid_attempt();
        attempt.memory_single_node = memory_single_node;
        let example = attempt.bound.filesystems[0].clone();
        attempt.bound.filesystems = claims
            .iter()
            .map(|(claim, single_node)| {
                let mut filesystem = example.clone();
                (filesystem.claim, filesystem.single_node) = ((*claim).to_owned(), *single_node);
                filesystem
            })
            .collect();
        attempt
    }

    #[test]
    fn a_memory_that_one_node_can_mount_decides_the_node() {
        let wanted = required_label(&attempt_with(true, &[("src", true)])).unwrap();
        assert_eq!(wanted, BTreeMap::from([("bloomery.dev/memory".into(), "bloomery-memory".into())]));
    }

    #[test]
    fn with_a_shared_memory_a_claim_that_one_node_can_mount_decides_the_node() {
        let attempt = attempt_with(false, &[("src", true), ("docs", false)]);
        let wanted = required_label(&attempt).unwrap();
        assert_eq!(wanted, labels(&attempt), "a pod matches its own term");
        assert_eq!(labels(&attempt_with(false, &[("src", true), ("other", true)])).len(), 2);
        assert_eq!(required_label(&attempt_with(false, &[("docs", false)])), None);
    }

    #[test]
    fn the_order_of_bindings_does_not_change_the_node() {
        let label = required_label(&attempt_with(false, &[("a", true), ("b", true)]));
        assert_eq!(label, required_label(&attempt_with(false, &[("b", true), ("a", true)])));
        let labels = labels(&attempt_with(false, &[("b", true), ("a", true)]));
        assert!(label.unwrap().iter().all(|(name, value)| labels.get(name) == Some(value)));
    }
}
