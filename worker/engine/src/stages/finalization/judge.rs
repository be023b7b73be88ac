//! The prompt of the judging model, and the reader of its answer.
//!
//! Before it asks the judging model, the gate checks the form, the contract's fields and the workflows.

use crate::stage_prompt::{AnswerSchema, DATA, Error, StagePrompt, data, exact_object, list, read_object};
use bloomery_crds::canonical;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, SkillSpec, SuggestedAction};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

/// The most reasons of an attempt in the CRD.
const MAX_REASONS: usize = 8;

/// The most missing fields of an attempt in the CRD.
const MAX_FIELDS: usize = 64;

/// The longest detail of a reason in the CRD, in bytes.
const MAX_DETAIL_BYTES: usize = 256;

/// The longest name of a missing field in the CRD, in bytes.
const MAX_FIELD_BYTES: usize = 128;

/// Returns the prompt that asks whether a draft may go to the person. It contains the goal, the draft, and the parts of the
/// Skill that the draft must satisfy.
pub fn prompt(skill: &SkillSpec, goal: &str, prose: &str, fields: &Map<String, Value>) -> StagePrompt {
    let mut parts = vec![ROLE.to_owned()];
    let mut section = |title: &str, text: String| {
        if !text.is_empty() {
            parts.push(format!("# {title}\n{text}"));
        }
    };
    section("Problem that the agent solves", skill.problem.statement.trim().to_owned());
    section("Goal of the Skill", skill.goal.as_deref().unwrap_or_default().trim().to_owned());
    section("Goals of the agent", list(&skill.problem.goals));
    section("Acceptance criteria", list(&skill.acceptance_criteria));
    section("Guardrails", guardrails(skill));
    let contract = skill.output_contract.as_ref();
    section("Required fields", list(contract.map_or(&[][..], |contract| &contract.required_fields)));
    section("Answer", ANSWER.to_owned());
    parts.push(DATA.to_owned());
    let mut user = vec![
        "Goal of the person:".to_owned(),
        goal.to_owned(),
        "Draft of the agent's answer:".to_owned(),
        data("draft", prose),
    ];
    if !fields.is_empty() {
        user.push("Fields of the draft:".to_owned());
        user.push(data("fields", &canonical::to_string(&Value::Object(fields.clone()))));
    }
    StagePrompt { system: parts.join("\n\n"), user: user.join("\n"), answer_schema: Some(answer_schema()) }
}

/// Returns the schema of the answer that [`ANSWER`] describes.
fn answer_schema() -> AnswerSchema {
    let reason = [
        ("code", json!({"type": "string", "enum": FinalizationCode::iter().collect::<Vec<_>>()})),
        ("detail", json!({"type": "string"})),
    ];
    let actions: Vec<Option<SuggestedAction>> = SuggestedAction::iter().map(Some).chain([None]).collect();
    let fields = [
        ("passed", json!({"type": "boolean"})),
        ("score", json!({"type": "number"})),
        ("reasons", json!({"type": "array", "items": exact_object(reason)})),
        ("missing_fields", json!({"type": "array", "items": {"type": "string"}})),
        ("suggested_action", json!({"type": ["string", "null"], "enum": actions})),
    ];
    AnswerSchema::new("ruling", fields)
}

const ROLE: &str = "You are a finalization gate. You check the answer of an agent before it goes to the person. You see \
    only the draft, not what the agent did: a guardrail about its work is broken only if the draft shows it. Be strict \
    but fair: fail the draft only for a real problem.";

const ANSWER: &str = "Answer with one JSON object and nothing else:\n\
    {\"passed\": true or false, \"score\": 0.0 to 1.0, \"reasons\": [{\"code\": \"<code>\", \"detail\": \"<what is \
    wrong, where>\"}], \"missing_fields\": [\"<required field without a real value>\"], \"suggested_action\": \
    \"<action>\"}\n\
    Codes:\n\
    - GOAL_NOT_MET: the draft does not reach the person's goal, or an acceptance criterion\n\
    - GUARDRAIL_VIOLATED: the draft breaks a guardrail\n\
    - MISSING_REQUIRED_FIELD: a required field is missing or has no real value\n\
    - OUTPUT_INCOMPLETE: the draft is cut off, or announces content that it does not contain\n\
    - TONE_MISMATCH: the tone of the draft is not the agent's\n\
    Actions: TOOL_CALL (find out what is missing), CLARIFY_USER (ask the person), REWRITE (rephrase it), ESCALATE (a \
    person has to take over). A draft that passes has no reasons, no missing fields, and null as its action.";

