//! Findings: the conditions of a Skill, and what each means for the Skill as a whole.

use crate::apply::Applied;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};

/// One condition, and what it means for the Skill as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The condition.
    pub(super) seen: Observation,
    /// What stands in the way of the Skill, if anything does.
    pub(super) hinders: Option<Hindrance>,
}

/// What a Skill waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// A person has to do something.
    Person,
    /// It is on its way, or may come by itself.
    Time,
}

impl Finding {
    /// All is well.
    pub(super) fn well(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::holds(kind, reason, message), hinders: None }
    }

    /// It is on its way, or may come by itself.
    pub(super) fn waits(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), hinders: Some(Hindrance::Time) }
    }

    /// A person has to do something.
    pub(super) fn stalls(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { seen: Observation::fails(kind, reason, message), hinders: Some(Hindrance::Person) }
    }
}

/// Returns what is wrong with an applied object; none where it stands as it should.
pub(super) fn stands<K>(kind: ConditionType, what: &str, applied: &Applied<K>) -> Option<Finding> {
    match applied {
        Applied::Stands | Applied::Written(_) | Applied::Settling => None,
        Applied::Leaving => Some(Finding::waits(
            kind,
            Reason::Progressing,
            format!("the {what} is being deleted; a new one is made after it"),
        )),
        Applied::NameTaken => Some(Finding::stalls(
            kind,
            Reason::NameTaken,
            format!(
                "the {what} belongs to somebody else and is left as it is: delete or rename it, or give the Skill another name"
            ),
        )),
        Applied::Replaced => Some(Finding::stalls(
            kind,
            Reason::Replaced,
            format!(
                "the {what} is not what the Skill says: somebody has made it anew, and what is immutable cannot be set \
                 right. Delete it (kubectl delete), and the operator writes it anew"
            ),
        )),
        Applied::Refused(why) => {
            Some(Finding::stalls(kind, Reason::Refused, format!("the API server refuses the {what}: {why}")))
        }
    }
}
