//! What an author should know of a Skill before anybody runs it: all at once, without a cluster or a model.
//!
//! An error is what no Job could run on, or what would not do what it says. A warning is what may be meant
//! otherwise: a name that only the MCP server could know, a rule that reads as if it were enforced.

mod conditions;
mod endpoints;
mod guardrails;
mod names;
mod reading;
mod workflows;

use crate::gate::core_tools;
use crate::gate::schema::Schema;
use bloomery_crds::persona;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{ResourceType, SkillSpec};
use serde::Serialize;
use serde_json::Value;

/// The longest message and the longest hint, in bytes.
const MAX_TEXT: usize = 512;

/// Something to be said of a Skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The field, such as `spec.policy.approvals[0].when`.
    pub path: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do about it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// The Skill does not do what it says.
    Error,
    /// The Skill may not do what its author means.
    Warning,
}

impl Finding {
    fn error(path: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self { path: path.into(), severity: Severity::Error, message: bounded(message.as_ref(), MAX_TEXT), hint: None }
    }

    fn warning(path: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, message) }
    }

    fn hint(self, hint: impl AsRef<str>) -> Self {
        Self { hint: Some(bounded(hint.as_ref(), MAX_TEXT)), ..self }
    }

    /// With the nearest of the names as its hint, where one is near.
    fn nearest<'a>(self, name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        match bloomery_crds::nearest::nearest(name, names) {
            Some(near) => self.hint(format!("did you mean {near:?}?")),
            None => self,
        }
    }
}

/// Looks at all of a Skill: errors first, else in the order of its fields.
pub fn skill(spec: &SkillSpec) -> Vec<Finding> {
    let mut findings = persona(spec);
    findings.extend(names::findings(spec));
    findings.extend(endpoints::findings(spec));
    findings.extend(conditions::findings(spec));
    let rules = guardrails::compiled(spec);
    findings.extend(workflows::findings(spec, &rules));
    findings.extend(guardrails::findings(spec, rules));
    findings.extend(schema(spec));
    findings.extend(context(spec));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

fn persona(spec: &SkillSpec) -> Vec<Finding> {
    const PATH: &str = "spec.role.persona";
    let template = spec.role.as_ref().and_then(|role| role.persona.as_deref());
    let faults = template.and_then(|template| persona::check(template, &spec.resources).err()).unwrap_or_default();
    // Each sentence begins with the path and the place in the template: the path stands in the finding already.
    let told = |fault: &str| fault.strip_prefix(PATH).unwrap_or(fault).trim_start_matches([':', ' ']).to_owned();
    faults.iter().map(|fault| Finding::error(PATH, told(fault).trim_end_matches('.'))).collect()
}

fn schema(spec: &SkillSpec) -> Option<Finding> {
    let schema = spec.output_contract.as_ref()?.schema.clone()?;
    let schema = Schema::compile(&Value::Object(schema));
    Some(Finding::error("spec.outputContract.schema", schema.unusable()?))
}

/// A wish for a summary of what no Job of the Skill can bind.
fn context(spec: &SkillSpec) -> Option<Finding> {
    let context = spec.context.as_ref()?;
    let is_wanted = context.project_structure == Some(true) || context.recent_changes == Some(true);
    let has_files = spec.resources.iter().any(|declared| declared.kind == ResourceType::Filesystem);
    (is_wanted && !has_files).then(|| {
        Finding::warning("spec.context", "sums up bound file systems, and spec.resources declares none")
            .hint("declare a resource of the type filesystem, or leave context out")
    })
}

/// The tools that a Skill names itself, and those that the worker brings.
fn tools(spec: &SkillSpec) -> Vec<&str> {
    spec.tools.iter().map(|tool| tool.name.as_str()).chain(core_tools::names()).collect()
}

#[cfg(test)]
mod tests;
