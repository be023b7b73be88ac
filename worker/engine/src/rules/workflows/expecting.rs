//! The conditions of the steps: whether a call may be made, and whether it completes its step.

use super::expectation::CompletedCall;
use super::{Step, StepStatus, Track, WorkflowTracker};
use crate::condition::{self, Arguments};
use crate::record::{CallFacts, StepFacts};

impl WorkflowTracker {
    /// Records that a call of a read-only tool failed. The last step of the tool that is done is then open again: the call was to show
    /// once more that it is done.
    pub(crate) fn record_failed_read(&mut self, tool: &str) {
        for place in self.tools.get(tool).into_iter().flatten() {
            let Some(track) = self.tracks.get_mut(place.track) else { continue };
            if let Some(at) = track.reached_step_of(tool) {
                track.reopen(at);
            }
        }
    }

    /// Returns the reasons why required workflows do not allow a call, one sentence for each condition that is not met. Conditions over
    /// the result are left out.
    pub(crate) fn unmet_before(
        &self,
        tool: &str,
        arguments: &Result<Arguments<'_>, condition::Error>,
        facts: CallFacts<'_>,
    ) -> Vec<String> {
        let tracks = self.tools.get(tool).into_iter().flatten().filter_map(|place| self.tracks.get(place.track));
        let of_track = |track: &Track| -> Vec<String> {
            let facts = facts.with_step(StepFacts { result: None, steps: &track.outcomes });
            let Some(step) = track.step_of(tool) else { return Vec::new() };
            let expected = step.expected.iter().filter(|expected| !expected.reads_result);
            expected.filter_map(|expected| Some(track.sentence(step, &expected.fault(arguments, &facts)?))).collect()
        };
        tracks.filter(|track| track.required).flat_map(of_track).collect()
    }
}

impl Track {
    /// Returns the sentences about the conditions of a step that a completed call does not meet.
    pub(super) fn unmet_by(&self, at: usize, call: &CompletedCall<'_>) -> Vec<String> {
        let Some(step) = self.steps.get(at).filter(|step| !step.expected.is_empty()) else { return Vec::new() };
        let missing = || condition::Error::Arguments("the arguments are not known".to_owned());
        let arguments = call.arguments.map_or_else(|| Err(missing()), Arguments::check);
        let result = call.result_value();
        let facts = call.facts.with_step(StepFacts { result: result.as_ref(), steps: &self.outcomes });
        let faults = step.expected.iter().filter_map(|expected| expected.fault(&arguments, &facts));
        faults.map(|fault| self.sentence(step, &fault)).collect()
    }

    /// Completes a step, and keeps its arguments and result for the conditions of later steps. If a step is completed again with other
    /// arguments, the steps after it are open again: they were done for something else.
    pub(super) fn complete(&mut self, at: usize, call: &CompletedCall<'_>) {
        let is_read = self.steps.iter().any(|step| !step.expected.is_empty());
        let Some(step) = self.steps.get_mut(at) else { return };
        let is_same = self.outcomes.get(&step.text).is_some_and(|known| known.get("args") == call.arguments);
        let is_other_subject = is_read && step.was_done && !is_same;
        step.status = StepStatus::Done { evidence: call.seq };
        step.was_done = true;
        if is_read {
            let fields = [("args", call.arguments.cloned()), ("result", call.result_value())];
            let known = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            self.outcomes.insert(step.text.clone(), known.collect());
        }
        if is_other_subject {
            for later in at + 1..self.steps.len() {
                self.reopen(later);
            }
        }
    }

    /// Returns the position of the step for which a call of a tool counts: the next open one, or else the last one that is done. In a
    /// required workflow, all steps before it must be done.
    pub(super) fn reached_step_of(&self, tool: &str) -> Option<usize> {
        let is_reached = |at: &usize| !self.required || self.first_undone(*at).is_none();
        let is_done = |step: &Step| step.is_done_by(tool) && matches!(step.status, StepStatus::Done { .. });
        let last_done = || self.steps.iter().rposition(is_done).filter(is_reached);
        self.open_step_of(tool).filter(is_reached).or_else(last_done)
    }

    /// Opens a step again, and forgets the arguments and the result of the call that had completed it.
    pub(super) fn reopen(&mut self, at: usize) {
        let Some(step) = self.steps.get_mut(at) else { return };
        step.status = StepStatus::Todo;
        self.outcomes.remove(&step.text);
    }

    /// Returns the step that a call of a tool would complete: the one for which it counts, or else the last one.
    fn step_of(&self, tool: &str) -> Option<&Step> {
        let last = || self.steps.iter().rposition(|step| step.is_done_by(tool));
        self.steps.get(self.reached_step_of(tool).or_else(last)?)
    }

    fn sentence(&self, step: &Step, fault: &str) -> String {
        format!("the step {:?} of the workflow {:?} needs more: {fault}", step.text, self.name)
    }
}
