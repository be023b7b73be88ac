//! The pre-tool gate (`docs/explanation/engine.md`, section 3). It checks a call layer by layer, without a model. The
//! strictest verdict wins, with every reason of that verdict.

use super::arguments::InvalidArguments;
use super::state::{Call, CallState};
use super::undeclared;
use crate::catalogue::Catalogue;
use crate::condition::{Arguments as CheckedArguments, Subject};
use crate::core_tools;
use crate::event::{Arguments, RulingReason};
use crate::record::Record;
use crate::rules::limits::{Counted, Spent};
use crate::rules::{Objection, Rules};
use crate::run::Run;
use crate::shared::Shared;
use crate::stages::approval::Hold;
use crate::tool::{CatalogueTool, ToolSource};
use crate::tool_policy::refusal;
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalSpec, GateReason, Verdict};

/// The largest arguments that a person is asked to approve, in bytes. Larger arguments cannot be reviewed.
const MAX_APPROVABLE_BYTES: usize = ApprovalSpec::MAX_ARGUMENTS_BYTES;

/// The values from which the gate decides.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// The tools of the Job.
    pub catalogue: &'a Catalogue,
    /// The compiled rules of the Skill.
    pub rules: &'a Rules,
    /// The inputs of the conversation: the Skill's policy, the bound resources, the limits.
    pub run: &'a Run,
    /// The facts of the conversation that conditions read.
    pub record: &'a Record,
    /// The id of the detected intent.
    pub intent: Option<&'a str>,
    /// The number of calls that the gate has allowed so far, and of those of children.
    pub allowed: u32,
    /// The calls that count towards `policy.limits`.
    pub spent: &'a Spent,
}

impl<'a> Gate<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let Shared { catalogue, rules, run, record, calls, spent, .. } = shared;
        let allowed = calls.rulings().allowed.saturating_add(shared.budget.delegated().tool_calls);
        Self { catalogue, rules, run, record, intent: shared.intent_id(), allowed, spent }
    }
}

/// The decision of the gate about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The strictest verdict of all layers.
    pub verdict: Verdict,
    /// Every reason for that verdict.
    pub reasons: Vec<RulingReason>,
}

/// Rules on a call. The layers, in this order: catalogue, secrets in the arguments, drift, `policy.tools` and the tool policy of the tenant,
/// the effects of a validation, the tool's own policy, compiled guardrails, workflows, rules of endpoints, argument schema, declared inputs,
/// approvals, `policy.limits`, limits of the Job, approvers who were asked. An approval lifts the holds of its approver and no other objection.
pub fn rule(call: &Call, gate: &Gate<'_>) -> Ruling {
    let Gate { catalogue, rules, run, record, intent, allowed, spent } = *gate;
    let Some(tool) = catalogue.tool(&call.tool) else {
        let detail = format!("there is no tool {:?}", bounded(&call.tool, 128));
        return strictest(vec![Objection::deny(GateReason::Catalogue, detail)]);
    };
    let mut objections: Vec<Objection> =
        secret_objection(call).into_iter().chain(drift_objection(tool, catalogue)).collect();
    objections.extend(denial_objection(call, run));
    objections.extend(policy_objection(tool, run));
    objections.extend(intent_objection(tool, run, intent));
    objections.extend(effect_objection(tool, run));
    // With placeholders in the place of secrets, no other layer can judge the arguments.
    let has_secrets = !call.secrets.is_empty();
    let arguments = if has_secrets { Err(InvalidArguments::new("")) } else { call.read_arguments() };
    let checked = arguments.as_ref().map(|arguments| CheckedArguments::check(arguments));
    let facts = record.for_call(&call.id);
    let subject = checked.as_ref().ok().map(|arguments| Subject { arguments, facts: &facts });
    if let (Ok(arguments), Some(subject)) = (&arguments, subject) {
        objections.extend(rules.tool_policy(tool, subject));
        objections.extend(rules.guardrails(tool, arguments));
    }
    objections.extend(rules.workflow_order(tool));
    objections.extend(subject.iter().flat_map(|subject| rules.workflow_expectations(tool, subject.arguments, facts)));
    let endpoint_objection = |&arguments: &_| core_tools::http::objection(tool, arguments, run);
    objections.extend(arguments.as_ref().ok().and_then(endpoint_objection));
    let schema_error = match &arguments {
        Ok(arguments) => catalogue.argument_schema(tool).and_then(|schema| schema.first_error(arguments)),
        Err(_) if has_secrets => None,
        Err(error) => Some(error.to_string()),
    };
    objections.extend(schema_error.map(|detail| Objection::deny(GateReason::Schema, detail)));
    objections.extend(arguments.as_ref().ok().and_then(|arguments| undeclared::objection(tool, arguments, rules)));
    objections.extend(arguments.as_ref().ok().and_then(|arguments| rules.declared_inputs(tool, arguments)));
    if let Some(subject) = subject {
        objections.extend(rules.approvals(tool, subject));
    }
    if let Ok(arguments) = &arguments {
        let counted = Counted { call: &call.id, spent, answer: call.reservation.as_ref() };
        objections.extend(rules.limits(tool, arguments, counted));
    }
    objections.extend(limit_objection(allowed, run));
    let mut objections = with_approvers(objections, rules.default_approver(), &call.hold);
    objections.extend(asked_objections(call, tool, run));
    objections.retain(|objection| objection.verdict != Verdict::Hold || !call.hold.is_lifted(&objection.reason));
    deny_if_too_large(strictest(objections), call)
}

