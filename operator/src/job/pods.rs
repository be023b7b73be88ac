//! Reads the state of a worker pod: alive, alive with a problem, or ended.

mod disruption;
mod problem;

pub use problem::PodProblem;

use crate::owned;
use crate::report::judge::questions_fault;
use bloomery_crds::names;
use bloomery_crds::pod;
use bloomery_crds::report::{MemoryFault, TerminationMessage};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Attempt, Reply};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodStatus};
use k8s_openapi::jiff::Timestamp;

/// The maximum size of a worker's exit message that is passed on, in bytes.
const MAX_EXIT_MESSAGE_BYTES: usize = 512;

/// The part of a worker pod on which decisions depend.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerPod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// True if the pod has the labels that put it into the cache and let its changes wake its Job.
    pub watched: bool,
    /// The creation time.
    pub created: Option<Timestamp>,
    /// True if the pod is being deleted.
    pub deleting: bool,
    /// The termination message of the worker, once its container ended.
    pub message: Option<TerminationMessage>,
    /// The reason why the worker could not write to the memory, if its container ended for it.
    pub memory_fault: Option<String>,
    /// True if another container runs on after the worker, such as a sidecar that a webhook injected.
    pub outlives_worker: bool,
    /// The state of the pod.
    pub state: PodState,
}

/// The state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// The pod is pending, running or terminating. Holds the problem that keeps it from running, if any.
    Alive(Option<PodProblem>),
    /// The worker of the pod ended, or all of its containers. They are not restarted.
    Ended {
        /// The end time, if the kubelet recorded one.
        at: Option<Timestamp>,
        /// The description of the end, for people.
        how: String,
        /// True if the pod was disrupted: deleted, evicted, preempted or lost with its node. False if its worker ended
        /// by itself.
        disrupted: bool,
    },
}

impl WorkerPod {
    /// Reads a pod of the Job of this name and UID; none for a pod of another Job or of another making.
    ///
    /// The pod of the `recorded` attempt is recognized by its UID alone: anybody may remove its labels and owners while it
    /// runs.
    pub fn read(pod: &Pod, job: (&str, &str), recorded: Option<&Attempt>, now: Timestamp) -> Option<Self> {
        let (_, job_uid) = job;
        let recorded = recorded.filter(|recorded| recorded.pod_uid.is_some() && recorded.pod_uid == pod.metadata.uid);
        let attempt = match recorded {
            Some(recorded) => recorded.number,
            None if !owned::is_worker_pod(pod, job) => return None,
            None => pod.metadata.labels.as_ref()?.get(names::LABEL_ATTEMPT)?.parse().ok()?,
        };
        let terminated = pod::worker_end(pod);
        let message = terminated
            .and_then(|state| TerminationMessage::from_text(state.message.as_deref()?))
            .filter(|message| message.job == job_uid && message.attempt == attempt)
            .map(without_invalid_questions);
        let memory_fault = terminated
            .and_then(|state| MemoryFault::from_text(state.message.as_deref()?))
            .filter(|fault| fault.job == job_uid && fault.attempt == attempt)
            .map(|fault| bounded(&fault.not_writable, Attempt::MAX_MEMORY_FAULT_BYTES));
        Some(Self {
            name: pod.metadata.name.clone()?,
            uid: pod.metadata.uid.clone()?,
            attempt,
            watched: is_watched(pod, attempt, job_uid),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            message,
            memory_fault,
            outlives_worker: pod::outlives_worker(pod),
            state: pod_state(pod, terminated, now),
        })
    }

    /// Returns the end time, by the clock of the pod's node; none for a pod that is alive. A pod whose end was not recorded
    /// counts as ended at its creation.
    pub fn end_time(&self) -> Option<Timestamp> {
        match &self.state {
            PodState::Alive(_) => None,
            PodState::Ended { at, .. } => at.or(self.created),
        }
    }
}

/// Removes the questions and the number of received replies if either does not fit into a status. A report is validated
/// when it arrives; a termination message is validated only here.
fn without_invalid_questions(mut message: TerminationMessage) -> TerminationMessage {
    let heard = usize::try_from(message.replies_heard).unwrap_or(usize::MAX);
    if heard > Reply::MAX_REPLIES || questions_fault(&message.questions).is_some() {
        message.questions = Vec::new();
        message.replies_heard = 0;
    }
    message
}

/// Returns whether the labels of a pod put it into the cache, and name the Job that its changes have to wake.
fn is_watched(pod: &Pod, attempt: u32, job_uid: &str) -> bool {
    let job = pod.metadata.labels.as_ref().and_then(|labels| labels.get(names::LABEL_JOB));
    let expected_name = job.map(|job| names::worker_pod(job, attempt, job_uid));
    owned::is_managed(&pod.metadata) && expected_name.is_some() && expected_name == pod.metadata.name
}

fn pod_state(pod: &Pod, terminated: Option<&ContainerStateTerminated>, now: Timestamp) -> PodState {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    if !pod::has_ended(pod) {
        return PodState::Alive(problem::find(pod, status, pod::worker_status(pod), now));
    }
    let disrupted = disruption::is_disrupted(pod, status, terminated);
    PodState::Ended { at: ended_at(status, terminated), how: end_description(status, terminated), disrupted }
}

/// Returns the end time of a pod. If no container recorded one (for example, the pod was evicted before it started), the
/// last change of the pod's conditions counts.
fn ended_at(status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> Option<Timestamp> {
    let finished = terminated.and_then(|state| state.finished_at.as_ref());
    let transition_times =
        || status.conditions.iter().flatten().filter_map(|condition| condition.last_transition_time.as_ref());
    finished.or_else(|| transition_times().max_by_key(|time| time.0)).map(|time| time.0)
}

/// Describes the end of a pod by the pod's own reason, and by the exit of its worker container.
fn end_description(status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> String {
    let container_part = terminated.map(|state| {
        let code = match state.reason.as_deref() {
            Some(reason) if reason != "Error" && reason != "Completed" => {
                format!("exit code {} ({reason})", state.exit_code)
            }
            _ => format!("exit code {}", state.exit_code),
        };
        // A worker that failed to start leaves a sentence instead of a termination message.
        let fault = state.message.as_deref().and_then(MemoryFault::from_text).map(|fault| fault.not_writable);
        let message = fault.as_deref().or(state.message.as_deref()).map(str::trim);
        let message = message.filter(|message| !message.is_empty() && TerminationMessage::from_text(message).is_none());
        message.map_or_else(|| code.clone(), |message| format!("{code}: {}", bounded(message, MAX_EXIT_MESSAGE_BYTES)))
    });
    let pod_part = status.reason.as_deref().map(|reason| match status.message.as_deref() {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    });
    match (pod_part, container_part) {
        (Some(pod), Some(container)) => format!("{pod}, {container}"),
        (Some(part), None) | (None, Some(part)) => part,
        (None, None) => "without a message".to_owned(),
    }
}

#[cfg(test)]
mod tests;
