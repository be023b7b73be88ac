//! The run document: everything that a worker is told before it starts.
//!
//! It comes in two parts. The **revision** is the compiled Skill, in an immutable ConfigMap named by its
//! content; all attempts of a Job run on the same one. The **Job's part** is made anew for each attempt and
//! reaches the pod through the downward API. Annotations of a running pod can be edited, so the digests of
//! both parts are arguments of the worker, which refuses anything else (`docs/explanation/design.md`, section 7).

use crate::canonical::{self, Digest};
use crate::limits::EffectiveLimits;
use crate::v1alpha1::{ApprovalVerdict, LogPosition, ModelProvider, ResourceType, SkillSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The schema version of both parts.
pub const VERSION: u32 = 1;

/// The key of a revision ConfigMap that holds the revision.
pub const REVISION_KEY: &str = "revision.json";

/// The largest Job's part, in bytes (`docs/explanation/design.md`, section 7).
pub const MAX_JOB_PART: usize = 64 * 1024;

/// The directory of a worker pod below which a slag's memory is mounted.
pub const MEMORY_ROOT: &str = "/memory";

/// The directory of a worker pod below which bound file systems are mounted, each under its name.
pub const RESOURCES_ROOT: &str = "/resources";

/// Why a part cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was read is not what the operator wrote.
    #[error("{part} was changed after the operator wrote it: expected {expected}, found {found}")]
    Digest {
        /// Which part.
        part: &'static str,
        /// The digest in the worker's arguments.
        expected: Digest,
        /// The digest of what was read.
        found: Digest,
    },
    /// The part is not JSON of this version.
    #[error("{part} cannot be read: {message}")]
    Unreadable {
        /// Which part.
        part: &'static str,
        /// What the reader said.
        message: String,
    },
}

/// A compiled Skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revision {
    /// [`VERSION`].
    pub version: u32,
    /// The Skill's name, which is its slag's.
    pub skill: String,
    /// The Skill as it was accepted.
    pub spec: SkillSpec,
    /// Where its MCP server is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpEndpoint>,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpEndpoint {
    /// Its streamable HTTP endpoint.
    pub url: String,
}

/// What one attempt of one Job is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobPart {
    /// [`VERSION`].
    pub version: u32,
    /// Which Job.
    pub job: JobIdentity,
    /// Counts the Job's pods, from 1.
    pub attempt: u32,
    /// Names the log's directory and keys tool calls: the Job's UID.
    pub run_key: String,
    /// The digest of the revision that the Job runs on.
    pub revision: Digest,
    /// What is to be reached.
    pub goal: String,
    /// The budgets.
    pub limits: EffectiveLimits,
    /// The models to call: that of the main loop first, then those of stages that have their own, then fallbacks.
    pub models: Vec<ModelEndpoint>,
    /// What the Skill's resources are for this Job, in the order of the Skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<BoundResource>,
    /// How far the log has come, as the operator knows: a log that lacks a part of it has lost it. None at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// What people have decided of the call that the Job waits with, and its worker may not know yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<GivenDecision>,
    /// What people have said to the conversation, and its log may not have yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<GivenReply>,
    /// The Job that this one follows up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<ContinuedJob>,
    /// Where to report. None where there is no operator: a worker pod is always told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportEndpoint>,
}

/// What was decided of a held call, for one of its approvers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenDecision {
    /// The id of the call in the log.
    pub call: String,
    /// Digest of the arguments that were shown.
    pub digest: Digest,
    /// Who had to agree.
    pub approver: String,
    /// What counts.
    pub verdict: ApprovalVerdict,
    /// Who decided.
    pub by: String,
    /// Why, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A reply of the Job's spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenReply {
    /// Its place among the Job's replies, from 1.
    pub nth: u32,
    /// The question that it answers; none for a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What it says.
    pub text: String,
}

/// A Job that has ended, and that another one follows up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContinuedJob {
    /// Its name, for people.
    pub name: String,
    /// Names its record in the Skill's memory.
    pub run_key: String,
}

