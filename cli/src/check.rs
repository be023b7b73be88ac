//! What is found in a document beyond its schema: the rules of the API server, and those of the engine.

use crate::rules;
use bloomery_engine::lint;
use bloomery_skills::{Draft, Finding, Node, Severity, locate};
use serde_json::Value;
use std::collections::HashSet;

/// The rules in CEL that the API server would hold against an object of ours. Where an object has a field that nobody
/// knows, its rule is not spoken of: it may ask for the very field that was misspelt.
pub fn by_rules(kind: &str, object: &Value, root: &Node, found: &[Finding]) -> Vec<Finding> {
    let misspelt = found.iter().filter(|finding| finding.is_unknown_field());
    let holders: HashSet<&str> =
        misspelt.map(|finding| finding.path.rsplit_once('.').map_or("", |(holder, _)| holder)).collect();
    let broken = rules::broken(kind, object).into_iter();
    broken
        .map(|broken| located(root, &broken.path, Severity::Error, broken.message, None))
        .filter(|finding| !holders.contains(finding.path.as_str()))
        .collect()
}

/// What the engine would make of a Skill.
pub fn by_engine(draft: &Draft) -> Vec<Finding> {
    let weight = |severity| match severity {
        lint::Severity::Error => Severity::Error,
        lint::Severity::Warning => Severity::Warning,
    };
    let findings = lint::skill(&draft.spec).into_iter().filter(|found| !draft.is_doubtful(&found.path));
    findings.map(|found| located(&draft.root, &found.path, weight(found.severity), found.message, found.hint)).collect()
}

/// A finding of the field at a path of the API.
pub fn located(root: &Node, path: &str, severity: Severity, message: String, hint: Option<String>) -> Finding {
    let (line, column, path) = locate(root, path);
    Finding { line, column, severity, path, message, hint }
}
