//! Builds the metadata of objects that are owned by a Skill, and names their parts.

use super::super::validate::ValidSkill;
use crate::owned;
use bloomery_crds::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of the MCP server's port and of its container.
pub const PORT_NAME: &str = "mcp";

/// Builds the metadata of an object that is owned by a Skill.
pub fn metadata(skill: &ValidSkill, name: String, component: &str) -> ObjectMeta {
    let mut labels = owned::labels(component);
    labels.insert(names::LABEL_SKILL.to_owned(), skill.name.clone());
    ObjectMeta {
        namespace: Some(skill.namespace.clone()),
        name: Some(name),
        labels: Some(labels),
        owner_references: Some(vec![skill.owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// Serializes an object as YAML, for golden files.
#[cfg(test)]
pub fn yaml<K: serde::Serialize>(object: &K) -> String {
    serde_yaml::to_string(object).unwrap()
}
