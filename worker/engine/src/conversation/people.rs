//! How what people decide and say changes a conversation.

use super::{Call, CallState, Conversation, Settlement, StrayReply, calls};
use crate::event::{About, Arguments, CallId, Decision, QuestionId, RulingReason, UserQuestion};
use crate::gate::feedback;
use crate::gate::pre_tool::MAX_APPROVERS;
use crate::intent;
use crate::people::Said;
use crate::step::lost;
use crate::turn::Turn;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::{GateReason, Verdict};

impl Conversation {
    /// One that names another call, other arguments, or nobody who has to approve, approves nothing; nor does one that
    /// comes twice or too late. With the last of its holds lifted the call is ruled on again.
    pub(super) fn approved(&mut self, id: &CallId, digest: &Digest, approver: &str) {
        let Some(call) = self.held_mut(id) else { return };
        let Some(Arguments::Canonical(arguments)) = &call.arguments else { return };
        if arguments.digest() != digest || !call.hold.lift(approver) {
            return;
        }
        if let Some(held) = &mut call.held {
            held.approvers = call.hold.approvers().into_iter().take(MAX_APPROVERS).map(str::to_owned).collect();
        }
        if call.hold.reasons().is_empty() {
            call.state = CallState::Asked;
        }
    }

    /// One denial is enough. It is told to the model, which may go on another way.
    pub(super) fn denied(&mut self, id: &CallId, decision: &Decision) {
        let Some(call) = self.held_mut(id).filter(|call| call.hold.approvers().contains(&decision.approver.as_str()))
        else {
            return;
        };
        let tool = call.tool.clone();
        let detail = calls::denial(decision);
        let text = calls::denied_by_person(decision, &detail);
        self.count_ruling(
            &tool,
            Verdict::Deny,
            &[RulingReason { layer: GateReason::Approval, detail, approver: None }],
        );
        self.settle(id, Settlement::Denied, &text);
    }

    /// Whether what somebody says changes anything: a decision that was heard before, or is about another call, other
    /// arguments or nobody who has to approve, does not; nor does a reply of the Job's spec that was heard before.
    pub fn awaits(&self, said: &Said) -> bool {
        let waits_for = |id: &CallId, decision: &Decision| {
            let held = self.calls.iter().find(|call| &call.id == id && call.state == CallState::Held);
            held.filter(|call| call.hold.approvers().contains(&decision.approver.as_str()))
        };
        match said {
            Said::Approves { call, digest, decision } => waits_for(call, decision).is_some_and(
                |call| matches!(&call.arguments, Some(Arguments::Canonical(arguments)) if arguments.digest() == digest),
            ),
            Said::Denies { call, decision } => waits_for(call, decision).is_some(),
            Said::Replies { nth, .. } | Said::Message { nth, .. } => {
                nth.is_none_or(|nth| nth > self.questions.replies_heard())
            }
        }
    }

    fn held_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.call_mut(id).filter(|call| call.state == CallState::Held)
    }

    pub(super) fn user_asked(&mut self, question: &UserQuestion, about: &About) {
        self.questions.ask(question, about);
        if let About::Call(id) = about
            && let Some(call) = self.call_mut(id)
        {
            call.state = CallState::Asking;
        }
    }

    /// A reply that fits no open question is kept, to be shown; one that is no answer leaves its question open.
    pub(super) fn user_replied(&mut self, seq: u64, id: &QuestionId, text: &str, by: &str, nth: Option<u32>) {
        let Some(about) = self.questions.about(id) else {
            let answered = self.questions.was_asked(id);
            let (question, text, by) = (id.clone(), text.to_owned(), by.to_owned());
            self.questions.keep_stray(StrayReply { question, text, by, nth, answered });
            return;
        };
        match self.take_answer(seq, &about, text, by) {
            Ok(()) => {
                self.questions.answered(id);
                self.finalizing.evidence_found();
            }
            Err(why) => self.questions.refused(id, why),
        }
    }

    fn take_answer(&mut self, seq: u64, about: &About, text: &str, by: &str) -> Result<(), String> {
        match about {
            About::Call(_) | About::Draft if text.trim().is_empty() => return Err("the answer is empty".to_owned()),
            About::Call(call) => self.settle(call, Settlement::Completed, text),
            About::Draft => self.clarified(text),
            About::Entity(name) => {
                let value = intent::given(&self.run.skill, self.intention.intent(), name, text)?;
                let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.say(Turn::User(format!("{name}: {words}")));
                self.intention.named(name, value);
            }
            About::Lost(call) => match lost::Finding::read(text)? {
                lost::Finding::Happened => self.completed(seq, call, &lost::happened(by)),
                lost::Finding::DidNot => self.failed(call, &lost::did_not(by)),
                lost::Finding::Stop => self.stopped_by = Some(by.to_owned()),
            },
        }
        Ok(())
    }

    fn clarified(&mut self, text: &str) {
        if let Some(attempt) = self.finalizing.attempts().last() {
            let said = feedback::clarified(attempt, text);
            self.say(Turn::User(said));
        }
        self.finalizing.clarified();
    }

    /// Taken at once where nothing is under way, else once every call of the last answer has its result. An answer
    /// that the gate has not ruled on yet knew nothing of it, and is given anew.
    pub(super) fn user_message(&mut self, text: &str) {
        self.inbox.push(text.to_owned());
        self.finalizing.evidence_found();
        self.take_messages();
    }

    pub(super) fn take_messages(&mut self) {
        if self.system.is_none() || !self.calls.is_empty() || self.inbox.is_empty() {
            return;
        }
        for text in std::mem::take(&mut self.inbox) {
            self.say(Turn::User(text));
        }
        self.finalizing.withdraw();
    }
}
