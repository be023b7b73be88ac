//! The run document: the input of a worker, in two parts (`docs/explanation/design.md`, section 7).
//!
//! - The **revision** is the compiled Skill, in an immutable ConfigMap that is named by its content. All attempts of a Job run
//!   on the same revision.
//! - The **Job's part** is created for each attempt and reaches the pod through the downward API.
//!
//! The annotations of a running pod can be edited. Therefore the worker receives the digests of both parts as arguments, and
//! refuses a part with another digest.

use crate::canonical::{self, Digest};
use crate::children::{self, ChildState};
use crate::limits::EffectiveLimits;
use crate::tool_pins::ToolPins;
use crate::unknown::{self, Read};
pub use crate::v1alpha1::GivenReply;
use crate::v1alpha1::{
    ApprovalVerdict, ApprovedCall, AskedCall, CoreNote, LogPosition, ModelProvider, ResourceType, SkillSpec, ToolPolicy,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema version of both parts.
pub const VERSION: u32 = 1;

/// The level of this version's worker, and of the revisions that this version compiles. A change that gives an existing field of a
/// Skill a new meaning raises it, because an older worker would apply the old meaning.
///
/// Level 2: names of tools may be patterns (`send_*`), a guardrail under `never` may be the bare name of a tool, calls with undeclared
/// arguments are denied. Conditions have more functions, may nest macros, and `lists` in them is no argument.
///
/// Level 3: more sentences of guardrails deny a tool, such as `Never call pay`, `Do not use pay`, `Avoid pay` and `pay is forbidden`. They
/// may have marks of Markdown. A step of a workflow that is repeated with other arguments opens the later steps again.
pub const WORKER_LEVEL: u32 = 3;

/// The level of a revision that names none.
const FIRST_LEVEL: u32 = 1;

/// The key of a ConfigMap that contains the revision.
pub const REVISION_KEY: &str = "revision.json";

/// The largest Job's part, in bytes.
pub const MAX_JOB_PART_BYTES: usize = 64 * 1024;

/// The directory of a worker pod that contains the mounted memory of a Skill.
pub const MEMORY_ROOT: &str = "/memory";

/// The directory of a worker pod that contains the bound file systems, each under the name of its resource.
pub const RESOURCES_ROOT: &str = "/resources";

/// The reason why a part of the run document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The part was changed after the operator wrote it.
    #[error("{part} was changed after the operator wrote it: expected {expected}, found {found}")]
    Digest {
        /// The part.
        part: &'static str,
        /// The digest in the worker's arguments.
        expected: Digest,
        /// The digest of the part.
        found: Digest,
    },
    /// The part is not JSON, or has another version.
    #[error("{part} cannot be read: {message}")]
    Unreadable {
        /// The part.
        part: &'static str,
        /// The error of the parser.
        message: String,
    },
    /// The revision may only run on a newer worker.
    #[error(
        "the revision needs a worker of level {needed}, and this version has level {WORKER_LEVEL}: upgrade Bloomery"
    )]
    NewerWorker {
        /// The lowest level that may run the revision.
        needed: u64,
    },
    /// The revision has a field that this version does not know. The field may forbid a call.
    #[error("the revision has the field {field}, which this version does not know: upgrade Bloomery")]
    UnknownField {
        /// The path of the field.
        field: String,
    },
}

impl Error {
    /// Returns whether a newer version of Bloomery can use the part.
    pub fn needs_upgrade(&self) -> bool {
        matches!(self, Self::NewerWorker { .. } | Self::UnknownField { .. })
    }
}

/// A compiled Skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revision {
    /// [`VERSION`].
    pub version: u32,
    /// The name of the Skill, and of its directory in the memory.
    pub skill: String,
    /// The lowest [`WORKER_LEVEL`] that may run the revision: that of the version that compiled it. `None` for level 1. A worker of a
    /// sufficient level also refuses a revision with a field that it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_worker_level: Option<u32>,
    /// The accepted spec of the Skill.
    pub spec: SkillSpec,
    /// The address of the Skill's MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpEndpoint>,
    /// The address of the sidecar that runs the Skill's scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<McpEndpoint>,
}

impl Revision {
    /// Returns the revision of a Skill, for workers of this version's level.
    pub fn new(skill: impl Into<String>, spec: SkillSpec, mcp: Option<McpEndpoint>) -> Self {
        Self {
            version: VERSION,
            skill: skill.into(),
            min_worker_level: named_level(WORKER_LEVEL),
            spec,
            mcp,
            scripts: None,
        }
    }
}

