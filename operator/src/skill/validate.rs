//! The Skill as everything after this step sees it: complete, and with one MCP server at most.
//!
//! The CRD refuses what can be known from the object when it is applied. A Skill that was stored under an
//! older CRD never met those rules, so what must not slip through is asked again here.

use crate::owned;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{McpContainer, McpServer, McpService, Skill, SkillSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ResourceExt;

/// A Skill that can be built.
#[derive(Debug, Clone, PartialEq)]
pub struct Valid {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The reference that makes it the owner of what is built for it.
    pub owner: OwnerReference,
    /// What it says.
    pub spec: SkillSpec,
    /// Its MCP server.
    pub mcp: Option<Mcp>,
}

/// Where the MCP server comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Mcp {
    /// The operator runs it.
    Container(McpContainer),
    /// It runs already.
    Service(McpService),
}

/// Why a Skill cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The field that is at fault.
    pub field: &'static str,
    /// What is wrong with it, and what to do.
    pub message: String,
}

/// Resolves a Skill, or says which field is at fault.
pub fn validate(skill: &Skill) -> Result<Valid, Invalid> {
    let refuse = |field, message: &str| Err(Invalid { field, message: message.to_owned() });
    let name = skill.name_any();
    if name.len() > names::MAX_NAME {
        return refuse("metadata.name", "is longer than 50 characters; make the Skill again under a shorter name");
    }
    let persona = skill.spec.role.as_ref().and_then(|role| role.persona.as_deref());
    if persona.is_some_and(|persona| persona.contains("{{")) {
        return refuse("spec.role.persona", "templates are not supported yet: write plain text, without {{");
    }
    let (Some(namespace), Some(owner)) = (skill.namespace(), owned::owner(skill)) else {
        return refuse("metadata", "has no namespace or UID; the API server gives every stored Skill both");
    };
    let mcp = match skill.spec.mcp_server.clone() {
        None => None,
        Some(McpServer { container: Some(container), service: None }) => Some(Mcp::Container(container)),
        Some(McpServer { container: None, service: Some(service) }) => Some(Mcp::Service(service)),
        Some(_) => {
            let what = "exactly one of container (the operator runs it) and service (it runs already) is needed";
            return refuse("spec.mcpServer", what);
        }
    };
    Ok(Valid { namespace, name, owner, spec: skill.spec.clone(), mcp })
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
        assert!(matches!(valid.mcp, Some(Mcp::Container(_))));
        assert!(matches!(validate(&fixtures::with_service()).unwrap().mcp, Some(Mcp::Service(_))));
        assert_eq!(validate(&fixtures::without_server()).unwrap().mcp, None);
    }

    #[test]
    fn what_an_older_crd_let_pass_is_refused_by_field() {
        let mut both = fixtures::with_container();
        both.spec.mcp_server.as_mut().unwrap().service = fixtures::with_service().spec.mcp_server.unwrap().service;
        assert_eq!(validate(&both).unwrap_err().field, "spec.mcpServer");
        let mut template = fixtures::without_server();
        template.spec.role.as_mut().unwrap().persona = Some("You are {{name}}".into());
        assert_eq!(validate(&template).unwrap_err().field, "spec.role.persona");
        let mut long = fixtures::without_server();
        long.metadata.name = Some("o".repeat(51));
        assert_eq!(validate(&long).unwrap_err().field, "metadata.name");
    }
}
