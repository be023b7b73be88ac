//! Closes steps with `subgoal_done`, and checks whether they can be closed.

use super::{Place, Step, StepStatus, WorkflowTracker};
use bloomery_crds::text::bounded;

/// The longest name of a step in a refusal, in bytes.
const MAX_STEP_BYTES: usize = 64;

/// The longest list of ids in a refusal, in bytes.
const MAX_IDS_BYTES: usize = 512;

/// The reason why a step cannot be closed, for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No open step has this id or name.
    #[error("there is no open step {step:?}; open are {open}")]
    Unknown {
        /// The requested step.
        step: String,
        /// The ids of the open steps.
        open: String,
    },
    /// Several open steps have this name.
    #[error("several open steps are called {step:?}: use the id, one of {ids}")]
    Ambiguous {
        /// The name.
        step: String,
        /// The ids of these steps.
        ids: String,
    },
    /// The step is a tool. Only a call of the tool completes it.
    #[error("{step:?} is a tool: the step is done when its call completes without error")]
    IsTool {
        /// The step.
        step: String,
    },
    /// An earlier step is missing.
    #[error("the step {missing:?} must come first")]
    OutOfOrder {
        /// The earlier step.
        missing: String,
    },
    /// The evidence is not a result of this Job.
    #[error("event {evidence} is not the result of a completed call")]
    NoEvidence {
        /// The given `seq`.
        evidence: u64,
    },
    /// Only the results of certain calls close the step.
    #[error(
        "event {evidence} does not close {step:?}: it needs the result of a call of {tools} that meets its conditions"
    )]
    WrongEvidence {
        /// The step.
        step: String,
        /// The given `seq`.
        evidence: u64,
        /// The tools.
        tools: String,
    },
    /// Only the result of an earlier step can prove that a step does not apply.
    #[error("event {evidence} is not the result of an earlier step, which must show that {step:?} does not apply")]
    NotFromEarlierStep {
        /// The step.
        step: String,
        /// The given `seq`.
        evidence: u64,
    },
}

impl WorkflowTracker {
    /// Checks that a step, named by its id or its unique name, can be closed as done. Returns its id.
    ///
    /// # Errors
    /// If there is no such open step, the step is a tool, an earlier step is missing, or the evidence is not a result that closes it.
    pub fn check_done(&self, step: &str, evidence: u64) -> Result<String, Refusal> {
        let (id, place) = self.find(step)?;
        let Some((track, found)) = self.step_at(place) else { return Err(self.unknown_step(step)) };
        if found.is_tool {
            return Err(Refusal::IsTool { step: found.text.clone() });
        }
        if let Some(missing) = track.first_undone(place.step).filter(|_| track.required) {
            return Err(Refusal::OutOfOrder { missing: missing.text.clone() });
        }
        if !self.evidence.contains(&evidence) {
            return Err(Refusal::NoEvidence { evidence });
        }
        if let Some(tools) = found.closing.tools().filter(|_| !found.closing.accepts(evidence)) {
            return Err(Refusal::WrongEvidence { step: found.text.clone(), evidence, tools });
        }
        Ok(id)
    }

    /// Checks that a step, which may be a tool, can be closed as not applicable. Returns its id.
    ///
    /// # Errors
    /// If there is no such open step, or the evidence is not the result of an earlier step of its workflow. So the first step
    /// of a workflow always applies.
    pub fn check_not_applicable(&self, step: &str, evidence: u64) -> Result<String, Refusal> {
        let (id, place) = self.find(step)?;
        let Some((track, found)) = self.step_at(place) else { return Err(self.unknown_step(step)) };
        let mut earlier = track.steps.iter().take(place.step);
        if earlier.any(|earlier| earlier.status == StepStatus::Done { evidence }) {
            Ok(id)
        } else {
            Err(Refusal::NotFromEarlierStep { step: found.text.clone(), evidence })
        }
    }

    /// Closes a step. `id` is the id that a check has returned.
    pub fn close(&mut self, id: &str, status: StepStatus) {
        let place = self.places().find(|(found, _)| found == id).map(|(_, place)| place);
        if let Some(place) = place
            && let Some(step) = self.tracks.get_mut(place.track).and_then(|track| track.steps.get_mut(place.step))
        {
            step.status = status;
            step.was_done |= matches!(status, StepStatus::Done { .. });
        }
    }

    pub(super) fn find(&self, step: &str) -> Result<(String, Place), Refusal> {
        let open: Vec<(String, Place)> = self.open_steps().collect();
        if let Some(found) = open.iter().find(|(id, _)| id == step) {
            return Ok(found.clone());
        }
        let has_name = |place: Place| self.step_at(place).is_some_and(|(_, found)| found.text == step);
        let matching: Vec<(String, Place)> = open.into_iter().filter(|(_, place)| has_name(*place)).collect();
        match matching.as_slice() {
            [] => Err(self.unknown_step(step)),
            [only] => Ok(only.clone()),
            several => {
                Err(Refusal::Ambiguous { step: bounded(step, MAX_STEP_BYTES), ids: list_ids(several.iter().cloned()) })
            }
        }
    }

    fn unknown_step(&self, step: &str) -> Refusal {
        Refusal::Unknown { step: bounded(step, MAX_STEP_BYTES), open: list_ids(self.open_steps()) }
    }

    fn places(&self) -> impl Iterator<Item = (String, Place)> + '_ {
        self.tracks
            .iter()
            .enumerate()
            .flat_map(|(at, track)| (0..track.steps.len()).map(move |step| (track.id(step), Place { track: at, step })))
    }

    fn open_steps(&self) -> impl Iterator<Item = (String, Place)> + '_ {
        self.places().filter(|(_, place)| self.step_at(*place).is_some_and(|(_, step)| step.status == StepStatus::Todo))
    }

    pub(super) fn step_at(&self, place: Place) -> Option<(&super::Track, &Step)> {
        let track = self.tracks.get(place.track)?;
        Some((track, track.steps.get(place.step)?))
    }
}

fn list_ids(places: impl Iterator<Item = (String, Place)>) -> String {
    let ids: Vec<String> = places.map(|(id, _)| id).collect();
    if ids.is_empty() { "none".to_owned() } else { bounded(&ids.join(", "), MAX_IDS_BYTES) }
}
