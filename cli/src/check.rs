//! What is found in a document beyond its schema: the rules of the API server, and those of the engine.

use crate::rules;
use bloomery_crds::dialect::{Finding, Node, Severity, locate};
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_engine::lint;
use serde_json::Value;

/// The rules in CEL that the API server would hold against an object of ours.
pub fn by_rules(kind: &str, object: &Value, root: &Node) -> Vec<Finding> {
    let broken = rules::broken(kind, object);
    broken.into_iter().map(|broken| located(root, &broken.path, Severity::Error, broken.message, None)).collect()
}

/// What the engine would make of a Skill.
pub fn by_engine(spec: &SkillSpec, root: &Node) -> Vec<Finding> {
    let weight = |severity| match severity {
        lint::Severity::Error => Severity::Error,
        lint::Severity::Warning => Severity::Warning,
    };
    let findings = lint::skill(spec).into_iter();
    findings.map(|found| located(root, &found.path, weight(found.severity), found.message, found.hint)).collect()
}

fn located(root: &Node, path: &str, severity: Severity, message: String, hint: Option<String>) -> Finding {
    let (line, column, path) = locate(root, path);
    Finding { line, column, severity, path, message, hint }
}
