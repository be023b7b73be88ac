//! The pre-tool gate (`engine.md`, section 3): mechanical, layer by layer, the strictest verdict wins and
//! carries every reason of its rank.

use crate::condition::Arguments as Checked;
use crate::conversation::{Call, Conversation};
use crate::event::{Arguments, RulingReason};
use crate::gate::catalogue::{core_refusal, policy_refusal};
use crate::gate::core_tools;
use crate::gate::objection::Objection;
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{ApprovalSpec, GateReason, HeldCall, Verdict};
use std::collections::BTreeSet;

/// The largest arguments that a person is asked to approve, in bytes: what nobody can read nobody approves.
const MAX_APPROVABLE: usize = ApprovalSpec::MAX_ARGUMENTS;

/// How many approvers a status names; those beyond are asked once these have agreed.
pub(crate) const MAX_APPROVERS: usize = 8;

/// What the gate says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The strictest verdict of all layers.
    pub verdict: Verdict,
    /// Every reason of that rank.
    pub reasons: Vec<RulingReason>,
}

/// Rules on a call: catalogue -> secrets in its arguments -> `policy.tools` -> the tool's own policy -> compiled
/// guardrails -> workflows -> rules of endpoints -> argument schema -> approvals -> limits. What people have approved holds the call no longer;
/// nothing else changes by it.
pub fn rule(call: &Call, conversation: &Conversation) -> Ruling {
    let Some(tool) = conversation.tool(&call.tool) else {
        let detail = format!("there is no tool {:?}", bounded(&call.tool, 128));
        return strictest(vec![Objection::deny(GateReason::Catalogue, detail)]);
    };
    let mut objections: Vec<Objection> = secrets(call).into_iter().chain(drift(tool, conversation)).collect();
    objections.extend(policy(tool, conversation));
    let rules = conversation.rules();
    // What stands in place of a secret is not what was meant: nothing else is said of it.
    let has_secrets = !call.secrets.is_empty();
    let arguments = if has_secrets { Err(String::new()) } else { call.read_arguments() };
    let checked = arguments.as_ref().map(|arguments| Checked::check(arguments));
    if let (Ok(arguments), Ok(checked)) = (&arguments, &checked) {
        objections.extend(rules.of_tool(tool, checked));
        objections.extend(rules.guardrails(tool, arguments));
    }
    objections.extend(rules.order(tool));
    let of_endpoint = |&arguments: &_| core_tools::http::objection(tool, arguments, conversation.run());
    objections.extend(arguments.as_ref().ok().and_then(of_endpoint));
    let fault = match &arguments {
        Ok(arguments) => conversation.schema(&call.tool).and_then(|schema| schema.fault(arguments)),
        Err(_) if has_secrets => None,
        Err(why) => Some(why.clone()),
    };
    objections.extend(fault.map(|detail| Objection::deny(GateReason::Schema, detail)));
    if let Ok(checked) = &checked {
        objections.extend(rules.approvals(tool, checked));
    }
    objections.extend(limits(conversation));
    objections.retain(|objection| objection.verdict != Verdict::Hold || !call.hold.is_lifted(&objection.reason));
    approvable(strictest(objections), call)
}

/// What a person is asked about a call that is held.
pub fn held(call: &Call, ruling: &Ruling) -> Option<HeldCall> {
    if ruling.verdict != Verdict::Hold {
        return None;
    }
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    let mut approvers: Vec<String> = ruling.reasons.iter().filter_map(|reason| reason.approver.clone()).collect();
    approvers.sort();
    approvers.dedup();
    approvers.truncate(MAX_APPROVERS);
    let mut reasons: Vec<&str> = ruling.reasons.iter().map(|reason| reason.detail.as_str()).collect();
    // Several rules may say the same.
    let mut said = BTreeSet::new();
    reasons.retain(|reason| said.insert(*reason));
    Some(HeldCall {
        id: call.id.to_string(),
        tool: bounded(&call.tool, 128),
        digest: arguments.digest().clone(),
        approvers,
        reason: bounded(&reasons.join("; "), 1024),
    })
}

/// A denial in place of a hold that no person could decide.
fn approvable(ruling: Ruling, call: &Call) -> Ruling {
    let bytes = match &call.arguments {
        Some(Arguments::Canonical(arguments)) => arguments.text().len(),
        Some(Arguments::Malformed { .. }) | None => 0,
    };
    if ruling.verdict != Verdict::Hold || bytes <= MAX_APPROVABLE {
        return ruling;
    }
    let too_large = |reason: RulingReason| {
        let detail = format!(
            "{}, and its arguments have {bytes} bytes: more than the {MAX_APPROVABLE} that a person is asked to approve",
            reason.detail
        );
        RulingReason { detail, approver: None, ..reason }
    };
    Ruling { verdict: Verdict::Deny, reasons: ruling.reasons.into_iter().map(too_large).collect() }
}

fn strictest(objections: Vec<Objection>) -> Ruling {
    let verdict = objections.iter().map(|objection| objection.verdict).max().unwrap_or(Verdict::Allow);
    let of_rank = objections.into_iter().filter(|objection| objection.verdict == verdict);
    Ruling { verdict, reasons: of_rank.map(|objection| objection.reason).collect() }
}

/// The worker has found them: what is ruled on, and kept, is without them.
fn secrets(call: &Call) -> Option<Objection> {
    let detail = format!(
        "the arguments hold the value of {}: no tool is given a secret in its arguments. Leave it out",
        call.secrets.join(", ")
    );
    (!call.secrets.is_empty()).then(|| Objection::deny(GateReason::Secret, detail))
}

fn drift(tool: &CatalogueTool, conversation: &Conversation) -> Option<Objection> {
    let drift = conversation.drift_of(&tool.name).filter(|_| tool.source == ToolSource::Server)?;
    let detail = format!("the tool {:?} is not what it was: {}", bounded(&tool.name, 128), drift.objection());
    Some(Objection::deny(GateReason::Catalogue, detail))
}

fn policy(tool: &CatalogueTool, conversation: &Conversation) -> Option<Objection> {
    let policy = conversation.run().skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    let refusal = match tool.source {
        ToolSource::Server => policy_refusal(policy, &tool.name),
        ToolSource::Core => core_refusal(policy, &tool.name),
    };
    refusal.map(|detail| Objection::deny(GateReason::Policy, detail))
}

fn limits(conversation: &Conversation) -> Option<Objection> {
    let limit = conversation.run().limits.tool_calls;
    (conversation.tool_calls() >= limit)
        .then(|| Objection::deny(GateReason::Limit, format!("all {limit} tool calls of limits.toolCalls are spent")))
}
