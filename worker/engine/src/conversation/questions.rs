//! The questions that people were asked.

use crate::event::{About, QuestionId, UserQuestion};

/// How many replies that belong nowhere are kept to be shown; the log has them all.
const MAX_STRAY: usize = 8;

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The question.
    pub question: UserQuestion,
    /// What it is about.
    pub about: About,
    /// Why the latest reply to it was not taken, for the person.
    pub refused: Option<String>,
}

/// A reply to a question that is not open: nobody asked it, or it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayReply {
    /// The question that it names.
    pub question: QuestionId,
    /// What it says.
    pub text: String,
    /// Who said it.
    pub by: String,
    /// Its place among the replies of the Job's spec, from 1; none where it did not come from there.
    pub nth: Option<u32>,
    /// Whether the question was asked, and answered before; nobody asked it otherwise.
    pub answered: bool,
}

/// The questions so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Questions {
    asked: u32,
    open: Vec<OpenQuestion>,
    stray: Vec<StrayReply>,
    strays: u32,
    replies_heard: u32,
}

impl Questions {
    pub(super) fn ask(&mut self, question: &UserQuestion, about: &About) {
        self.asked += 1;
        self.open.push(OpenQuestion { question: question.clone(), about: about.clone(), refused: None });
    }

    pub(super) fn about(&self, id: &QuestionId) -> Option<About> {
        self.open.iter().find(|open| open.question.id == *id).map(|open| open.about.clone())
    }

    pub(super) fn answered(&mut self, id: &QuestionId) {
        self.open.retain(|open| open.question.id != *id);
    }

    pub(super) fn refused(&mut self, id: &QuestionId, why: String) {
        if let Some(open) = self.open.iter_mut().find(|open| open.question.id == *id) {
            open.refused = Some(why);
        }
    }

    /// Remembers that this reply of the Job's spec was heard, whatever came of it.
    pub(super) fn heard(&mut self, nth: Option<u32>) {
        self.replies_heard = self.replies_heard.max(nth.unwrap_or(0));
    }

    pub(super) fn keep_stray(&mut self, reply: StrayReply) {
        self.strays += 1;
        if self.stray.len() == MAX_STRAY {
            self.stray.remove(0);
        }
        self.stray.push(reply);
    }

    /// How many there were.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Whether a question of this id was ever asked.
    pub fn was_asked(&self, id: &QuestionId) -> bool {
        (1..=self.asked).any(|n| QuestionId::new(n) == *id)
    }

    /// How many replies of the Job's spec were heard: all up to this one, which are not taken again.
    pub fn replies_heard(&self) -> u32 {
        self.replies_heard
    }

    /// Those that wait for their answer, oldest first.
    pub fn open(&self) -> &[OpenQuestion] {
        &self.open
    }

    /// Whether one about this waits for its answer.
    pub fn is_open(&self, about: &About) -> bool {
        self.open.iter().any(|open| open.about == *about)
    }

    /// The latest replies that belong nowhere, oldest first.
    pub fn stray(&self) -> &[StrayReply] {
        &self.stray
    }

    /// How many replies belong nowhere.
    pub fn strays(&self) -> u32 {
        self.strays
    }
}
