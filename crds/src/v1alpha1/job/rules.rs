//! The transition rules of a Job.
//!
//! A rule on an optional field is skipped when the field is removed or first set, so each rule sits on a
//! parent that cannot be removed and names both `has()` states (`docs/explanation/design.md`, section 3).

use kube::core::Rule;

/// A Job that has ended stays ended, whoever writes, and in the phase in which it ended.
pub(super) fn terminal_is_final() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Succeeded', 'Failed', 'Refused', 'Escalated', 'Cancelled']) \
         || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)",
    )
    .message("a terminal phase is never left")
}

/// An outcome is written once.
pub(super) fn outcome_is_final() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.outcome) \
         || (has(self.status) && has(self.status.outcome) && self.status.outcome == oldSelf.status.outcome)",
    )
    .message("an outcome is never changed")
}

/// The count of logged events never falls.
pub(super) fn log_grows() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.log) \
         || (has(self.status) && has(self.status.log) && self.status.log.events >= oldSelf.status.log.events)",
    )
    .message("the log never shrinks")
}

/// Attempts and their epochs are counted upwards.
pub(super) fn attempts_grow() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.attempt) \
         || (has(self.status) && has(self.status.attempt) && self.status.attempt.number >= oldSelf.status.attempt.number \
         && (!has(oldSelf.status.attempt.epoch) || (has(self.status.attempt.epoch) && self.status.attempt.epoch >= oldSelf.status.attempt.epoch)))",
    )
    .message("attempts and epochs never go back")
}

/// What a Job was asked is fixed: its Skill.
pub(super) fn skill_is_fixed() -> Rule {
    Rule::new("self.skill == oldSelf.skill")
        .message("is fixed once a Job is made: make another Job")
        .field_path(".skill")
}

/// What a Job was asked is fixed: its goal.
pub(super) fn goal_is_fixed() -> Rule {
    Rule::new("self.goal == oldSelf.goal").message("is fixed once a Job is made: make another Job").field_path(".goal")
}

/// What a Job was asked is fixed: what it binds.
pub(super) fn resources_are_fixed() -> Rule {
    Rule::new(
        "has(self.resources) == has(oldSelf.resources) && (!has(self.resources) || self.resources == oldSelf.resources)",
    )
    .message("is fixed once a Job is made: make another Job")
    .field_path(".resources")
}

/// What a Job was asked is fixed: what it continues.
pub(super) fn continues_is_fixed() -> Rule {
    Rule::new(
        "has(self.continues) == has(oldSelf.continues) && (!has(self.continues) || self.continues == oldSelf.continues)",
    )
    .message("is fixed once a Job is made: make another Job")
    .field_path(".continues")
}

/// A Job that continued itself would wait for its own end.
pub(super) fn continues_another() -> Rule {
    Rule::new("!has(self.spec.continues) || self.spec.continues != self.metadata.name")
        .message("must name another Job: this one cannot continue itself")
        .field_path(".spec.continues")
}

/// A Job that was cancelled stays so.
pub(super) fn cancel_stays() -> Rule {
    Rule::new("!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)")
        .message("cannot be taken back: make another Job")
        .field_path(".cancel")
}

/// Replies may have been heard already: they are neither changed nor removed, and none is put before another.
pub(super) fn replies_only_grow() -> Rule {
    Rule::new(
        "!has(oldSelf.replies) || oldSelf.replies.size() == 0 || (has(self.replies) && self.replies.size() >= oldSelf.replies.size() \
         && oldSelf.replies.all(i, reply, self.replies[i] == reply))",
    )
    .message("may have been heard: add to the end, and leave those before as they are")
    .field_path(".replies")
}

/// A limit that was set can be lowered, never raised or removed.
pub(super) fn limits_only_fall(field: &str, falls: &str) -> Rule {
    Rule::new(format!(
        "!has(oldSelf.limits) || !has(oldSelf.limits.{field}) || (has(self.limits) && has(self.limits.{field}) && {falls})"
    ))
    .message(format!("{field} may be lowered, never raised or removed").as_str())
    .field_path(".limits")
}