/// Returns a level as revisions name it.
fn named_level(level: u32) -> Option<u32> {
    (level > FIRST_LEVEL).then_some(level)
}

/// The address of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpEndpoint {
    /// The URL of its streamable HTTP endpoint.
    pub url: String,
}

/// The Job's part: the input of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobPart {
    /// [`VERSION`].
    pub version: u32,
    /// The Job.
    pub job: JobIdentity,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// True if the previous attempt was disrupted: its pod was deleted, evicted, preempted or lost with its node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_disruption: bool,
    /// The run key of the Job. It names the directory of the log, and is part of the keys of tool calls.
    pub run_key: String,
    /// True if the spec of the Job names the run key. Then the log may be that of an earlier Job with the same key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named_run_key: bool,
    /// The digest of the revision that the Job runs on.
    pub revision: Digest,
    /// The goal of the Job.
    pub goal: String,
    /// True if the Job tests the features of its Skill. Then the goal is for people only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validates: bool,
    /// The limits.
    pub limits: EffectiveLimits,
    /// The models that the worker may call: that of the main loop, then those of other stages, then fallbacks.
    pub models: Vec<ModelEndpoint>,
    /// How to reach an MCP server outside of the cluster. `None` for any other server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_mcp: Option<ExternalMcp>,
    /// The bound resources, in the order of the Skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<BoundResource>,
    /// The last position of the log that the operator has acknowledged. A shorter log has lost events. `None` for the first
    /// attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// The decisions about the latest held call. The log may lack some of them. A call that needs an approval is made only with the
    /// decisions in this list, whatever the log says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<GivenDecision>,
    /// The approvals of the latest held call that were passed to an earlier attempt and do not count any more, because the Approvals
    /// were deleted or replaced. The log may have them. They are ignored, and people are asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_approvals: Option<ApprovedCall>,
    /// The calls that people were asked about. They are made only with the approvals in `approvals`, even if the facts in the log or the
    /// ledger do not hold them any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedCall>,
    /// The replies that the log may lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<GivenReply>,
    /// The pins of the tools of the MCP server. `None` if no pins belong to the server of the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<ToolPins>,
    /// The tool policy of the tenant. A tool that it denies is denied, whatever the Skill says. `None` if it denies no tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_tools: Option<ToolPolicy>,
    /// The Job that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<ContinuedJob>,
    /// The core notes of the memory bank that the Job reads at its start. `None` for all that the Skill has in its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_scope: Option<Vec<CoreNote>>,
    /// The depth of the Job among parents and children. A Job without a parent has the depth 1.
    #[serde(default = "children::root_depth", skip_serializing_if = "children::is_root")]
    pub depth: u32,
    /// The states of the children whose ends the log may lack: those of the `children` in the last report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildState>,
    /// The time that the worker waits for a child before it parks, in seconds. `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_wait_seconds: Option<u32>,
    /// The report endpoint. `None` in local mode, where there is no operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportEndpoint>,
}

/// The decision about a held call, for one of its approvers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenDecision {
    /// The id of the call in the log.
    pub call: String,
    /// The tool that the approver saw. An operator of an earlier version does not pass it, and a worker then refuses the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The digest of the arguments that the approver saw.
    pub digest: Digest,
    /// The approver that the rule names.
    pub approver: String,
    /// The verdict.
    pub verdict: ApprovalVerdict,
    /// The user who decided.
    pub by: String,
    /// The reason that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An ended Job that another one continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContinuedJob {
    /// The name, for people.
    pub name: String,
    /// The run key. It names the directory of the Job's log in the Skill's memory.
    pub run_key: String,
}

/// The identity of a Job. Reports carry it too, so an operator ignores fields that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobIdentity {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
}

/// A model that a worker can call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelEndpoint {
    /// The name of the Model, for messages.
    pub name: String,
    /// The wire protocol.
    pub provider: ModelProvider,
    /// The name of the model at its provider.
    pub model: String,
    /// The URL of the API.
    pub base_url: String,
    /// The timeout of a request, in seconds.
    pub timeout_seconds: u64,
    /// The context window, in tokens, input and output together.
    pub context_window: u64,
    /// The largest answer, in tokens, if the Model sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The file that contains the API key, if the Model names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<KeyFile>,
    /// The file that contains the trusted certificates. `None` for those of the worker's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaFile>,
    /// The URL of the proxy, if the Model names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The names of the Models to ask if this one does not answer, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
}

