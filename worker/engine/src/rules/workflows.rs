//! Workflows as sub-goals, and how far a Job is with them (seed 002, section 4.6; `docs/explanation/engine.md`, section 3).
//!
//! A required workflow binds the order of its steps always. Whether it must be complete is another question, asked at
//! finalization: tracking an order must not demand a refund.

mod closing;

pub use closing::Refusal;

use bloomery_crds::v1alpha1::{Workflow, WorkflowProgress};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One step of a workflow as seed 002 has it, with how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubGoal {
    /// `sg_<workflow>_<n>`, counted from one.
    pub id: String,
    /// The step as the Skill has it.
    pub intent: String,
    /// The step before, if there is one.
    pub depends_on: Vec<String>,
    /// How it stands.
    pub status: Status,
    /// Its workflow.
    pub from_workflow: String,
    /// Whether its workflow binds.
    pub workflow_required: bool,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody did it yet.
    Todo,
    /// It was done: its tool completed without error, or the model closed it with evidence.
    Done {
        /// The seq of the event that shows it.
        evidence: u64,
    },
    /// It turned out not to apply. That completes a workflow, but opens the way to no later step.
    NotApplicable {
        /// The seq of an earlier step's result that shows it.
        evidence: u64,
    },
}

/// A step that is not done, where it would have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing<'a> {
    /// The workflow that wants it.
    pub workflow: &'a str,
    /// The step.
    pub step: &'a str,
}

/// How far a Job is with its Skill's workflows: a fold of what its tools did and what the model closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    tracks: Vec<Track>,
    /// Where each tool stands first in each workflow.
    tools: BTreeMap<String, Vec<Place>>,
    /// The events that can show that a step was done.
    evidence: BTreeSet<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Track {
    name: String,
    required: bool,
    intents: Vec<String>,
    /// A step with effect was started.
    entered: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    text: String,
    /// The step is the tool of that name, so only the tool can do it.
    is_tool: bool,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    track: usize,
    step: usize,
}

impl Progress {
    /// Begins with nothing done. A step named like a tool of the catalogue is that tool.
    pub fn new<'t>(workflows: &[Workflow], catalogue: impl IntoIterator<Item = &'t str>) -> Self {
        let catalogue: BTreeSet<&str> = catalogue.into_iter().collect();
        let mut progress = Self::default();
        for workflow in workflows {
            let steps: Vec<Step> = workflow.steps.iter().map(|text| Step::new(text, &catalogue)).collect();
            let track = progress.tracks.len();
            for (step, at) in steps.iter().zip(0..).filter(|(step, _)| step.is_tool) {
                let places = progress.tools.entry(step.text.clone()).or_default();
                if places.iter().all(|place| place.track != track) {
                    places.push(Place { track, step: at });
                }
            }
            progress.tracks.push(Track {
                name: workflow.name.clone(),
                required: workflow.required == Some(true),
                intents: workflow.intents.clone(),
                entered: false,
                steps,
            });
        }
        progress
    }

    /// Whether a tool is a step of some workflow.
    pub fn has_step(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// Every step of every workflow as a sub-goal.
    pub fn sub_goals(&self) -> Vec<SubGoal> {
        self.tracks
            .iter()
            .flat_map(|track| {
                track.steps.iter().enumerate().map(|(at, step)| SubGoal {
                    id: track.id(at),
                    intent: step.text.clone(),
                    depends_on: at.checked_sub(1).map(|before| track.id(before)).into_iter().collect(),
                    status: step.status,
                    from_workflow: track.name.clone(),
                    workflow_required: track.required,
                })
            })
            .collect()
    }

    /// The workflows as status has them, those without steps left out.
    pub fn projection(&self) -> Vec<WorkflowProgress> {
        self.tracks.iter().filter(|track| !track.steps.is_empty()).map(Track::projection).collect()
    }

    /// Whether the model has to close steps, naming the results that show it: not every step is a tool.
    pub fn wants_evidence(&self) -> bool {
        self.tracks.iter().flat_map(|track| &track.steps).any(|step| !step.is_tool)
    }

    /// The earlier steps that a call of a tool lacks, the first of each required workflow. The call may be made only if
    /// there is none. A step that did not apply is not done: nothing after it may be.
    pub fn missing_before(&self, tool: &str) -> Vec<Missing<'_>> {
        self.tools.get(tool).into_iter().flatten().filter_map(|place| self.missing_at(*place)).collect()
    }

    /// Notes that a call was started. A step with effect enters its workflows.
    pub fn started(&mut self, tool: &str, read_only: bool) {
        if read_only {
            return;
        }
        for place in self.tools.get(tool).into_iter().flatten() {
            if let Some(track) = self.tracks.get_mut(place.track) {
                track.entered = true;
            }
        }
    }

    /// Notes that a call completed without error, at an event: the next open step of that tool is done.
    pub fn completed(&mut self, tool: &str, seq: u64) {
        self.evidence.insert(seq);
        for place in self.tools.get(tool).into_iter().flatten() {
            let Some(track) = self.tracks.get_mut(place.track) else { continue };
            let open = track.steps.iter().position(|step| step.text == tool && step.status == Status::Todo);
            if let Some(at) = open
                && (!track.required || track.first_undone(at).is_none())
                && let Some(step) = track.steps.get_mut(at)
            {
                step.status = Status::Done { evidence: seq };
            }
        }
    }

    /// The open steps that finalization demands: of each required workflow that serves the detected intent, or that
    /// serves none by name and was entered.
    pub fn incomplete(&self, intent: Option<&str>) -> Vec<Missing<'_>> {
        let bound = |track: &&Track| {
            track.required
                && if track.intents.is_empty() {
                    track.entered
                } else {
                    track.intents.iter().any(|served| Some(served.as_str()) == intent)
                }
        };
        self.tracks
            .iter()
            .filter(bound)
            .flat_map(|track| {
                track.steps.iter().filter(|step| step.status == Status::Todo).map(|step| track.missing(step))
            })
            .collect()
    }

    fn missing_at(&self, place: Place) -> Option<Missing<'_>> {
        let track = self.tracks.get(place.track).filter(|track| track.required)?;
        track.first_undone(place.step).map(|step| track.missing(step))
    }
}

impl Track {
    fn id(&self, at: usize) -> String {
        format!("sg_{}_{}", self.name, at + 1)
    }

    /// The first step before a place that was not done.
    fn first_undone(&self, before: usize) -> Option<&Step> {
        self.steps.iter().take(before).find(|step| !matches!(step.status, Status::Done { .. }))
    }

    fn projection(&self) -> WorkflowProgress {
        let mut progress =
            WorkflowProgress { name: self.name.clone(), required: self.required, ..WorkflowProgress::default() };
        for step in &self.steps {
            let stand = match step.status {
                Status::Done { .. } => &mut progress.done,
                Status::NotApplicable { .. } => &mut progress.not_applicable,
                Status::Todo => &mut progress.open,
            };
            stand.push(step.text.clone());
        }
        progress
    }

    fn missing<'a>(&'a self, step: &'a Step) -> Missing<'a> {
        Missing { workflow: &self.name, step: &step.text }
    }
}

impl Step {
    fn new(text: &str, catalogue: &BTreeSet<&str>) -> Self {
        Self { text: text.to_owned(), is_tool: catalogue.contains(text), status: Status::Todo }
    }
}

#[cfg(test)]
mod tests;
