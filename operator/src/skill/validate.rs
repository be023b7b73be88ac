//! Validates a Skill. The result has a namespace, an owner reference, and at most one MCP server.
//!
//! The CRD refuses invalid objects at admission. A Skill that was stored under an older CRD may violate these rules, so
//! the ones that matter are checked again here.

mod lists;
mod spec;

pub use lists::resolve_lists;

use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::subskills::Cycle;
use bloomery_crds::v1alpha1::{McpContainer, McpScope, McpServer, McpService, Skill, SkillSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ResourceExt;

/// A validated Skill.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidSkill {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The owner reference to the Skill, for the objects that are built for it.
    pub owner: OwnerReference,
    /// The spec of the Skill.
    pub spec: SkillSpec,
    /// The MCP server.
    pub mcp: Option<ValidMcp>,
}

/// The source of the MCP server.
#[derive(Debug, Clone, PartialEq)]
pub enum ValidMcp {
    /// The operator runs this container, for all Jobs.
    Container(McpContainer),
    /// Each worker pod has this container as a sidecar.
    Sidecar(McpContainer),
    /// The server runs already, behind this Service.
    Service(McpService),
    /// The server is outside of the cluster, at this URL.
    Uri(String),
}

/// The faults of a Skill that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSkill {
    /// [`Reason::ListNotFound`] or [`Reason::ScriptsNotFound`] if the Skill can be compiled once its ConfigMaps exist,
    /// [`Reason::SubskillCycle`] if it is in a cycle of subskills, else [`Reason::Invalid`].
    pub reason: Reason,
    /// The faults. Each is a sentence that begins with the path of its field.
    pub faults: Vec<String>,
}

impl InvalidSkill {
    /// Returns the faults of a Skill that a person has to correct.
    pub fn new(faults: Vec<String>) -> Self {
        Self { reason: Reason::Invalid, faults }
    }
}

/// Validates a Skill. Lists every fault at once.
pub fn validate(skill: &Skill) -> Result<ValidSkill, InvalidSkill> {
    let mut faults = Vec::new();
    let name = skill.name_any();
    if name.len() > names::MAX_NAME_BYTES {
        faults.push(
            "metadata.name: is longer than 50 characters; create the Skill again under a shorter name.".to_owned(),
        );
    }
    if identity(skill).is_none() {
        faults.push("metadata: has no namespace or UID; the API server gives every stored Skill both.".to_owned());
    }
    let mcp = validate_mcp(skill.spec.mcp_server.clone()).unwrap_or_else(|invalid| {
        faults.extend(invalid.faults);
        None
    });
    faults.extend(spec::faults(&skill.spec));
    with_mcp(skill, mcp).filter(|_| faults.is_empty()).ok_or_else(|| InvalidSkill::new(faults))
}

/// Refuses a Skill in a cycle of subskills: none of these Skills can be done before the others. A change of each of them may break the cycle.
pub fn refuse_cycle(skill: ValidSkill, cycle: Option<&Cycle>) -> Result<ValidSkill, InvalidSkill> {
    let Some(cycle) = cycle else { return Ok(skill) };
    let fault = format!(
        "spec.features: ext.subskill forms a cycle, {cycle}: remove it from a feature of one of these Skills, because no Skill can wait for itself."
    );
    Err(InvalidSkill { reason: Reason::SubskillCycle, faults: vec![fault] })
}

/// Returns what can be read of a Skill, also of an invalid one, whose network is built from it: its Jobs run on. An MCP server that is
/// not valid is left out. None without a namespace or a UID.
pub fn readable(skill: &Skill) -> Option<ValidSkill> {
    with_mcp(skill, validate_mcp(skill.spec.mcp_server.clone()).unwrap_or_default())
}

fn with_mcp(skill: &Skill, mcp: Option<ValidMcp>) -> Option<ValidSkill> {
    let (namespace, owner) = identity(skill)?;
    Some(ValidSkill { namespace, name: skill.name_any(), owner, spec: skill.spec.clone(), mcp })
}

fn identity(skill: &Skill) -> Option<(String, OwnerReference)> {
    skill.namespace().zip(owned::owner_reference(skill))
}

fn validate_mcp(server: Option<McpServer>) -> Result<Option<ValidMcp>, InvalidSkill> {
    match server {
        None => Ok(None),
        Some(McpServer { container: Some(container), service: None, uri: None, scope, .. }) => {
            if container.is_stdio() && container.command.is_empty() {
                let what = "is needed with transport stdio: the command line of the server in its image.";
                return Err(InvalidSkill::new(vec![format!("spec.mcpServer.container.command: {what}")]));
            }
            let is_sidecar = scope == Some(McpScope::Job);
            Ok(Some(if is_sidecar { ValidMcp::Sidecar(container) } else { ValidMcp::Container(container) }))
        }
        Some(McpServer { container: None, service: Some(service), uri: None, .. }) => {
            Ok(Some(ValidMcp::Service(service)))
        }
        Some(McpServer { container: None, service: None, uri: Some(uri), .. }) => Ok(Some(ValidMcp::Uri(uri))),
        Some(_) => {
            let what = "exactly one of container, service and uri is needed.";
            Err(InvalidSkill::new(vec![format!("spec.mcpServer: {what}")]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;

    #[test]
    fn a_valid_skill_passes_unchanged() {
        let valid = validate(&fixtures::with_container()).unwrap();
        assert_eq!((valid.namespace.as_str(), valid.name.as_str()), ("acme", "orders"));
        assert_eq!((valid.owner.uid.as_str(), valid.owner.controller), ("u-skill", Some(true)));
        assert!(matches!(valid.mcp, Some(ValidMcp::Container(_))));
        assert!(matches!(validate(&fixtures::with_service()).unwrap().mcp, Some(ValidMcp::Service(_))));
        assert!(matches!(validate(&fixtures::with_sidecar()).unwrap().mcp, Some(ValidMcp::Sidecar(_))));
        assert!(matches!(validate(&fixtures::with_uri()).unwrap().mcp, Some(ValidMcp::Uri(_))));
        assert_eq!(validate(&fixtures::without_server()).unwrap().mcp, None);
    }

    #[test]
    fn a_stdio_server_needs_a_command() {
        let mut skill = fixtures::with_container();
        let container = skill.spec.mcp_server.as_mut().and_then(|server| server.container.as_mut()).unwrap();
        container.transport = Some(bloomery_crds::v1alpha1::McpTransport::Stdio);
        let faults = validate(&skill).unwrap_err().faults;
        assert!(
            faults.len() == 1 && faults[0].starts_with("spec.mcpServer.container.command: is needed"),
            "{faults:?}"
        );
    }

    #[test]
    fn all_faults_that_an_older_crd_accepted_are_listed_by_field() {
        let mut skill = fixtures::with_container();
        skill.spec.mcp_server.as_mut().unwrap().service = fixtures::with_service().spec.mcp_server.unwrap().service;
        skill.spec.role.as_mut().unwrap().persona = Some("You are {{name}}".into());
        skill.metadata.name = Some("o".repeat(51));
        let InvalidSkill { faults, .. } = validate(&skill).unwrap_err();
        let fields: Vec<_> = faults.iter().map(|fault| fault.split([' ', ':']).next().unwrap()).collect();
        assert_eq!(fields, ["metadata.name", "spec.mcpServer", "spec.role.persona"]);
    }
}