fn guardrails(skill: &SkillSpec) -> String {
    let guardrails = skill.policy.as_ref().and_then(|policy| policy.guardrails.as_ref());
    let never = guardrails.into_iter().flat_map(|rules| &rules.never).map(|rule| format!("NEVER: {}", rule.trim()));
    let always = guardrails.into_iter().flat_map(|rules| &rules.always).map(|rule| format!("ALWAYS: {}", rule.trim()));
    list(never.chain(always))
}

/// The answer of the judging model. The prompt asks for field names in snake case; the names in `Job.status` are accepted too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgeAnswer {
    passed: bool,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    reasons: Option<Vec<JudgeReason>>,
    #[serde(default, alias = "missingFields")]
    missing_fields: Option<Vec<String>>,
    #[serde(default, alias = "suggestedAction")]
    suggested_action: Option<SuggestedAction>,
}

/// A reason in the answer of the judging model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgeReason {
    code: FinalizationCode,
    #[serde(default)]
    detail: Option<String>,
}

/// Reads the ruling of the judging model.
///
/// `passed: true` with missing fields or a violated guardrail is a failure; with `TONE_MISMATCH` it is a pass. After the
/// decision, lists and texts are cut to the limits of the CRD.
///
/// # Errors
/// - The answer is not an object of this form, or the score is not between 0 and 1.
/// - The answer passes the draft, but says that the goal is not met or the draft is incomplete.
/// - The answer fails the draft without a reason.
pub fn read(text: &str) -> Result<FinalizationAttempt, Error> {
    let answer: JudgeAnswer = serde_json::from_value(Value::Object(read_object(text)?))
        .map_err(|error| bounded(&error.to_string(), MAX_DETAIL_BYTES))?;
    if let Some(score) = answer.score
        && !(0.0..=1.0).contains(&score)
    {
        return Err(format!("the score {score} is not between 0 and 1").into());
    }
    let reasons = answer.reasons.unwrap_or_default();
    let missing = answer.missing_fields.unwrap_or_default();
    let passed = decide(answer.passed, &reasons, &missing)?;
    Ok(FinalizationAttempt {
        passed,
        score: answer.score,
        suggested_action: if passed {
            None
        } else {
            Some(answer.suggested_action.unwrap_or(SuggestedAction::ToolCall))
        },
        reasons: status_reasons(reasons, &missing),
        missing_fields: missing.iter().take(MAX_FIELDS).map(|name| bounded(name, MAX_FIELD_BYTES)).collect(),
    })
}

/// Decides whether the draft passes. Other parts of the answer can overrule `passed`, or contradict it.
fn decide(passed: bool, reasons: &[JudgeReason], missing: &[String]) -> Result<bool, Error> {
    if !passed {
        let has_reason = !reasons.is_empty() || !missing.is_empty();
        return if has_reason { Ok(false) } else { Err("\"passed\" is false, and no reason is given".into()) };
    }
    let mut passed = missing.is_empty();
    let mut contradiction = None;
    for reason in reasons {
        match reason.code {
            FinalizationCode::GuardrailViolated | FinalizationCode::MissingRequiredField => passed = false,
            FinalizationCode::GoalNotMet | FinalizationCode::OutputIncomplete => contradiction = Some(reason.code),
            FinalizationCode::ToneMismatch => {}
        }
    }
    match contradiction {
        Some(code) if passed => Err(format!("\"passed\" is true, and yet it says {code}: decide").into()),
        _ => Ok(passed),
    }
}

/// Returns the reasons for the status, the most severe first, so that the decisive reason is not cut off.
fn status_reasons(mut reasons: Vec<JudgeReason>, missing: &[String]) -> Vec<FinalizationReason> {
    if !missing.is_empty() && !reasons.iter().any(|reason| reason.code == FinalizationCode::MissingRequiredField) {
        let detail = Some(format!("required fields are missing or empty: {}", missing.join(", ")));
        reasons.push(JudgeReason { code: FinalizationCode::MissingRequiredField, detail });
    }
    reasons.sort_by_key(|reason| match reason.code {
        FinalizationCode::GuardrailViolated => 0,
        FinalizationCode::MissingRequiredField => 1,
        FinalizationCode::GoalNotMet => 2,
        FinalizationCode::OutputIncomplete => 3,
        FinalizationCode::ToneMismatch => 4,
    });
    let reasons = reasons.into_iter().take(MAX_REASONS).map(|reason| FinalizationReason {
        code: reason.code,
        detail: match reason.detail.as_deref().map(str::trim) {
            None | Some("") => reason.code.to_string(),
            Some(detail) => bounded(detail, MAX_DETAIL_BYTES),
        },
    });
    reasons.collect()
}

#[cfg(test)]
mod tests;
