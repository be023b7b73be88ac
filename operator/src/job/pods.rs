//! What a worker pod tells: whether it is at work, why not, and how it ended.

mod problem;

pub use problem::PodProblem;

use crate::owned;
use crate::report::judge::questions_fault;
use bloomery_crds::names;
use bloomery_crds::pod;
use bloomery_crds::report::TerminationMessage;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Attempt, Reply};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodStatus};
use k8s_openapi::jiff::Timestamp;

/// How much of what a worker said before it ended is passed on, in bytes.
const MAX_EXIT_MESSAGE_BYTES: usize = 512;

/// One pod of a Job, as decisions need it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerPod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// Whether it has the labels by which the cache finds it and its changes wake its Job.
    pub watched: bool,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether somebody asked for its deletion.
    pub deleting: bool,
    /// What the worker left behind, once its container ended.
    pub message: Option<TerminationMessage>,
    /// How it goes.
    pub state: PodState,
}

/// How a pod goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// It will run, runs, or is about to end.
    Alive(Option<PodProblem>),
    /// Its containers ended for good.
    Ended {
        /// When, where the kubelet says so.
        at: Option<Timestamp>,
        /// How, for people.
        how: String,
    },
}

impl WorkerPod {
    /// Reads a pod of the Job with this UID; none for a pod that is not its, or of no attempt.
    ///
    /// The pod that is recorded is of the recorded attempt, whatever became of its labels and owners: anybody may
    /// remove those while it is at work.
    pub fn read(pod: &Pod, job_uid: &str, recorded: Option<&Attempt>, now: Timestamp) -> Option<Self> {
        let recorded = recorded.filter(|recorded| recorded.pod_uid.is_some() && recorded.pod_uid == pod.metadata.uid);
        let attempt = match recorded {
            Some(recorded) => recorded.number,
            None if !owned::is_owned_by(&pod.metadata, job_uid) => return None,
            None => pod.metadata.labels.as_ref()?.get(names::LABEL_ATTEMPT)?.parse().ok()?,
        };
        let terminated = pod::worker(pod).and_then(|status| status.state.as_ref()?.terminated.as_ref());
        let message = terminated
            .and_then(|state| TerminationMessage::from_text(state.message.as_deref()?))
            .filter(|message| message.job == job_uid && message.attempt == attempt)
            .map(without_invalid_questions);
        Some(Self {
            name: pod.metadata.name.clone()?,
            uid: pod.metadata.uid.clone()?,
            attempt,
            watched: is_watched(pod, attempt, job_uid),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            message,
            state: pod_state(pod, terminated, now),
        })
    }

    /// When it ended by the clock of its node, for pods that did. One that never began ended when it was made.
    pub fn ended(&self) -> Option<Timestamp> {
        match &self.state {
            PodState::Alive(_) => None,
            PodState::Ended { at, .. } => at.or(self.created),
        }
    }
}

/// The message without questions that no status could hold: it is not checked like a report.
fn without_invalid_questions(mut message: TerminationMessage) -> TerminationMessage {
    let heard = usize::try_from(message.replies_heard).unwrap_or(usize::MAX);
    if heard > Reply::MAX_REPLIES || questions_fault(&message.questions).is_some() {
        message.questions = Vec::new();
        message.replies_heard = 0;
    }
    message
}

/// Whether the cache holds the pod, and its changes wake the Job that it is named after.
fn is_watched(pod: &Pod, attempt: u32, job_uid: &str) -> bool {
    let job = pod.metadata.labels.as_ref().and_then(|labels| labels.get(names::LABEL_JOB));
    let wakes = job.map(|job| names::worker_pod(job, attempt, job_uid));
    owned::is_managed(&pod.metadata) && wakes.is_some() && wakes == pod.metadata.name
}

fn pod_state(pod: &Pod, terminated: Option<&ContainerStateTerminated>, now: Timestamp) -> PodState {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    match status.phase.as_deref() {
        Some("Succeeded" | "Failed") => {
            PodState::Ended { at: ended_at(status, terminated), how: end_description(status, terminated) }
        }
        _ => PodState::Alive(problem::find(pod, status, pod::worker(pod), now)),
    }
}

/// When a pod ended. One that was evicted before it started has no container that says so.
fn ended_at(status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> Option<Timestamp> {
    let finished = terminated.and_then(|state| state.finished_at.as_ref());
    let turned = || status.conditions.iter().flatten().filter_map(|condition| condition.last_transition_time.as_ref());
    finished.or_else(|| turned().max_by_key(|time| time.0)).map(|time| time.0)
}

fn end_description(status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> String {
    let container = terminated.map(|state| {
        let code = match state.reason.as_deref() {
            Some(reason) if reason != "Error" && reason != "Completed" => {
                format!("exit code {} ({reason})", state.exit_code)
            }
            _ => format!("exit code {}", state.exit_code),
        };
        // A worker that could not begin leaves a sentence instead of a message of ours.
        let said = state.message.as_deref().map(str::trim);
        let said = said.filter(|said| !said.is_empty() && TerminationMessage::from_text(said).is_none());
        said.map_or_else(|| code.clone(), |said| format!("{code}: {}", bounded(said, MAX_EXIT_MESSAGE_BYTES)))
    });
    let pod = status.reason.as_deref().map(|reason| match status.message.as_deref() {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    });
    match (pod, container) {
        (Some(pod), Some(container)) => format!("{pod}, {container}"),
        (Some(known), None) | (None, Some(known)) => known,
        (None, None) => "without a word".to_owned(),
    }
}

#[cfg(test)]
mod tests;
