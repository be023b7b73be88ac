//! Computes the status of a Skill from the applied objects and the caches.

mod features;
mod finding;
mod image;
mod limits;
mod mcp;
mod memory;
mod models;
mod named_skills;
mod network;
mod pods;
mod tools;

use super::apply::{AppliedMcp, AppliedSkill};
use super::fetch::FetchedSkill;
use super::probe::ProbeState;
use super::validate::InvalidSkill;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{ConditionType, Health, Reason, merge};
use bloomery_crds::names;
use bloomery_crds::resources;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Skill, SkillStatus};
use finding::{Blocker, Finding, object_fault};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ResourceExt;

/// Computes the status. Returns the current status if only times would change.
pub fn compute(
    skill: &Skill,
    applied: &Result<AppliedSkill, InvalidSkill>,
    fetched: &FetchedSkill,
    probe: &ProbeState,
    now: &Time,
) -> SkillStatus {
    let current = skill.status.clone().unwrap_or_default();
    let (revision, findings) = match applied {
        // An invalid Skill keeps its current revision, on which its Jobs run.
        Err(invalid) => (current.revision, vec![invalid_finding(invalid)]),
        Ok(applied) => {
            let mut findings = vec![
                accepted_finding(applied, skill),
                models::finding(skill, fetched),
                memory::finding(applied, fetched),
                network::finding(applied),
                mcp::finding(applied, fetched, skill),
            ];
            findings.extend(tools::findings(skill, probe));
            findings.extend(limits::findings(skill, &fetched.limits));
            findings.extend(named_skills::finding(&fetched.named_skills));
            (Some(applied.revision_ref.clone()), findings)
        }
    };
    let mut observations = health(&findings).observations();
    observations.extend(applied.as_ref().ok().and_then(|applied| mcp::reverted(applied, &skill.name_any())));
    let server = skill.spec.mcp_server.as_ref();
    let container = server.and_then(|server| server.container.as_ref().filter(|_| server.sidecar().is_none()));
    let (mcp, image_changed) = image::observe(container, current.mcp.as_ref(), &fetched.mcp_pods);
    observations.extend(image_changed);
    let results = features::with_found(current.features, revision.as_ref(), &fetched.test_job);
    let revisions = (revision.as_ref(), current.validated_revision.as_ref());
    let validation = features::observation(skill, revisions, &results);
    // An invalid Skill and its revision may have different features.
    let has_passed = applied.is_ok() && validation.as_ref().is_some_and(|found| found.holds == Some(true));
    observations.extend(validation);
    observations.extend(findings.into_iter().map(|finding| finding.observation));
    SkillStatus {
        observed_generation: skill.metadata.generation,
        validated_revision: if has_passed { revision.clone() } else { current.validated_revision },
        revision,
        mcp,
        tools: current.tools.filter(|_| skill.spec.mcp_server.is_some()),
        conditions: merge(&current.conditions, &observations, skill.metadata.generation, now),
        memory: current.memory,
        features: features::kept(skill, results),
    }
}

/// Returns whether the MCP server of a Skill accepts connections, as far as the cluster shows it.
pub fn is_mcp_available(applied: &AppliedSkill, fetched: &FetchedSkill, skill: &Skill) -> bool {
    // A probe connects to a server that the operator does not run, so it must not start where the Skill may not connect.
    let is_of_others = matches!(applied.mcp, AppliedMcp::External(_) | AppliedMcp::Outside);
    let is_refused = is_of_others && !applied.network.faults.is_empty();
    !is_refused && mcp::finding(applied, fetched, skill).blocker.is_none()
}

/// The health of the Skill. A finding that needs a person comes before a finding that may pass by itself.
fn health(findings: &[Finding]) -> Health {
    let first =
        |blocker| findings.iter().find(|finding| finding.blocker == Some(blocker)).map(|found| &found.observation);
    if let Some(observation) = first(Blocker::Person) {
        return Health::Stalled(observation.reason, observation.message.clone());
    }
    if let Some(observation) = first(Blocker::Progress) {
        return Health::Reconciling(observation.reason, observation.message.clone());
    }
    Health::Ready(Reason::Ready, "Jobs can use this Skill".to_owned())
}

fn invalid_finding(invalid: &InvalidSkill) -> Finding {
    let InvalidSkill { reason, faults } = invalid;
    let message = join_sentences(faults, MAX_LIST_BYTES);
    // A missing ConfigMap may appear, and then the Skill needs no change.
    let is_missing = matches!(reason, Reason::ListNotFound | Reason::ScriptsNotFound);
    let finding = if is_missing { Finding::waits } else { Finding::stalls };
    finding(ConditionType::Accepted, *reason, message)
}

fn accepted_finding(applied: &AppliedSkill, skill: &Skill) -> Finding {
    let name = &applied.revision_ref.name;
    let revision = object_fault(ConditionType::Accepted, &format!("ConfigMap {name}"), &applied.revision);
    let account = || {
        let what = format!("ServiceAccount {}", names::worker_service_account(&skill.name_any()));
        object_fault(ConditionType::Accepted, &what, &applied.worker_account)
    };
    revision.or_else(account).unwrap_or_else(|| {
        let message = format!("compiled as {name}{}", unused_secrets(skill));
        Finding::healthy(ConditionType::Accepted, Reason::Compiled, message)
    })
}

/// Returns a clause for each secret that no tool gets.
fn unused_secrets(skill: &Skill) -> String {
    let secrets = resources::unused_secrets(&skill.spec);
    let clauses = secrets.map(|secret| format!("; {} {}: {}", secret.name, secret.reason, secret.remedy));
    bounded(&clauses.collect::<String>(), MAX_LIST_BYTES)
}

#[cfg(test)]
mod tests;
