//! The rules for requests, and the records of requests that broke a rule.

use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};

/// Answer of `GET /control/violations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// The number of all violations.
    pub total: u64,
    /// The first violations, at most 1000.
    pub violations: Vec<Violation>,
}

/// One request that broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The `user` field of the request, or `anonymous`.
    pub user: String,
    /// The stage of the engine that sent the request.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that the request asked for.
    pub turn: usize,
    /// The broken rule.
    pub rule: Rule,
    /// The description for people.
    pub message: String,
}

/// A rule for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The body is a request of its protocol.
    Readable,
    /// The body and the headers have all required fields.
    RequiredFields,
    /// All fields are known to the provider.
    KnownFields,
    /// The prompt begins with the system prompt.
    SystemFirst,
    /// The first and the last message are of the user.
    Roles,
    /// Each message has a known role, and content that the role permits.
    MessageShape,
    /// Each tool call has one result before the next assistant or user message.
    OneResultPerCall,
    /// Each result has its call.
    ResultHasCall,
    /// No call id occurs twice.
    UniqueCallIds,
    /// The arguments of calls are strings if the protocol requires strings.
    ArgumentsAreText,
    /// The providers accept the names of tools and the ids of calls.
    ToolNames,
    /// The thoughts of the model come back unchanged.
    ThinkingKept,
    /// The prompt has no more cache marks than the provider permits.
    CacheMarks,
    /// The provider can enforce the schema of the answer.
    OutputSchema,
    /// The messages begin with those of the previous request.
    SamePrefix,
    /// The tools are those of the previous request.
    SameTools,
    /// The script has an answer for the request.
    Scripted,
    /// The request meets the expectations of the script.
    Expected,
}

/// A broken rule, and a description for people.
pub(super) type BrokenRule = (Rule, String);
