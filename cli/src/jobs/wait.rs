//! `bloomery wait`: watches a Job until it reaches a state.

use super::client::{self, Client, deleted_error};
use super::cluster_command::ClusterCommand;
use super::state::DecisionState;
use super::{show, state, watch};
use crate::args::{WaitArgs, WaitTarget};
use crate::cluster::Right;
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, text};
use bloomery_crds::v1alpha1::Job;
use kube::{Api, ResourceExt};
use std::cell::RefCell;
use std::time::Duration;

/// Waits until a Job reaches the state that the command line names, and prints the state of the Job.
pub(super) async fn run(args: &WaitArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let client = client::open(command).await?;
    let job = client.job(&args.job).await?;
    let job = wait_until(&client, &job, args.target, args.timeout).await?;
    match args.output {
        Some(format) => output::print(&show::format_job(&job, format)?)?,
        None => output::print(&format!("job.bloomery.dev/{} {}\n", args.job, state::summary(&job)))?,
    }
    if state::waits_for_people(&job) {
        for hint in state::hints(&job, &client::decision_state(&client, &job).await, command) {
            text::inform(&hint);
        }
    }
    Ok(exit_code(&job, args.target))
}

/// Waits until a Job reaches a state, or cannot reach it any more. Without a `target`, waits until the Job has ended or needs
/// an action of people.
///
/// # Errors
/// If it cannot be watched, is deleted, or the timeout has passed.
pub(super) async fn wait_until(
    client: &Client,
    job: &Job,
    target: Option<WaitTarget>,
    timeout: Option<Duration>,
) -> Result<Job, Error> {
    let (name, uid) = (job.name_any(), job.uid());
    let api: Api<Job> = Api::namespaced(client.cluster.watch_client.clone(), &client.cluster.namespace);
    let this_job = watch::Selector::name(&name);
    // The latest version of the Job, for the message of a timeout.
    let latest = RefCell::new(job.clone());
    let watched = async {
        // The last seen Job, if its status still waits for a decision that is already made.
        let mut decided: Option<Job> = None;
        let mut suspension_reported = false;
        loop {
            let has_new_status = |job: &Job| decided.as_ref().is_none_or(|known| known.status != job.status);
            let result = watch::until(&api, &this_job, |jobs| match jobs.get(&name) {
                Some(job) if job.uid() == uid => {
                    let previous = latest.replace(job.clone());
                    if state::is_suspended(job) && !(suspension_reported && state::is_suspended(&previous)) {
                        suspension_reported = true;
                        text::inform(&format!("The Job {name} is waiting: {}", state::summary_with_reason(job)));
                    }
                    (is_done(job, target) && has_new_status(job)).then(|| Ok(job.clone()))
                }
                Some(_) | None => Some(Err(deleted_error(&name))),
            });
            match result.await {
                // The Job continues soon: wait for its next status.
                Ok(Ok(job))
                    if target.is_none()
                        && state::waits_for_people(&job)
                        && continues_soon(&client::decision_state(client, &job).await) =>
                {
                    decided = Some(job);
                }
                result => break result,
            }
        }
    };
    let result = match timeout {
        None => watched.await,
        Some(timeout) => tokio::time::timeout(timeout, watched).await.map_err(|_| {
            let summary = state::summary_with_reason(&latest.borrow());
            Error::too_late(format!("timed out waiting for the Job {name}: {summary}"))
        })?,
    };
    match result {
        Ok(job) => Ok(job?),
        Err(error) => {
            let rights = ["list", "watch"].map(Right::on_jobs).to_vec();
            Err(client.cluster.refusal_error(&format!("watching the Job {name}"), &error, rights).await.into())
        }
    }
}

/// Returns whether a Job with a held call continues soon, without a further decision.
fn continues_soon(decision: &DecisionState) -> bool {
    match decision {
        DecisionState::Decided | DecisionState::Expired => true,
        DecisionState::NoCall | DecisionState::NotRequested(_) | DecisionState::Open(_) => false,
    }
}

/// Returns whether the wait is over: the state is reached, or the Job has ended.
fn is_done(job: &Job, target: Option<WaitTarget>) -> bool {
    let is_reached = match target {
        None => state::waits_for_people(job),
        Some(target) => is_reached(job, target),
    };
    is_reached || state::has_ended(job)
}

/// Returns whether a Job has reached a state.
fn is_reached(job: &Job, target: WaitTarget) -> bool {
    match target {
        WaitTarget::Ended => state::has_ended(job),
        WaitTarget::Waiting => state::waits_for_people(job),
        WaitTarget::Phase(phase) => state::phase(job) == phase,
        WaitTarget::Code(code) => {
            let outcome = job.status.as_ref().and_then(|status| status.outcome.as_ref());
            outcome.is_some_and(|outcome| outcome.code == code)
        }
    }
}

/// Returns the exit code of the wait.
fn exit_code(job: &Job, target: Option<WaitTarget>) -> Exit {
    match target {
        None | Some(WaitTarget::Ended) => state::exit_code(job),
        Some(target @ (WaitTarget::Waiting | WaitTarget::Phase(_) | WaitTarget::Code(_))) => {
            if is_reached(job, target) { Exit::Success } else { Exit::Error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use bloomery_testkit::objects::jobs::{ended, in_phase};
    use rstest::rstest;

    #[rstest]
    #[case::no_target(None, Some(Exit::Parked))]
    #[case::the_end(Some(WaitTarget::Ended), None)]
    #[case::that_it_waits(Some(WaitTarget::Waiting), Some(Exit::Success))]
    #[case::its_phase(Some(WaitTarget::Phase(Phase::AwaitingReply)), Some(Exit::Success))]
    #[case::another_phase(Some(WaitTarget::Phase(Phase::AwaitingApproval)), None)]
    #[case::a_code(Some(WaitTarget::Code(OutcomeCode::Succeeded)), None)]
    fn a_job_that_waits_for_people_ends_the_wait_for_that_state(
        #[case] target: Option<WaitTarget>,
        #[case] expected: Option<Exit>,
    ) {
        let job = in_phase(Phase::AwaitingReply);
        assert_eq!(is_done(&job, target).then(|| exit_code(&job, target)), expected);
    }

    #[rstest]
    #[case::no_target(None, Exit::Failed)]
    #[case::the_end(Some(WaitTarget::Ended), Exit::Failed)]
    #[case::that_it_waits(Some(WaitTarget::Waiting), Exit::Error)]
    #[case::its_phase(Some(WaitTarget::Phase(Phase::Failed)), Exit::Success)]
    #[case::another_phase(Some(WaitTarget::Phase(Phase::Running)), Exit::Error)]
    #[case::its_code(Some(WaitTarget::Code(OutcomeCode::StepLimit)), Exit::Success)]
    #[case::another_code(Some(WaitTarget::Code(OutcomeCode::Succeeded)), Exit::Error)]
    fn the_end_of_a_job_ends_every_wait(#[case] target: Option<WaitTarget>, #[case] expected: Exit) {
        let job = ended(&Outcome::new(OutcomeCode::StepLimit, "12 steps"));
        assert!(is_done(&job, target));
        assert_eq!(exit_code(&job, target), expected);
    }

    #[test]
    fn a_running_job_does_not_end_the_wait() {
        for phase in [Phase::Pending, Phase::Queued, Phase::Starting, Phase::Running, Phase::Finalizing] {
            assert!(!is_done(&in_phase(phase), None), "{phase}");
        }
    }
}
