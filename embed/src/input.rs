//! The input of people for a Job.

use bloomery_crds::Digest;
use bloomery_engine::event::{CallId, QuestionId};
use schemars::JsonSchema;
use serde::Deserialize;

/// The input of a person for a Job. The runtime records the name of its caller with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The answer to an open question.
    Reply {
        /// The id of the question.
        question: QuestionId,
        /// The answer.
        text: String,
    },
    /// A message that answers no question.
    Message {
        /// The message.
        text: String,
    },
    /// The decision on a held call.
    Decision {
        /// The id of the call.
        call: CallId,
        /// The digest of the arguments that the person saw. A decision on other arguments is refused.
        digest: Digest,
        /// The approver for whom the person decides.
        approver: String,
        /// The decision.
        ruling: Ruling,
        /// The reason. The model reads the reason of a denial.
        reason: Option<String>,
    },
    /// The cancellation of the Job.
    Cancel,
}

/// The decision on a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Ruling {
    /// The call may be made.
    Approve,
    /// The call must not be made.
    Deny,
}
