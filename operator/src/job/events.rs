//! Logs the progress of a Job, and publishes its Kubernetes Events. There is an Event for its start, for its second attempt, and for either
//! its end or its first wait for people: at most three. There is one more for each further wait for people or for something that a person
//! has to provide (docs/explanation/design.md, section 7).

use super::applied::AppliedPlan;
use super::fetch::FetchedJob;
use super::plan::PeopleWait;
use crate::context::Context;
use crate::events::EventMessage;
use crate::status::{reason_of, with_reason};
use bloomery_crds::conditions::{self, ConditionType, Health, Reason};
use bloomery_crds::outcome::{Outcome, Phase};
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
        // The wait for a memory that can be written has an Event of its own.
        AppliedPlan::Started(_, Some(lost)) if lost.memory_fault.is_some() => return,
        AppliedPlan::Started(started, Some(lost)) if started.attempt == 2 => EventMessage::warning(
            Reason::BackOff,
            format!("{}; the Job continues in the pod {}", lost.message, started.pod),
        ),
        AppliedPlan::Started(started, None)
            if started.attempt == 2 && fetched.status.waiting_for.is_none() && fetched.status.children.is_empty() =>
        {
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
        AppliedPlan::Waiting(..) | AppliedPlan::Paused(_) | AppliedPlan::NameTaken(..) | AppliedPlan::Observed(_) => {
            return publish_new_wait(context, &fetched.job, &fetched.status, after).await;
        }
        // Other attempts have no Event: the next Event is the one of the end or of a wait.
        AppliedPlan::Started(..)
        | AppliedPlan::Nothing
        | AppliedPlan::WaitsForPeople(PeopleWait::AsRecorded | PeopleWait::Approvers(_))
        | AppliedPlan::AwaitsPodEnd(..)
        | AppliedPlan::Deleted => return,
    };
    context.events.publish(&fetched.job, event).await;
}

/// Logs a wait that begins, and publishes its Event if a person has to provide something. The status records the reason, so a
/// restart repeats neither.
pub(crate) async fn publish_new_wait(context: &Context, job: &Job, before: &JobStatus, after: &JobStatus) {
    let Some(wait) = new_wait(before, after) else { return };
    let (namespace, name) = (job.namespace(), job.name_any());
    tracing::info!(namespace, job = name, reason = %wait.reason, why = wait.note, "the Job waits");
    if needs_person(wait.reason) {
        context.events.publish(job, wait).await;
    }
}

/// Returns the warning of a wait whose reason the status shows for the first time.
fn new_wait(before: &JobStatus, after: &JobStatus) -> Option<EventMessage> {
    let reason = reason_of(&after.conditions, ConditionType::Reconciling)?;
    let is_new = reason_of(&before.conditions, ConditionType::Reconciling) != Some(reason);
    let message = &conditions::find(&after.conditions, ConditionType::Reconciling)?.message;
    (is_new && is_wait(after.phase, reason)).then(|| EventMessage::warning(reason, message))
}

/// Returns whether a Job with this phase and reason waits: no worker has started yet, or a person has to provide something.
fn is_wait(phase: Option<Phase>, reason: Reason) -> bool {
    let is_before_worker = matches!(phase.unwrap_or_default(), Phase::Pending | Phase::Queued | Phase::Starting);
    (is_before_worker && reason != Reason::Starting) || needs_person(reason)
}

/// Publishes the Event of a Job that is denied tools, because they differ from those that are pinned.
pub(crate) async fn publish_changed_tools(context: &Context, job: &Job, before: &JobStatus, after: &JobStatus) {
    if let Some(event) = changed_tools(before, after) {
        context.events.publish(job, event).await;
    }
}

fn changed_tools(before: &JobStatus, after: &JobStatus) -> Option<EventMessage> {
    let found = |status: &JobStatus| {
        let remarks = with_reason(&status.conditions, ConditionType::SkillAsWritten, Reason::ToolsChanged);
        remarks.map(|remarks| remarks.message.clone())
    };
    let message = found(after).filter(|_| found(before).is_none())?;
    Some(EventMessage::warning(Reason::ToolsChanged, message))
}

