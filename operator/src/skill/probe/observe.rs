//! The state of the pods of probes: pure.

use crate::mcp_container::problem;
use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::names;
use bloomery_crds::pod::{has_succeeded, worker_end, worker_status};
use bloomery_crds::text::bounded;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::core::ResourceExt;

/// The longest message of a probe in a condition, in bytes.
const MAX_MESSAGE_BYTES: usize = 512;

/// A pod of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbePod {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The digest that the pods of one probe share.
    pub probe: Digest,
    /// The number of the try, from 1.
    pub number: u32,
    /// The time of its creation.
    pub created: Timestamp,
    /// Its end, once it has ended.
    pub end: Option<End>,
    /// What keeps it from running.
    pub problem: Option<String>,
}

/// The end of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The time.
    pub at: Timestamp,
    /// Why the probe failed. `None` if it has reported.
    pub failure: Option<String>,
}

/// Returns whether a pod is one of the Skill's probes. Only its seal proves that the operator created it.
pub fn is_probe_of(pod: &Pod, skill_uid: &str) -> bool {
    let component = pod.labels().get(names::LABEL_COMPONENT);
    component.is_some_and(|component| component == names::COMPONENT_PROBE)
        && owned::is_owned_by(&pod.metadata, skill_uid)
}

/// Reads the state of a pod. `None` for a pod without the annotations of a probe.
pub fn observe(pod: &Pod) -> Option<ProbePod> {
    let annotation = |name: &str| pod.annotations().get(name);
    Some(ProbePod {
        metadata: pod.metadata.clone(),
        probe: annotation(names::ANNOTATION_PROBE_KEY)?.parse().ok()?,
        number: annotation(names::ANNOTATION_PROBE_TRY)?.parse().ok()?,
        created: pod.metadata.creation_timestamp.as_ref()?.0,
        end: end(pod),
        problem: problem(pod),
    })
}

fn end(pod: &Pod) -> Option<End> {
    let status = pod.status.as_ref()?;
    let has_succeeded = has_succeeded(pod)?;
    let terminated = worker_end(pod);
    let at = terminated
        .and_then(|terminated| terminated.finished_at.as_ref())
        .or(pod.metadata.creation_timestamp.as_ref())?
        .0;
    let message = terminated.and_then(|terminated| terminated.message.as_deref()).filter(|message| !message.is_empty());
    let failure = || match message {
        Some(message) => match problem::last_exit(pod) {
            Some(exit) => format!("{}; {exit}", bounded(message.trim(), MAX_MESSAGE_BYTES)),
            None => bounded(message.trim(), MAX_MESSAGE_BYTES),
        },
        None => silent_end(pod, status, terminated.map(|terminated| terminated.exit_code)),
    };
    Some(End { at, failure: (!has_succeeded).then(failure) })
}

/// Describes the end of a pod without a message.
fn silent_end(pod: &Pod, status: &PodStatus, exit_code: Option<i32>) -> String {
    let name = pod.name_any();
    match (status.reason.as_deref(), exit_code) {
        (Some("DeadlineExceeded"), _) => format!("pod {name} did not end in time"),
        (Some(reason), _) => format!("pod {name} failed ({reason})"),
        (None, Some(code)) => {
            format!("pod {name} exited with code {code} and without a report: see kubectl logs {name}")
        }
        (None, None) => format!("pod {name} failed without a report"),
    }
}

/// Describes what keeps a pod from running. The text stays the same between two tries of the kubelet.
fn problem(pod: &Pod) -> Option<String> {
    let (name, status) = (pod.name_any(), pod.status.as_ref()?);
    // The sidecar of a probe has no Secrets, so it waits for none.
    if let Some(problem) = problem::find(pod, Timestamp::MAX) {
        return Some(problem.message);
    }
    if let Some(worker) = worker_status(pod)
        && let Some(reason) = worker.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref())
    {
        return match reason {
            "ContainerCreating" | "PodInitializing" => None,
            reason if reason.contains("Image") => {
                Some(format!("pod {name} cannot get its image {}: correct worker.image of the chart", worker.image))
            }
            reason => Some(format!("pod {name} cannot start ({reason}): see kubectl describe pod {name}")),
        };
    }
    let mut conditions = status.conditions.iter().flatten();
    conditions
        .any(|found| {
            found.type_ == "PodScheduled"
                && found.status == "False"
                && matches!(found.reason.as_deref(), Some("Unschedulable" | "SchedulingGated"))
        })
        .then(|| format!("pod {name} cannot be scheduled: see kubectl describe pod {name}"))
}
