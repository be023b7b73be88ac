//! Compares a Skill with the limits of its namespace, which may have been lowered since the Skill was applied.

use super::finding::Finding;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::tenant::TenantLimits;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::Skill;

/// Describes the limits that the Skill is beyond, and the tools that it declares and that the tenant denies. Jobs run without such tools.
pub(super) fn findings(skill: &Skill, limits: &TenantLimits) -> Vec<Finding> {
    let message = |sentences: &[String]| join_sentences(sentences, MAX_LIST_BYTES);
    let mut findings = Vec::new();
    let exceeded = limits.exceeded(&skill.spec);
    if !exceeded.is_empty() {
        findings.push(Finding::stalls(ConditionType::WithinLimits, Reason::BeyondLimit, message(&exceeded)));
    }
    let denied = limits.denied_tools(skill);
    if !denied.is_empty() {
        let observation = Observation::fails(ConditionType::ToolsAllowed, Reason::ToolsDenied, message(&denied));
        findings.push(Finding { observation, blocker: None });
    }
    findings
}
