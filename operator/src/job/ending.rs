//! The reason why the operator ends a Job.

use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::JobStatus;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{stamp, status};
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
}
