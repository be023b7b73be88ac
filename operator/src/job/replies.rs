//! Replies to the questions of a Job, and the record of undelivered ones: pure functions of the Job's spec and status.

use super::status::quoted;
use crate::listing::join_sentences;
use crate::status::StatusStamp;
use bloomery_crds::conditions::{self, ConditionType, Observation, Reason};
use bloomery_crds::run::GivenReply;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{JobSpec, JobStatus, Reply};

/// The state of the answers to the open questions of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerState {
    /// No reply of the spec answers an open question yet.
    Awaited,
    /// A reply of the spec may answer an open question, and the conversation has not received it.
    Available,
    /// No reply answers an open question, and the Job accepts no more replies.
    Impossible,
}

/// The beginning of the operator's part of the message of `RepliesTaken`. The worker's part comes before it.
const UNDELIVERED_PREFIX: &str = "Not heard: ";

/// The maximum size of the worker's part and of the operator's part of the message, in bytes.
const MAX_PART_BYTES: usize = 480;

/// Returns the state of the answers to the open questions.
pub fn answers(spec: &JobSpec, status: &JobStatus) -> AnswerState {
    if spec.has_pending_answer(status) {
        AnswerState::Available
    } else if spec.replies.len() >= Reply::MAX_REPLIES {
        AnswerState::Impossible
    } else {
        AnswerState::Awaited
    }
}

/// Records the replies that no worker receives: all pending ones of an ended Job, and those to unknown questions of a
/// Job that waits for people.
pub fn with_undelivered_replies(status: JobStatus, spec: &JobSpec, stamp: &StatusStamp) -> JobStatus {
    let (reason, undelivered) = if status.is_terminal() {
        (Reason::JobEnded, spec.pending_replies(&status).map(|reply| describe_missed_reply(&reply)).collect::<Vec<_>>())
    } else if status.awaits_people() {
        (
            Reason::UnknownQuestion,
            spec.pending_replies(&status).filter_map(|reply| describe_stray_reply(&status, &reply)).collect(),
        )
    } else {
        return status;
    };
    if undelivered.is_empty() {
        return status;
    }
    let current = conditions::find(&status.conditions, ConditionType::RepliesTaken);
    let worker_part =
        current.and_then(|current| current.message.split(UNDELIVERED_PREFIX).next()).unwrap_or_default().trim_end();
    let mut message = bounded(worker_part, MAX_PART_BYTES);
    if !message.is_empty() {
        message.push(' ');
    }
    message += UNDELIVERED_PREFIX;
    message += &join_sentences(&undelivered, MAX_PART_BYTES);
    let observation = Observation::fails(ConditionType::RepliesTaken, reason, message);
    let conditions = conditions::put(&status.conditions, &observation, stamp.generation, &stamp.now);
    JobStatus { conditions, ..status }
}

/// Describes a reply that the worker did not receive before the Job ended.
fn describe_missed_reply(reply: &GivenReply) -> String {
    let GivenReply { nth, question, text } = reply;
    let to = question.as_ref().map(|question| format!(" to {question}")).unwrap_or_default();
    format!("reply {nth}{to}, before the Job ended: {}.", quoted(text))
}

/// Describes a reply to a question that is not open; none for a reply that a worker may still use.
fn describe_stray_reply(status: &JobStatus, reply: &GivenReply) -> Option<String> {
    let GivenReply { nth, question, text } = reply;
    let question = question.as_ref().filter(|question| !status.may_be_open(question))?;
    Some(format!("reply {nth} is to {question}, which is not open: {}.", quoted(text)))
}

#[cfg(test)]
mod tests;
