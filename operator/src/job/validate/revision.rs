//! Resolves the revision that a Job runs on.

use crate::caches::Guarded;
use crate::job::fetch::FetchedJob;
use crate::job::plan::{Blocked, JobEnd, Wait};
use crate::owned;
use crate::status::{checked_status, requires_validation, revision_for, unmet_message};
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::probe::{rules_digest, server_digest};
use bloomery_crds::run::{self, Revision};
use bloomery_crds::scripts::revision_key;
use bloomery_crds::tool_pins::ToolPins;
use bloomery_crds::v1alpha1::{Job, RevisionRef, Skill, SkillSpec, SkillStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::SignedDuration;
use kube::core::{Resource, ResourceExt};

/// The interval for checking a missing revision again.
const REVISION_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The conditions of a Skill that must hold before the first pod of its Job starts, in order. Waiting costs nothing,
/// whereas a pod that waits for an MCP server uses up the Job's time.
const REQUIRED_SKILL_CONDITIONS: [ConditionType; 2] = [ConditionType::Accepted, ConditionType::McpAvailable];

/// Resolves the revision that a Job runs on: the recorded one, or else the one of its Skill for new Jobs.
pub(super) fn resolve_revision(
    fetched: &FetchedJob,
    stored: Option<&ConfigMap>,
) -> Result<(RevisionRef, Revision), Blocked> {
    let FetchedJob { job, status, skill, .. } = fetched;
    let for_new_jobs = || new_revision(&job.spec.skill, skill.as_deref(), job.spec.validates());
    let reference = if let Some(recorded) = &status.skill_revision {
        recorded.clone()
    } else {
        let reference = for_new_jobs()?;
        refuse_other_revision(job, skill.as_deref(), &reference)?;
        reference
    };
    match open_revision(&reference, stored) {
        Ok(compiled) => Ok((reference, compiled)),
        Err(wait) if stored.is_some() => Err(wait.into()),
        Err(wait) => Err(blocked_by_lost_revision(&reference, for_new_jobs().ok(), wait)),
    }
}

/// Ends the Job that the operator created to test a revision, if the Skill has another revision before the Job has started.
pub(super) fn refuse_other_revision(
    job: &Job,
    skill: Option<&Guarded<Skill>>,
    current: &RevisionRef,
) -> Result<(), Blocked> {
    let owner = skill.and_then(|skill| skill.meta().uid.as_deref());
    let is_of_operator = job.spec.validates() && owner.is_some_and(|uid| owned::is_owned_by(&job.metadata, uid));
    if !is_of_operator || job.name_any() == names::validation_job(&job.spec.skill, &current.digest) {
        return Ok(());
    }
    let message = format!("the Skill has the revision {} now, and this Job was to test an earlier one", current.name);
    Err(Blocked::Never(JobEnd::decided(Outcome::new(OutcomeCode::Cancelled, message))))
}

/// Decides how to continue a Job whose revision no longer exists. The Job ends if the Skill has another revision now.
/// Otherwise it waits until the Skill controller creates the revision again.
fn blocked_by_lost_revision(lost: &RevisionRef, current: Option<RevisionRef>, wait: Wait) -> Blocked {
    match current {
        Some(current) if current.digest != lost.digest => {
            let message =
                format!("{}: the Skill was deleted and created again, or the ConfigMap was deleted", wait.message);
            Blocked::Never(JobEnd::decided(Outcome::new(OutcomeCode::SkillDeleted, message)))
        }
        Some(_) | None => Blocked::Wait(wait.retry_after(REVISION_RETRY_INTERVAL)),
    }
}

/// Returns the revision that a new Job of a Skill runs on, which may be a Job that `validates` the Skill.
pub(super) fn new_revision(name: &str, skill: Option<&Guarded<Skill>>, validates: bool) -> Result<RevisionRef, Wait> {
    let not_ready = |message: String| Wait::new(Reason::SkillNotReady, message);
    let skill = match skill.map(|skill| &skill.0) {
        None => {
            let message = format!("the Skill {name} does not exist: create it, and the Job starts by itself");
            return Err(Wait::new(Reason::SkillNotFound, message));
        }
        Some(Err(error)) => {
            return Err(not_ready(format!(
                "the Skill {name} cannot be read by this version of the operator: {}",
                error.error
            )));
        }
        Some(Ok(skill)) => skill,
    };
    if skill.metadata.deletion_timestamp.is_some() {
        let message = format!("the Skill {name} is being deleted: create it again, and the Job starts by itself");
        return Err(Wait::new(Reason::SkillNotFound, message));
    }
    let Some(status) = checked_status(skill) else {
        return Err(not_ready(format!("the Skill {name} was changed, and the operator has not checked it yet")));
    };
    for needed in REQUIRED_SKILL_CONDITIONS {
        if let Some(unmet) = unmet_message(&status.conditions, needed) {
            return Err(not_ready(format!("the Skill {name} is not ready: {unmet}")));
        }
    }
    // Absent while the Skill is within the limits.
    if let Some(limits) = conditions::find(&status.conditions, ConditionType::WithinLimits) {
        return Err(not_ready(format!("the Skill {name} is beyond a limit of its namespace: {}", limits.message)));
    }
    // Absent in the status of an operator of an earlier version.
    if let Some(network) = conditions::find(&status.conditions, ConditionType::NetworkReady)
        && network.status == "False"
    {
        return Err(not_ready(format!(
            "the network of the Skill {name} is not ready ({}): {}",
            network.reason, network.message
        )));
    }
    if let Some(why) = unverified(&skill.spec, status) {
        return Err(not_ready(format!("the Skill {name} is not ready: {why}")));
    }
    // The status of a pending claim is `Unknown`: it may be bound once the pod exists. A lost claim cannot be used.
    if let Some(memory) = conditions::find(&status.conditions, ConditionType::MemoryReady)
        && memory.status == "False"
    {
        return Err(not_ready(format!(
            "the memory of the Skill {name} is not ready ({}): {}",
            memory.reason, memory.message
        )));
    }
    if let Some(revision) = revision_for(skill, validates) {
        return Ok(revision.clone());
    }
    if validates || !requires_validation(skill) {
        return Err(not_ready(format!("the Skill {name} has no revision yet")));
    }
    let unmet = unmet_message(&status.conditions, ConditionType::Validated).unwrap_or_default();
    let message = format!(
        "no revision of the Skill {name} has passed its tests, and spec.engine.validation.requireFor keeps Jobs until one has: {unmet}"
    );
    Err(Wait::new(Reason::NotValidated, message))
}

/// Describes why the tools of a Skill are not verified; none if they are, or if it has no MCP server.
///
/// A Job waits for the first verification of this server and of these rules. Later, a server that restarts with another image, or whose
/// tools have changed, stops no Job: workers compare the tools with the pins.
fn unverified(spec: &SkillSpec, status: &SkillStatus) -> Option<String> {
    let server = spec.mcp_server.as_ref()?;
    let tools = status.tools.as_ref().filter(|tools| tools.server == server_digest(server));
    let unmet = |kind| {
        let known = unmet_message(&status.conditions, kind);
        Some(known.unwrap_or_else(|| "the tools of its MCP server are not verified yet".to_owned()))
    };
    let Some(tools) = tools.filter(|tools| tools.found.rules == rules_digest(spec)) else {
        return unmet(ConditionType::McpVerified);
    };
    if !tools.found.rule_errors.is_empty() {
        return unmet(ConditionType::McpVerified);
    }
    let is_accepted = server.tools_digest.is_none() || server.tools_digest == tools.digest;
    if tools.pins.is_some() && is_accepted { None } else { unmet(ConditionType::ToolsPinned) }
}

/// Returns the pins of a Skill, if they belong to the MCP server of the revision.
pub(super) fn pins(compiled: &SkillSpec, skill: Option<&Guarded<Skill>>) -> Option<ToolPins> {
    let server = server_digest(compiled.mcp_server.as_ref()?);
    let tools = skill?.0.as_ref().ok()?.status.as_ref()?.tools.as_ref()?;
    tools.pins.clone().filter(|_| tools.server == server)
}

/// Reads a revision from its ConfigMap, and verifies its digest. The scripts, which the pod mounts from keys of their own, must be those
/// of the revision.
pub fn open_revision(expected: &RevisionRef, stored: Option<&ConfigMap>) -> Result<Revision, Wait> {
    const REMEDY: &str = ". Delete that ConfigMap, and the operator creates it again from the Skill";
    let unusable =
        |why: String| Wait::new(Reason::SkillNotReady, format!("the revision {} cannot be used: {why}", expected.name));
    let data = stored.and_then(|map| map.data.as_ref());
    let Some((data, text)) = data.and_then(|data| Some((data, data.get(run::REVISION_KEY)?))) else {
        let message = format!("the revision {} (a ConfigMap) that the Job runs on does not exist", expected.name);
        return Err(Wait::new(Reason::SkillNotReady, message));
    };
    let revision = run::open_revision(text, &expected.digest).map_err(|error| {
        let remedy = if error.needs_upgrade() { "" } else { REMEDY };
        unusable(format!("{error}{remedy}"))
    })?;
    let mut files = revision.spec.scripts.iter().flat_map(|scripts| &scripts.files);
    let changed = files.find(|(file, text)| data.get(&revision_key(file)) != Some(*text));
    match changed.map(|(file, _)| file.clone()) {
        Some(file) => Err(unusable(format!("its script {file} was changed after the operator wrote it{REMEDY}"))),
        None => Ok(revision),
    }
}