/// Which Job, beyond doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobIdentity {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A model as a worker calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelEndpoint {
    /// The name of the Model, for messages.
    pub name: String,
    /// The wire protocol.
    pub provider: ModelProvider,
    /// The provider's name of the model.
    pub model: String,
    /// Where the API is.
    pub base_url: String,
    /// How long one request may take.
    pub timeout_seconds: u64,
    /// How many tokens it takes in all.
    pub context_window: u64,
    /// How many tokens an answer may have, where the Model says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The file that holds the key, where one is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<KeyFile>,
    /// The file that holds the certificates to trust; the worker's own where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaFile>,
    /// The proxy that requests go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The names of the Models that are asked where this one gives no answer, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
}

/// Certificates in a file of the worker pod, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaFile {
    /// The file. What it is of is mounted whole and optional, so it may appear later.
    pub path: String,
    /// What it is of.
    pub object: CaObject,
    /// The key in that object, for messages.
    pub key: String,
}

/// An object that holds certificates, by its name.
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
    /// How many tokens are set aside for an answer, where the Model says nothing: no request says it either.
    const EXPECTED_OUTPUT: u64 = 4_096;

    /// How many tokens an answer of Anthropic's may have, where the Model says nothing: each request must say it.
    const ANTHROPIC_OUTPUT: u64 = 8_192;

    /// How many tokens an answer may have, or is expected to have at most.
    pub fn max_output(&self) -> u64 {
        self.max_output_tokens.unwrap_or(match self.provider {
            ModelProvider::Openai => Self::EXPECTED_OUTPUT,
            // It must leave room for the prompt.
            ModelProvider::Anthropic => Self::ANTHROPIC_OUTPUT.min(self.context_window / 4),
        })
    }
}

/// A secret value in a file of the worker pod, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyFile {
    /// The file. Secrets are mounted whole and optional, so it may appear later.
    pub path: String,
    /// The Secret, for messages.
    pub secret: String,
    /// The key in the Secret, for messages.
    pub key: String,
}

/// A resource of the Skill, as the Job binds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoundResource {
    /// The name that the Skill gives it.
    pub name: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// What it is.
    pub source: ResourceSource,
}

/// What a bound resource is. A secret value never stands in a run document: it is a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ResourceSource {
    /// A plain value: the URL of an API.
    Value(String),
    /// A secret value, in a file of the worker pod.
    Secret(KeyFile),
    /// A directory or a file that is mounted.
    Mount {
        /// Where.
        path: String,
        /// Whether nobody in the pod can change it.
        read_only: bool,
    },
}

/// Where a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportEndpoint {
    /// The URL of the report endpoint, path included.
    pub url: String,
    /// The certificates that sign it, as PEM.
    pub ca: String,
}

/// One part, as text to be stored and the digest that seals it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Canonical JSON.
    pub text: String,
    /// Its digest.
    pub digest: Digest,
}

/// Writes a part and seals it.
pub fn seal<T: Serialize>(part: &T) -> Result<Sealed, serde_json::Error> {
    let text = canonical::to_string(&serde_json::to_value(part)?);
    let digest = Digest::of_bytes(text.as_bytes());
    Ok(Sealed { text, digest })
}

/// Reads the revision behind its seal.
pub fn open_revision(text: &str, expected: &Digest) -> Result<Revision, Error> {
    let revision: Revision = open("the revision", text, expected)?;
    same_version("the revision", revision.version).map(|()| revision)
}

/// Reads the Job's part behind its seal.
pub fn open_job_part(text: &str, expected: &Digest) -> Result<JobPart, Error> {
    let part: JobPart = open("the Job's part", text, expected)?;
    same_version("the Job's part", part.version).map(|()| part)
}

fn open<T: DeserializeOwned>(part: &'static str, text: &str, expected: &Digest) -> Result<T, Error> {
    let found = Digest::of_bytes(text.as_bytes());
    if &found != expected {
        return Err(Error::Digest { part, expected: expected.clone(), found });
    }
    serde_json::from_str(text).map_err(|error| Error::Unreadable { part, message: error.to_string() })
}

fn same_version(part: &'static str, version: u32) -> Result<(), Error> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::Unreadable { part, message: format!("version {version}, this worker reads version {VERSION}") })
}
