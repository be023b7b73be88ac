//! Replies of people to a conversation.

use super::AskedQuestion;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// An answer to a question, or a message to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The id of the question of `status.waitingFor` that the text answers. Without it, the text is a message to the
    /// conversation, which the agent reads before its next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = AskedQuestion::MAX_ID_BYTES))]
    pub question: Option<String>,
    /// The text, of at most 1024 bytes.
    #[schemars(length(min = 1, max = Reply::MAX_TEXT_BYTES))]
    #[x_kube(validation = kube::core::Rule::new("bytes(self).size() <= 1024").message("must be at most 1024 bytes long"))]
    #[x_kube(validation = kube::core::Rule::new("self.trim() != ''").message("must not be blank"))]
    pub text: String,
}

impl Reply {
    /// The longest text, in bytes.
    pub const MAX_TEXT_BYTES: usize = 1024;

    /// The largest number of replies of a Job.
    pub const MAX_REPLIES: usize = 32;
}
