//! The steps of the finalization gate.

use super::feedback::faults;
use super::gate::{self, DraftDecision, Gate};
use super::judge;
use crate::conversation::Conversation;
use crate::event::{Event, ModelFailure, QuestionSubject};
use crate::people;
use crate::stages::{questions, request};
use crate::step::Step;
use bloomery_crds::v1alpha1::Stage;

/// Returns the next step of the gate, or nothing if no draft waits for a ruling.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let (shared, finalization) = (&conversation.shared, &conversation.finalization);
    if finalization.is_clarifying() {
        return Some(clarify(conversation));
    }
    let draft = finalization.pending()?;
    let skill = &shared.run.skill;
    let gate = Gate { finalization, rules: &shared.rules, skill, intent: shared.intent_id() };
    Some(match gate::rule(draft, &gate) {
        DraftDecision::Ruling(ruling) => Step::Record(vec![Event::GateRuled { ruling }]),
        DraftDecision::InvalidJudgement(message) => {
            Step::Record(vec![Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message }])
        }
        DraftDecision::NeedsJudge => {
            let result = gate::result(draft, skill.output_contract.as_ref(), false);
            let prompt = judge::prompt(skill, &shared.goal_data(), &result.text, &result.fields);
            request::for_stage(shared, Stage::Finalization, prompt, finalization.judgement().error())
        }
    })
}

/// Asks a person to clarify the draft. Without people, the ending has already ended the conversation.
fn clarify(conversation: &Conversation) -> Step<'_> {
    let shared = &conversation.shared;
    if shared.questions.is_open(&QuestionSubject::Draft) {
        return Step::AskPeople(people::open_requests(shared));
    }
    let faults = conversation.finalization.attempts().last().map(faults).unwrap_or_default();
    let text = format!("The answer cannot go out before you have said more: {faults}");
    Step::Record(questions::ask(&shared.questions, vec![(QuestionSubject::Draft, text, Vec::new())]))
}