/// Returns whether a wait for this reason usually lasts until a person acts. A Skill that is not ready has an Event of its own.
fn needs_person(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::SkillNotFound
            | Reason::ModelNotFound
            | Reason::ModelNotReady
            | Reason::SecretMissing
            | Reason::ResourceNotFound
            | Reason::EgressNotAllowed
            | Reason::ResourcesInvalid
            // An admission policy refuses the pod, or its configuration is wrong.
            | Reason::PodNotStarting
            | Reason::QuotaExceeded
            | Reason::ImageUnavailable
            | Reason::NotWritable
            | Reason::SoftLimitReached
            // Somebody created a pod under the name of an attempt.
            | Reason::NameTaken
    )
}

/// Publishes the Event of a Job that waits for people, or that cannot ask them. It is published each time, because a
/// later wait can have the same text.
pub(crate) async fn publish_waiting(context: &Context, job: &Job, status: &JobStatus) {
    let Some(waiting) = conditions::find(&status.conditions, ConditionType::Reconciling) else { return };
    let Ok(reason) = waiting.reason.parse::<Reason>() else { return };
    let (namespace, name) = (job.namespace(), job.name_any());
    tracing::info!(namespace, job = name, %reason, why = waiting.message, "the Job waits for people");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures;
    use crate::job::status::with_conditions;
    use crate::status::StatusStamp;
    use bloomery_crds::conditions::Observation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    fn reconciling(phase: Phase, reason: Reason, message: &str) -> JobStatus {
        let health = Health::Reconciling(reason, message.into());
        let stamp = StatusStamp { now: Time(fixtures::at(0)), generation: Some(1) };
        with_conditions(fixtures::status(1, phase), health.observations(), &stamp)
    }

    fn waiting(reason: Reason, message: &str) -> JobStatus {
        reconciling(Phase::Pending, reason, message)
    }

    #[test]
    fn a_job_that_is_denied_changed_tools_has_one_warning() {
        let with = |reason, message: &str| {
            let stamp = StatusStamp { now: Time(fixtures::at(0)), generation: Some(1) };
            let remarks = vec![Observation::fails(ConditionType::SkillAsWritten, reason, message)];
            with_conditions(fixtures::status(1, Phase::Running), remarks, &stamp)
        };
        let (new, other) = (JobStatus::default(), with(Reason::Differs, "x"));
        let changed = with(Reason::ToolsChanged, "Denied tool pay: is new.");
        let warning = EventMessage::warning(Reason::ToolsChanged, "Denied tool pay: is new.");
        assert_eq!((changed_tools(&new, &other), changed_tools(&other, &changed)), (None, Some(warning)));
        assert_eq!(changed_tools(&changed, &with(Reason::ToolsChanged, "more")), None);
    }

    #[test]
    fn a_wait_has_one_line_and_one_warning_for_each_reason() {
        let new = JobStatus::default();
        let without_skill = waiting(Reason::SkillNotFound, "create the Skill");
        let warning = EventMessage::warning(Reason::SkillNotFound, "create the Skill");
        assert_eq!(new_wait(&new, &without_skill), Some(warning));
        assert_eq!(new_wait(&without_skill, &waiting(Reason::SkillNotFound, "another message")), None);
        let without_key = waiting(Reason::SecretMissing, "create the key");
        assert_eq!(new_wait(&without_skill, &without_key).map(|event| event.reason), Some(Reason::SecretMissing));
    }

    #[rstest]
    #[case::suspended(Phase::Pending, Reason::Suspended, true, false)]
    #[case::over_a_maximum(Phase::Queued, Reason::Queued, true, false)]
    #[case::between_two_attempts(Phase::Queued, Reason::BackOff, true, false)]
    #[case::model(Phase::Pending, Reason::ModelNotReady, true, true)]
    #[case::quota(Phase::Queued, Reason::QuotaExceeded, true, true)]
    #[case::image(Phase::Starting, Reason::ImageUnavailable, true, true)]
    #[case::no_node(Phase::Starting, Reason::Unschedulable, true, false)]
    #[case::key_of_the_worker(Phase::Running, Reason::SecretMissing, true, true)]
    #[case::new_pod(Phase::Starting, Reason::Starting, false, false)]
    #[case::worker(Phase::Running, Reason::Running, false, false)]
    fn each_new_wait_is_logged_and_some_need_a_person(
        #[case] phase: Phase,
        #[case] reason: Reason,
        #[case] is_logged: bool,
        #[case] has_event: bool,
    ) {
        let wait = new_wait(&JobStatus::default(), &reconciling(phase, reason, "why"));
        assert_eq!(wait, is_logged.then(|| EventMessage::warning(reason, "why")));
        assert_eq!(needs_person(reason), has_event);
    }
}