/// Names an approver for each hold without one: the first whom another hold names, or else `default`. So the default approver is asked only
/// if no rule names one. Such a hold is left out if any of these approvers has lifted it, or if a hold with an approver has the same text.
fn with_approvers(mut objections: Vec<Objection>, default: &str, lifts: &Hold) -> Vec<Objection> {
    let named: Vec<RulingReason> = objections
        .iter()
        .map(|objection| &objection.reason)
        .filter(|reason| reason.approver.is_some())
        .cloned()
        .collect();
    let approvers = named.iter().filter_map(|reason| reason.approver.as_deref()).chain([default]);
    let approvers: Vec<&str> = approvers.collect();
    objections.retain_mut(|Objection { verdict, reason }| {
        if *verdict != Verdict::Hold || reason.approver.is_some() {
            return true;
        }
        let held_for = |approver: &&str| RulingReason { approver: Some((*approver).to_owned()), ..reason.clone() };
        let is_settled = approvers.iter().map(held_for).any(|reason| lifts.is_lifted(&reason));
        let is_repeated = named.iter().any(|other| other.detail == reason.detail);
        reason.approver = approvers.first().map(|approver| (*approver).to_owned());
        !is_settled && !is_repeated
    });
    objections
}

/// Returns an objection to a call that was denied, or not decided on in time, according to the operator. Forged lines of the log may
/// allow the call, or change the facts of its rules.
fn denial_objection(call: &Call, run: &Run) -> Option<Objection> {
    let denial = run.decisions.denial_of(&call.id.0)?;
    Some(Objection::deny(GateReason::Approval, denial.denial()))
}

/// Returns an objection for each approver who was asked about the call and has not approved it. The facts that held the call may have
/// changed since, by forged lines too.
fn asked_objections(call: &Call, tool: &CatalogueTool, run: &Run) -> Vec<Objection> {
    // The schema layer denies malformed arguments.
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return Vec::new() };
    let approvers = run.decisions.missing_approvers(&call.id.0, &tool.shown_name(), arguments.digest());
    let detail = "people were asked about this call, and have not approved it";
    approvers.into_iter().map(|approver| Objection::hold(GateReason::Approval, detail, Some(approver))).collect()
}

/// Returns whether the gate still allows a call that it has allowed and that is about to be sent. The call itself is among the
/// calls that count towards the limit. A started read is sent again, a started call with effect is not.
pub(super) fn confirms(call: &Call, gate: &Gate<'_>) -> bool {
    let is_read = || gate.catalogue.tool(&call.tool).is_some_and(|tool| tool.read_only);
    let is_to_be_sent = match call.state {
        CallState::Allowed | CallState::Retry => true,
        CallState::Started { .. } => is_read(),
        _ => false,
    };
    let before = Gate { allowed: gate.allowed.saturating_sub(1), ..*gate };
    !is_to_be_sent || rule(call, &before).verdict == Verdict::Allow && !needs_reservation(call, gate)
}

/// Returns whether the ledger of the Skill must be asked before a call that the rules allow otherwise. After an approval, it is asked
/// again: the call counts beyond the limit. An approval also settles that the ledger cannot be used.
pub(super) fn needs_reservation(call: &Call, gate: &Gate<'_>) -> bool {
    let is_settled = call.reservation.as_ref().is_some_and(|answer| answer.reserved || answer.forced);
    !is_settled && gate.catalogue.tool(&call.tool).is_some_and(|tool| gate.rules.need_ledger(tool))
}

