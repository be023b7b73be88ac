//! What a person says to a conversation.

use super::{AskedQuestion, JobSpec, JobStatus};
use crate::run::GivenReply;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// An answer to a question, or a message to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// Which question of `status.waitingFor` is answered. Without it the text is a message to the conversation, which it
    /// takes up when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = AskedQuestion::MAX_ID))]
    pub question: Option<String>,
    /// What is said: at most 1024 bytes.
    #[schemars(length(min = 1, max = Reply::MAX_TEXT))]
    #[x_kube(validation = kube::core::Rule::new("bytes(self).size() <= 1024").message("must be at most 1024 bytes long"))]
    #[x_kube(validation = kube::core::Rule::new("self.trim() != ''").message("must say something"))]
    pub text: String,
}

impl JobSpec {
    /// The replies after the first `heard` ones, each with its place.
    pub fn replies_after(&self, heard: u32) -> impl Iterator<Item = GivenReply> {
        (1..).zip(&self.replies).filter(move |(nth, _)| *nth > heard).map(|(nth, reply)| GivenReply {
            nth,
            question: reply.question.clone(),
            text: reply.text.clone(),
        })
    }

    /// What people have said and the conversation has not heard, as far as its status knows.
    pub fn unheard(&self, status: &JobStatus) -> impl Iterator<Item = GivenReply> {
        self.replies_after(status.replies_heard.unwrap_or_default())
    }

    /// Whether some of it may answer a question that is open. A message is no answer, nor is a reply to another question.
    pub fn is_answered(&self, status: &JobStatus) -> bool {
        self.unheard(status).any(|reply| reply.question.is_some_and(|question| status.may_be_open(&question)))
    }
}

impl Reply {
    /// The longest text, in bytes.
    pub const MAX_TEXT: usize = 1024;

    /// How many replies a Job takes.
    pub const MAX_REPLIES: usize = 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_keep_their_place_among_all_of_them() {
        let reply = |question: Option<&str>| Reply { question: question.map(str::to_owned), text: "A-17".into() };
        let spec = JobSpec { replies: vec![reply(Some("q-1")), reply(None), reply(Some("q-2"))], ..JobSpec::default() };
        let after = |heard| spec.replies_after(heard).map(|given| (given.nth, given.question)).collect::<Vec<_>>();
        assert_eq!(after(0), [(1, Some("q-1".into())), (2, None), (3, Some("q-2".into()))]);
        assert_eq!(after(2), [(3, Some("q-2".into()))]);
        assert_eq!((after(3), after(u32::MAX)), (vec![], vec![]));
    }
}
