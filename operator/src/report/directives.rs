//! The directives in the response to a report: a pure function of the newest state of the Job that this replica has
//! read.

use crate::job::ending::EndCause;
use bloomery_crds::report::{Directives, Report};
use bloomery_crds::v1alpha1::Job;

/// Returns the directives for the worker of a report. `ack` is the number of acknowledged events, and `suspended`
/// says whether the namespace is suspended. Directives are repeated as long as they apply, so a worker may miss any of
/// them.
/// `prune` has the run keys of the report's survey whose logs no Job needs.
pub fn directives(job: &Job, suspended: bool, report: &Report, ack: u64, prune: Vec<String>) -> Directives {
    Directives {
        ack,
        cancel: job.spec.cancel == Some(true),
        skill_deleted: job.status.as_ref().and_then(EndCause::recorded) == Some(EndCause::SkillDeleted),
        park: suspended,
        prune,
        replies: job.spec.replies_after(report.projection.replies_heard).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures;
    use bloomery_crds::conditions::{self, Health, Reason};
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::Reply;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn report(heard: u32) -> Report {
        let mut report = fixtures::report(1, 1, 4, Phase::Running);
        report.projection.replies_heard = heard;
        report
    }

    #[test]
    fn a_report_without_directives_is_only_acknowledged() {
        let sent = directives(&fixtures::job(), false, &report(0), 4, Vec::new());
        assert_eq!(sent, Directives { ack: 4, ..Directives::default() });
        let mut not_cancelled = fixtures::job();
        not_cancelled.spec.cancel = Some(false);
        assert!(!directives(&not_cancelled, false, &report(0), 4, Vec::new()).cancel);
    }

    #[test]
    fn a_cancelled_job_and_a_suspended_namespace_have_separate_directives() {
        let mut job = fixtures::job();
        assert!(directives(&job, true, &report(0), 4, Vec::new()).park);
        job.spec.cancel = Some(true);
        let sent = directives(&job, true, &report(0), 4, Vec::new());
        assert_eq!((sent.cancel, sent.park), (true, true));
        assert!(!directives(&job, false, &report(0), 4, Vec::new()).park);
    }

    #[test]
    fn a_deleted_skill_is_a_directive_as_long_as_the_status_records_it() {
        let mut job = fixtures::job();
        let mut status = fixtures::status(1, Phase::Running);
        let observations = Health::Reconciling(Reason::SkillDeleted, "the Skill was deleted".into()).observations();
        status.conditions = conditions::merge(&[], &observations, Some(1), &Time(fixtures::at(0)));
        job.status = Some(status);
        let sent = directives(&job, false, &report(0), 4, Vec::new());
        assert_eq!((sent.skill_deleted, sent.cancel, sent.park), (true, false, false));
    }

    #[test]
    fn replies_are_repeated_until_they_are_heard_and_keep_their_numbers() {
        let mut job = fixtures::job();
        let reply =
            |question: Option<&str>, text: &str| Reply { question: question.map(str::to_owned), text: text.into() };
        job.spec.replies = vec![reply(Some("q-1"), "A-17"), reply(None, "be quick"), reply(Some("q-2"), "no")];
        let replies_after = |heard| {
            let replies = directives(&job, false, &report(heard), 4, Vec::new()).replies;
            replies.into_iter().map(|reply| (reply.nth, reply.question, reply.text)).collect::<Vec<_>>()
        };
        assert_eq!(replies_after(0).len(), 3);
        assert_eq!(replies_after(1), [(2, None, "be quick".into()), (3, Some("q-2".into()), "no".into())]);
        assert_eq!((replies_after(3), replies_after(9)), (vec![], vec![]));
    }
}
