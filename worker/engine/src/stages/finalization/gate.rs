//! The decisions of the finalization gate: it checks new evidence, the form, the workflows, and then asks the judging model.

use super::judge;
use super::state::{Draft, Finalization, Reworded};
use crate::content::{check_content, check_nothing_lost};
use crate::event::{FinalizationRuling, FullResult};
use crate::json_block;
use crate::rules::Rules;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{
    FinalizationAttempt, FinalizationCode, FinalizationReason, OutputContract, SkillSpec, SuggestedAction,
};
use serde_json::Value;

/// The most form errors of a Job that do not count as attempts.
const MAX_FORM_ERRORS: u32 = 2;

/// The most missing fields that an attempt names: the status holds every attempt.
const MAX_NAMED_FIELDS: usize = 16;

/// The values from which the gate decides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate<'a> {
    pub finalization: &'a Finalization,
    pub rules: &'a Rules,
    pub skill: &'a SkillSpec,
    /// The id of the detected intent.
    pub intent: Option<&'a str>,
}

/// The decision of the gate about a draft.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DraftDecision {
    /// The draft passes or fails.
    Ruling(FinalizationRuling),
    /// Form and workflows are right, and the judging model has not been asked yet.
    NeedsJudge,
    /// The judging model's answer cannot be read, for this reason.
    InvalidJudgement(String),
}

/// Rules on a draft.
pub(super) fn rule(draft: &Draft, gate: &Gate<'_>) -> DraftDecision {
    let finalization = gate.finalization;
    if finalization.needs_evidence() {
        return DraftDecision::Ruling(FinalizationRuling::NoNewEvidence);
    }
    if let Some(fault) = form_fault(draft, gate) {
        let is_tolerated = finalization.form_errors() < MAX_FORM_ERRORS;
        let ruling =
            if is_tolerated { FinalizationRuling::FormError(fault) } else { FinalizationRuling::Attempt(fault) };
        return DraftDecision::Ruling(ruling);
    }
    if let Some(fault) = changed_content(draft, gate) {
        return DraftDecision::Ruling(FinalizationRuling::Attempt(fault));
    }
    if let Some(open) = open_steps(gate.rules, gate.intent) {
        let attempt = failed_attempt(FinalizationCode::GoalNotMet, &open, Vec::new());
        return DraftDecision::Ruling(FinalizationRuling::Attempt(attempt));
    }
    if !is_judged(gate.skill) {
        return DraftDecision::Ruling(FinalizationRuling::Skipped);
    }
    let judgement = finalization.judgement();
    if judgement.is_given_up() {
        let why = judgement.error().unwrap_or_default();
        let detail = format!("the gate's model gave no ruling that can be read: {why}");
        return DraftDecision::Ruling(FinalizationRuling::Attempt(failed_attempt(
            FinalizationCode::GoalNotMet,
            &detail,
            Vec::new(),
        )));
    }
    match judgement.text().map(judge::read) {
        None => DraftDecision::NeedsJudge,
        Some(Ok(attempt)) => DraftDecision::Ruling(FinalizationRuling::Attempt(attempt)),
        Some(Err(error)) => DraftDecision::InvalidJudgement(error.to_string()),
    }
}

/// Returns the open steps of the first required workflow that is not complete, as a sentence.
fn open_steps(rules: &Rules, intent: Option<&str>) -> Option<String> {
    let open = rules.workflows.incomplete(intent);
    let first = open.first()?;
    let steps: Vec<&str> = open.iter().filter(|open| open.workflow == first.workflow).map(|open| open.step).collect();
    Some(format!("the workflow {:?} is not complete: {} is open", first.workflow, steps.join(", ")))
}

fn is_judged(skill: &SkillSpec) -> bool {
    let gate = skill.engine.as_ref().and_then(|engine| engine.finalization_gate.as_ref());
    gate.and_then(|gate| gate.enabled).unwrap_or(true)
}

/// Returns the result of a draft. If the contract asks for fields, prose and fields are separated; without a readable JSON block,
/// the whole draft is prose.
pub(crate) fn result(draft: &Draft, contract: Option<&OutputContract>, verified: bool) -> FullResult {
    let split = if contract.is_some_and(wants_fields) { json_block::split(&draft.text).ok() } else { None };
    let (text, fields) = split.unwrap_or_else(|| (draft.text.clone(), serde_json::Map::new()));
    FullResult { text, fields, verified, polished: false }
}

fn wants_fields(contract: &OutputContract) -> bool {
    !contract.required_fields.is_empty() || contract.schema.is_some()
}

/// Returns the form error of a draft, as a failed attempt; nothing if the form is right.
fn form_fault(draft: &Draft, gate: &Gate<'_>) -> Option<FinalizationAttempt> {
    let incomplete = |detail: &str| Some(failed_attempt(FinalizationCode::OutputIncomplete, detail, Vec::new()));
    if draft.cut {
        return incomplete("it was cut off at the model's length limit: be briefer");
    }
    if draft.text.trim().is_empty() {
        return incomplete("it is empty");
    }
    let contract = gate.skill.output_contract.as_ref().filter(|contract| wants_fields(contract))?;
    let fields = match json_block::split(&draft.text) {
        Ok((_, fields)) => fields,
        Err(error) => return incomplete(&error.to_string()),
    };
    let missing: Vec<String> = contract
        .required_fields
        .iter()
        .filter(|name| is_missing(fields.get(*name)))
        .take(MAX_NAMED_FIELDS)
        .cloned()
        .collect();
    if !missing.is_empty() {
        let detail = format!("required fields are missing or empty: {}", missing.join(", "));
        return Some(failed_attempt(FinalizationCode::MissingRequiredField, &detail, missing));
    }
    let fault = gate.rules.contract.as_ref()?.first_error(&Value::Object(fields))?;
    incomplete(&format!("the fields do not fit the output contract's schema: {fault}"))
}

/// Returns the fault of a draft that was to reword an earlier one and changed its content; nothing if it was not or did not.
fn changed_content(draft: &Draft, gate: &Gate<'_>) -> Option<FinalizationAttempt> {
    let Reworded { draft: earlier, may_add } = gate.finalization.reworded()?;
    let contract = gate.skill.output_contract.as_ref();
    let (before, after) = (result(earlier, contract, false), result(draft, contract, false));
    let keeps = |(name, value): (&String, &Value)| after.fields.get(name) == Some(value);
    let same_fields = before.fields.iter().all(keeps) && (*may_add || before.fields.len() == after.fields.len());
    let checked = if *may_add { check_nothing_lost } else { check_content };
    let change = match checked(&before.text, &after.text, &before.fields) {
        Err(change) => change.to_string(),
        Ok(()) if !same_fields => "the fields of the JSON block differ".to_owned(),
        Ok(()) => return None,
    };
    let detail = format!("it changes the content of the earlier answer: {change}");
    Some(failed_attempt(FinalizationCode::OutputIncomplete, &detail, Vec::new()))
}

fn is_missing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

fn failed_attempt(code: FinalizationCode, detail: &str, missing_fields: Vec<String>) -> FinalizationAttempt {
    FinalizationAttempt {
        passed: false,
        score: None,
        reasons: vec![FinalizationReason { code, detail: bounded(detail, 256) }],
        missing_fields,
        suggested_action: Some(SuggestedAction::ToolCall),
    }
}
