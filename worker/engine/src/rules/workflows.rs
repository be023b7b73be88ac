//! Workflows and their progress in a Job (`docs/explanation/engine.md`, section 3).
//!
//! A required workflow always enforces the order of its steps. Only the finalization gate decides whether the workflow must be
//! complete: a Job that only tracks an order need not complete the workflow of a refund.

mod closing;
mod closing_rule;
mod evidence;
mod expectation;
mod expecting;

pub use closing::Refusal;
pub(crate) use closing_rule::ClosingApprover;
pub(crate) use expectation::CompletedCall;

use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{Workflow, WorkflowProgress};
use closing_rule::ClosingRule;
use expectation::Expectation;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A step of a workflow with its status, in the JSON form of the requirement documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubGoal {
    /// The id: `sg_<workflow>_<n>`, counted from 1.
    pub id: String,
    /// The step as written in the Skill.
    pub intent: String,
    /// The id of the previous step, if there is one.
    pub depends_on: Vec<String>,
    /// The status.
    pub status: StepStatus,
    /// The name of the workflow.
    pub from_workflow: String,
    /// Whether the workflow is required.
    pub workflow_required: bool,
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// The step is open.
    Todo,
    /// The step is done: its tool completed without error, or the model closed it with evidence.
    Done {
        /// The `seq` of the event that proves it.
        evidence: u64,
    },
    /// The step does not apply. The workflow can be complete without it, but a required workflow then allows no later step.
    NotApplicable {
        /// The `seq` of an earlier step's result that proves it.
        evidence: u64,
    },
}

/// A step that must be done first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingStep<'a> {
    /// The workflow that requires it.
    pub workflow: &'a str,
    /// The step.
    pub step: &'a str,
}

/// The progress of a Skill's workflows: a fold of completed calls and closed steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkflowTracker {
    tracks: Vec<Track>,
    /// The first step of a tool in each workflow, by the name of the tool.
    tools: BTreeMap<String, Vec<Place>>,
    /// The `seq` of each event that can prove a step.
    evidence: BTreeSet<u64>,
}

/// A workflow with its progress.
#[derive(Debug, Clone, PartialEq)]
struct Track {
    name: String,
    required: bool,
    intents: Vec<String>,
    /// Whether a call with effect was started for a step.
    entered: bool,
    steps: Vec<Step>,
    /// The arguments and the result of each step that is done, if the workflow has conditions.
    outcomes: BTreeMap<String, Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    text: String,
    /// Whether the step is a tool. Only a call of the tool can complete it.
    is_tool: bool,
    /// The status by the latest call. It decides which calls are allowed.
    status: StepStatus,
    /// Whether the step was done at any time. It decides whether the workflow is complete.
    was_done: bool,
    /// The conditions that a call must meet to complete the step.
    expected: Vec<Expectation>,
    /// The requirements for closing the step, if it is not a tool.
    closing: ClosingRule,
}

/// The position of a step: the index of its workflow in `tracks`, and its index in the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    track: usize,
    step: usize,
}

