//! The feedback for the model about an answer that did not pass.

use bloomery_crds::v1alpha1::FinalizationAttempt;

/// Returns the feedback about a form error.
pub(super) fn form_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer cannot be used as it is: {}. Give the whole answer again, with exactly one ```json block that \
         holds every required field. Do not repeat tool calls that have succeeded.",
        faults(attempt)
    )
}

/// Returns the feedback about a failed attempt.
pub(super) fn attempt_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer did not pass: {}. Find out what is missing with a tool call that you have not made yet, then \
         answer again. An answer without new evidence ends the Job.",
        faults(attempt)
    )
}

/// Returns the feedback about an attempt that failed only for its wording. If its content is incomplete, the model may add to it.
pub(super) fn rewording_feedback(attempt: &FinalizationAttempt, may_add: bool) -> String {
    let task = if may_add { "Complete it from what you already know" } else { "Only its wording has to change" };
    format!(
        "Your answer did not pass: {}. {task}: write the whole answer again, without another tool call. Keep the numbers, URLs \
         and field values as they were.",
        faults(attempt)
    )
}

/// Returns the feedback about a failed attempt that a person has clarified.
pub(super) fn clarification_feedback(attempt: &FinalizationAttempt, answer: &str) -> String {
    format!("Your answer did not pass: {}. The user was asked about it, and says: {answer}", faults(attempt))
}

/// Returns the faults of an attempt as one line.
pub(crate) fn faults(attempt: &FinalizationAttempt) -> String {
    attempt.reasons.iter().map(|reason| reason.detail.as_str()).collect::<Vec<_>>().join("; ")
}
