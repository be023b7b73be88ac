//! Checks the bindings of a Job and its `memoryScope` against its Skill, if both were checked together.

use crate::checked::CheckedDocument;
use crate::finding::{Finding, Severity};
use bloomery_crds::v1alpha1::{Binding, CoreNote, JobSpec, ResourceDeclaration, SkillSpec};
use bloomery_crds::{memory_scope, resources};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns an error for each fault of a Job's bindings and of its `memoryScope`. `all` are the documents that are checked together with
/// `job`.
///
/// Returns no errors if `job` is not a Job, if its Skill is not in `all`, or if the fields could not be read.
pub fn findings(job: &CheckedDocument, all: &[CheckedDocument]) -> Vec<Finding> {
    let is_job = job.kind.as_deref() == Some("Job");
    // An unknown field may be a misspelt `resources`.
    if !is_job || job.findings.iter().any(Finding::is_unknown_field) {
        return Vec::new();
    }
    let skill = all.iter().find(|skill| is_skill_of(skill, job));
    let Some(draft) = skill.and_then(|skill| skill.draft.as_ref()) else { return Vec::new() };
    let of_bindings = draft.resources().map(|declared| binding_faults(job, declared)).unwrap_or_default();
    let faults = of_bindings.into_iter().chain(scope_faults(job, &draft.spec));
    faults
        .filter_map(|fault| {
            let (path, message) = fault.split_once(": ")?;
            let message = message.trim_end_matches('.').to_owned();
            Some(Finding::at_api_path(&job.root, path, Severity::Error, message))
        })
        .collect()
}

fn binding_faults(job: &CheckedDocument, declared: &[ResourceDeclaration]) -> Vec<String> {
    let parsed = match job.object.pointer("/spec/resources") {
        None => BTreeMap::new(),
        Some(Value::Object(bound)) => {
            bound.iter().map(|(name, binding)| (name.clone(), parse_binding(binding))).collect()
        }
        Some(_) => return Vec::new(),
    };
    let unreadable: Vec<&String> =
        parsed.iter().filter(|(_, binding)| binding.is_none()).map(|(name, _)| name).collect();
    // An unreadable binding counts as bound, so that it is not reported as missing.
    let bound = parsed.iter().map(|(name, binding)| (name.clone(), binding.clone().unwrap_or_default())).collect();
    let mut faults = resources::faults(declared, &bound);
    // The schema check has already reported an unreadable binding.
    faults.retain(|fault| !unreadable.iter().any(|name| fault.starts_with(&format!("spec.resources.{name}: "))));
    faults
}

fn scope_faults(job: &CheckedDocument, skill: &SkillSpec) -> Vec<String> {
    let scope = job.object.pointer("/spec/memoryScope");
    let scope: Option<Vec<CoreNote>> = scope.and_then(|scope| serde_json::from_value(scope.clone()).ok());
    memory_scope::faults(skill, scope.as_deref())
}

fn is_skill_of(skill: &CheckedDocument, job: &CheckedDocument) -> bool {
    let metadata_field =
        |checked: &CheckedDocument, field: &str| checked.object.pointer(&format!("/metadata/{field}")).cloned();
    let name = job.object.pointer("/spec/skill").cloned().unwrap_or_else(|| JobSpec::DEFAULT_SKILL.into());
    skill.kind.as_deref() == Some("Skill")
        && metadata_field(skill, "name") == Some(name)
        && metadata_field(skill, "namespace") == metadata_field(job, "namespace")
}

fn parse_binding(binding: &Value) -> Option<Binding> {
    serde_json::from_value(binding.clone()).ok()
}