/// Turns a hold into a denial if the arguments are too large for a person to review.
fn deny_if_too_large(ruling: Ruling, call: &Call) -> Ruling {
    let bytes = match &call.arguments {
        Some(Arguments::Canonical(arguments)) => arguments.text().len(),
        Some(Arguments::Malformed { .. }) | None => 0,
    };
    if ruling.verdict != Verdict::Hold || bytes <= MAX_APPROVABLE_BYTES {
        return ruling;
    }
    let with_size = |reason: RulingReason| {
        let detail = format!(
            "{}, and its arguments have {bytes} bytes: more than the {MAX_APPROVABLE_BYTES} that a person is asked to approve",
            reason.detail
        );
        RulingReason { detail, approver: None, ..reason }
    };
    Ruling { verdict: Verdict::Deny, reasons: ruling.reasons.into_iter().map(with_size).collect() }
}

/// Returns the strictest verdict of the objections, with every reason for it.
fn strictest(objections: Vec<Objection>) -> Ruling {
    let verdict = objections.iter().map(|objection| objection.verdict).max().unwrap_or(Verdict::Allow);
    let decisive = objections.into_iter().filter(|objection| objection.verdict == verdict);
    Ruling { verdict, reasons: decisive.map(|objection| objection.reason).collect() }
}

/// Denies a call with the value of a secret. The worker has replaced the value by a placeholder before it recorded the
/// call.
fn secret_objection(call: &Call) -> Option<Objection> {
    if call.secrets.is_empty() {
        return None;
    }
    let detail = format!(
        "the arguments contain the value of {}: secrets must not be passed to tools. Leave it out",
        call.secrets.join(", ")
    );
    Some(Objection::deny(GateReason::Secret, detail))
}

fn drift_objection(tool: &CatalogueTool, catalogue: &Catalogue) -> Option<Objection> {
    let drift = catalogue.drift_of(&tool.name).filter(|_| tool.source == ToolSource::Server)?;
    let detail = format!("the tool {:?} cannot be used: {}", bounded(&tool.name, 128), drift.objection());
    Some(Objection::deny(GateReason::Catalogue, detail))
}

fn policy_objection(tool: &CatalogueTool, run: &Run) -> Option<Objection> {
    refusal(run, tool.source, &tool.name).map(|detail| Objection::deny(GateReason::Policy, detail))
}

/// Denies a tool that the detected intent does not allow. An intent need not allow the tools that act only on the conversation.
fn intent_objection(tool: &CatalogueTool, run: &Run, intent: Option<&str>) -> Option<Objection> {
    let supported = run.skill.intents.iter().flat_map(|intents| &intents.supported);
    let intent = supported.into_iter().find(|supported| Some(supported.id.as_str()) == intent)?;
    let is_allowed = core_tools::acts_on_conversation(&tool.name)
        || intent.tools.as_ref()?.iter().any(|pattern| matches(pattern, &tool.name));
    (!is_allowed).then(|| {
        let detail = format!("the intent {:?} does not allow the tool {:?}", intent.id, bounded(&tool.name, 128));
        Objection::deny(GateReason::Policy, detail)
    })
}

/// Denies a call with an effect in the test of a feature, unless the feature allows the tool. No rule of the Skill lifts this denial. The
/// notes of the agent are in a memory that only the test has.
fn effect_objection(tool: &CatalogueTool, run: &Run) -> Option<Objection> {
    let allowed = run.allowed_effects.as_ref()?;
    let is_note = tool.source == ToolSource::Core && tool.name == core_tools::MEMORY_WRITE;
    let is_allowed = tool.read_only || is_note || allowed.iter().any(|pattern| matches(pattern, &tool.name));
    (!is_allowed).then(|| {
        let name = bounded(&tool.name, 128);
        let detail =
            format!("{name:?} is not read-only, and a validation calls such a tool only if features[].allow names it");
        Objection::deny(GateReason::Policy, detail)
    })
}

fn limit_objection(allowed: u32, run: &Run) -> Option<Objection> {
    let limit = run.limits.tool_calls;
    (allowed >= limit)
        .then(|| Objection::deny(GateReason::Limit, format!("all {limit} tool calls of limits.toolCalls are spent")))
}
