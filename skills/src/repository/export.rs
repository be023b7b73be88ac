//! Converts a Skill to an Agent Skill.

use super::agent_skill::is_tool_name;
use super::catalogue::Format;
use super::parts::trimmed_document;
use crate::checked::CheckedDocument;
use crate::finding::{Finding, Severity, quoted};
use bloomery_crds::scripts::is_file_name;
use bloomery_crds::v1alpha1::{Skill, SkillSpec};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The longest description of an Agent Skill, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The API path of the allowed tools.
const ALLOWED: &str = "spec.policy.tools.allowed";

/// The API path of the scripts.
const SCRIPTS: &str = "spec.scripts.files";

/// An Agent Skill.
#[derive(Debug)]
pub struct ExportedSkill {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Its files, by their paths in the directory.
    pub files: BTreeMap<String, String>,
    /// The fields of the Skill that it does not keep, and the errors that forbid to write it.
    pub findings: Vec<Finding>,
}

/// Converts a Skill to an Agent Skill. Returns `None` if the document is no Skill or has an error.
pub fn export(checked: &CheckedDocument) -> Option<ExportedSkill> {
    let Skill { metadata, spec, .. } = checked.skill.as_ref()?;
    let name = metadata.name.clone().unwrap_or_default();
    let mut exporter = Exporter { checked, findings: Vec::new() };
    if name.contains("--") {
        let fault = format!("{} cannot be the name of an Agent Skill, which has no two '-' in a row", quoted(&name));
        exporter.report("metadata.name", Severity::Error, fault);
    }
    let description = yaml_text(&exporter.description(spec));
    let tools = spec.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    let allowed = tools.and_then(|tools| tools.allowed.as_ref()).map(|allowed| exporter.allowed_tools(allowed));
    let allowed = allowed.map(|words| format!("allowed-tools: {}\n", yaml_text(&words))).unwrap_or_default();
    let docs = spec.docs.as_deref().and_then(trimmed_document);
    let body = docs.map(|docs| format!("\n{docs}\n")).unwrap_or_default();
    let text = format!("---\nname: {name}\ndescription: {description}\n{allowed}---\n{body}");
    let mut files = BTreeMap::from([(Format::AgentSkill.file().to_owned(), text)]);
    for (file, script) in spec.scripts.iter().flat_map(|scripts| &scripts.files) {
        if is_file_name(file) {
            files.insert(format!("scripts/{file}"), script.clone());
        } else {
            exporter.report(SCRIPTS, Severity::Error, format!("{} is not the name of a file", quoted(file)));
        }
    }
    exporter.report_lost(spec);
    Some(ExportedSkill { name, files, findings: exporter.findings })
}

struct Exporter<'c> {
    checked: &'c CheckedDocument,
    findings: Vec<Finding>,
}

impl Exporter<'_> {
    fn report(&mut self, path: &str, severity: Severity, message: String) {
        self.findings.push(Finding::at_api_path(&self.checked.root, path, severity, message));
    }

    /// Returns the description: the goal, or else the problem statement.
    fn description(&mut self, spec: &SkillSpec) -> String {
        let (path, text) = match &spec.goal {
            Some(goal) => ("spec.goal", goal),
            None => ("spec.problem.statement", &spec.problem.statement),
        };
        if text.chars().count() > MAX_DESCRIPTION_CHARS {
            let message = format!("is cut to {MAX_DESCRIPTION_CHARS} characters, the longest description");
            self.report(path, Severity::Warning, message);
        }
        text.chars().take(MAX_DESCRIPTION_CHARS).collect()
    }

    /// Returns the tools as words.
    fn allowed_tools(&mut self, allowed: &[String]) -> String {
        let (words, others): (Vec<&str>, Vec<&str>) =
            allowed.iter().map(String::as_str).partition(|name| is_tool_name(name));
        for other in others {
            self.report(ALLOWED, Severity::Warning, format!("{} is not exported: it is no single word", quoted(other)));
        }
        words.join(" ")
    }

    /// Reports each field that an Agent Skill does not keep.
    fn report_lost(&mut self, spec: &SkillSpec) {
        let mut kept = vec!["spec.goal", "spec.docs", SCRIPTS, ALLOWED];
        if spec.goal.as_ref().is_none_or(|goal| *goal == spec.problem.statement) {
            kept.push("spec.problem.statement");
        }
        let mut lost = Vec::new();
        // A spec can always be written as JSON.
        let value = serde_json::to_value(spec).unwrap_or_default();
        collect_lost(&value, "spec", &kept, &mut lost);
        for path in lost {
            self.report(&path, Severity::Warning, "is not exported: an Agent Skill has no such field".to_owned());
        }
    }
}

/// Adds the paths of the fields that are not kept. A field that is kept in part is followed.
fn collect_lost(value: &Value, path: &str, kept: &[&str], lost: &mut Vec<String>) {
    let is_kept_in_part = || kept.iter().any(|kept| kept.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')));
    match value {
        _ if kept.contains(&path) => {}
        Value::Object(fields) if is_kept_in_part() => {
            for (name, value) in fields {
                collect_lost(value, &format!("{path}.{name}"), kept, lost);
            }
        }
        _ => lost.push(path.to_owned()),
    }
}

/// Returns a text as a quoted scalar of YAML on one line. It is that of JSON, which YAML contains, with all unusual characters escaped.
fn yaml_text(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        let is_unusual = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        if is_unusual {
            // A write to a text never fails.
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        } else {
            quoted.push(c);
        }
    }
    quoted
}
