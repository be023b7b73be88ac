//! Builds the requests to models: of the main loop, and of the other stages.

use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::history::Turn;
use crate::shared::Shared;
use crate::stage_prompt::{StagePrompt, ask_again};
use crate::stages::ending::limits;
use crate::step::{ModelRequest, Step};
use bloomery_crds::v1alpha1::Stage;
use std::borrow::Cow;

/// The sampling temperature of all requests outside the main loop. It is low, because these stages classify, check and
/// rewrite, and must not invent content.
const STAGE_TEMPERATURE: f64 = 0.1;

/// Returns the next request of the main loop, or the limit that forbids it.
pub(crate) fn for_main_loop(conversation: &Conversation) -> Step<'_> {
    let shared = &conversation.shared;
    let reserve = shared.budget.reserve(shared.run.max_output);
    if let Some(limit) = limits::steps_spent(shared).or_else(|| limits::tokens_spent(shared, reserve)) {
        return Step::Record(vec![limit]);
    }
    let skill = &shared.run.skill;
    Step::CallModel(ModelRequest {
        stage: Stage::Plan,
        model: skill.model_name(Stage::Plan),
        system: Cow::Borrowed(shared.history.system().unwrap_or_default()),
        turns: Cow::Borrowed(shared.history.turns()),
        // Only offloading changes a turn.
        turns_version: shared.history.offloaded(),
        tools: shared.catalogue.visible(),
        temperature: skill.engine.as_ref().and_then(|engine| engine.temperature),
        answer_schema: None,
        reserve,
    })
}

/// Returns the request of a stage outside the main loop, or the limit that forbids it. The request has one prompt and no
/// tools. If the stage rejected the previous answer, `rejection` is the error of that answer, and the prompt ends with it.
pub(crate) fn for_stage<'a>(
    shared: &'a Shared,
    stage: Stage,
    prompt: StagePrompt,
    rejection: Option<&str>,
) -> Step<'a> {
    let StagePrompt { system, user, answer_schema } = prompt;
    let user = match rejection {
        Some(error) => format!("{user}\n\n{}", ask_again(error)),
        None => user,
    };
    let reserve = Budget::reserve_for((system.len() + user.len()) as u64, shared.run.max_output);
    if let Some(limit) = limits::tokens_spent(shared, reserve) {
        return Step::Record(vec![limit]);
    }
    Step::CallModel(ModelRequest {
        stage,
        model: shared.run.skill.model_name(stage),
        system: Cow::Owned(system),
        turns: Cow::Owned(vec![Turn::User(user)]),
        turns_version: 0,
        tools: &[],
        temperature: Some(STAGE_TEMPERATURE),
        answer_schema,
        reserve,
    })
}
