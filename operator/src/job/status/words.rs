//! What is said of a Job in each phase.

use bloomery_crds::conditions::{Health, Reason};
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::JobStatus;

/// What is said of a Job that has a pod, or had one that parked.
pub fn at_work(status: &JobStatus) -> Health {
    let (number, pod) = status.attempt.as_ref().map_or((1, ""), |attempt| (attempt.number, attempt.pod.as_str()));
    let (reason, message) = match status.phase {
        Some(Phase::Running) => {
            (Reason::Running, format!("attempt {number} is at work: kubectl logs {pod} shows the conversation"))
        }
        Some(Phase::Finalizing) => {
            (Reason::Finalizing, format!("attempt {number} gave an answer, which its gate rules on"))
        }
        Some(Phase::Queued) => {
            (Reason::Parked, format!("attempt {number} parked with its log written, and goes on in a new pod"))
        }
        _ => (Reason::Starting, format!("the pod {pod} was made, and its worker has not reported yet")),
    };
    Health::Reconciling(reason, message)
}

/// What is said of a Job that has ended.
pub fn of_outcome(outcome: &Outcome) -> Health {
    let message = format!("{}: {}", outcome.code, outcome.message);
    match outcome.code.phase() {
        Phase::Succeeded => Health::Ready(Reason::Succeeded, outcome.message.clone()),
        Phase::Escalated => Health::Stalled(Reason::Escalated, message),
        _ => Health::Stalled(Reason::Failed, message),
    }
}
