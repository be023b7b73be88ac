//! What people are asked and decide, as events tell of it.

use super::CallId;
use serde::{Deserialize, Serialize};

/// Whose decision about a held call it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The approver that the person decides for.
    pub approver: String,
    /// Who the person is.
    pub by: String,
    /// Why; of a denial the model is told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Decision {
    /// In place of a person where no decision was seen in time: it counts as a denial.
    pub const NOBODY: &'static str = "nobody";
}

/// A question to a person, unique within a Job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub String);

impl QuestionId {
    /// Names the question that is the `n`th of its Job, from 1.
    pub fn new(n: u32) -> Self {
        Self(format!("q-{n}"))
    }
}

impl std::fmt::Display for QuestionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// Replies name it.
    pub id: QuestionId,
    /// The question.
    pub text: String,
    /// Answers to choose from; none where any words will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// What a question is about, which is where its answer goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// A call of `ask_user`: the answer is its result.
    Call(CallId),
    /// A required entity of the intent, which the goal does not name.
    Entity(String),
    /// The latest draft, which the finalization gate cannot let out without a person's word.
    Draft,
    /// A call with effect whose answer was lost: a person says whether it happened.
    Lost(CallId),
}
