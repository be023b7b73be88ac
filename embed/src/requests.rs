//! The requests of a Job that wait for people.

use bloomery_crds::Digest;
use bloomery_engine::event::{CallId, RulingReason, UserQuestion};
use bloomery_engine::people::HumanRequest;
use bloomery_engine::{Conversation, Step};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The requests of a Job that wait for people, and the rights of the caller. Both lists are empty while the Job does not wait for people.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequests {
    /// The held calls.
    pub approvals: Vec<HeldCall>,
    /// The open questions.
    pub questions: Vec<Question>,
    /// The rights that the caller lacks.
    pub missing: MissingRights,
}

/// The rights that a caller lacks for a Job. Each is a clause that names the right, such as `the verb approve on
/// approvers.bloomery.dev/finance`, or that says which policy refuses the caller. A runtime that does not know whether the caller has a right leaves it out: it checks each input in any
/// case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingRights {
    /// The right to send replies and messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The right to cancel the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// The right to decide, by approver.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decide: BTreeMap<String, String>,
}

/// A call that waits for decisions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    /// The id of the call.
    pub call: CallId,
    /// The tool, as the Skill names it.
    pub tool: String,
    /// The exact arguments that would be sent, as canonical JSON.
    pub arguments: String,
    /// The digest of the arguments, which a decision names.
    pub digest: Digest,
    /// The reasons that hold the call.
    pub reasons: Vec<RulingReason>,
    /// The approvers who have not decided. All of them must approve.
    pub approvers: Vec<String>,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The question, with its id.
    #[serde(flatten)]
    pub question: UserQuestion,
    /// The reason why the last answer was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl OpenRequests {
    /// Returns the requests for which a conversation waits, for a caller with all rights. A parked conversation waits for the same requests.
    pub fn new(conversation: &Conversation) -> Self {
        let Step::AskPeople(requests) = bloomery_engine::next(conversation) else { return Self::default() };
        let mut open = Self::default();
        for request in requests {
            match request {
                HumanRequest::Approval(held) => open.approvals.push(HeldCall {
                    call: held.call.clone(),
                    tool: held.tool.to_owned(),
                    arguments: held.arguments.to_owned(),
                    digest: held.digest.clone(),
                    reasons: held.reasons.to_vec(),
                    approvers: held.approvers.iter().map(|&approver| approver.to_owned()).collect(),
                }),
                HumanRequest::Question(asked) => {
                    open.questions.push(Question { question: asked.question.clone(), refused: asked.refused.clone() });
                }
            }
        }
        open
    }
}
