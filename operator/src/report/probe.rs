//! Handles the reports of probes: authenticates them, and records what they found in the status of their Skill.

use super::MAX_WRITE_TRIES;
use super::auth::Caller;
use super::judge::is_dns_label;
use super::refusal::Refusal;
use crate::context::Context;
use crate::owned;
use bloomery_crds::names;
use bloomery_crds::probe::{
    MAX_RULE_ERROR_BYTES, MAX_RULE_ERRORS, ProbeReport, SkillIdentity, TokenRequest, rules_digest, server_digest,
};
use bloomery_crds::report::ServerToken;
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pins::{ToolChange, ToolPins};
use bloomery_crds::v1alpha1::{FoundTools, McpServer, Skill, SkillStatus, VerifiedTools};
use bloomery_token::Subject;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::core::{Resource, ResourceExt};

/// The most changes of tools in a status.
const MAX_CHANGES: usize = 8;

/// The longest change of a tool in a status, in bytes.
const MAX_CHANGE_BYTES: usize = 256;

/// Refuses a report with an invalid name, or with more than a status has room for.
pub fn check(report: &ProbeReport) -> Result<(), Refusal> {
    check_names(&report.skill, &report.pod)?;
    let is_short = |error: &String| error.len() <= MAX_RULE_ERROR_BYTES;
    let is_bounded = report.tools.is_bounded()
        && report.rule_errors.len() <= MAX_RULE_ERRORS
        && report.rule_errors.iter().all(is_short);
    if is_bounded { Ok(()) } else { Err(Refusal::Invalid("the report of a probe is larger than a status".to_owned())) }
}

/// Refuses the request of a probe with an invalid name.
pub fn check_names(skill: &SkillIdentity, pod: &str) -> Result<(), Refusal> {
    let SkillIdentity { namespace, name, uid } = skill;
    for (what, value) in [("namespace", namespace.as_str()), ("name", name), ("UID", uid), ("pod", pod)] {
        // These values become parts of request paths to the API server.
        if !is_dns_label(value) {
            return Err(Refusal::Invalid(format!("the {what} in the report of a probe is not a DNS label")));
        }
    }
    Ok(())
}

/// Refuses a caller that is not the pod that it names, or that the operator did not create for the Skill.
async fn check_caller(context: &Context, caller: &Caller, skill: &SkillIdentity, pod: &str) -> Result<(), Refusal> {
    let SkillIdentity { namespace, name, uid } = skill;
    // This check comes before any read: a worker must not make the operator read another tenant's objects.
    if caller.namespace != *namespace {
        let message = format!("a pod of namespace {} cannot report for a Skill of {namespace}", caller.namespace);
        return Err(Refusal::Forbidden(message));
    }
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let found = pods.get_opt(pod).await.map_err(|error| unavailable(&error))?;
    if found.is_some_and(|pod| is_caller(&pod, caller, uid) && context.pod_seals.verify(&pod)) {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!("the caller is not the pod {pod}, or no probe of the Skill {name}")))
}

fn unavailable(error: &kube::Error) -> Refusal {
    Refusal::Unavailable(format!("the API server cannot be read now: {error}"))
}

/// Returns the token for the MCP server of a Skill, if the caller is a probe of this Skill and the operator runs the server.
pub async fn issue_token(context: &Context, caller: &Caller, request: &TokenRequest) -> Result<ServerToken, Refusal> {
    let TokenRequest { skill, pod } = request;
    check_caller(context, caller, skill, pod).await?;
    let SkillIdentity { namespace, name, uid } = skill;
    let cached = context.caches.skills.get(namespace, name);
    let cached = cached.as_ref().filter(|cached| cached.meta().uid.as_ref() == Some(uid));
    let server = cached.and_then(|cached| cached.0.as_ref().ok()?.spec.mcp_server.as_ref());
    if !server.is_some_and(McpServer::takes_token) {
        let message = format!("the operator runs no MCP server for a Skill {namespace}/{name} with the UID {uid}");
        return Err(Refusal::NotFound(message));
    }
    let subject = Subject { namespace, skill: name, job: None, uid: &caller.pod_uid };
    let issued = context.server_tokens.issue(subject, Timestamp::now());
    issued.ok_or_else(|| Refusal::Unavailable("the keys of tokens are not known yet: try again".to_owned()))
}

