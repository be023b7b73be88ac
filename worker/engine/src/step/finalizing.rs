//! The last stages: the gate before an answer counts, and the polish of one that passed.

use super::{Step, asking};
use crate::conversation::Conversation;
use crate::event::{About, Event, ModelFailure, Polish};
use crate::gate::finalization::{self, Ruled};
use crate::gate::{feedback, judge};
use crate::{ask, people, polish, prompt};
use bloomery_crds::v1alpha1::Stage;

/// The next step of an answer, or nothing where none waits.
pub(super) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let finalizing = conversation.finalization();
    if finalizing.is_clarifying() {
        return Some(clarifying(conversation));
    }
    let Some(draft) = finalizing.pending() else { return polishing(conversation) };
    Some(match finalization::rule(draft, conversation) {
        Ruled::By(ruling) => Step::Record(vec![Event::GateRuled { ruling }]),
        Ruled::Misread(message) => Step::Record(vec![Event::ModelFailed { kind: ModelFailure::Misread, message }]),
        Ruled::NeedsJudge => {
            let run = conversation.run();
            let result = finalization::result(draft, conversation, false);
            let ask = judge::prompt(&run.skill, &ask::wanted(conversation), &result.text, &result.fields);
            asking::stage(conversation, Stage::Finalization, ask, finalizing.question().complaint())
        }
    })
}

/// Asks a person what the gate has to know. Where there is nobody, the conversation has ended.
fn clarifying(conversation: &Conversation) -> Step<'_> {
    if conversation.questions().is_open(&About::Draft) {
        return Step::AskPeople(people::asks(conversation));
    }
    let faults = conversation.finalization().attempts().last().map(feedback::told).unwrap_or_default();
    let text = format!("The answer cannot go out before you have said more: {faults}");
    Step::Record(people::questions(conversation, vec![(About::Draft, text, Vec::new())]))
}

/// Whether the answer that passed is still to be polished.
pub(super) fn wants_polish(conversation: &Conversation) -> bool {
    let polisher = conversation.run().skill.engine.as_ref().and_then(|engine| engine.reply_polisher.as_ref());
    let enabled = polisher.and_then(|polisher| polisher.enabled).unwrap_or(true);
    enabled && conversation.finalization().passed() && conversation.finalization().polish().is_none()
}

fn polishing(conversation: &Conversation) -> Option<Step<'_>> {
    if !wants_polish(conversation) {
        return None;
    }
    let finalizing = conversation.finalization();
    let result = finalization::result(finalizing.draft()?, conversation, true);
    let Some(polished) = finalizing.polishing() else {
        // It was rendered when the conversation was opened, so it can be now.
        let persona = prompt::persona(conversation.run()).ok().flatten();
        let ask = polish::prompt(persona.as_deref().unwrap_or("A helpful assistant"), &result.text);
        return Some(asking::stage(conversation, Stage::Polish, ask, None));
    };
    let polish = match polish::keeps_content(&result.text, polished, &result.fields) {
        Ok(()) => Polish::Polished(polished.trim().to_owned()),
        Err(why) => Polish::Kept(format!("the reply polisher changed the content: {why}")),
    };
    Some(Step::Record(vec![Event::ReplyPolished { polish }]))
}
