//! The finalization gate (`engine.md`, section 3): form first, then the contract, then what a return must bring.

use crate::conversation::{Conversation, Draft};
use crate::event::{FinalRuling, WholeResult};
use crate::gate::answer;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, SuggestedAction};
use serde_json::Value;

/// How often in all the form of an answer is sent back without counting an attempt.
pub const MAX_FORM_ERRORS: u32 = 2;

/// How often a failed answer may go back to the loop where the Skill says nothing.
pub const DEFAULT_RETRIES: u32 = 2;

/// Rules on a draft.
pub fn rule(draft: &Draft, conversation: &Conversation) -> FinalRuling {
    if conversation.finalization().awaits_evidence() {
        return FinalRuling::NoNewEvidence;
    }
    let attempt = check(draft, required_fields(conversation));
    if !attempt.passed && conversation.finalization().form_errors() < MAX_FORM_ERRORS {
        return FinalRuling::FormError(attempt);
    }
    FinalRuling::Attempt(attempt)
}

/// The result of a draft: prose and fields apart where the contract asks for fields.
pub fn result(draft: &Draft, conversation: &Conversation, verified: bool) -> WholeResult {
    let split = if required_fields(conversation).is_empty() { None } else { answer::split(&draft.text).ok() };
    match split {
        Some((text, fields)) => WholeResult { text, fields, verified },
        None => WholeResult { text: draft.text.clone(), fields: serde_json::Map::new(), verified },
    }
}

/// What the model is told of a form error.
pub fn form_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer cannot be used as it is: {}. Give the whole answer again, with exactly one ```json block that \
         holds every required field. Do not repeat tool calls that have succeeded.",
        told(attempt)
    )
}

/// What the model is told of a failed attempt.
pub fn attempt_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer did not pass: {}. Find out what is missing with a tool call that you have not made yet, then \
         answer again. An answer without new evidence ends the Job.",
        told(attempt)
    )
}

/// The faults of an attempt, in a row.
pub fn told(attempt: &FinalizationAttempt) -> String {
    attempt.reasons.iter().map(|reason| reason.detail.as_str()).collect::<Vec<_>>().join("; ")
}

fn required_fields(conversation: &Conversation) -> &[String] {
    conversation.run().skill.output_contract.as_ref().map_or(&[], |contract| &contract.required_fields)
}

fn check(draft: &Draft, required: &[String]) -> FinalizationAttempt {
    if draft.cut {
        return failed(
            FinalizationCode::OutputIncomplete,
            "it was cut off at the model's length limit: be briefer",
            Vec::new(),
        );
    }
    if draft.text.trim().is_empty() {
        return failed(FinalizationCode::OutputIncomplete, "it is empty", Vec::new());
    }
    if required.is_empty() {
        return FinalizationAttempt { passed: true, ..FinalizationAttempt::default() };
    }
    match answer::split(&draft.text) {
        Err(error) => failed(FinalizationCode::OutputIncomplete, &error.advice(), Vec::new()),
        Ok((_, fields)) => {
            let missing: Vec<String> = required.iter().filter(|name| is_missing(fields.get(*name))).cloned().collect();
            if missing.is_empty() {
                return FinalizationAttempt { passed: true, ..FinalizationAttempt::default() };
            }
            let detail = format!("required fields are missing or empty: {}", missing.join(", "));
            failed(FinalizationCode::MissingRequiredField, &detail, missing)
        }
    }
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
        reasons: vec![FinalizationReason { code, detail: bounded(detail, 256) }],
        missing_fields,
        suggested_action: Some(SuggestedAction::ToolCall),
    }
}
