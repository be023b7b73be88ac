//! The questions and their replies.

use crate::event::{Event, QuestionId, QuestionSubject, UserQuestion};
use bloomery_crds::text::bounded;

/// The longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 4096;

/// The most stray replies that are kept for the status. The log has all of them.
const MAX_STRAY_REPLIES: usize = 8;

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The question.
    pub question: UserQuestion,
    /// The subject of the question.
    pub about: QuestionSubject,
    /// The reason why the latest reply was refused, for the person.
    pub refused: Option<String>,
}

/// A reply to a question that is not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayReply {
    /// The question that the reply names.
    pub question: QuestionId,
    /// The text of the reply.
    pub text: String,
    /// The name of the person.
    pub by: String,
    /// The position among the replies of the Job's spec, from 1; none if it did not come from there.
    pub nth: Option<u32>,
    /// Whether the question was answered before. Otherwise it was never asked.
    pub answered: bool,
}

/// The reason why a reply is refused, as a sentence for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RefusedReply(String);

impl RefusedReply {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// All questions of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Questions {
    /// The number of questions that were asked.
    asked: u32,
    open: Vec<OpenQuestion>,
    /// The latest stray replies.
    stray_replies: Vec<StrayReply>,
    /// The number of all stray replies.
    stray_count: u32,
    /// The number of replies of the Job's spec that were read.
    replies_read: u32,
}

impl Questions {
    pub(super) fn open_question(&mut self, question: &UserQuestion, about: &QuestionSubject) {
        self.asked += 1;
        self.open.push(OpenQuestion { question: question.clone(), about: about.clone(), refused: None });
    }

    /// Returns the subject of an open question.
    pub(crate) fn about(&self, id: &QuestionId) -> Option<QuestionSubject> {
        self.open.iter().find(|open| open.question.id == *id).map(|open| open.about.clone())
    }

    /// Closes a question whose reply was accepted. A question whose reply was refused stays open, with the reason.
    pub(crate) fn settle(&mut self, id: &QuestionId, reply: Result<(), RefusedReply>) {
        match reply {
            Ok(()) => self.open.retain(|open| open.question.id != *id),
            Err(RefusedReply(reason)) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.question.id == *id) {
                    open.refused = Some(reason);
                }
            }
        }
    }

    /// Records that the replies of the Job's spec up to the `nth` were read, even if they changed nothing.
    pub(super) fn mark_read(&mut self, nth: Option<u32>) {
        self.replies_read = self.replies_read.max(nth.unwrap_or(0));
    }

    /// Forgets which replies were read, because another Job with its own replies uses the log.
    pub(crate) fn restart_replies(&mut self) {
        self.replies_read = 0;
    }

    pub(super) fn keep_stray(&mut self, reply: StrayReply) {
        self.stray_count += 1;
        if self.stray_replies.len() == MAX_STRAY_REPLIES {
            self.stray_replies.remove(0);
        }
        self.stray_replies.push(reply);
    }

    /// Returns whether a question with this id was asked before.
    pub(super) fn was_asked(&self, id: &QuestionId) -> bool {
        (1..=self.asked).any(|n| QuestionId::new(n) == *id)
    }

    /// The number of replies of the Job's spec that were read. They are not read again.
    pub fn replies_read(&self) -> u32 {
        self.replies_read
    }

    /// The questions that wait for their answer, oldest first.
    pub fn open(&self) -> &[OpenQuestion] {
        &self.open
    }

    /// Returns whether a question about this subject waits for its answer.
    pub(crate) fn is_open(&self, about: &QuestionSubject) -> bool {
        self.open.iter().any(|open| open.about == *about)
    }

    /// The latest stray replies, oldest first.
    pub fn stray_replies(&self) -> &[StrayReply] {
        &self.stray_replies
    }

    /// The number of stray replies.
    pub fn stray_count(&self) -> u32 {
        self.stray_count
    }
}

/// Returns the events that ask questions. `new` has the subject, the text and the choices of each question.
pub(crate) fn ask(questions: &Questions, new: Vec<(QuestionSubject, String, Vec<String>)>) -> Vec<Event> {
    let asked = |(n, (about, text, choices)): (u32, (QuestionSubject, String, Vec<String>))| Event::UserAsked {
        question: UserQuestion { id: QuestionId::new(n), text: bounded(&text, MAX_QUESTION_BYTES), choices },
        about,
    };
    (questions.asked + 1..).zip(new).map(asked).collect()
}
