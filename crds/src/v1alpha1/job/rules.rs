//! The transition rules of a Job.
//!
//! The API server skips a rule on an optional field when the field is removed or set for the first time. Therefore each rule is
//! on a parent that cannot be removed, and handles both results of `has()`.

use kube::core::Rule;

/// A terminal phase never changes.
pub(super) fn terminal_is_final() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Succeeded', 'Failed', 'Refused', 'Escalated', 'Cancelled']) \
         || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)",
    )
    .message("a terminal phase never changes")
}

/// An outcome never changes.
pub(super) fn outcome_is_final() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.outcome) \
         || (has(self.status) && has(self.status.outcome) && self.status.outcome == oldSelf.status.outcome)",
    )
    .message("an outcome never changes")
}

/// The number of logged events never decreases.
pub(super) fn log_grows() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.log) \
         || (has(self.status) && has(self.status.log) && self.status.log.events >= oldSelf.status.log.events)",
    )
    .message("the number of logged events never decreases")
}

/// The numbers of attempts and epochs never decrease.
pub(super) fn attempts_grow() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.attempt) \
         || (has(self.status) && has(self.status.attempt) && self.status.attempt.number >= oldSelf.status.attempt.number \
         && (!has(oldSelf.status.attempt.epoch) || (has(self.status.attempt.epoch) && self.status.attempt.epoch >= oldSelf.status.attempt.epoch)))",
    )
    .message("attempts and epochs never decrease")
}

/// `skill` is immutable.
pub(super) fn skill_is_fixed() -> Rule {
    Rule::new("self.skill == oldSelf.skill").message("is immutable: create another Job").field_path(".skill")
}

/// `runKey` can be set once, before an attempt has named a log.
pub(super) fn run_key_is_set_once() -> Rule {
    Rule::new(
        "has(oldSelf.spec.runKey) ? (has(self.spec.runKey) && self.spec.runKey == oldSelf.spec.runKey) \
         : (!has(self.spec.runKey) || !has(oldSelf.status) || !has(oldSelf.status.attempt))",
    )
    .message("can be set once, before the first attempt: create another Job")
    .field_path(".spec.runKey")
}

/// `goal` is immutable.
pub(super) fn goal_is_fixed() -> Rule {
    Rule::new("self.goal == oldSelf.goal").message("is immutable: create another Job").field_path(".goal")
}

/// An optional field is immutable, and so is its absence.
pub(super) fn optional_is_fixed(field: &str) -> Rule {
    Rule::new(format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    ))
    .message("is immutable: create another Job")
    .field_path(format!(".{field}"))
}

/// `parent` is immutable.
pub(super) fn parent_is_fixed() -> Rule {
    optional_is_fixed("parent").message("is immutable: only the operator sets it, when it creates the Job")
}

/// A validation has a log of its own, because that of a conversation has no results of features.
pub(super) fn validation_has_its_own_run() -> Rule {
    Rule::new("!has(self.mode) || self.mode != 'Validate' || (!has(self.runKey) && !has(self.continues))")
        .message("a Job with mode: Validate has no runKey and no continues")
        .field_path(".mode")
}

/// A Job cannot continue itself, since it would wait for its own end.
pub(super) fn continues_another() -> Rule {
    Rule::new("!has(self.spec.continues) || self.spec.continues != self.metadata.name")
        .message("must name another Job: this one cannot continue itself")
        .field_path(".spec.continues")
}

/// A cancelled Job stays cancelled.
pub(super) fn cancel_stays() -> Rule {
    Rule::new("!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)")
        .message("cannot be taken back: create another Job")
        .field_path(".cancel")
}

/// Replies can only be added at the end, because the conversation may have received the existing ones.
pub(super) fn replies_only_grow() -> Rule {
    Rule::new(
        "!has(oldSelf.replies) || oldSelf.replies.size() == 0 || (has(self.replies) && self.replies.size() >= oldSelf.replies.size() \
         && oldSelf.replies.all(i, reply, self.replies[i] == reply))",
    )
    .message("may have been received: replies can only be added at the end")
    .field_path(".replies")
}

/// A limit can be lowered, but not raised or removed. `is_not_raised` is the CEL condition for the limit `field`.
pub(super) fn limits_only_fall(field: &str, is_not_raised: &str) -> Rule {
    Rule::new(format!(
        "!has(oldSelf.limits) || !has(oldSelf.limits.{field}) || (has(self.limits) && has(self.limits.{field}) && {is_not_raised})"
    ))
    .message(format!("{field} may be lowered, never raised or removed").as_str())
    .field_path(".limits")
}
