//! Describes the network policies of a Skill.

use super::super::apply::AppliedSkill;
use super::finding::{Finding, object_fault};
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{ConditionType, Reason};

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::NetworkReady;

/// Describes the state of the network policies, and what the Skill may not connect to.
pub(super) fn finding(applied: &AppliedSkill) -> Finding {
    let network = &applied.network;
    if !network.faults.is_empty() {
        return Finding::stalls(KIND, Reason::EgressNotAllowed, join_sentences(&network.faults, MAX_LIST_BYTES));
    }
    let Some(policies) = &network.policies else {
        let message = "the chart switches network policies off (network.policies)";
        return Finding::healthy(KIND, Reason::NotIsolated, message);
    };
    let mut faults =
        policies.iter().filter_map(|(name, applied)| object_fault(KIND, &format!("NetworkPolicy {name}"), applied));
    faults.next().unwrap_or_else(|| {
        let names: Vec<&str> = policies.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("the network policies {} are in place", names.join(", "));
        Finding::healthy(KIND, Reason::Isolated, message)
    })
}
