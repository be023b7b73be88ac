//! The steps of the opening.

use super::prompt;
use crate::conversation::Conversation;
use crate::event::{Event, ResourceSummary};
use crate::lint::{self, ServerTool};
use crate::run::Run;
use crate::shared::Shared;
use crate::step::Step;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::BankUse;

/// The most errors of rules that an outcome names.
const MAX_RULE_ERRORS: usize = 5;

/// Returns the next step of the opening, or nothing once the conversation is open.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let (shared, opening) = (&conversation.shared, &conversation.opening);
    if !shared.catalogue.is_fixed() {
        return Some(Step::ListTools);
    }
    if shared.history.system().is_some() {
        return None;
    }
    if !opening.resources_bound {
        // The rules are checked once, before the first event of the opening.
        let event = invalid_policy(shared).unwrap_or_else(|| resources_bound(&shared.run));
        return Some(Step::Record(vec![event]));
    }
    if opening.context.is_none() && wants_context(&shared.run) {
        return Some(Step::GatherContext);
    }
    Some(Step::Record(vec![open_or_end(conversation)]))
}

/// Returns the event that opens the conversation. If it cannot be opened, the event ends it.
fn open_or_end(conversation: &Conversation) -> Event {
    let (shared, opening) = (&conversation.shared, &conversation.opening);
    if let Some(continued) = shared.run.continues.as_ref().filter(|_| shared.earlier.is_none()) {
        return earlier_not_available(continued, opening.earlier_fault());
    }
    let context = opening.context.as_deref().unwrap_or_default();
    match prompt::system(shared, context) {
        Ok(system) => conversation_opened(&shared.run, system),
        Err(error) => unusable_persona(&error),
    }
}

/// Returns whether the Skill or the Job wants any context.
fn wants_context(run: &Run) -> bool {
    let has_notes = run.has_notes && run.skill.bank() != BankUse::Off;
    let wants_summary = run
        .skill
        .context
        .as_ref()
        .is_some_and(|context| context.project_structure == Some(true) || context.recent_changes == Some(true));
    has_notes
        || run.continues.is_some()
        || wants_summary && run.resources.iter().any(|bound| matches!(bound.source, ResourceSource::Mount { .. }))
}

fn resources_bound(run: &Run) -> Event {
    Event::ResourcesBound { resources: run.resources.iter().map(summary).collect() }
}

fn summary(resource: &BoundResource) -> ResourceSummary {
    let rendering = match &resource.source {
        ResourceSource::Value(value) => Some(value.clone()),
        ResourceSource::Mount { path, .. } => Some(path.clone()),
        ResourceSource::Secret(_) | ResourceSource::ForServer { .. } => None,
    };
    ResourceSummary {
        name: resource.name.clone(),
        kind: resource.kind,
        rendering: rendering.filter(|_| !resource.kind.is_secret()),
    }
}

fn conversation_opened(run: &Run, system: String) -> Event {
    Event::ConversationOpened {
        run_key: run.run_key.clone(),
        revision: run.revision.clone(),
        system,
        goal: run.goal.clone(),
        limits: run.limits,
    }
}

/// Returns the event that ends a follow-up Job whose earlier conversation is not available. Without that conversation, the model
/// would invent its content.
fn earlier_not_available(continued: &str, fault: Option<&str>) -> Event {
    let fault = fault.unwrap_or("it was not read.");
    let message = format!(
        "The conversation of {continued}, which this Job continues, is not available: {fault} Create another Job whose goal \
         repeats what it needs."
    );
    Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, message), result: None }
}

/// Returns the event that ends a Job if a rule of its Skill does not fit the tools of its server: the rule would protect nothing.
fn invalid_policy(shared: &Shared) -> Option<Event> {
    let errors = lint::rule_errors(&shared.run.skill, shared.catalogue.server_tools().map(ServerTool::from));
    if errors.is_empty() {
        return None;
    }
    let sentences: Vec<String> = errors.iter().take(MAX_RULE_ERRORS).map(ToString::to_string).collect();
    let more = errors.len().saturating_sub(MAX_RULE_ERRORS);
    let more = if more == 0 { String::new() } else { format!(" ({more} more)") };
    let message = format!(
        "Rules of the Skill do not fit its tools, so nothing was done: {}{more}. Correct the Skill, then create another Job.",
        sentences.join("; ")
    );
    Some(Event::Finished { outcome: Outcome::new(OutcomeCode::PolicyInvalid, message), result: None })
}

fn unusable_persona(error: &prompt::Error) -> Event {
    let message = format!(
        "The Skill's role.persona cannot be rendered for this Job: {error}. Correct the persona or the binding, then create another Job."
    );
    Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, message), result: None }
}
