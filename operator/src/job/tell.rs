//! The Kubernetes Events of a Job: its start, its first move to another pod, and its end or what it asks of people. They are at most
//! three (`docs/explanation/design.md`, section 7), and one more for each further time that people are asked.

use super::applied::Applied;
use super::fetch::Fetched;
use super::plan::PeopleWait;
use crate::context::Context;
use crate::events::Telling;
use bloomery_crds::conditions::{self, ConditionType, Health, Reason};
use bloomery_crds::outcome::Outcome;
use bloomery_crds::v1alpha1::{Job, JobStatus};

/// Publishes the Event of what was done; `after` is the status that it led to.
pub(super) async fn tell(context: &Context, fetched: &Fetched, applied: &Applied, after: &JobStatus) {
    let telling = match applied {
        Applied::Started(made, _) if made.attempt == 1 => Telling::normal(
            Reason::Starting,
            format!("made the pod {}: kubectl logs {} shows the conversation", made.pod, made.pod),
        ),
        Applied::Started(made, Some(lost)) if made.attempt == 2 => {
            Telling::warning(Reason::BackOff, format!("{}; the Job goes on in the pod {}", lost.message, made.pod))
        }
        Applied::Started(made, None) if made.attempt == 2 && fetched.status.waiting_for.is_none() => Telling::normal(
            Reason::Starting,
            format!("the pod before it was drained or deleted; the Job goes on in the pod {}", made.pod),
        ),
        Applied::Parked(_) => return tell_waiting(context, &fetched.job, after).await,
        Applied::WaitsForPeople(PeopleWait::NobodyAsked(why)) => {
            Telling::warning(Reason::ApprovalPolicyMissing, why.clone())
        }
        Applied::Ended(end, _) => return tell_end(context, &fetched.job, &end.outcome).await,
        // A Job that goes on after people have decided gets its next Event at its end.
        Applied::Started(..)
        | Applied::Nothing
        | Applied::Observed(_)
        | Applied::Paused(_)
        | Applied::WaitsForPeople(PeopleWait::AsRecorded | PeopleWait::Approvers(_))
        | Applied::AwaitsPodEnd(..)
        | Applied::Deleted
        | Applied::Waiting(..) => return,
    };
    context.events.tell(&fetched.job, telling).await;
}

/// Publishes the Event of a Job that waits for people, or of why nobody is asked; each time, since people may be asked the same
/// again.
pub(crate) async fn tell_waiting(context: &Context, job: &Job, status: &JobStatus) {
    let Some(waiting) = conditions::find(&status.conditions, ConditionType::Reconciling) else { return };
    let Ok(reason) = waiting.reason.parse() else { return };
    context.events.tell_again(job, Telling::warning(reason, waiting.message.clone())).await;
}

/// Publishes the Event of the end of a Job.
pub(crate) async fn tell_end(context: &Context, job: &Job, outcome: &Outcome) {
    let telling = match super::status::of_outcome(outcome) {
        Health::Ready(reason, message) => Telling::normal(reason, message),
        Health::Stalled(reason, message) | Health::Reconciling(reason, message) => Telling::warning(reason, message),
    };
    context.events.tell(job, telling).await;
}