/// Records a report if its caller is the pod that it names, and the operator created that pod for the Skill.
pub async fn handle(context: &Context, caller: &Caller, report: &ProbeReport) -> Result<(), Refusal> {
    check_caller(context, caller, &report.skill, &report.pod).await?;
    let SkillIdentity { namespace, name, uid } = &report.skill;
    let skills: Api<Skill> = Api::namespaced(context.client.clone(), namespace);
    for _ in 0..MAX_WRITE_TRIES {
        let skill = skills.get_opt(name).await.map_err(|error| unavailable(&error))?;
        let Some(skill) = skill.filter(|skill| skill.uid().as_ref() == Some(uid)) else {
            return Err(Refusal::NotFound(format!("there is no Skill {namespace}/{name} with the UID {uid}")));
        };
        let status = record(&skill, report, Time(Timestamp::now()))?;
        match context.statuses.replace(&skill, status).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(Refusal::Unavailable(format!("the status cannot be written now: {error}"))),
        }
    }
    Err(Refusal::Unavailable("the status of the Skill was changed at every try: report again".to_owned()))
}

/// Returns whether a pod is the caller, and labelled and owned as a probe of the Skill.
fn is_caller(pod: &Pod, caller: &Caller, skill_uid: &str) -> bool {
    let component = pod.labels().get(names::LABEL_COMPONENT);
    pod.metadata.uid.as_ref() == Some(&caller.pod_uid)
        && component.is_some_and(|component| component == names::COMPONENT_PROBE)
        && owned::is_owned_by(&pod.metadata, skill_uid)
}

/// Returns the status of a Skill with what a probe found: pure.
///
/// The found tools are pinned if `toolsDigest` accepts them. Without it, they are pinned if no tools are pinned for this server yet.
pub fn record(skill: &Skill, report: &ProbeReport, now: Time) -> Result<SkillStatus, Refusal> {
    let ProbeReport { skill: _, pod: _, subject, tools, count, rule_errors, more_rule_errors } = report;
    let superseded = || Refusal::Superseded("the Skill has changed, and another probe verifies it".to_owned());
    let server = skill.spec.mcp_server.as_ref().ok_or_else(superseded)?;
    if subject.server != server_digest(server) || subject.rules != rules_digest(&skill.spec) {
        return Err(superseded());
    }
    let status = skill.status.clone().unwrap_or_default();
    let earlier = status.tools.as_ref().filter(|earlier| earlier.server == subject.server);
    let digest = tools.digest();
    let pins = match (&server.tools_digest, earlier.and_then(|earlier| earlier.pins.as_ref())) {
        (Some(accepted), _) if *accepted == digest => Some(tools),
        (Some(accepted), earlier) => earlier.filter(|earlier| earlier.digest() == *accepted),
        (None, earlier) => earlier.or(Some(tools)),
    };
    let changes = pins.map(|pins| pins.changes(tools)).unwrap_or_default();
    let found = FoundTools {
        key: subject.key.clone(),
        rules: subject.rules.clone(),
        at: now,
        digest,
        count: *count,
        changes: changes.iter().take(MAX_CHANGES).map(bounded_change).collect(),
        more_changes: u32::try_from(changes.len().saturating_sub(MAX_CHANGES)).unwrap_or(u32::MAX),
        rule_errors: rule_errors.clone(),
        more_rule_errors: *more_rule_errors,
    };
    let tools = VerifiedTools {
        server: subject.server.clone(),
        digest: pins.map(ToolPins::digest),
        pins: pins.cloned(),
        found,
    };
    Ok(SkillStatus { tools: Some(tools), ..status })
}

fn bounded_change(change: &ToolChange) -> String {
    bounded(&change.to_string(), MAX_CHANGE_BYTES)
}

#[cfg(test)]
mod tests;
