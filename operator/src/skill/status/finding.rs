//! Findings of the operator on a Skill in the cluster: its conditions, and their effect on the Skill as a whole. (The
//! findings of `bloomery lint` are another type: they concern the text of a Skill.)

use crate::apply::ApplyResult;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};

/// One condition, and its effect on the Skill as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The condition.
    pub(super) observation: Observation,
    /// Set if the condition keeps the Skill from being ready.
    pub(super) blocker: Option<Blocker>,
}

/// What has to happen before a Skill can become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocker {
    /// A person has to act.
    Person,
    /// An object has to start, to be deleted, or to appear. This needs no change of the Skill.
    Progress,
}

impl Finding {
    /// A finding that does not block the Skill.
    pub(super) fn healthy(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { observation: Observation::holds(kind, reason, message), blocker: None }
    }

    /// A finding that may pass by itself.
    pub(super) fn waits(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { observation: Observation::fails(kind, reason, message), blocker: Some(Blocker::Progress) }
    }

    /// A finding that a person has to fix.
    pub(super) fn stalls(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { observation: Observation::fails(kind, reason, message), blocker: Some(Blocker::Person) }
    }
}

/// Returns the fault of an applied object; none if it is in the wanted state.
pub(super) fn object_fault<K>(kind: ConditionType, what: &str, applied: &ApplyResult<K>) -> Option<Finding> {
    match applied {
        ApplyResult::Unchanged | ApplyResult::Written(_) | ApplyResult::CacheBehind | ApplyResult::Reverted(_) => None,
        ApplyResult::BeingDeleted => Some(Finding::waits(
            kind,
            Reason::Progressing,
            format!("the {what} is being deleted; a new one is created after that"),
        )),
        ApplyResult::NameTaken => Some(Finding::stalls(
            kind,
            Reason::NameTaken,
            format!(
                "the {what} has another owner and is left unchanged: delete or rename it, or give the Skill another name"
            ),
        )),
        ApplyResult::Replaced => Some(Finding::stalls(
            kind,
            Reason::Replaced,
            format!(
                "the {what} does not match the Skill: it was deleted and created again with other content, and is immutable. \
                 Delete it (kubectl delete), and the operator creates it again"
            ),
        )),
        ApplyResult::Refused(why) => {
            Some(Finding::stalls(kind, Reason::Refused, format!("the API server refuses the {what}: {why}")))
        }
    }
}
