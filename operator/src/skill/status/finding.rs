//! Findings: the conditions of a Skill, and what each means for the Skill as a whole.

use crate::apply::ApplyResult;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};

/// One condition, and what it means for the Skill as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The condition.
    pub(super) seen: Observation,
    /// What stands in the way of the Skill, if anything does.
    pub(super) blocker: Option<Blocker>,
}

/// What a Skill waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocker {
    /// A person has to do something.
    Person,
    /// It is on its way, or may come by itself.
    Time,
}

impl Finding {
    /// All is well.
    pub(super) fn healthy(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::holds(kind, reason, message), blocker: None }
    }

    /// It is on its way, or may come by itself.
    pub(super) fn waits(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), blocker: Some(Blocker::Time) }
    }

    /// A person has to do something.
    pub(super) fn stalls(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), blocker: Some(Blocker::Person) }
    }
}

/// Returns what is wrong with an applied object; none where it stands as it should.
pub(super) fn object_fault<K>(kind: ConditionType, what: &str, applied: &ApplyResult<K>) -> Option<Finding> {
    match applied {
        ApplyResult::Unchanged | ApplyResult::Written(_) | ApplyResult::CacheBehind => None,
        ApplyResult::BeingDeleted => Some(Finding::waits(
            kind,
            Reason::Progressing,
            format!("the {what} is being deleted; a new one is made after it"),
        )),
        ApplyResult::NameTaken => Some(Finding::stalls(
            kind,
            Reason::NameTaken,
            format!(
                "the {what} belongs to somebody else and is left as it is: delete or rename it, or give the Skill another name"
            ),
        )),
        ApplyResult::Replaced => Some(Finding::stalls(
            kind,
            Reason::Replaced,
            format!(
                "the {what} is not what the Skill says: somebody has made it anew, and what is immutable cannot be set \
                 right. Delete it (kubectl delete), and the operator writes it anew"
            ),
        )),
        ApplyResult::Refused(why) => {
            Some(Finding::stalls(kind, Reason::Refused, format!("the API server refuses the {what}: {why}")))
        }
    }
}
