//! What the model is told when its answer does not pass.

use bloomery_crds::v1alpha1::FinalizationAttempt;

/// What the model is told of a form error.
pub fn form_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer cannot be used as it is: {}. Give the whole answer again, with exactly one ```json block that \
         holds every required field. Do not repeat tool calls that have succeeded.",
        told(attempt)
    )
}

/// What the model is told of a failed attempt.
pub fn attempt_feedback(attempt: &FinalizationAttempt) -> String {
    format!(
        "Your answer did not pass: {}. Find out what is missing with a tool call that you have not made yet, then \
         answer again. An answer without new evidence ends the Job.",
        told(attempt)
    )
}

/// What the model is told of a failed attempt when a person has said what was missing.
pub fn clarified(attempt: &FinalizationAttempt, answer: &str) -> String {
    format!("Your answer did not pass: {}. The user was asked about it, and says: {answer}", told(attempt))
}

/// The faults of an attempt, in a row.
pub fn told(attempt: &FinalizationAttempt) -> String {
    attempt.reasons.iter().map(|reason| reason.detail.as_str()).collect::<Vec<_>>().join("; ")
}
