//! Counts the gate verdicts that a report adds.

use crate::metrics::Metrics;
use bloomery_crds::v1alpha1::{JobStatus, Verdict};

/// Counts the gate verdicts that the status `after` has and the status `before` does not have.
pub(super) fn count_verdicts(metrics: &Metrics, before: &JobStatus, after: &JobStatus) {
    let gates = |status: &JobStatus| status.gates.clone().unwrap_or_default();
    let (before, after) = (gates(before), gates(after));
    let increase = |before: u32, after: u32| u64::from(after.saturating_sub(before));
    let add = |gate: &str, verdict: &str, count: u64| {
        if count > 0 {
            metrics.count_verdicts(gate, verdict, count);
        }
    };
    add("preTool", &Verdict::Allow.to_string(), increase(before.pre_tool.allowed, after.pre_tool.allowed));
    add("preTool", &Verdict::Deny.to_string(), increase(before.pre_tool.denied, after.pre_tool.denied));
    add("preTool", &Verdict::Hold.to_string(), increase(before.pre_tool.held, after.pre_tool.held));
    if let (None, Some(intent)) = (&before.intent, &after.intent) {
        add("intent", if intent.out_of_domain { "OutOfDomain" } else { "Detected" }, 1);
    }
    for attempt in after.finalization.attempts.iter().skip(before.finalization.attempts.len()) {
        add("finalization", if attempt.passed { "Pass" } else { "Fail" }, 1);
    }
}
