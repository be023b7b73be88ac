//! Requests to models.

use super::{ModelRequest, Step, ending};
use crate::ask::{Prompt, again};
use crate::conversation::{Budget, Conversation};
use crate::turn::Turn;
use bloomery_crds::v1alpha1::Stage;
use std::borrow::Cow;

/// What a stage is asked with: the seed's own figure for the finalization gate (seed 002, section 4.4), and as sober
/// elsewhere.
const STAGE_TEMPERATURE: f64 = 0.1;

/// The next request of the main loop.
pub(super) fn plan(conversation: &Conversation) -> Step<'_> {
    let reserve = conversation.budget().reserve(conversation.run().max_output);
    if let Some(limit) = ending::steps_spent(conversation).or_else(|| ending::tokens_spent(conversation, reserve)) {
        return Step::Record(vec![limit]);
    }
    let skill = &conversation.run().skill;
    Step::CallModel(ModelRequest {
        stage: Stage::Plan,
        model: skill.model_name(Stage::Plan),
        system: Cow::Borrowed(conversation.system().unwrap_or_default()),
        turns: Cow::Borrowed(conversation.turns()),
        // Nothing else changes a turn.
        history: conversation.put_aside(),
        tools: conversation.visible(),
        temperature: skill.engine.as_ref().and_then(|engine| engine.temperature),
        form: None,
        reserve,
    })
}

/// A request of another stage: one prompt, no tools; with what was wrong with the answer before, where there was one.
pub(super) fn stage<'a>(
    conversation: &'a Conversation,
    stage: Stage,
    ask: Prompt,
    complaint: Option<&str>,
) -> Step<'a> {
    let Prompt { system, user, form } = ask;
    let user = match complaint {
        Some(complaint) => format!("{user}\n\n{}", again(complaint)),
        None => user,
    };
    let reserve = Budget::reserve_for((system.len() + user.len()) as u64, conversation.run().max_output);
    if let Some(limit) = ending::tokens_spent(conversation, reserve) {
        return Step::Record(vec![limit]);
    }
    Step::CallModel(ModelRequest {
        stage,
        model: conversation.run().skill.model_name(stage),
        system: Cow::Owned(system),
        turns: Cow::Owned(vec![Turn::User(user)]),
        history: 0,
        tools: &[],
        temperature: Some(STAGE_TEMPERATURE),
        form,
        reserve,
    })
}
