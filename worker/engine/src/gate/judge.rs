//! The model's part of the finalization gate (seed 002, section 4.4): one small question, a typed answer.
//!
//! The form, the contract's fields and the workflows are checked without a model, before.

use crate::ask::{DATA, Form, Prompt, data, exact_object, list, object};
use bloomery_crds::canonical;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, SkillSpec, SuggestedAction};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

/// What the CRD takes of a ruling.
const MAX_REASONS: usize = 8;
const MAX_FIELDS: usize = 64;
const MAX_DETAIL: usize = 256;
const MAX_FIELD: usize = 128;

/// The question whether a draft may go to the person: what is [`wanted`](crate::ask::wanted), the Skill's problem and goals,
/// acceptance criteria, all guardrails, required fields, and the draft's prose and fields.
pub fn prompt(skill: &SkillSpec, wanted: &str, prose: &str, fields: &Map<String, Value>) -> Prompt {
    let mut parts = vec![ROLE.to_owned()];
    let mut section = |title: &str, text: String| {
        if !text.is_empty() {
            parts.push(format!("# {title}\n{text}"));
        }
    };
    section("Problem that the agent solves", skill.problem.statement.trim().to_owned());
    section("Goals of the agent", list(&skill.problem.goals));
    section("Acceptance criteria", list(&skill.acceptance_criteria));
    section("Guardrails", guardrails(skill));
    let contract = skill.output_contract.as_ref();
    section("Required fields", list(contract.map_or(&[][..], |contract| &contract.required_fields)));
    section("Answer", ANSWER.to_owned());
    parts.push(DATA.to_owned());
    let mut user = vec![
        "Goal of the person:".to_owned(),
        wanted.to_owned(),
        "Draft of the agent's answer:".to_owned(),
        data("draft", prose),
    ];
    if !fields.is_empty() {
        user.push("Fields of the draft:".to_owned());
        user.push(data("fields", &canonical::to_string(&Value::Object(fields.clone()))));
    }
    Prompt { system: parts.join("\n\n"), user: user.join("\n"), form: Some(form()) }
}

/// As [`ANSWER`] says it.
fn form() -> Form {
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
    Form::new("ruling", fields)
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

/// The answer as 002 writes it; the names of our own status are taken too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    passed: bool,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    reasons: Option<Vec<Reason>>,
    #[serde(default, alias = "missingFields")]
    missing_fields: Option<Vec<String>>,
    #[serde(default, alias = "suggestedAction")]
    suggested_action: Option<SuggestedAction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    code: FinalizationCode,
    #[serde(default)]
    detail: Option<String>,
}

/// Reads the ruling of the gate's model.
///
/// `passed: true` with missing fields or a violated guardrail is a failure; with `TONE_MISMATCH` it is a pass with a
/// remark. Lists and texts are cut to what the Job's status takes, after the ruling is made.
///
/// # Errors
/// A sentence for the model, which is asked once more: no such object, an unknown code, action or field, a score
/// outside of 0 to 1, a pass that says the goal is not met or the answer not whole, a failure without a reason.
pub fn read(text: &str) -> Result<FinalizationAttempt, String> {
    let answer: Answer = serde_json::from_value(Value::Object(object(text)?))
        .map_err(|error| bounded(&error.to_string(), MAX_DETAIL))?;
    if let Some(score) = answer.score
        && !(0.0..=1.0).contains(&score)
    {
        return Err(format!("the score {score} is not between 0 and 1"));
    }
    let reasons = answer.reasons.unwrap_or_default();
    let missing = answer.missing_fields.unwrap_or_default();
    let passed = passed(answer.passed, &reasons, &missing)?;
    Ok(FinalizationAttempt {
        passed,
        score: answer.score,
        suggested_action: if passed {
            None
        } else {
            Some(answer.suggested_action.unwrap_or(SuggestedAction::ToolCall))
        },
        reasons: told(reasons, &missing),
        missing_fields: missing.iter().take(MAX_FIELDS).map(|name| bounded(name, MAX_FIELD)).collect(),
    })
}

fn passed(claimed: bool, reasons: &[Reason], missing: &[String]) -> Result<bool, String> {
    if !claimed {
        let has_reason = !reasons.is_empty() || !missing.is_empty();
        return if has_reason { Ok(false) } else { Err("\"passed\" is false, and no reason is given".to_owned()) };
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
        Some(code) if passed => Err(format!("\"passed\" is true, and yet it says {code}: decide")),
        _ => Ok(passed),
    }
}

/// The reasons as status has them, the gravest first: what is cut off must not be what decided.
fn told(mut reasons: Vec<Reason>, missing: &[String]) -> Vec<FinalizationReason> {
    if !missing.is_empty() && !reasons.iter().any(|reason| reason.code == FinalizationCode::MissingRequiredField) {
        let detail = Some(format!("required fields are missing or empty: {}", missing.join(", ")));
        reasons.push(Reason { code: FinalizationCode::MissingRequiredField, detail });
    }
    reasons.sort_by_key(|reason| match reason.code {
        FinalizationCode::GuardrailViolated => 0,
        FinalizationCode::MissingRequiredField => 1,
        FinalizationCode::GoalNotMet => 2,
        FinalizationCode::OutputIncomplete => 3,
        FinalizationCode::ToneMismatch => 4,
    });
    let told = reasons.into_iter().take(MAX_REASONS).map(|reason| FinalizationReason {
        code: reason.code,
        detail: match reason.detail.as_deref().map(str::trim) {
            None | Some("") => reason.code.to_string(),
            Some(detail) => bounded(detail, MAX_DETAIL),
        },
    });
    told.collect()
}

#[cfg(test)]
mod tests;