/// The credentials and certificates of an MCP server outside of the cluster. Its addresses are restricted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalMcp {
    /// The headers of each request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<SecretHeader>,
    /// The file that contains the trusted certificates. `None` for those of the worker's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaFile>,
}

/// A header with a secret value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretHeader {
    /// The name of the header.
    pub name: String,
    /// The scheme before the value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The file that contains the value.
    pub file: KeyFile,
}

/// A file of certificates in the worker pod, and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaFile {
    /// The path of the file. The whole object is mounted as optional, so the file may appear later.
    pub path: String,
    /// The object that contains the certificates.
    pub object: CaObject,
    /// The key in the object, for messages.
    pub key: String,
}

/// The kind and name of an object that contains certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum CaObject {
    /// A Secret.
    #[strum(to_string = "Secret `{0}`")]
    Secret(String),
    /// A `ConfigMap`.
    #[strum(to_string = "ConfigMap `{0}`")]
    ConfigMap(String),
}

impl ModelEndpoint {
    /// The tokens to reserve for an answer of `openai` if the Model sets no limit. The requests then contain no limit.
    const OPENAI_EXPECTED_OUTPUT_TOKENS: u64 = 4_096;

    /// The largest answer of `anthropic`, in tokens, if the Model sets no limit. Each request must contain a limit.
    const ANTHROPIC_MAX_OUTPUT_TOKENS: u64 = 8_192;

    /// Returns the largest answer, in tokens, that is allowed or expected.
    pub fn max_output(&self) -> u64 {
        self.max_output_tokens.unwrap_or(match self.provider {
            ModelProvider::Openai => Self::OPENAI_EXPECTED_OUTPUT_TOKENS,
            // Leaves room for the prompt.
            ModelProvider::Anthropic => Self::ANTHROPIC_MAX_OUTPUT_TOKENS.min(self.context_window / 4),
        })
    }
}

/// A file with a secret value in the worker pod, and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyFile {
    /// The path of the file. The whole Secret is mounted as optional, so the file may appear later.
    pub path: String,
    /// The name of the Secret, for messages.
    pub secret: String,
    /// The key in the Secret, for messages.
    pub key: String,
}

/// A resource of the Skill that the Job binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoundResource {
    /// The name in the Skill.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// The bound value.
    pub source: ResourceSource,
}

/// The value of a bound resource. A secret value is never part of a run document; it is a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ResourceSource {
    /// A plain value: the URL of an API.
    Value(String),
    /// A secret value, in a file of the worker pod.
    Secret(KeyFile),
    /// A secret value that only the MCP server of the Job gets. The worker cannot read it.
    ForServer {
        /// The name of the Secret.
        secret: String,
        /// The key in the Secret.
        key: String,
    },
    /// A mounted directory or file.
    Mount {
        /// The path of the mount.
        path: String,
        /// True if the mount is read-only.
        read_only: bool,
    },
}

/// The endpoint that a worker reports to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportEndpoint {
    /// The URL of the report endpoint, path included.
    pub url: String,
    /// The CA certificates of the endpoint, as PEM.
    pub ca: String,
}

/// A part of the run document as text, and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The part as canonical JSON.
    pub text: String,
    /// The digest of the text.
    pub digest: Digest,
}

/// Serializes a part of the run document, and computes its digest.
pub fn seal<T: Serialize>(part: &T) -> Result<Sealed, serde_json::Error> {
    let text = canonical::to_string(&serde_json::to_value(part)?);
    let digest = Digest::of_bytes(text.as_bytes());
    Ok(Sealed { text, digest })
}

/// Parses a revision.
///
/// # Errors
/// Returns an error if its digest is not `expected`, if it is not a revision of this version, if only a newer worker may run it, or
/// if it has a field that this version does not know.
pub fn open_revision(text: &str, expected: &Digest) -> Result<Revision, Error> {
    const PART: &str = "the revision";
    let value: Value = open_sealed(PART, text, expected)?;
    // The level comes first: a revision that needs a newer worker may have values that this version cannot read.
    let level = value.get("minWorkerLevel").and_then(Value::as_u64);
    if let Some(needed) = level.filter(|needed| *needed > u64::from(WORKER_LEVEL)) {
        return Err(Error::NewerWorker { needed });
    }
    let Read { object, unknown } = unknown::read::<Revision>(&value);
    if let Some(field) = unknown {
        return Err(Error::UnknownField { field });
    }
    let revision = object.map_err(|error| unreadable(PART, &error))?;
    check_version(PART, revision.version).map(|()| revision)
}

