//! The evidence and the approvers that close a step in words.

use super::closing_rule::ClosingApprover;
use super::expectation::CompletedCall;
use super::{Step, StepStatus, Track, WorkflowTracker};

impl WorkflowTracker {
    /// Returns the approvers who must agree before a step, named by its id or its unique name, is closed. None if the step cannot be
    /// closed in this way, so that nobody is asked in vain.
    pub(crate) fn closing_approvers(
        &self,
        step: &str,
        evidence: u64,
        not_applicable: bool,
    ) -> Vec<ClosingApprover<'_>> {
        let check = if not_applicable { Self::check_not_applicable } else { Self::check_done };
        let found = check(self, step, evidence).and_then(|id| self.find(&id)).ok();
        let Some((track, step)) = found.and_then(|(_, place)| self.step_at(place)) else { return Vec::new() };
        step.closing
            .approvers
            .iter()
            .map(|(approver, reason)| ClosingApprover {
                approver,
                reason: reason.clone().unwrap_or_else(|| {
                    format!("the step {:?} of the workflow {:?} needs approval", step.text, track.name)
                }),
            })
            .collect()
    }

    /// Returns a sentence for the model about each step in words that only certain results close.
    pub(crate) fn closing_notes(&self) -> Vec<String> {
        let steps = self.tracks.iter().flat_map(|track| &track.steps).filter(|step| !step.is_tool);
        let note = |step: &Step| Some(format!("Only the result of {} closes {:?}.", step.closing.tools()?, step.text));
        steps.filter_map(note).collect()
    }
}

impl Track {
    /// Records a completed call as evidence for the open steps in words that name its tool, if it meets their conditions. Returns a
    /// sentence for each condition that is not met.
    pub(super) fn record_evidence(&mut self, call: &CompletedCall<'_>) -> Vec<String> {
        let mut unmet = Vec::new();
        for at in 0..self.steps.len() {
            let is_named =
                |step: &Step| !step.is_tool && step.status == StepStatus::Todo && step.closing.names(call.tool);
            if !self.steps.get(at).is_some_and(is_named) {
                continue;
            }
            let faults = self.unmet_by(at, call);
            if let Some(step) = self.steps.get_mut(at).filter(|_| faults.is_empty()) {
                step.closing.results.insert(call.seq);
            }
            unmet.extend(faults);
        }
        unmet
    }
}
