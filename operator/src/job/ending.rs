//! The reason why the operator ends a Job, and the time at which this process first saw the Job ending.

use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::JobStatus;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The number of remembered Jobs from which old ones are dropped.
const CLEANUP_THRESHOLD_JOBS: usize = 4096;

/// The age at which a remembered Job may be dropped: a Job that has been ending for so long has its pod on a lost node.
const MAX_REMEMBERED_AGE: SignedDuration = SignedDuration::from_hours(1);

/// The reason why the operator ends a Job, even if its worker continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// A person cancelled the Job.
    Cancelled,
    /// The Skill of the Job was deleted.
    SkillDeleted,
}

impl EndCause {
    /// The outcome code of the Job, unless its worker reports another outcome.
    pub fn code(self) -> OutcomeCode {
        match self {
            Self::Cancelled => OutcomeCode::Cancelled,
            Self::SkillDeleted => OutcomeCode::SkillDeleted,
        }
    }

    /// The reason of the condition `Reconciling` until the Job has ended.
    pub fn reason(self) -> Reason {
        match self {
            Self::Cancelled => Reason::Cancelling,
            Self::SkillDeleted => Reason::SkillDeleted,
        }
    }

    /// Returns the cause that the status of a Job records; none if the status does not say that the Job is ending. Every
    /// replica and the next leader read the cause there.
    pub fn recorded(status: &JobStatus) -> Option<Self> {
        let reason = reason_of(&status.conditions, ConditionType::Reconciling)?;
        [Self::Cancelled, Self::SkillDeleted].into_iter().find(|cause| cause.reason() == reason)
    }
}

/// The time at which this process first saw each Job ending, by UID.
///
/// The API server does not record when a field such as `spec.cancel` was set. A new leader starts with an empty map, so
/// it gives the worker the whole time again.
#[derive(Debug, Default)]
pub struct EndingSince(Mutex<HashMap<String, Timestamp>>);

impl EndingSince {
    /// Returns when this Job was first seen ending: now, if it was not known, or if the clock was set back.
    pub fn first_seen(&self, uid: &str, now: Timestamp) -> Timestamp {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLEANUP_THRESHOLD_JOBS {
            known.retain(|_, since| now.duration_since(*since) < MAX_REMEMBERED_AGE);
        }
        let since = known.entry(uid.to_owned()).or_insert(now);
        *since = now.min(*since);
        *since
    }

    /// Removes a Job that has ended.
    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{at, stamp, status};
    use bloomery_crds::conditions::{Health, merge};
    use bloomery_crds::outcome::Phase;
    use rstest::rstest;

    #[rstest]
    #[case::cancelled(Reason::Cancelling, Some(EndCause::Cancelled))]
    #[case::without_a_skill(Reason::SkillDeleted, Some(EndCause::SkillDeleted))]
    #[case::running(Reason::Running, None)]
    fn a_status_records_the_cause_of_the_end_in_its_reason(#[case] reason: Reason, #[case] expected: Option<EndCause>) {
        let mut status = status(1, Phase::Running);
        assert_eq!(EndCause::recorded(&status), None);
        let seen = Health::Reconciling(reason, "because".into()).observations();
        status.conditions = merge(&[], &seen, Some(3), &stamp(1).now);
        assert_eq!(EndCause::recorded(&status), expected);
    }

    #[test]
    fn the_first_time_is_kept_until_the_job_has_ended() {
        let known = EndingSince::default();
        let first = |uid, seconds| known.first_seen(uid, at(seconds));
        assert_eq!((first("a", 1), first("a", 9), first("b", 9)), (at(1), at(1), at(9)));
        assert_eq!(first("a", -3600), at(-3600), "a clock that was set back does not extend the time");
        assert_eq!(first("a", 10), at(-3600));
        known.forget("a");
        assert_eq!(first("a", 20), at(20));
    }

    #[test]
    fn old_jobs_are_dropped_at_the_limit() {
        let known = EndingSince::default();
        for job in 0..CLEANUP_THRESHOLD_JOBS {
            known.first_seen(&job.to_string(), at(0));
        }
        known.first_seen("late", at(3600));
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}
