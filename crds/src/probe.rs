//! The documents of a probe: a short pod that lists the tools of a Skill's MCP server, compiles the rules of the Skill against them, and
//! reports both (`docs/explanation/design.md`, section 7).

use crate::canonical::Digest;
use crate::run::{ExternalMcp, ReportEndpoint};
use crate::tool_pins::ToolPins;
use crate::v1alpha1::{McpServer, SkillSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The path of the endpoint that receives the reports of probes.
pub const PATH: &str = "/v1/probes";

/// The path of the endpoint that gives probes the token for the server: that of their reports with this ending.
pub const TOKEN_SUFFIX: &str = "/token";

/// The most errors of rules in a report. The report counts the others.
pub const MAX_RULE_ERRORS: usize = 8;

/// The longest error of a rule in a report, in bytes.
pub const MAX_RULE_ERROR_BYTES: usize = 768;

/// The input of a probe besides the revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProbePart {
    /// The Skill.
    pub skill: SkillIdentity,
    /// The name of the pod.
    pub pod: String,
    /// What the probe verifies.
    pub subject: Subject,
    /// The report endpoint.
    pub report: ReportEndpoint,
    /// How to reach an MCP server outside of the cluster. `None` for any other server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_mcp: Option<ExternalMcp>,
}

/// The identity of a Skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillIdentity {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
}

/// What a probe verifies. Another probe starts when any of it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The digest of `spec.mcpServer` without `toolsDigest`.
    pub server: Digest,
    /// The digest of the rules.
    pub rules: Digest,
    /// The digest of all that the probe verifies: the server, the rules, the accepted tools, and the image that the server runs.
    pub key: Digest,
}

/// The report of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    /// The Skill.
    pub skill: SkillIdentity,
    /// The name of the pod.
    pub pod: String,
    /// What the probe has verified.
    pub subject: Subject,
    /// The pins of the server's tools.
    pub tools: ToolPins,
    /// The number of tools.
    pub count: u32,
    /// The errors of rules, at most [`MAX_RULE_ERRORS`]. Each begins with the path of its field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_errors: Vec<String>,
    /// The number of further errors.
    #[serde(default)]
    pub more_rule_errors: u32,
}

/// The request of a probe for the token of an MCP server that the operator runs. The response is a
/// [`ServerToken`](crate::report::ServerToken).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequest {
    /// The Skill.
    pub skill: SkillIdentity,
    /// The name of the pod.
    pub pod: String,
}

/// The operator's response to the report of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReceipt {}

/// Returns the digest of the MCP server that pins belong to: of `spec.mcpServer` without `toolsDigest` and `egress`.
pub fn server_digest(server: &McpServer) -> Digest {
    let server = McpServer { tools_digest: None, egress: Vec::new(), ..server.clone() };
    Digest::of_value(&serde_json::to_value(server).unwrap_or_default())
}

/// Returns the digest of the fields of a Skill that a probe compiles against the tools of its server.
pub fn rules_digest(spec: &SkillSpec) -> Digest {
    let SkillSpec { tools, policy, resources, intents, scripts, .. } = spec;
    let intents = intents.iter().flat_map(|intents| &intents.supported).map(|intent| json!([intent.id, intent.tools]));
    let intents: Vec<Value> = intents.collect();
    let mut fields = json!({ "tools": tools, "policy": policy, "resources": resources, "intents": intents });
    // Without scripts, the digest is that of earlier versions.
    if let (Some(scripts), Some(fields)) = (scripts, fields.as_object_mut()) {
        let files: Vec<&String> = scripts.files.keys().collect();
        fields.insert("scripts".to_owned(), json!([files, scripts.config_map]));
    }
    Digest::of_value(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_scripts_count_as_rules_and_their_texts_do_not() {
        let digest = |scripts: Value| {
            rules_digest(&serde_json::from_value(json!({"problem": {"statement": "x"}, "scripts": scripts})).unwrap())
        };
        let with = |name: &str, text: &str| digest(json!({"image": "busybox", "files": {name: text}}));
        assert_eq!(with("check.sh", "exit 0"), with("check.sh", "exit 1"));
        assert_ne!(with("check.sh", "exit 0"), with("test.sh", "exit 0"));
        assert_ne!(with("check.sh", "exit 0"), digest(Value::Null));
    }

    #[test]
    fn the_digest_of_a_server_does_not_depend_on_the_accepted_tools() {
        let server = |more: Value| -> McpServer {
            let mut server = json!({ "service": { "name": "orders", "port": 80 } });
            server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(server).unwrap()
        };
        let pinned = server(json!({ "toolsDigest": Digest::of_bytes(b"tools") }));
        assert_eq!(server_digest(&server(json!({}))), server_digest(&pinned));
        let connected = server(json!({ "egress": [{ "host": "api.example.com" }] }));
        assert_eq!(server_digest(&server(json!({}))), server_digest(&connected));
        let other = server(json!({ "service": { "name": "orders", "port": 81 } }));
        assert_ne!(server_digest(&other), server_digest(&pinned));
    }
}
