//! The first stages: what is bound, the prompt, what the goal means.

use super::{Step, asking};
use crate::conversation::Conversation;
use crate::event::{About, BoundName, ContextKind, Event, ModelFailure};
use crate::run::Run;
use crate::{ask, intent, people, prompt};
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{BankUse, DetectedIntent, Intents, OutOfDomainAction, Stage};

/// The next step before the main loop, or nothing once it may begin.
pub(super) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let run = conversation.run();
    if !conversation.has_resources() {
        let resources = run.resources.iter().map(bound_name).collect();
        return Some(Step::Record(vec![Event::ResourcesBound { resources }]));
    }
    if conversation.system().is_none() {
        if conversation.context().is_none() && wants_context(run) {
            return Some(Step::GatherContext);
        }
        let event = match (lost_thread(conversation), prompt::system(conversation)) {
            (Some(lost), _) => lost,
            (None, Ok(system)) => opened(conversation, system),
            (None, Err(why)) => unusable(&why),
        };
        return Some(Step::Record(vec![event]));
    }
    let intents = run.skill.intents.as_ref()?;
    match conversation.intention().intent() {
        None => Some(detect(conversation, intents)),
        Some(intent) => after_intent(conversation, intents, intent),
    }
}

/// Whether there is anything to gather.
fn wants_context(run: &Run) -> bool {
    let has_notes = run.has_notes && run.skill.bank() != BankUse::Off;
    let is_wanted = run
        .skill
        .context
        .as_ref()
        .is_some_and(|context| context.project_structure == Some(true) || context.recent_changes == Some(true));
    has_notes
        || run.continues.is_some()
        || is_wanted && run.resources.iter().any(|bound| matches!(bound.source, ResourceSource::Mount { .. }))
}

fn bound_name(resource: &BoundResource) -> BoundName {
    let rendering = match &resource.source {
        ResourceSource::Value(value) => Some(value.clone()),
        ResourceSource::Mount { path, .. } => Some(path.clone()),
        ResourceSource::Secret(_) => None,
    };
    BoundName {
        name: resource.name.clone(),
        kind: resource.kind,
        rendering: rendering.filter(|_| !resource.kind.is_secret()),
    }
}

fn opened(conversation: &Conversation, system: String) -> Event {
    let run = conversation.run();
    Event::ConversationOpened {
        run_key: run.run_key.clone(),
        revision: run.revision.clone(),
        system,
        goal: run.goal.clone(),
        limits: run.limits,
    }
}

/// The end of a follow-up that does not know what it follows up: it would make it up.
fn lost_thread(conversation: &Conversation) -> Option<Event> {
    let name = conversation.run().continues.as_ref()?;
    if conversation.earlier().is_some() {
        return None;
    }
    let parts = conversation.context().unwrap_or_default();
    let fault = parts.iter().find(|part| part.kind == ContextKind::Earlier).and_then(|part| part.fault.as_deref());
    let message = format!(
        "What was said in {name}, which this Job continues, is not known: {} Make another Job whose goal says it.",
        fault.unwrap_or("it was not looked for.")
    );
    Some(Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, message), result: None })
}

fn unusable(why: &str) -> Event {
    let message =
        format!("The Skill's role.persona cannot be rendered for this Job: {why}. Mend it, and make another Job.");
    Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, message), result: None }
}

fn detect<'a>(conversation: &'a Conversation, intents: &Intents) -> Step<'a> {
    let question = conversation.intention().question();
    if question.is_given_up() {
        let message = format!(
            "The model did not say which intent of the Skill the goal means: {}. A person has to read the goal.",
            question.complaint().unwrap_or_default()
        );
        let outcome = Outcome::new(OutcomeCode::UserNeeded, message);
        return Step::Record(vec![Event::Finished { outcome, result: None }]);
    }
    let run = conversation.run();
    let Some(answer) = question.answer() else {
        let ask = intent::prompt(&run.skill, &ask::wanted(conversation));
        return asking::stage(conversation, Stage::Intent, ask, question.complaint());
    };
    Step::Record(vec![match intent::read(answer, intents) {
        Ok(detected) => Event::IntentDetected { missing: intent::missing(intents, &detected), intent: detected },
        Err(message) => Event::ModelFailed { kind: ModelFailure::Misread, message },
    }])
}

/// The end of a Job whose goal the Skill does not serve; what has to be known before one that it serves.
fn after_intent<'a>(conversation: &'a Conversation, intents: &Intents, intent: &DetectedIntent) -> Option<Step<'a>> {
    let missing = conversation.intention().missing();
    let outcome = if intent.out_of_domain {
        out_of_domain(intents)
    } else if missing.is_empty() {
        return None;
    } else if conversation.run().people {
        return Some(ask_for(missing, conversation, intents, intent));
    } else {
        let message = format!(
            "The goal does not say what the Skill has to know: {}. Make another Job whose goal says it.",
            missing.join(", ")
        );
        Outcome::new(OutcomeCode::UserNeeded, message)
    };
    Some(Step::Record(vec![Event::Finished { outcome, result: None }]))
}

/// Asks people for all that is missing, at once.
fn ask_for<'a>(
    missing: &[String],
    conversation: &'a Conversation,
    intents: &Intents,
    intent: &DetectedIntent,
) -> Step<'a> {
    let about = |name: &String| {
        let about = About::Entity(name.clone());
        let (text, choices) = intent::question(intents, intent, name);
        (!conversation.questions().is_open(&about)).then_some((about, text, choices))
    };
    let not_asked: Vec<_> = missing.iter().filter_map(about).collect();
    if not_asked.is_empty() {
        return Step::AskPeople(people::asks(conversation));
    }
    Step::Record(people::questions(conversation, not_asked))
}

fn out_of_domain(intents: &Intents) -> Outcome {
    let declared = intents.out_of_domain.as_ref();
    let action = declared.map_or(OutOfDomainAction::Refuse, |declared| declared.action);
    let message = declared.and_then(|declared| declared.message.clone()).unwrap_or_else(|| {
        let served: Vec<&str> = intents.supported.iter().map(|intent| intent.id.as_str()).collect();
        format!("The goal is none of what the Skill serves: {}.", served.join(", "))
    });
    Outcome::out_of_domain(action, message)
}
