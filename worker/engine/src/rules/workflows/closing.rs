//! `subgoal_done`: what the model may close, and what only a tool can.

use super::{Place, Progress, Status, Step};
use bloomery_crds::text::bounded;

/// Why a step cannot be closed. Told to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No open step has that id or that name.
    #[error("there is no open step {step:?}; open are {open}")]
    Unknown {
        /// What was asked for.
        step: String,
        /// The ids of the steps that are open.
        open: String,
    },
    /// Several open steps have that name.
    #[error("several open steps are called {step:?}: use the id, one of {ids}")]
    Ambiguous {
        /// The name.
        step: String,
        /// Their ids.
        ids: String,
    },
    /// The step is a tool, and a tool is done by calling it.
    #[error("{step:?} is a tool: the step is done when its call completes without error")]
    IsTool {
        /// The step.
        step: String,
    },
    /// An earlier step is missing.
    #[error("the step {missing:?} comes first, and is not done")]
    OutOfOrder {
        /// The earlier step.
        missing: String,
    },
    /// The evidence is no result of this Job.
    #[error("event {evidence} is not the result of a completed call")]
    NoEvidence {
        /// The seq that was given.
        evidence: u64,
    },
    /// Only the result of an earlier step can show that a step does not apply.
    #[error("event {evidence} is not the result of an earlier step, which alone can show that {step:?} does not apply")]
    NotFromEarlierStep {
        /// The step.
        step: String,
        /// The seq that was given.
        evidence: u64,
    },
}

impl Progress {
    /// Rules on closing a step, named by its id or, where that is clear, by its name. Returns its id.
    ///
    /// # Errors
    /// A [`Refusal`], where the step is none, is a tool, is not yet in turn, or the evidence shows nothing.
    pub fn check_done(&self, step: &str, evidence: u64) -> Result<String, Refusal> {
        let (id, place) = self.find(step)?;
        let Some((track, found)) = self.at(place) else { return Err(self.unknown(step)) };
        if found.is_tool {
            return Err(Refusal::IsTool { step: found.text.clone() });
        }
        if let Some(missing) = track.first_undone(place.step).filter(|_| track.required) {
            return Err(Refusal::OutOfOrder { missing: missing.text.clone() });
        }
        if !self.evidence.contains(&evidence) {
            return Err(Refusal::NoEvidence { evidence });
        }
        Ok(id)
    }

    /// Rules on closing a step as not applicable, a tool too. Returns its id.
    ///
    /// # Errors
    /// A [`Refusal`], where the step is none, or the evidence is not what an earlier step of its workflow resulted in:
    /// so the first step always applies.
    pub fn check_not_applicable(&self, step: &str, evidence: u64) -> Result<String, Refusal> {
        let (id, place) = self.find(step)?;
        let Some((track, found)) = self.at(place) else { return Err(self.unknown(step)) };
        let mut earlier = track.steps.iter().take(place.step);
        if earlier.any(|earlier| earlier.status == Status::Done { evidence }) {
            Ok(id)
        } else {
            Err(Refusal::NotFromEarlierStep { step: found.text.clone(), evidence })
        }
    }

    /// Notes that a step was closed, by the id that a check returned. Decides nothing: the event stands.
    pub fn closed(&mut self, id: &str, status: Status) {
        let place = self.places().find(|(found, _)| found == id).map(|(_, place)| place);
        if let Some(place) = place
            && let Some(step) = self.tracks.get_mut(place.track).and_then(|track| track.steps.get_mut(place.step))
        {
            step.status = status;
        }
    }

    fn find(&self, step: &str) -> Result<(String, Place), Refusal> {
        let open: Vec<(String, Place)> = self.open().collect();
        if let Some(found) = open.iter().find(|(id, _)| id == step) {
            return Ok(found.clone());
        }
        let named = |place: Place| self.at(place).is_some_and(|(_, found)| found.text == step);
        let mut called: Vec<(String, Place)> = open.into_iter().filter(|(_, place)| named(*place)).collect();
        match (called.pop(), called.is_empty()) {
            (Some(found), true) => Ok(found),
            (None, _) => Err(self.unknown(step)),
            (Some(last), false) => {
                called.push(last);
                Err(Refusal::Ambiguous { step: bounded(step, 64), ids: ids(called.into_iter()) })
            }
        }
    }

    fn unknown(&self, step: &str) -> Refusal {
        Refusal::Unknown { step: bounded(step, 64), open: ids(self.open()) }
    }

    fn places(&self) -> impl Iterator<Item = (String, Place)> + '_ {
        self.tracks
            .iter()
            .enumerate()
            .flat_map(|(at, track)| (0..track.steps.len()).map(move |step| (track.id(step), Place { track: at, step })))
    }

    fn open(&self) -> impl Iterator<Item = (String, Place)> + '_ {
        self.places().filter(|(_, place)| self.at(*place).is_some_and(|(_, step)| step.status == Status::Todo))
    }

    fn at(&self, place: Place) -> Option<(&super::Track, &Step)> {
        let track = self.tracks.get(place.track)?;
        Some((track, track.steps.get(place.step)?))
    }
}

fn ids(places: impl Iterator<Item = (String, Place)>) -> String {
    let ids: Vec<String> = places.map(|(id, _)| id).collect();
    if ids.is_empty() { "none".to_owned() } else { bounded(&ids.join(", "), 512) }
}
