//! The status of a Skill, computed from nothing but what was applied and what is seen.

mod mcp;
mod memory;
mod pods;

use super::apply::AppliedSkill;
use super::fetch::Fetched;
use super::validate::Invalid;
use crate::apply::Applied;
use crate::listing::{IN_A_CONDITION, listed};
use bloomery_crds::conditions::{ConditionType, Health, Observation, Reason, merge};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Skill, SkillStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ResourceExt;

/// One condition, and what it means for the Skill as a whole.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    /// The condition.
    seen: Observation,
    /// What stands in the way of the Skill, if anything does.
    hinders: Option<Hindrance>,
}

/// What a Skill waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hindrance {
    /// A person has to do something.
    Person,
    /// It is on its way, or may come by itself.
    Time,
}

impl Finding {
    /// All is well.
    fn well(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::holds(kind, reason, message), hinders: None }
    }

    /// It is on its way, or may come by itself.
    fn waits(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), hinders: Some(Hindrance::Time) }
    }

    /// A person has to do something.
    fn stalls(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), hinders: Some(Hindrance::Person) }
    }
}

/// Computes the status. Where nothing but time would change it equals the one that stands.
pub fn compute(skill: &Skill, applied: &Result<AppliedSkill, Invalid>, fetched: &Fetched, now: &Time) -> SkillStatus {
    let standing = skill.status.clone().unwrap_or_default();
    let (revision, findings) = match applied {
        // Jobs that run go on with the revision that they have, and a reverted Skill is what it was.
        Err(invalid) => (standing.revision, vec![refused(invalid)]),
        Ok(applied) => {
            let name = skill.name_any();
            let findings = vec![
                accepted(applied, &name),
                memory::finding(applied, fetched),
                mcp::finding(applied, fetched, &name),
            ];
            (Some(applied.revision_ref.clone()), findings)
        }
    };
    let mut seen = health(&findings).observations();
    seen.extend(findings.into_iter().map(|finding| finding.seen));
    SkillStatus {
        observed_generation: skill.metadata.generation,
        revision,
        conditions: merge(&standing.conditions, &seen, skill.metadata.generation, now),
    }
}

/// The health of the whole: what a person has to do goes before what passes by itself.
fn health(findings: &[Finding]) -> Health {
    let first = |hindrance| findings.iter().find(|finding| finding.hinders == Some(hindrance)).map(|found| &found.seen);
    if let Some(seen) = first(Hindrance::Person) {
        return Health::Stalled(seen.reason, seen.message.clone());
    }
    if let Some(seen) = first(Hindrance::Time) {
        return Health::Reconciling(seen.reason, seen.message.clone());
    }
    Health::Ready(Reason::Ready, "Jobs can use this Skill".to_owned())
}

fn refused(invalid: &Invalid) -> Finding {
    let Invalid(faults) = invalid;
    Finding::stalls(ConditionType::Accepted, Reason::Invalid, listed(faults, IN_A_CONDITION))
}

fn accepted(applied: &AppliedSkill, skill: &str) -> Finding {
    let name = &applied.revision_ref.name;
    let revision = stands(ConditionType::Accepted, &format!("ConfigMap {name}"), &applied.revision);
    let account = || {
        let what = format!("ServiceAccount {}", names::worker_service_account(skill));
        stands(ConditionType::Accepted, &what, &applied.worker_account)
    };
    revision
        .or_else(account)
        .unwrap_or_else(|| Finding::well(ConditionType::Accepted, Reason::Compiled, format!("compiled as {name}")))
}

/// What keeps an object of ours from standing; none where it does.
fn stands<K>(kind: ConditionType, what: &str, applied: &Applied<K>) -> Option<Finding> {
    match applied {
        Applied::Stands | Applied::Written(_) | Applied::Settling => None,
        Applied::Leaving => Some(Finding::waits(
            kind,
            Reason::Progressing,
            format!("the {what} is being deleted; a new one is made after it"),
        )),
        Applied::NameTaken => Some(Finding::stalls(
            kind,
            Reason::NameTaken,
            format!(
                "the {what} belongs to somebody else and is left as it is: delete or rename it, or give the Skill another name"
            ),
        )),
        Applied::Replaced => Some(Finding::stalls(
            kind,
            Reason::Replaced,
            format!(
                "the {what} is not what the Skill says: somebody has made it anew, and what is immutable cannot be set \
                 right. Delete it (kubectl delete), and the operator writes it anew"
            ),
        )),
        Applied::Refused(why) => {
            Some(Finding::stalls(kind, Reason::Refused, format!("the API server refuses the {what}: {why}")))
        }
    }
}

#[cfg(test)]
mod tests;
