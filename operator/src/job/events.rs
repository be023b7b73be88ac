//! The Kubernetes Events of a Job: its start, its second attempt, and either its end or its first wait for people. There
//! are at most three, and one more for each further wait (docs/explanation/design.md, section 7).

use super::applied::AppliedPlan;
use super::fetch::FetchedJob;
use super::plan::PeopleWait;
use crate::context::Context;
use crate::events::EventMessage;
use bloomery_crds::conditions::{self, ConditionType, Health, Reason};
use bloomery_crds::outcome::Outcome;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use kube::core::ResourceExt;

/// Publishes the Event for an applied plan, if it has one; `after` is the new status.
pub(super) async fn publish(context: &Context, fetched: &FetchedJob, applied: &AppliedPlan, after: &JobStatus) {
    let (namespace, name) = (fetched.job.namespace(), fetched.job.name_any());
    if let AppliedPlan::Started(started, _) = applied {
        tracing::info!(
            namespace,
            job = name,
            pod = started.pod,
            attempt = started.attempt,
            "the Job starts an attempt"
        );
    }
    let event = match applied {
        AppliedPlan::Started(started, _) if started.attempt == 1 => EventMessage::normal(
            Reason::Starting,
            format!("created the pod {}: kubectl logs {} shows the conversation", started.pod, started.pod),
        ),
        AppliedPlan::Started(started, Some(lost)) if started.attempt == 2 => EventMessage::warning(
            Reason::BackOff,
            format!("{}; the Job continues in the pod {}", lost.message, started.pod),
        ),
        AppliedPlan::Started(started, None) if started.attempt == 2 && fetched.status.waiting_for.is_none() => {
            EventMessage::normal(
                Reason::Starting,
                format!("the earlier pod was drained or deleted; the Job continues in the pod {}", started.pod),
            )
        }
        AppliedPlan::Parked(_) => return publish_waiting(context, &fetched.job, after).await,
        AppliedPlan::WaitsForPeople(PeopleWait::PolicyMissing(why)) => {
            EventMessage::warning(Reason::ApprovalPolicyMissing, why.clone())
        }
        AppliedPlan::Ended(end, _) => return publish_end(context, &fetched.job, &end.outcome).await,
        // Other attempts have no Event: the next Event is the one of the end or of a wait.
        AppliedPlan::Started(..)
        | AppliedPlan::Nothing
        | AppliedPlan::Observed(_)
        | AppliedPlan::Paused(_)
        | AppliedPlan::WaitsForPeople(PeopleWait::AsRecorded | PeopleWait::Approvers(_))
        | AppliedPlan::AwaitsPodEnd(..)
        | AppliedPlan::Deleted
        | AppliedPlan::Waiting(..) => return,
    };
    context.events.publish(&fetched.job, event).await;
}

/// Publishes the Event of a Job that waits for people, or that cannot ask them. It is published each time, because a
/// later wait can have the same text.
pub(crate) async fn publish_waiting(context: &Context, job: &Job, status: &JobStatus) {
    let Some(waiting) = conditions::find(&status.conditions, ConditionType::Reconciling) else { return };
    let Ok(reason) = waiting.reason.parse::<Reason>() else { return };
    let (namespace, name) = (job.namespace(), job.name_any());
    tracing::info!(namespace, job = name, %reason, message = waiting.message, "the Job waits for people");
    context.events.publish_again(job, EventMessage::warning(reason, waiting.message.clone())).await;
}

/// Publishes the Event of the end of a Job.
pub(crate) async fn publish_end(context: &Context, job: &Job, outcome: &Outcome) {
    let (namespace, name) = (job.namespace(), job.name_any());
    tracing::info!(namespace, job = name, code = %outcome.code, outcome = outcome.message, "the Job has ended");
    let event = match super::status::outcome_health(outcome) {
        Health::Ready(reason, message) => EventMessage::normal(reason, message),
        Health::Stalled(reason, message) | Health::Reconciling(reason, message) => {
            EventMessage::warning(reason, message)
        }
    };
    context.events.publish(job, event).await;
}
