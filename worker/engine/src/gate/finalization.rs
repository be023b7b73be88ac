//! The finalization gate (`engine.md`, section 3): form first, then the contract, then what a return must bring.

use crate::conversation::{Conversation, Draft};
use crate::event::{FinalRuling, WholeResult};
use crate::gate::{answer, judge};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, SuggestedAction};
use serde_json::Value;

/// How often in all the form of an answer is sent back without counting an attempt.
const MAX_FORM_ERRORS: u32 = 2;

/// How many missing fields are named: status holds every attempt.
const MAX_NAMED: usize = 16;

/// What the gate says of a draft.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruled {
    /// The ruling.
    By(FinalRuling),
    /// Form and workflows are right: the model that rules has to be asked about the rest.
    NeedsJudge,
    /// It was asked, and its answer is no ruling.
    Misread(String),
}

/// Rules on a draft: what it must bring, its form, the workflows, and what the model that rules says.
pub fn rule(draft: &Draft, conversation: &Conversation) -> Ruled {
    let finalizing = conversation.finalization();
    if finalizing.awaits_evidence() {
        return Ruled::By(FinalRuling::NoNewEvidence);
    }
    if let Some(fault) = form_fault(draft, conversation) {
        let is_form_error = finalizing.form_errors() < MAX_FORM_ERRORS;
        return Ruled::By(if is_form_error { FinalRuling::FormError(fault) } else { FinalRuling::Attempt(fault) });
    }
    if let Some(open) = unfinished(conversation) {
        return Ruled::By(FinalRuling::Attempt(failed(FinalizationCode::GoalNotMet, &open, Vec::new())));
    }
    if !is_judged(conversation) {
        return Ruled::By(FinalRuling::Skipped);
    }
    let question = finalizing.question();
    if question.is_given_up() {
        let why = question.complaint().unwrap_or_default();
        let detail = format!("the gate's model gave no ruling that can be read: {why}");
        return Ruled::By(FinalRuling::Attempt(failed(FinalizationCode::GoalNotMet, &detail, Vec::new())));
    }
    match question.answer().map(judge::read) {
        None => Ruled::NeedsJudge,
        Some(Ok(attempt)) => Ruled::By(FinalRuling::Attempt(attempt)),
        Some(Err(why)) => Ruled::Misread(why),
    }
}

/// The steps that required workflows still want, in a sentence.
fn unfinished(conversation: &Conversation) -> Option<String> {
    let intent = conversation.intention().intent().and_then(|intent| intent.id.as_deref());
    let open = conversation.rules().workflows.incomplete(intent);
    let first = open.first()?;
    let steps: Vec<&str> = open.iter().filter(|open| open.workflow == first.workflow).map(|open| open.step).collect();
    Some(format!("the workflow {:?} is not complete: {} is open", first.workflow, steps.join(", ")))
}

fn is_judged(conversation: &Conversation) -> bool {
    let gate = conversation.run().skill.engine.as_ref().and_then(|engine| engine.finalization_gate.as_ref());
    gate.and_then(|gate| gate.enabled).unwrap_or(true)
}

/// The result of a draft: prose and fields apart where the contract asks for fields.
pub fn result(draft: &Draft, conversation: &Conversation, verified: bool) -> WholeResult {
    let split = if wants_fields(conversation) { answer::split(&draft.text).ok() } else { None };
    let (text, fields) = split.unwrap_or_else(|| (draft.text.clone(), serde_json::Map::new()));
    WholeResult { text, fields, verified, polished: false }
}

fn wants_fields(conversation: &Conversation) -> bool {
    let contract = conversation.run().skill.output_contract.as_ref();
    contract.is_some_and(|contract| !contract.required_fields.is_empty() || contract.schema.is_some())
}

/// What is wrong with the form of a draft.
fn form_fault(draft: &Draft, conversation: &Conversation) -> Option<FinalizationAttempt> {
    let incomplete = |detail: &str| Some(failed(FinalizationCode::OutputIncomplete, detail, Vec::new()));
    if draft.cut {
        return incomplete("it was cut off at the model's length limit: be briefer");
    }
    if draft.text.trim().is_empty() {
        return incomplete("it is empty");
    }
    if !wants_fields(conversation) {
        return None;
    }
    let fields = match answer::split(&draft.text) {
        Ok((_, fields)) => fields,
        Err(error) => return incomplete(&error.advice()),
    };
    let contract = conversation.run().skill.output_contract.as_ref()?;
    let missing: Vec<String> =
        contract.required_fields.iter().filter(|name| is_missing(fields.get(*name))).take(MAX_NAMED).cloned().collect();
    if !missing.is_empty() {
        let detail = format!("required fields are missing or empty: {}", missing.join(", "));
        return Some(failed(FinalizationCode::MissingRequiredField, &detail, missing));
    }
    let fault = conversation.rules().contract.as_ref()?.fault(&Value::Object(fields))?;
    incomplete(&format!("the fields do not fit the output contract's schema: {fault}"))
}

fn is_missing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => false,
    }
}

fn failed(code: FinalizationCode, detail: &str, missing_fields: Vec<String>) -> FinalizationAttempt {
    FinalizationAttempt {
        passed: false,
        score: None,
        reasons: vec![FinalizationReason { code, detail: bounded(detail, 256) }],
        missing_fields,
        suggested_action: Some(SuggestedAction::ToolCall),
    }
}
