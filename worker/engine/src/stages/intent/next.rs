//! The steps of the intent detection.

use super::prompt;
use crate::conversation::Conversation;
use crate::event::{Event, ModelFailure, QuestionSubject};
use crate::people;
use crate::stages::questions;
use crate::stages::request;
use crate::step::Step;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::{DetectedIntent, Intents, OutOfDomainAction, Stage};

/// Returns the next step of the intent detection, or nothing once the main loop may begin.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let intents = conversation.shared.run.skill.intents.as_ref()?;
    match &conversation.shared.intent {
        None => Some(detect(conversation, intents)),
        Some(intent) => after_detection(conversation, intents, intent),
    }
}

fn detect<'a>(conversation: &'a Conversation, intents: &Intents) -> Step<'a> {
    let (shared, answer) = (&conversation.shared, &conversation.intent.answer);
    if answer.is_given_up() {
        let message = format!(
            "The model did not say which intent of the Skill the goal means: {}. A person has to read the goal.",
            answer.error().unwrap_or_default()
        );
        return end(Outcome::new(OutcomeCode::UserNeeded, message));
    }
    let Some(text) = answer.text() else {
        let prompt = prompt::prompt(&shared.run.skill, &shared.goal_data());
        return request::for_stage(shared, Stage::Intent, prompt, answer.error());
    };
    Step::Record(vec![match prompt::read(text, intents) {
        Ok(detected) => {
            Event::IntentDetected { missing: prompt::missing_entities(intents, &detected), intent: detected }
        }
        Err(error) => Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message: error.to_string() },
    }])
}

/// Returns the step that ends a Job whose goal the Skill does not serve, or that asks for missing entities. Returns nothing if no
/// entity is missing.
fn after_detection<'a>(conversation: &'a Conversation, intents: &Intents, intent: &DetectedIntent) -> Option<Step<'a>> {
    let missing = &conversation.intent.missing;
    if intent.out_of_domain {
        return Some(end(out_of_domain(intents)));
    }
    if missing.is_empty() {
        return None;
    }
    if conversation.shared.run.people {
        return Some(ask_for(missing, conversation, intents, intent));
    }
    let message = format!(
        "The goal does not name entities that the Skill requires: {}. Create another Job whose goal names them.",
        missing.join(", ")
    );
    Some(end(Outcome::new(OutcomeCode::UserNeeded, message)))
}

/// Asks people for all missing entities at once.
fn ask_for<'a>(
    missing: &[String],
    conversation: &'a Conversation,
    intents: &Intents,
    intent: &DetectedIntent,
) -> Step<'a> {
    let shared = &conversation.shared;
    let question = |name: &String| {
        let about = QuestionSubject::Entity(name.clone());
        let (text, choices) = prompt::question(intents, intent, name);
        (!shared.questions.is_open(&about)).then_some((about, text, choices))
    };
    let not_asked: Vec<_> = missing.iter().filter_map(question).collect();
    if not_asked.is_empty() {
        return Step::AskPeople(people::open_requests(shared));
    }
    Step::Record(questions::ask(&shared.questions, not_asked))
}

fn end<'a>(outcome: Outcome) -> Step<'a> {
    Step::Record(vec![Event::Finished { outcome, result: None }])
}

fn out_of_domain(intents: &Intents) -> Outcome {
    let declared = intents.out_of_domain.as_ref();
    let action = declared.map_or(OutOfDomainAction::Refuse, |declared| declared.action);
    let message = declared.and_then(|declared| declared.message.clone()).unwrap_or_else(|| {
        let served: Vec<&str> = intents.supported.iter().map(|intent| intent.id.as_str()).collect();
        format!("The Skill does not serve this goal. It serves: {}.", served.join(", "))
    });
    Outcome::out_of_domain(action, message)
}
