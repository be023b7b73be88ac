//! How events about tool calls change a conversation.

use super::{Call, CallState, Conversation, Settlement, calls};
use crate::event::{Arguments, CallId, RulingReason};
use crate::gate::core_tools;
use crate::tool::CatalogueTool;
use crate::turn::Turn;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{HeldCall, PreTool, Ruling, Verdict};

impl Conversation {
    pub(super) fn requested(&mut self, id: &CallId, arguments: &Arguments) {
        // What was ruled on and approved is what is sent: no later line puts other arguments in its place.
        if let Some(call) = self.call_mut(id).filter(|call| call.arguments.is_none()) {
            call.arguments = Some(arguments.clone());
        }
    }

    pub(super) fn ruled(&mut self, id: &CallId, verdict: Verdict, reasons: &[RulingReason]) {
        let Some(call) = self.call_mut(id) else { return };
        let tool = call.tool.clone();
        if verdict == Verdict::Hold {
            call.state = CallState::Held;
            call.hold.by(reasons);
        } else {
            call.state = CallState::Ruled;
        }
        self.count_ruling(&tool, verdict, reasons);
        if verdict == Verdict::Deny {
            self.settle(id, Settlement::Denied, &calls::denied_text(reasons));
        }
    }

    pub(super) fn hold(&mut self, held: &HeldCall) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id.0 == held.id) {
            call.held = Some(held.clone());
        }
    }

    pub(super) fn count_ruling(&mut self, tool: &str, verdict: Verdict, reasons: &[RulingReason]) {
        match verdict {
            Verdict::Allow => self.pre_tool.allowed += 1,
            Verdict::Hold => self.pre_tool.held += 1,
            Verdict::Deny => self.pre_tool.denied += 1,
        }
        if self.pre_tool.last.len() == PreTool::LAST {
            self.pre_tool.last.remove(0);
        }
        self.pre_tool.last.push(Ruling {
            tool: bounded(tool, 128),
            verdict,
            rule: reasons.first().map(|reason| reason.layer),
            reason: reasons.first().map(|reason| bounded(&reason.detail, 256)),
        });
    }

    pub(super) fn started(&mut self, id: &CallId) {
        let epoch = self.epoch;
        let Some(call) = self.call_mut(id) else { return };
        call.state = CallState::Started { epoch };
        call.tries += 1;
        let alias = call.tool.clone();
        if let Some(tool) = self.tools.iter().flatten().find(|tool| tool.alias == alias) {
            self.rules.workflows.started(&tool.name, tool.read_only);
        }
    }

    pub(super) fn completed(&mut self, seq: u64, id: &CallId, text: &str) {
        let Some(tool) = self.tool_of(id) else { return };
        let (shows_something, name) = (core_tools::shows_something(tool), tool.name.clone());
        // A step that is named like a tool is that tool, whatever it shows.
        if shows_something || self.rules.workflows.has_step(&name) {
            self.rules.workflows.completed(&name, seq);
        }
        if shows_something
            && let Some((tool, digest)) = self.identity(id)
            && let Some(digest) = digest.bytes()
            && self.evidence.entry(tool).or_default().insert(digest)
        {
            self.finalizing.evidence_found();
        }
        if shows_something && self.rules.workflows.wants_evidence() {
            self.settle(id, Settlement::Completed, &calls::with_evidence(text, seq));
        } else {
            self.settle(id, Settlement::Completed, text);
        }
    }

    pub(super) fn failed(&mut self, id: &CallId, text: &str) {
        let identity = self.identity(id);
        // Once an answer: the model could not know better when it asked for the same thing twice at once.
        let again = self.calls.iter().any(|call| call.has_failed() && self.identity(&call.id) == identity);
        let times = identity.map_or(1, |key| {
            let times = self.failures.entry(key).or_default();
            *times += u32::from(!again);
            *times
        });
        self.settle(id, Settlement::Failed, &calls::failed_text(text, times));
    }

    pub(super) fn indeterminate(&mut self, id: &CallId, text: &str) {
        let tool = self.tool_of(id);
        let (read_only, idempotent) = tool.map_or((false, false), |tool| (tool.read_only, tool.idempotent));
        let has_drifted = tool.is_some_and(|tool| self.drift_of(&tool.name).is_some());
        let Some(call) = self.call_mut(id) else { return };
        if read_only {
            call.tries += 1;
        }
        if (read_only || idempotent) && !has_drifted && call.tries < calls::MAX_TRIES {
            call.state = CallState::Retry;
        } else if read_only {
            self.settle(id, Settlement::Failed, &calls::failed_text(text, 1));
        } else {
            self.settle(id, Settlement::Indeterminate, text);
        }
    }

    /// For a call that is under way the excerpt is its answer; for an earlier one it takes the answer's place.
    pub(super) fn offloaded(&mut self, seq: u64, id: &CallId, excerpt: &str) {
        let Some(at) = self.results.remove(id) else { return self.completed(seq, id, excerpt) };
        self.swept_at = self.budget.answers();
        self.put_aside += 1;
        self.too_long = None;
        if let Some(Turn::ToolResult { text, .. }) = self.turns.get_mut(at) {
            self.budget.put_aside(text.len().saturating_sub(excerpt.len()));
            // A text of its own: one that shrinks where it is leaves a hole that the next result does not fit in.
            drop(std::mem::replace(text, excerpt.to_owned()));
        }
    }

    /// Settles a call; with the last of its answer, all results join the history in the order of the calls.
    pub(super) fn settle(&mut self, id: &CallId, settlement: Settlement, text: &str) {
        let Some(call) = self.call_mut(id) else { return };
        call.state = CallState::Settled(settlement);
        text.clone_into(&mut call.result);
        if self.calls.iter().any(|call| !call.is_settled()) || settlement == Settlement::Indeterminate {
            return;
        }
        let lost = CallState::Settled(Settlement::Indeterminate);
        let calls = if self.calls.iter().any(|call| call.state == lost) {
            self.calls.clone()
        } else {
            std::mem::take(&mut self.calls)
        };
        for call in calls {
            if call.state == CallState::Settled(Settlement::Completed) {
                self.results.insert(call.id, self.turns.len());
            }
            self.say(Turn::ToolResult { id: call.provider_id, text: call.result });
        }
        self.take_messages();
    }

    pub(super) fn skipped(&mut self, id: &CallId, because: &CallId) {
        self.settle(id, Settlement::Skipped, &calls::skipped_text(because));
    }

    pub(super) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| &call.id == id)
    }

    fn tool_of(&self, id: &CallId) -> Option<&CatalogueTool> {
        let call = self.calls.iter().find(|call| &call.id == id)?;
        self.tool(&call.tool)
    }

    fn identity(&self, id: &CallId) -> Option<(String, Digest)> {
        let call = self.calls.iter().find(|call| &call.id == id)?;
        match call.arguments.as_ref()? {
            Arguments::Canonical(arguments) => Some((call.tool.clone(), arguments.digest().clone())),
            Arguments::Malformed { .. } => None,
        }
    }
}
