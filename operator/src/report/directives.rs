//! The directives in the response to a report: a pure function of the newest state of the Job that this replica has
//! read.

use crate::caches::Caches;
use crate::children::family::is_cancelled;
use crate::job::ending::EndCause;
use bloomery_crds::report::{Directives, Report};
use bloomery_crds::v1alpha1::{Job, Skill};
use kube::ResourceExt;

/// The demands of other objects and of the spec to stop the worker of a Job.
#[derive(Debug, Clone, Copy, Default)]
pub struct StopDemands {
    /// Whether the Job is cancelled, by its spec or because it has lost its parent.
    pub cancelled: bool,
    /// Whether the namespace is suspended.
    pub suspended: bool,
}

impl StopDemands {
    /// Reads the demands on a Job from the caches.
    pub fn read(caches: &Caches, job: &Job) -> Self {
        let suspended = caches.is_suspended(&job.namespace().unwrap_or_default());
        Self { cancelled: is_cancelled(caches, job), suspended }
    }
}

/// Returns the directives for the worker of a report. `skill` is the current Skill of the Job. `ack` is the number of acknowledged
/// events. Directives are repeated as long as they apply, so a worker may miss any of them.
pub fn directives(job: &Job, skill: Option<&Skill>, stop: StopDemands, report: &Report, ack: u64) -> Directives {
    let others = Directives {
        ack,
        limits: job.spec.limits.clone(),
        blocked_tools: skill.map(|skill| blocked_tools(job, skill)).unwrap_or_default(),
        ..Directives::default()
    };
    with_interruptions(others, job, stop, report.projection.replies_heard)
}

/// Replaces the directives that interrupt a worker by those for the newest state of its Job. `heard` is the number of replies that the
/// conversation has received.
pub fn with_interruptions(directives: Directives, job: &Job, stop: StopDemands, heard: u32) -> Directives {
    Directives {
        cancel: stop.cancelled,
        skill_deleted: job.status.as_ref().and_then(EndCause::recorded) == Some(EndCause::SkillDeleted),
        park: stop.suspended,
        replies: job.spec.replies_after(heard).collect(),
        ..directives
    }
}

/// Returns the tools that the Skill blocks, if its current revision is not that of the Job. The Job stays on its revision, but a tool that the
/// author has blocked since is not called any more.
fn blocked_tools(job: &Job, skill: &Skill) -> Vec<String> {
    let of_job = job.status.as_ref().and_then(|status| status.skill_revision.as_ref());
    let current = skill.status.as_ref().and_then(|status| status.revision.as_ref());
    let tools = skill.spec.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    tools.filter(|_| of_job != current).map(|tools| tools.blocked.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures;
    use bloomery_crds::conditions::{self, Health, Reason};
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::{Limits, Reply, RevisionRef, SkillStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    fn report(heard: u32) -> Report {
        let mut report = fixtures::report(1, 1, 4, Phase::Running);
        report.projection.replies_heard = heard;
        report
    }

    #[test]
    fn a_report_without_directives_is_only_acknowledged() {
        let sent = directives(&fixtures::job(), None, StopDemands::default(), &report(0), 4);
        assert_eq!(sent, Directives { ack: 4, ..Directives::default() });
    }

    #[test]
    fn a_cancelled_job_and_a_suspended_namespace_have_separate_directives() {
        let sent = |cancelled, suspended| {
            let sent = directives(&fixtures::job(), None, StopDemands { cancelled, suspended }, &report(0), 4);
            (sent.cancel, sent.park)
        };
        for demanded in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(sent(demanded.0, demanded.1), demanded);
        }
    }

    #[test]
    fn a_deleted_skill_is_a_directive_as_long_as_the_status_records_it() {
        let mut job = fixtures::job();
        let mut status = fixtures::status(1, Phase::Running);
        let observations = Health::Reconciling(Reason::SkillDeleted, "the Skill was deleted".into()).observations();
        status.conditions = conditions::merge(&[], &observations, Some(1), &Time(fixtures::at(0)));
        job.status = Some(status);
        let sent = directives(&job, None, StopDemands::default(), &report(0), 4);
        assert_eq!((sent.skill_deleted, sent.cancel, sent.park), (true, false, false));
    }

    #[test]
    fn the_limits_of_the_job_are_repeated_with_every_response() {
        let mut job = fixtures::job();
        assert_eq!(directives(&job, None, StopDemands::default(), &report(0), 4).limits, None);
        job.spec.limits = Some(Limits { steps: Some(3), ..Limits::default() });
        assert_eq!(directives(&job, None, StopDemands::default(), &report(0), 4).limits, job.spec.limits);
    }

    #[test]
    fn the_blocked_tools_of_a_later_revision_reach_the_worker() {
        let mut job = fixtures::job();
        job.status = Some(fixtures::status(1, Phase::Running));
        let mut skill = crate::skill::fixtures::without_server();
        skill.spec.policy = Some(serde_json::from_value(json!({ "tools": { "blocked": ["send_*"] } })).unwrap());
        let status = |revision| SkillStatus { revision: Some(revision), ..SkillStatus::default() };
        skill.status = Some(status(fixtures::revision()));
        assert!(
            directives(&job, Some(&skill), StopDemands::default(), &report(0), 4).blocked_tools.is_empty(),
            "it is the Job's revision"
        );
        skill.status = Some(status(RevisionRef { name: "cs-tier-1-later".into(), ..fixtures::revision() }));
        assert_eq!(directives(&job, Some(&skill), StopDemands::default(), &report(0), 4).blocked_tools, ["send_*"]);
    }

    #[test]
    fn replies_are_repeated_until_they_are_heard_and_keep_their_numbers() {
        let mut job = fixtures::job();
        let reply =
            |question: Option<&str>, text: &str| Reply { question: question.map(str::to_owned), text: text.into() };
        job.spec.replies = vec![reply(Some("q-1"), "A-17"), reply(None, "be quick"), reply(Some("q-2"), "no")];
        let replies_after = |heard| {
            let replies = directives(&job, None, StopDemands::default(), &report(heard), 4).replies;
            replies.into_iter().map(|reply| (reply.nth, reply.question, reply.text)).collect::<Vec<_>>()
        };
        assert_eq!(replies_after(0).len(), 3);
        assert_eq!(replies_after(1), [(2, None, "be quick".into()), (3, Some("q-2".into()), "no".into())]);
        assert_eq!((replies_after(3), replies_after(9)), (vec![], vec![]));
    }
}
