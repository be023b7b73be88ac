//! The state of the intent detection.

use super::prompt;
use crate::event::{Event, ModelFailure, QuestionSubject};
use crate::history::Turn;
use crate::line::Entry;
use crate::shared::Shared;
use crate::stage_prompt::StageAnswer;
use crate::stages::questions::RefusedReply;
use bloomery_crds::v1alpha1::Stage;

/// The progress of the intent detection. The detected intent itself is shared.
#[derive(Debug, Default)]
pub(crate) struct IntentStage {
    /// The answer of the model that detects the intent.
    pub(super) answer: StageAnswer,
    /// The required entities that are still missing.
    pub(super) missing: Vec<String>,
}

impl IntentStage {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        let is_current = shared.model.stage == Stage::Intent;
        match &entry.event {
            Event::ModelAnswered { answer } if is_current => self.answer.set(&answer.text),
            Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message } if is_current => {
                self.answer.reject(message);
            }
            Event::IntentDetected { intent, missing } => {
                shared.intent = Some(intent.clone());
                missing.clone_into(&mut self.missing);
            }
            Event::UserReplied { question, text, .. } => {
                if let Some(QuestionSubject::Entity(name)) = shared.questions.about(question) {
                    let reply = self.take_entity(&name, text, shared);
                    shared.settle_question(question, reply);
                }
            }
            _ => {}
        }
    }

    /// Takes the value of a missing entity from a person's reply.
    fn take_entity(&mut self, name: &str, text: &str, shared: &mut Shared) -> Result<(), RefusedReply> {
        let value = prompt::read_entity(&shared.run.skill, shared.intent.as_ref(), name, text)?;
        let value_text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        shared.add_turn(Turn::User(format!("{name}: {value_text}")));
        self.missing.retain(|missing| missing != name);
        if let Some(intent) = &mut shared.intent {
            intent.entities.insert(name.to_owned(), value);
        }
        Ok(())
    }
}
