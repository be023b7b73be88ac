//! The steps of the reply polisher.

use super::prompt::prompt;
use super::state::wants_polish;
use crate::content::check_content;
use crate::conversation::Conversation;
use crate::event::{Event, PolishOutcome};
use crate::stages::finalization::result;
use crate::stages::opening::prompt::persona;
use crate::stages::request;
use crate::step::Step;
use bloomery_crds::v1alpha1::Stage;

/// The persona of a Skill without one.
const DEFAULT_PERSONA: &str = "A helpful assistant";

/// Returns the next step of the polish, or nothing if no answer needs it.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let (shared, finalization, polishing) = (&conversation.shared, &conversation.finalization, &conversation.polishing);
    let skill = &shared.run.skill;
    if !wants_polish(polishing, finalization, skill) {
        return None;
    }
    let result = result(finalization.draft()?, skill.output_contract.as_ref(), true);
    let Some(polished) = polishing.polished() else {
        // The persona has no error: the opening has rendered it before.
        let persona = persona(&shared.run).ok().flatten();
        let prompt = prompt(persona.as_deref().unwrap_or(DEFAULT_PERSONA), &result.text);
        return Some(request::for_stage(shared, Stage::Polish, prompt, None));
    };
    let outcome = match check_content(&result.text, polished, &result.fields) {
        Ok(()) => PolishOutcome::Polished(polished.trim().to_owned()),
        Err(change) => PolishOutcome::Kept(format!("the reply polisher changed the content: {change}")),
    };
    Some(Step::Record(vec![Event::ReplyPolished { polish: outcome }]))
}
