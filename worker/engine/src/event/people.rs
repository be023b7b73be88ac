//! The questions to people, and their decisions.

use super::CallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person's decision about a held call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The approver for whom the person decides.
    pub approver: String,
    /// The name of the person.
    pub by: String,
    /// The reason. The model reads the reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Decision {
    /// The value of `by` if no person decided in time. Such a decision counts as a denial.
    pub const NO_PERSON: &'static str = "nobody";

    /// Describes the decision as a denial, as a clause.
    pub(crate) fn denial(&self) -> String {
        let Self { approver, by, reason } = self;
        let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        if by == Self::NO_PERSON {
            return format!("no decision for {approver} was seen in time{why}");
        }
        format!("{by} denied it for {approver}{why}")
    }
}

/// The id of a question to people, unique within a Job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct QuestionId(pub String);

impl QuestionId {
    /// Returns the id of the `n`th question of a Job, from 1.
    pub fn new(n: u32) -> Self {
        Self(format!("q-{n}"))
    }
}

impl std::fmt::Display for QuestionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A question to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// The id, which replies name.
    pub id: QuestionId,
    /// The text of the question.
    pub text: String,
    /// The answers to choose from. Empty if the answer is free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// The subject of a question, which decides the use of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionSubject {
    /// A call of `ask_user`. The answer is its result.
    Call(CallId),
    /// A required entity of the intent that the goal does not name.
    Entity(String),
    /// The latest draft. The finalization gate needs a person's answer before the draft can pass.
    Draft,
    /// A call with effect whose result was lost. A person finds out whether the call happened.
    #[serde(rename = "lost")]
    LostCall(CallId),
}
