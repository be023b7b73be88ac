//! The Skill as everything after this step sees it: complete, and with one MCP server at most.
//!
//! The CRD refuses what can be known from the object when it is applied. A Skill that was stored under an
//! older CRD never met those rules, so what must not slip through is asked again here.

mod spec;

use crate::owned;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{McpContainer, McpServer, McpService, Skill, SkillSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ResourceExt;

/// A Skill that can be built.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidSkill {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The reference that makes it the owner of what is built for it.
    pub owner: OwnerReference,
    /// What it says.
    pub spec: SkillSpec,
    /// Its MCP server.
    pub mcp: Option<ValidMcp>,
}

/// Where the MCP server comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ValidMcp {
    /// The operator runs it.
    Container(McpContainer),
    /// It runs already.
    Service(McpService),
}

/// Why a Skill cannot be built: every fault, each a sentence that begins with the path of its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSkill(pub Vec<String>);

/// Resolves a Skill, or says which fields are at fault, all at once.
pub fn validate(skill: &Skill) -> Result<ValidSkill, InvalidSkill> {
    let mut faults = Vec::new();
    let name = skill.name_any();
    if name.len() > names::MAX_NAME {
        faults
            .push("metadata.name: is longer than 50 characters; make the Skill again under a shorter name.".to_owned());
    }
    let identity = skill.namespace().zip(owned::owner_reference(skill));
    if identity.is_none() {
        faults.push("metadata: has no namespace or UID; the API server gives every stored Skill both.".to_owned());
    }
    let mcp = mcp(skill.spec.mcp_server.clone()).unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    faults.extend(spec::faults(&skill.spec));
    match identity {
        Some((namespace, owner)) if faults.is_empty() => {
            Ok(ValidSkill { namespace, name, owner, spec: skill.spec.clone(), mcp })
        }
        _ => Err(InvalidSkill(faults)),
    }
}

fn mcp(server: Option<McpServer>) -> Result<Option<ValidMcp>, String> {
    match server {
        None => Ok(None),
        Some(McpServer { container: Some(container), service: None }) => Ok(Some(ValidMcp::Container(container))),
        Some(McpServer { container: None, service: Some(service) }) => Ok(Some(ValidMcp::Service(service))),
        Some(_) => {
            let what = "exactly one of container (the operator runs it) and service (it runs already) is needed.";
            Err(format!("spec.mcpServer: {what}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;

    #[test]
    fn a_skill_is_taken_as_it_is() {
        let valid = validate(&fixtures::with_container()).unwrap();
        assert_eq!((valid.namespace.as_str(), valid.name.as_str()), ("acme", "orders"));
        assert_eq!((valid.owner.uid.as_str(), valid.owner.controller), ("u-skill", Some(true)));
        assert!(matches!(valid.mcp, Some(ValidMcp::Container(_))));
        assert!(matches!(validate(&fixtures::with_service()).unwrap().mcp, Some(ValidMcp::Service(_))));
        assert_eq!(validate(&fixtures::without_server()).unwrap().mcp, None);
    }

    #[test]
    fn what_an_older_crd_let_pass_is_refused_by_field_and_all_at_once() {
        let mut skill = fixtures::with_container();
        skill.spec.mcp_server.as_mut().unwrap().service = fixtures::with_service().spec.mcp_server.unwrap().service;
        skill.spec.role.as_mut().unwrap().persona = Some("You are {{name}}".into());
        skill.metadata.name = Some("o".repeat(51));
        let InvalidSkill(faults) = validate(&skill).unwrap_err();
        let fields: Vec<_> = faults.iter().map(|fault| fault.split([' ', ':']).next().unwrap()).collect();
        assert_eq!(fields, ["metadata.name", "spec.mcpServer", "spec.role.persona"]);
    }
}
