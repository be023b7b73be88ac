//! The page of an Approval, and the output of a decision.
//!
//! People decide on what they see. Therefore all characters that control the terminal or are invisible are escaped.

use super::select::past_participle;
use crate::args::ObjectOutput;
use crate::error::Error;
use crate::page::Page;
use crate::text::escaped;
use bloomery_crds::canonical;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, HoldRule};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::Value;

/// Formats an Approval for the user who has to decide. `by` is the name of this user.
pub(super) fn render(approval: &Approval, by: &str, now: Timestamp) -> String {
    let spec = &approval.spec;
    let mut page = Page::default();
    let namespace = approval.namespace().unwrap_or_default();
    page.line("Approval", &format!("{} of the Job {} in {namespace}", approval.name_any(), spec.job));
    page.line("Tool", &escaped(&spec.tool));
    page.line("Arguments", &arguments(&spec.arguments));
    page.line("Held by", &spec.rules.iter().map(rule).collect::<Vec<_>>().join("\n"));
    page.line("Approver", &escaped(&spec.approver));
    page.line("Expires", &expiry(spec.expires_at.0, now));
    page.line("Goal", &escaped_lines(&spec.goal));
    page.line("Events", &spec.events.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\n"));
    page.line("You", &escaped(by));
    page.text()
}

/// Formats arguments as a table of names and JSON values. Text that is not canonical JSON is only escaped, because a table
/// could hide differences.
fn arguments(text: &str) -> String {
    let parsed = canonical::parse(text).ok().filter(|value| canonical::to_string(value) == text);
    let Some(Value::Object(fields)) = parsed else { return escaped(text) };
    if fields.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = fields.keys().map(|name| field_name(name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let indent = format!("\n{:width$}  ", "");
    let rows = names.iter().zip(fields.values());
    let rows = rows.map(|(name, value)| format!("{name:width$}  {}", self::value(value).replace('\n', &indent)));
    rows.collect::<Vec<_>>().join("\n")
}

/// Quotes the name of a field unless it is plain.
fn field_name(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if is_plain { name.to_owned() } else { escaped(&Value::from(name).to_string()) }
}

/// Formats a value as JSON. In a string, each escaped line break (`\n`) is followed by a real one.
fn value(value: &Value) -> String {
    let json = |value: &Value| escaped(&canonical::to_string(value));
    let Value::String(text) = value else { return json(value) };
    let unquoted = |line: &str| {
        let quoted = json(&Value::from(line));
        quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted).to_owned()
    };
    let lines: Vec<String> = text.split_inclusive('\n').map(unquoted).collect();
    format!("\"{}\"", lines.join("\n"))
}

/// Formats a rule that holds the call.
fn rule(rule: &HoldRule) -> String {
    let approver = rule.approver.as_ref().map(|name| format!(", approver {}", escaped(name))).unwrap_or_default();
    format!("{} ({}{approver})", escaped(&rule.text), rule.layer)
}

/// Formats the time of the expiry, and the time until then. From a minute on, seconds are omitted.
fn expiry(expires: Timestamp, now: Timestamp) -> String {
    let left = expires.duration_since(now);
    let rounded = if left.as_mins() > 0 { SignedDuration::from_mins(left.as_mins()) } else { left };
    format!("{expires}, {:#} from now", SignedDuration::from_secs(rounded.as_secs()))
}

/// Escapes a text, but keeps its line breaks.
fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Returns the question that asks for confirmation.
pub(super) fn question(verdict: ApprovalVerdict) -> &'static str {
    match verdict {
        ApprovalVerdict::Approve => "Approve this call? yes or no: ",
        // Only the operator decides `Expired`.
        ApprovalVerdict::Deny | ApprovalVerdict::Expired => "Deny this call? yes or no: ",
    }
}

/// Formats the decided Approval for stdout.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn decision_output(
    approval: &Approval,
    verdict: ApprovalVerdict,
    output: Option<ObjectOutput>,
) -> Result<String, Error> {
    let name = format!("approval.bloomery.dev/{}", approval.name_any());
    match output {
        None => Ok(format!("{name} {}\n", past_participle(verdict))),
        Some(ObjectOutput::Name) => Ok(format!("{name}\n")),
        Some(ObjectOutput::Json) => crate::output::json(approval),
        Some(ObjectOutput::Yaml) => crate::output::yaml(approval),
    }
}

#[cfg(test)]
mod tests;
