//! The finalization gate (`engine.md`, section 3): form first, then the contract, then what a return must bring.

use crate::conversation::{Conversation, Draft};
use crate::event::{FinalRuling, WholeResult};
use crate::gate::answer;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, SuggestedAction};
use serde_json::Value;

/// How often in all the form of an answer is sent back without counting an attempt.
pub const MAX_FORM_ERRORS: u32 = 2;

/// How many missing fields are named: status holds every attempt.
const MAX_NAMED: usize = 16;

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
            let missing: Vec<String> =
                required.iter().filter(|name| is_missing(fields.get(*name))).take(MAX_NAMED).cloned().collect();
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