/// Parses a Job's part.
///
/// # Errors
/// Returns an error if its digest is not `expected`, or if it is not a Job's part of this version.
pub fn open_job_part(text: &str, expected: &Digest) -> Result<JobPart, Error> {
    let part: JobPart = open_sealed("the Job's part", text, expected)?;
    check_version("the Job's part", part.version).map(|()| part)
}

/// Parses a part of the run document. `part` names it in errors.
///
/// # Errors
/// Returns an error if its digest is not `expected`, or if it cannot be read.
pub fn open_sealed<T: DeserializeOwned>(part: &'static str, text: &str, expected: &Digest) -> Result<T, Error> {
    let found = Digest::of_bytes(text.as_bytes());
    if &found != expected {
        return Err(Error::Digest { part, expected: expected.clone(), found });
    }
    serde_json::from_str(text).map_err(|error| unreadable(part, &error))
}

fn unreadable(part: &'static str, error: &serde_json::Error) -> Error {
    Error::Unreadable { part, message: error.to_string() }
}

fn check_version(part: &'static str, version: u32) -> Result<(), Error> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::Unreadable {
        part,
        message: format!("it has version {version}, and this worker reads version {VERSION}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn open_spec(spec: &Value, level: &Value) -> Result<Revision, Error> {
        let sealed = seal(&json!({ "version": 1, "skill": "s", "minWorkerLevel": level, "spec": spec })).unwrap();
        open_revision(&sealed.text, &sealed.digest)
    }

    #[rstest]
    #[case::no_level(json!(null), "the revision has the field spec.policy.quorum, which this version does not know")]
    #[case::own_level(json!(WORKER_LEVEL), "the revision has the field spec.policy.quorum, which this version does not know")]
    #[case::higher_level(json!(WORKER_LEVEL + 1), "the revision needs a worker of level 4, and this version has level 3")]
    fn a_field_of_a_newer_version_is_refused_whatever_level_the_revision_names(
        #[case] level: Value,
        #[case] refusal: &str,
    ) {
        let spec = json!({ "problem": { "statement": "help" }, "policy": { "quorum": 2 } });
        let error = open_spec(&spec, &level).unwrap_err();
        assert!(error.to_string().contains(refusal) && error.needs_upgrade(), "{error}");
    }

    #[rstest]
    #[case::no_level(json!(null), true)]
    #[case::own_level(json!(WORKER_LEVEL), true)]
    #[case::higher_level(json!(WORKER_LEVEL + 1), false)]
    fn a_worker_runs_revisions_of_its_own_level_and_lower_ones(#[case] level: Value, #[case] runs: bool) {
        let opened = open_spec(&json!({ "problem": { "statement": "help" } }), &level);
        assert_eq!(opened.is_ok(), runs, "{opened:?}");
    }

    #[test]
    fn a_value_of_a_newer_version_is_refused_and_a_higher_level_explains_it() {
        let spec = json!({ "problem": { "statement": "help" }, "tools": [{ "name": "a", "policy": { "allowed": "by_vote" } }] });
        assert!(matches!(open_spec(&spec, &json!(null)), Err(Error::Unreadable { .. })));
        assert!(matches!(open_spec(&spec, &json!(9)), Err(Error::NewerWorker { needed: 9 })));
    }

    #[test]
    fn a_revision_names_the_level_of_its_compiler_above_the_first_and_can_be_opened() {
        assert_eq!([1, 2].map(named_level), [None, Some(2)]);
        let spec = serde_json::from_value(json!({ "problem": { "statement": "help" } })).unwrap();
        let revision = Revision::new("s", spec, Some(McpEndpoint { url: "http://orders".into() }));
        let sealed = seal(&revision).unwrap();
        assert_eq!(revision.min_worker_level, named_level(WORKER_LEVEL));
        assert_eq!(open_revision(&sealed.text, &sealed.digest).unwrap(), revision);
    }
}
