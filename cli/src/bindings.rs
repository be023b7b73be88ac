//! What a Job binds, against what its Skill declares, where both stand in one file.

use crate::check::located;
use crate::look::Looked;
use bloomery_crds::resources;
use bloomery_crds::v1alpha1::Binding;
use bloomery_skills::{Finding, Severity};
use serde_json::Value;
use std::collections::BTreeMap;

/// The faults of a document's bindings, where it is a Job and one of the others its Skill.
pub fn faults(job: &Looked, all: &[Looked]) -> Vec<Finding> {
    let is_job = job.kind.as_deref() == Some("Job");
    // A field that nobody knows may be the bindings, misspelt.
    if !is_job || job.findings.iter().any(Finding::is_unknown_field) {
        return Vec::new();
    }
    let skill = all.iter().find(|skill| is_skill_of(skill, job));
    let Some(declared) = skill.and_then(|skill| skill.draft.as_ref()?.resources()) else { return Vec::new() };
    let spec = job.object.get("spec");
    let bound = match spec.and_then(|spec| spec.get("resources")) {
        None => BTreeMap::new(),
        Some(Value::Object(bound)) => bound.iter().map(|(name, binding)| (name.clone(), read(binding))).collect(),
        Some(_) => return Vec::new(),
    };
    let unread: Vec<&String> = bound.iter().filter(|(_, binding)| binding.is_none()).map(|(name, _)| name).collect();
    let readable = bound.iter().map(|(name, binding)| (name.clone(), binding.clone().unwrap_or_default())).collect();
    let faults = resources::faults(declared, &readable);
    faults
        .iter()
        .filter_map(|fault| {
            let (path, message) = fault.split_once(": ")?;
            // What cannot be read was told; what it is to be bound to is not known.
            let is_unread = unread.iter().any(|name| path.strip_prefix("spec.resources.") == Some(name));
            let message = message.trim_end_matches('.').to_owned();
            (!is_unread).then(|| located(&job.root, path, Severity::Error, message, None))
        })
        .collect()
}

fn is_skill_of(skill: &Looked, job: &Looked) -> bool {
    let of_metadata = |looked: &Looked, field: &str| looked.object.pointer(&format!("/metadata/{field}")).cloned();
    let name = job.object.pointer("/spec/skill");
    skill.kind.as_deref() == Some("Skill")
        && name.is_some()
        && of_metadata(skill, "name").as_ref() == name
        && of_metadata(skill, "namespace") == of_metadata(job, "namespace")
}

fn read(binding: &Value) -> Option<Binding> {
    serde_json::from_value(binding.clone()).ok()
}
