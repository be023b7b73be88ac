//! `bloomery wait`: watches a Job until it reaches a state.

use super::client::{Client, deleted_error};
use super::cluster_command::ClusterCommand;
use super::state::DecisionState;
use super::{show, state, watch};
use crate::args::{Goal, WaitArgs};
use crate::cluster::Right;
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, text};
use bloomery_crds::v1alpha1::Job;
use kube::{Api, ResourceExt};
use std::cell::RefCell;
use std::time::Duration;

/// Waits for a Job.
pub(super) async fn run(args: &WaitArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let client = Client::open(command).await?;
    let job = client.job(&args.job).await?;
    let job = until(&client, &job, args.goal, args.timeout).await?;
    match args.output {
        Some(form) => output::print(&show::object(&job, form)?)?,
        None => output::print(&format!("skilljob.bloomery.dev/{} {}\n", args.job, state::summary(&job)))?,
    }
    if state::waits_for_people(&job) {
        for hint in state::hints(&job, &client.decision_state(&job).await, command) {
            text::inform(&hint);
        }
    }
    Ok(exit_code(&job, args.goal))
}

/// Waits until a Job reaches a state, or cannot reach it any more.
///
/// # Errors
/// If it cannot be watched, is deleted, or the timeout has passed.
pub(super) async fn until(
    client: &Client,
    job: &Job,
    goal: Option<Goal>,
    timeout: Option<Duration>,
) -> Result<Job, Error> {
    let (name, uid) = (job.name_any(), job.uid());
    let api: Api<Job> = Api::namespaced(client.cluster.watch_client.clone(), &client.cluster.namespace);
    let only = watch::Selector::name(&name);
    let last = RefCell::new(job.clone());
    let seen = async {
        let (mut answered, mut is_told): (Option<Job>, bool) = (None, false);
        loop {
            let is_news = |job: &Job| answered.as_ref().is_none_or(|known| known.status != job.status);
            let seen = watch::until(&api, &only, |jobs| match jobs.get(&name) {
                Some(job) if job.uid() == uid => {
                    let before = last.replace(job.clone());
                    if state::is_suspended(job) && !(is_told && state::is_suspended(&before)) {
                        is_told = true;
                        text::inform(&format!("The Job {name} is waiting: {}", state::summary_with_reason(job)));
                    }
                    (is_done(job, goal) && is_news(job)).then(|| Ok(job.clone()))
                }
                Some(_) | None => Some(Err(deleted_error(&name))),
            });
            match seen.await {
                Ok(Ok(job))
                    if goal.is_none()
                        && state::waits_for_people(&job)
                        && goes_on(&client.decision_state(&job).await) =>
                {
                    answered = Some(job);
                }
                seen => break seen,
            }
        }
    };
    let seen = match timeout {
        None => seen.await,
        Some(timeout) => tokio::time::timeout(timeout, seen).await.map_err(|_| Error {
            exit: Exit::TooLate,
            message: format!("timed out waiting for the Job {name}: {}", state::summary_with_reason(&last.borrow())),
        })?,
    };
    match seen {
        Ok(found) => found,
        Err(error) => {
            let rights = ["list", "watch"].map(Right::on_jobs).to_vec();
            Err(client.cluster.refused(&format!("watching the Job {name}"), &error, rights).await)
        }
    }
}

/// Returns whether a Job with a held call continues soon.
fn goes_on(deciding: &DecisionState) -> bool {
    match deciding {
        DecisionState::Decided | DecisionState::Expired => true,
        DecisionState::NoCall | DecisionState::NotAsked(_) | DecisionState::Open(_) => false,
    }
}

/// Returns whether the wait is over.
fn is_done(job: &Job, goal: Option<Goal>) -> bool {
    let comes = match goal {
        None => state::waits_for_people(job),
        Some(goal) => is_reached(job, goal),
    };
    comes || state::has_ended(job)
}

/// Returns whether a Job has reached a state.
fn is_reached(job: &Job, goal: Goal) -> bool {
    match goal {
        Goal::Ended => state::has_ended(job),
        Goal::Waiting => state::waits_for_people(job),
        Goal::Phase(phase) => state::phase(job) == phase,
        Goal::Code(code) => {
            let outcome = job.status.as_ref().and_then(|status| status.outcome.as_ref());
            outcome.is_some_and(|outcome| outcome.code == code)
        }
    }
}

/// Returns the exit code of the wait.
fn exit_code(job: &Job, goal: Option<Goal>) -> Exit {
    match goal {
        None | Some(Goal::Ended) => state::exit_code(job),
        Some(goal @ (Goal::Waiting | Goal::Phase(_) | Goal::Code(_))) => {
            if is_reached(job, goal) {
                Exit::Success
            } else {
                Exit::Error
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{ended, in_phase};
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use rstest::rstest;

    #[rstest]
    #[case::people(None, Some(Exit::Parked))]
    #[case::the_end(Some(Goal::Ended), None)]
    #[case::that_it_waits(Some(Goal::Waiting), Some(Exit::Success))]
    #[case::its_phase(Some(Goal::Phase(Phase::AwaitingReply)), Some(Exit::Success))]
    #[case::another_phase(Some(Goal::Phase(Phase::AwaitingApproval)), None)]
    #[case::a_code(Some(Goal::Code(OutcomeCode::Succeeded)), None)]
    fn a_job_that_waits_for_people(#[case] goal: Option<Goal>, #[case] expected: Option<Exit>) {
        let job = in_phase(Phase::AwaitingReply);
        assert_eq!(is_done(&job, goal).then(|| exit_code(&job, goal)), expected);
    }

    #[rstest]
    #[case::anything(None, Exit::Failed)]
    #[case::the_end(Some(Goal::Ended), Exit::Failed)]
    #[case::that_it_waits(Some(Goal::Waiting), Exit::Error)]
    #[case::its_phase(Some(Goal::Phase(Phase::Failed)), Exit::Success)]
    #[case::another_phase(Some(Goal::Phase(Phase::Running)), Exit::Error)]
    #[case::its_code(Some(Goal::Code(OutcomeCode::StepLimit)), Exit::Success)]
    #[case::another_code(Some(Goal::Code(OutcomeCode::Succeeded)), Exit::Error)]
    fn a_job_that_has_ended(#[case] goal: Option<Goal>, #[case] expected: Exit) {
        let job = ended(&Outcome::new(OutcomeCode::StepLimit, "12 steps"));
        assert!(is_done(&job, goal));
        assert_eq!(exit_code(&job, goal), expected);
    }

    #[test]
    fn a_job_at_work_is_waited_for() {
        for phase in [Phase::Pending, Phase::Queued, Phase::Starting, Phase::Running, Phase::Finalizing] {
            assert!(!is_done(&in_phase(phase), None), "{phase}");
        }
    }
}
