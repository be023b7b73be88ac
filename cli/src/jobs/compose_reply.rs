//! What a person says to a Job: which question it answers, whether it can be said; decided over values.

use super::state;
use crate::choice;
use crate::exit::{Exit, Trouble};
use crate::text;
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{AskedQuestion, Job, Reply, WaitingFor};
use kube::ResourceExt;

/// What a reply is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The conversation.
    Message,
    /// A question.
    Question(AskedQuestion),
    /// One of several: somebody has to say which.
    OneOf(Vec<AskedQuestion>),
}

/// What a reply is for: `question` where one is named, the conversation where it is a `message`, or the one open question.
///
/// # Errors
/// If the Job can hear nothing more, there is no such question, or each is answered.
pub(super) fn aim(job: &Job, question: Option<&str>, message: bool) -> Result<Aim, Trouble> {
    hears(job)?;
    if message {
        return Ok(Aim::Message);
    }
    let asked = state::questions(job);
    if let Some(id) = question {
        return named(job, id).map(Aim::Question);
    }
    let mut open: Vec<AskedQuestion> =
        asked.iter().filter(|question| answered(job, &question.id).is_none()).cloned().collect();
    match (open.pop(), asked.first()) {
        (Some(last), _) if open.is_empty() => Ok(Aim::Question(last)),
        (Some(last), _) => {
            open.push(last);
            Ok(Aim::OneOf(open))
        }
        (None, None) => Ok(Aim::Message),
        (None, Some(first)) => Err(late(format!(
            "the Job {} has no open question: {} is answered already, by a reply that it has not heard yet: {}. Say more to \
             it with --message",
            job.name_any(),
            first.id,
            told(answered(job, &first.id))
        ))),
    }
}

fn named(job: &Job, id: &str) -> Result<AskedQuestion, Trouble> {
    let asked = state::questions(job);
    if let Some(question) = asked.iter().find(|question| question.id == id) {
        return Ok(question.clone());
    }
    // Its status names the oldest ones only: this may be one that it does not name.
    if asked.len() >= WaitingFor::MAX_QUESTIONS {
        return Ok(AskedQuestion { id: id.to_owned(), ..AskedQuestion::default() });
    }
    let name = job.name_any();
    if asked.is_empty() {
        return Err(Trouble::usage(format!(
            "the Job {name} has no open question {id}, nor any other. Without --question the text is a message to it"
        )));
    }
    let near = nearest::did_you_mean(id, asked.iter().map(|question| question.id.as_str()));
    Err(Trouble::usage(format!("the Job {name} has no open question {id}.{near} Open are:{}", list(asked))))
}

/// Whether the Job can hear one more reply.
///
/// # Errors
/// If it has ended, or holds as many as it can.
pub(super) fn hears(job: &Job) -> Result<(), Trouble> {
    let name = job.name_any();
    if state::has_ended(job) {
        return Err(late(format!("the Job {name} has ended, and hears nothing any more: {}", state::line(job))));
    }
    if job.spec.cancel == Some(true) {
        return Err(late(format!("the Job {name} is being cancelled, and hears nothing any more")));
    }
    if state::is_without_skill(job) {
        return Err(late(format!("the Skill of the Job {name} was deleted: it ends, and hears nothing any more")));
    }
    if job.spec.replies.len() >= Reply::MAX_REPLIES {
        return Err(Trouble::failed(format!(
            "the Job {name} has {} replies, and takes no more: make another Job that continues it",
            Reply::MAX_REPLIES
        )));
    }
    Ok(())
}

/// Whether a reply can still be said, after somebody else has changed the Job.
///
/// # Errors
/// If its question is open no more, or it can hear nothing.
pub(super) fn still(job: &Job, reply: &Reply) -> Result<(), Trouble> {
    hears(job)?;
    let Some(id) = &reply.question else { return Ok(()) };
    if let Some(other) = answered(job, id) {
        let other = told(Some(other));
        return Err(late(format!("somebody else has answered {id} meanwhile: {other}. Nothing was said")));
    }
    let asked = state::questions(job);
    let is_open = asked.len() >= WaitingFor::MAX_QUESTIONS || asked.iter().any(|question| question.id == *id);
    if is_open { Ok(()) } else { Err(late(format!("{id} is open no more. Nothing was said"))) }
}

/// A reply to a question that the conversation has not heard yet.
pub(super) fn answered<'a>(job: &'a Job, id: &str) -> Option<&'a Reply> {
    let heard = job.status.as_ref().and_then(|status| status.replies_heard).unwrap_or_default();
    let unheard = job.spec.replies.iter().skip(usize::try_from(heard).unwrap_or(usize::MAX));
    unheard.into_iter().find(|reply| reply.question.as_deref() == Some(id))
}

/// What is said, and what is to be known about it.
///
/// # Errors
/// If it says nothing, or too much.
pub(super) fn text(question: Option<&AskedQuestion>, typed: &str) -> Result<(String, Option<String>), Trouble> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err(Trouble::usage("the text is empty: it must say something"));
    }
    let choices = question.map(|question| question.choices.as_slice()).unwrap_or_default();
    if let Some(instead) = choice::beside(choices, typed) {
        return Err(Trouble::usage(instead));
    }
    let meant = choice::meant(choices, typed);
    let text = meant.unwrap_or(typed);
    if text.len() > Reply::MAX_TEXT {
        return Err(Trouble::usage(format!(
            "the text has {} bytes, and may have {}: say it shorter, or put it where the Job can read it",
            text.len(),
            Reply::MAX_TEXT
        )));
    }
    let note = (meant.is_none() && !choices.is_empty())
        .then(|| format!("That is none of the choices ({}): it is sent in your words.", choice::listed(choices)));
    Ok((text.to_owned(), note))
}

/// Questions, a line each, with their choices.
pub(super) fn list(questions: &[AskedQuestion]) -> String {
    let one = |question: &AskedQuestion| {
        let choices = match question.choices.as_slice() {
            [] => String::new(),
            choices => format!(" ({})", choice::listed(choices)),
        };
        format!("\n  {}  {}{choices}", question.id, text::line(&question.text))
    };
    questions.iter().map(one).collect()
}

fn told(reply: Option<&Reply>) -> String {
    reply.map(|reply| format!("\"{}\"", text::shown(&reply.text))).unwrap_or_default()
}

fn late(message: String) -> Trouble {
    Trouble { exit: Exit::Late, message }
}

#[cfg(test)]
mod tests;