impl WorkflowTracker {
    /// Returns the workflows with all steps open. A step with the name of a tool is completed by a call of the tool.
    pub fn new<'t>(workflows: &[Workflow], catalogue: impl IntoIterator<Item = &'t str>) -> Self {
        let catalogue: BTreeSet<&str> = catalogue.into_iter().collect();
        let mut tracker = Self::default();
        for workflow in workflows {
            let steps: Vec<Step> = workflow.steps.iter().map(|text| Step::new(text, workflow, &catalogue)).collect();
            let track = tracker.tracks.len();
            for (step, at) in steps.iter().zip(0..).filter(|(step, _)| step.is_tool) {
                for tool in catalogue.iter().filter(|tool| matches(&step.text, tool)) {
                    let places = tracker.tools.entry((*tool).to_owned()).or_default();
                    if places.iter().all(|place| place.track != track) {
                        places.push(Place { track, step: at });
                    }
                }
            }
            tracker.tracks.push(Track {
                name: workflow.name.clone(),
                required: workflow.required == Some(true),
                intents: workflow.intents.clone(),
                entered: false,
                steps,
                outcomes: BTreeMap::new(),
            });
        }
        tracker
    }

    /// Returns whether a tool is a step of any workflow.
    pub fn has_step(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// Returns every step of every workflow.
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

    /// Returns the workflows for the status, without empty ones.
    pub fn projection(&self) -> Vec<WorkflowProgress> {
        self.tracks.iter().filter(|track| !track.steps.is_empty()).map(Track::projection).collect()
    }

    /// Returns whether the model has to close steps with evidence, because not every step is a tool.
    pub fn wants_evidence(&self) -> bool {
        self.tracks.iter().flat_map(|track| &track.steps).any(|step| !step.is_tool)
    }

    /// Returns the first missing step before a call of a tool, for each required workflow. The call is allowed only if no step is
    /// missing. A step that does not apply counts as missing.
    pub fn missing_before(&self, tool: &str) -> Vec<MissingStep<'_>> {
        self.tools.get(tool).into_iter().flatten().filter_map(|place| self.first_missing_before(*place)).collect()
    }

    /// Records that a call was started. A call with effect enters the workflows that have a step with the tool's name.
    pub fn record_started(&mut self, tool: &str, read_only: bool) {
        if read_only {
            return;
        }
        for place in self.tools.get(tool).into_iter().flatten() {
            if let Some(track) = self.tracks.get_mut(place.track) {
                track.entered = true;
            }
        }
    }

    /// Records that a call completed without error. In each workflow, the next open step of that tool is then done, if the call meets
    /// the conditions of the step. In a required workflow, this needs all steps before it to be done. If there is no such step, the call
    /// counts for the last step of the tool that is done: its arguments and its result replace the earlier ones, and the step is open
    /// again if a condition is not met. The call can also be evidence for steps in words. Returns a sentence for each condition that is
    /// not met.
    pub(crate) fn record_completed(&mut self, call: &CompletedCall<'_>) -> Vec<String> {
        self.evidence.insert(call.seq);
        let mut unmet = Vec::new();
        for place in self.tools.get(call.tool).into_iter().flatten() {
            let Some(track) = self.tracks.get_mut(place.track) else { continue };
            let Some(at) = track.reached_step_of(call.tool) else { continue };
            let faults = track.unmet_by(at, call);
            if faults.is_empty() {
                track.complete(at, call);
            } else {
                track.reopen(at);
            }
            unmet.extend(faults);
        }
        for track in &mut self.tracks {
            unmet.extend(track.record_evidence(call));
        }
        unmet
    }

    /// Returns the open steps that the finalization gate demands. They belong to required workflows that name the detected
    /// intent, or that name no intent and were entered. A step that was done once is not demanded again.
    pub fn incomplete(&self, intent: Option<&str>) -> Vec<MissingStep<'_>> {
        let is_demanded = |track: &&Track| {
            track.required
                && if track.intents.is_empty() {
                    track.entered
                } else {
                    track.intents.iter().any(|named| Some(named.as_str()) == intent)
                }
        };
        self.tracks
            .iter()
            .filter(is_demanded)
            .flat_map(|track| {
                let open = track.steps.iter().filter(|step| step.status == StepStatus::Todo && !step.was_done);
                open.map(|step| track.missing_step(step))
            })
            .collect()
    }

    fn first_missing_before(&self, place: Place) -> Option<MissingStep<'_>> {
        let track = self.tracks.get(place.track).filter(|track| track.required)?;
        track.first_undone(place.step).map(|step| track.missing_step(step))
    }
}

impl Track {
    fn id(&self, at: usize) -> String {
        format!("sg_{}_{}", self.name, at + 1)
    }

    /// Returns the position of the next open step that a call of a tool can complete.
    fn open_step_of(&self, tool: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.is_done_by(tool) && step.status == StepStatus::Todo)
    }

    /// Returns the first step before a position that is not done.
    fn first_undone(&self, before: usize) -> Option<&Step> {
        self.steps.iter().take(before).find(|step| !matches!(step.status, StepStatus::Done { .. }))
    }

    fn projection(&self) -> WorkflowProgress {
        let mut progress =
            WorkflowProgress { name: self.name.clone(), required: self.required, ..WorkflowProgress::default() };
        for step in &self.steps {
            let list = match step.status {
                StepStatus::Done { .. } => &mut progress.done,
                StepStatus::NotApplicable { .. } => &mut progress.not_applicable,
                StepStatus::Todo if step.was_done => &mut progress.done,
                StepStatus::Todo => &mut progress.open,
            };
            list.push(step.text.clone());
        }
        progress
    }

    fn missing_step<'a>(&'a self, step: &'a Step) -> MissingStep<'a> {
        MissingStep { workflow: &self.name, step: &step.text }
    }
}

impl Step {
    fn new(text: &str, workflow: &Workflow, catalogue: &BTreeSet<&str>) -> Self {
        let is_tool = catalogue.iter().any(|tool| matches(text, tool));
        let of_step = || workflow.expect.iter().filter(|expected| expected.step == text);
        Self {
            text: text.to_owned(),
            is_tool,
            status: StepStatus::Todo,
            was_done: false,
            expected: of_step().filter_map(Expectation::new).collect(),
            closing: ClosingRule::new(of_step()),
        }
    }

    /// Returns whether a completed call of a tool is this step.
    fn is_done_by(&self, tool: &str) -> bool {
        self.is_tool && matches(&self.text, tool)
    }
}

#[cfg(test)]
mod tests;
