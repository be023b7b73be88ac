//! The retries of a Job whose pod, or the NetworkPolicy of this pod, the API server refuses. The cause, such as an admission webhook that is
//! down, is not watched.

use super::applied::AppliedPlan;
use super::plan::Wait;
use crate::first_seen::FirstSeen;
use bloomery_crds::conditions::Reason;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The time before the first retry.
const FIRST_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// The longest time between two retries.
const MAX_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// Returns when a refused Job tries again; none if it is not refused. It waits as long as it has been refused, so the intervals double.
/// The queue decides about a Job whose pod a quota refused.
pub(super) fn retry_after(
    refused_since: &FirstSeen,
    uid: &str,
    applied: &AppliedPlan,
    now: Timestamp,
) -> Option<SignedDuration> {
    let AppliedPlan::Waiting(Wait { reason: Reason::PodNotStarting | Reason::Refused | Reason::NameTaken, .. }, _) =
        applied
    else {
        refused_since.forget(uid);
        return None;
    };
    let refused_for = now.duration_since(refused_since.first_seen(uid, now));
    Some(refused_for.clamp(FIRST_INTERVAL, MAX_INTERVAL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::at;

    #[test]
    fn the_intervals_grow_until_the_job_is_no_longer_refused() {
        let since = FirstSeen::default();
        let refused = AppliedPlan::Waiting(Wait::new(Reason::PodNotStarting, "a webhook is down"), None);
        let retry = |second| retry_after(&since, "u", &refused, at(second)).map(|retry| retry.as_secs());
        assert_eq!([0, 1, 2, 4, 8, 300].map(retry), [1, 1, 2, 4, 8, 60].map(Some));
        assert_eq!(retry_after(&since, "u", &AppliedPlan::Nothing, at(301)), None);
        assert_eq!(retry(302), Some(1));
    }
}
