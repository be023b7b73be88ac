//! What an author should know of a Skill before anybody runs it: all at once, without a cluster or a model.
//!
//! An error is what no Job could run on, or what would not do what it says. A warning is what may be meant
//! otherwise: a name that only the MCP server could know, a rule that reads as if it were enforced.

mod conditions;
mod endpoints;
mod finding;
mod guardrails;
mod names;
mod reading;
mod workflows;

pub use finding::{Finding, Severity};

use crate::schema::Schema;
use bloomery_crds::persona;
use bloomery_crds::v1alpha1::{ResourceType, SkillSpec};
use serde_json::Value;

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
    faults.iter().map(|fault| Finding::error(PATH, told(&fault.to_string()).trim_end_matches('.'))).collect()
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

#[cfg(test)]
mod tests;
