//! Composes a reply to a Job. Pure functions find the question that the reply answers, and check that the Job accepts the reply.

use super::state;
use crate::choice;
use crate::error::{Error, ErrorKind};
use crate::text;
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{AskedQuestion, Job, Reply, WaitingFor};
use kube::ResourceExt;

/// The target of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyTarget {
    /// The conversation: the reply is a message.
    Message,
    /// A question: the reply is an answer.
    Question(AskedQuestion),
    /// One of several open questions. The user has to select it.
    Ambiguous(Vec<AskedQuestion>),
}

/// Returns the target of a reply. It is the conversation if `is_message`, else the named `question`, else the only open question.
/// Without open questions, it is the conversation.
///
/// # Errors
/// If the Job accepts no replies, there is no such question, or all questions are answered.
pub fn target(job: &Job, question: Option<&str>, is_message: bool) -> Result<ReplyTarget, Error> {
    check_accepts_replies(job)?;
    if is_message {
        return Ok(ReplyTarget::Message);
    }
    let asked = state::questions(job);
    if let Some(id) = question {
        return find_question(job, id).map(ReplyTarget::Question);
    }
    let mut open: Vec<AskedQuestion> =
        asked.iter().filter(|question| pending_answer(job, &question.id).is_none()).cloned().collect();
    if open.len() > 1 {
        return Ok(ReplyTarget::Ambiguous(open));
    }
    match (open.pop(), asked.first()) {
        (Some(only), _) => Ok(ReplyTarget::Question(only)),
        (None, None) => Ok(ReplyTarget::Message),
        (None, Some(first)) => Err(Error::too_late(format!(
            "the Job {} has no open question: {} is answered already, by a reply that the Job has not received yet: {}. To \
             send a message, use `options.message`",
            job.name_any(),
            first.id,
            quoted_text(pending_answer(job, &first.id))
        ))),
    }
}

/// Returns the open question with this id.
fn find_question(job: &Job, id: &str) -> Result<AskedQuestion, Error> {
    let asked = state::questions(job);
    if let Some(question) = asked.iter().find(|question| question.id == id) {
        return Ok(question.clone());
    }
    // The status names only the oldest questions, so the id may be that of a newer one.
    if asked.len() >= WaitingFor::MAX_QUESTIONS {
        return Ok(AskedQuestion { id: id.to_owned(), ..AskedQuestion::default() });
    }
    let name = job.name_any();
    if asked.is_empty() {
        return Err(Error::invalid(format!(
            "the Job {name} has no open questions. Without `options.question` {id}, the text is sent as a message"
        )));
    }
    let near = nearest::did_you_mean(id, asked.iter().map(|question| question.id.as_str()));
    Err(Error::invalid(format!(
        "the Job {name} has no open question {id}.{near} The open questions are:{}",
        list_questions(asked)
    )))
}

/// Checks that the Job accepts another reply.
///
/// # Errors
/// If the Job has ended or ends soon, or has the maximum number of replies.
pub fn check_accepts_replies(job: &Job) -> Result<(), Error> {
    let name = job.name_any();
    if state::has_ended(job) {
        return Err(Error::too_late(format!(
            "the Job {name} has ended, and accepts no replies: {}",
            state::summary(job)
        )));
    }
    if job.spec.cancel == Some(true) {
        return Err(Error::too_late(format!("the Job {name} is being cancelled, and accepts no replies")));
    }
    if state::is_without_skill(job) {
        return Err(Error::too_late(format!(
            "the Skill of the Job {name} was deleted, so the Job ends and accepts no replies"
        )));
    }
    if job.spec.replies.len() >= Reply::MAX_REPLIES {
        let message = format!(
            "the Job {name} has {} replies, which is the limit: create another Job with `continues: {name}`",
            Reply::MAX_REPLIES
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(())
}

/// Checks that a reply is still possible after the Job has changed.
///
/// # Errors
/// If its question is closed, or the Job accepts no replies.
pub fn check_still_open(job: &Job, reply: &Reply) -> Result<(), Error> {
    check_accepts_replies(job)?;
    let Some(id) = &reply.question else { return Ok(()) };
    if let Some(other) = pending_answer(job, id) {
        let other = quoted_text(Some(other));
        return Err(Error::too_late(format!("{id} was answered by someone else meanwhile: {other}. Nothing was sent")));
    }
    let asked = state::questions(job);
    // The status names only the oldest questions.
    let may_be_open = asked.len() >= WaitingFor::MAX_QUESTIONS || asked.iter().any(|question| question.id == *id);
    if may_be_open { Ok(()) } else { Err(Error::too_late(format!("{id} is no longer open. Nothing was sent"))) }
}

/// Returns the answer to a question, if there is one that the conversation has not received yet.
pub fn pending_answer<'a>(job: &'a Job, id: &str) -> Option<&'a Reply> {
    let received = job.status.as_ref().and_then(|status| status.replies_heard).unwrap_or_default();
    let mut pending = job.spec.replies.iter().skip(usize::try_from(received).unwrap_or(usize::MAX));
    pending.find(|reply| reply.question.as_deref() == Some(id))
}

/// Converts what the user typed to the text of the reply: the number of a choice becomes the choice. Also returns a note for the
/// user if the text is none of the choices.
///
/// # Errors
/// If the text is empty or too long, or is a number without a choice.
pub fn reply_text(question: Option<&AskedQuestion>, typed: &str) -> Result<(String, Option<String>), Error> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err(Error::invalid("the text is empty"));
    }
    let choices = question.map(|question| question.choices.as_slice()).unwrap_or_default();
    if let Some(hint) = choice::out_of_range_hint(choices, typed) {
        return Err(Error::invalid(hint));
    }
    let selected = choice::parse(choices, typed);
    let text = selected.unwrap_or(typed);
    if text.len() > Reply::MAX_TEXT_BYTES {
        return Err(Error::invalid(format!(
            "the text has {} bytes; the limit is {}. Shorten it, or put it where the Job can read it",
            text.len(),
            Reply::MAX_TEXT_BYTES
        )));
    }
    let note = (selected.is_none() && !choices.is_empty())
        .then(|| format!("The text is none of the choices ({}). It is sent unchanged.", choice::join(choices)));
    Ok((text.to_owned(), note))
}

/// Formats questions with their choices, with a line break before each question.
pub fn list_questions(questions: &[AskedQuestion]) -> String {
    let line = |question: &AskedQuestion| {
        let choices = match question.choices.as_slice() {
            [] => String::new(),
            choices => format!(" ({})", choice::join(choices)),
        };
        format!("\n  {}  {}{choices}", question.id, text::sanitized_line(&question.text))
    };
    questions.iter().map(line).collect()
}

fn quoted_text(reply: Option<&Reply>) -> String {
    reply.map(|reply| format!("\"{}\"", text::escaped(&reply.text))).unwrap_or_default()
}

#[cfg(test)]
mod tests;
