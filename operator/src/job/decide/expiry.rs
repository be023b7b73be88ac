//! When a Job that has ended is deleted (`spec.ttlSecondsAfterFinished`).

use super::Facts;
use k8s_openapi::jiff::SignedDuration;

/// How long the Job may stay; none where that has no end, or it has not ended.
pub(super) fn left(facts: &Facts) -> Option<SignedDuration> {
    let ended = facts.status.completion_time.as_ref().filter(|_| facts.status.is_terminal())?;
    let ttl = SignedDuration::from_secs(facts.ttl?);
    Some(ttl - facts.now.duration_since(ended.0))
}
