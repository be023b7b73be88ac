//! Violations: the rules that every request is checked by, and the requests that broke them.

use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};

/// Answer of `GET /control/violations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// How many there were.
    pub total: u64,
    /// The first of them, bounded.
    pub violations: Vec<Violation>,
}

/// One request that broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Whose request it was: its `user` field, or `anonymous`.
    pub user: String,
    /// The stage that asked.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that it asked for.
    pub turn: usize,
    /// What was broken.
    pub rule: Rule,
    /// What is wrong with the request, for people.
    pub message: String,
}

/// The rules that every request is checked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The body is a request of its protocol.
    Readable,
    /// What the provider asks for is there, in the body and in the headers.
    RequiredFields,
    /// There is no field that the provider does not know.
    KnownFields,
    /// The prompt begins with the system prompt.
    SystemFirst,
    /// The user speaks first and last.
    Roles,
    /// Each message has a known role and the content that goes with it.
    MessageShape,
    /// Each tool call has one result before the next assistant or user message.
    OneResultPerCall,
    /// Each result has its call.
    ResultHasCall,
    /// No call id occurs twice.
    UniqueCallIds,
    /// The arguments of calls are text, where the protocol has text there.
    ArgumentsAreText,
    /// Names of tools and calls are what providers take.
    ToolNames,
    /// What the model thought comes back as it was.
    ThinkingKept,
    /// No more marks for the cache than there may be.
    CacheMarks,
    /// The schema of the answer is one that the provider can hold to.
    OutputSchema,
    /// The messages begin with those of the request before.
    SamePrefix,
    /// The tools are those of the request before.
    SameTools,
    /// The script has an answer for the request.
    Scripted,
    /// The request holds what the script expects.
    Expected,
}

/// What is wrong with one request: the rule and the sentence.
pub(super) type Broken = (Rule, String);
