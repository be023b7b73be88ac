//! The lint of a Skill: finds all errors at once, without a cluster or a model.
//!
//! An error is a part that cannot work or has another effect than written. A warning is a part that the author may mean
//! differently, such as a name that only the MCP server can know, or a rule that only reads as if it were enforced.

mod approvers;
mod conditions;
mod effects;
mod endpoints;
mod facts;
mod finding;
mod guardrails;
mod inputs;
mod known_tools;
mod limits;
mod lists;
mod lower_limits;
mod names;
mod reach;
mod read_only;
mod reading;
mod sends;
mod sources;
mod texts;
mod unmatched;
mod workflows;

pub use finding::{Finding, Severity};
pub use known_tools::ServerTool;

use crate::rules::expectations::{self, Omission};
use crate::rules::guardrail::Rule;
use crate::schema::Schema;
use bloomery_crds::persona;
use bloomery_crds::v1alpha1::{ResourceType, SkillSpec};
use known_tools::KnownTools;
use serde_json::Value;

/// Returns the findings about a Skill: errors first, then in the order of its fields. `listed` are the tools of its MCP server. They are
/// empty if the server's tools are not known.
pub fn skill<'t>(spec: &SkillSpec, listed: impl IntoIterator<Item = ServerTool<'t>>) -> Vec<Finding> {
    let mut findings = check_persona(spec);
    findings.extend(names::findings(spec));
    findings.extend(endpoints::findings(spec));
    let known = KnownTools::new(spec, listed);
    let guardrails = guardrails::compile_all(spec, &known);
    let of_workflows = workflows::findings(spec, &guardrails, &known);
    findings.extend(rule_findings(spec, guardrails, &known));
    findings.extend(of_workflows);
    findings.extend(check_output_schema(spec));
    findings.extend(expectations::omissions(spec).iter().map(without_room));
    findings.extend(check_context(spec));
    findings.extend(texts::findings(spec));
    findings.extend(reach::of_sidecars(spec));
    findings.extend(reach::unused(spec));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Returns the findings about the tools of a Skill that runs without an MCP server. They do not apply to a Job that gets a server in another
/// way, as `bloomery run --mcp` does.
pub fn without_server(spec: &SkillSpec) -> Vec<Finding> {
    reach::misspelt(spec).chain(reach::missing_server(spec)).collect()
}

/// Returns the errors in the rules of a Skill, given the tools of its MCP server. A Job begins only without them: each is a rule that
/// does not apply to the calls that its author means.
pub fn rule_errors<'t>(spec: &SkillSpec, listed: impl IntoIterator<Item = ServerTool<'t>>) -> Vec<Finding> {
    let known = KnownTools::new(spec, listed);
    let mut findings = rule_findings(spec, guardrails::compile_all(spec, &known), &known);
    if !known.is_complete() {
        findings.extend(reach::misspelt(spec));
    }
    findings.retain(|finding| finding.severity == Severity::Error);
    findings
}

/// Returns the findings about the rules for calls. `guardrails` are those of the Skill, compiled.
fn rule_findings(spec: &SkillSpec, guardrails: Vec<(String, Rule)>, known: &KnownTools) -> Vec<Finding> {
    let mut findings = unmatched::findings(spec, known);
    findings.extend(inputs::findings(spec, known));
    findings.extend(conditions::findings(spec, known));
    findings.extend(sources::findings(spec));
    findings.extend(sends::findings(spec, known));
    findings.extend(effects::findings(spec));
    findings.extend(read_only::findings(spec, known));
    findings.extend(limits::findings(spec, known));
    findings.extend(approvers::findings(spec));
    findings.extend(workflows::closed_tools(spec, known));
    findings.extend(lower_limits::findings(spec, &guardrails, known));
    findings.extend(guardrails::findings(spec, guardrails, known));
    findings
}

fn check_persona(spec: &SkillSpec) -> Vec<Finding> {
    const PATH: &str = "spec.role.persona";
    let template = spec.role.as_ref().and_then(|role| role.persona.as_deref());
    let faults = template.and_then(|template| persona::check(template, &spec.resources).err()).unwrap_or_default();
    // Each sentence begins with the path, which the finding has in its own field.
    let without_path =
        |fault: &str| fault.strip_prefix(PATH).unwrap_or(fault).trim_start_matches([':', ' ']).to_owned();
    faults.iter().map(|fault| Finding::error(PATH, without_path(&fault.to_string()).trim_end_matches('.'))).collect()
}

fn check_output_schema(spec: &SkillSpec) -> Option<Finding> {
    let schema = spec.output_contract.as_ref()?.schema.clone()?;
    let schema = Schema::compile(&Value::Object(schema));
    Some(Finding::error("spec.outputContract.schema", schema.compile_error()?.to_string()))
}

fn without_room(omission: &Omission) -> Finding {
    Finding::warning(omission.path, &omission.message).hint("shorten it")
}

/// Warns if the context summarizes file systems, but the Skill declares none.
fn check_context(spec: &SkillSpec) -> Option<Finding> {
    let context = spec.context.as_ref()?;
    let has_summary = context.project_structure == Some(true) || context.recent_changes == Some(true);
    let has_files = spec.resources.iter().any(|declared| declared.kind == ResourceType::Filesystem);
    (has_summary && !has_files).then(|| {
        Finding::warning("spec.context", "summarizes file systems, but spec.resources declares none")
            .hint("declare a resource of type filesystem, or remove context")
    })
}

#[cfg(test)]
mod tests;
