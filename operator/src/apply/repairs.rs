//! The removals of what other writers added, and their bound.

use bloomery_crds::Digest;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the same additions are removed from an object within [`WINDOW`]. A writer that adds them again each time would
/// otherwise keep the operator busy.
const MAX_REPAIRS: u32 = 3;

/// The time after the last removal in which removals of the same additions are counted together.
const WINDOW: Duration = Duration::from_mins(1);

/// The maximum number of remembered objects. At the limit, all are forgotten.
const MAX_OBJECTS: usize = 8192;

/// The removals of the last additions to an object.
struct Removals {
    patch: Digest,
    count: u32,
    last: Instant,
}

/// The removals of the last additions to each object, by its UID.
#[derive(Default)]
pub(super) struct Repairs(Mutex<HashMap<String, Removals>>);

impl Repairs {
    /// Returns whether a removal with a patch of this digest may be tried: it was not done often enough a moment ago.
    pub(super) fn may_try(&self, uid: &str, patch: &Digest, now: Instant) -> bool {
        let repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(removals) = repairs.get(uid) else { return true };
        removals.count < MAX_REPAIRS || is_over(removals, patch, now)
    }

    /// Records that the API server has accepted a removal with a patch of this digest.
    pub(super) fn record(&self, uid: &str, patch: Digest, now: Instant) {
        let mut repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if repairs.len() >= MAX_OBJECTS {
            repairs.clear();
        }
        let counted = repairs.get(uid).filter(|removals| !is_over(removals, &patch, now));
        let count = counted.map_or(0, |removals| removals.count).saturating_add(1);
        repairs.insert(uid.to_owned(), Removals { patch, count, last: now });
    }
}

/// Returns whether earlier removals do not count for a removal with this patch.
fn is_over(removals: &Removals, patch: &Digest, now: Instant) -> bool {
    removals.patch != *patch || now.duration_since(removals.last) >= WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_additions_are_removed_a_bounded_number_of_times_in_a_minute() {
        let repairs = Repairs::default();
        let [one, other] = [1, 2].map(|value| Digest::of_value(&json!({ "spec": value })));
        let now = Instant::now();
        for _ in 0..MAX_REPAIRS {
            assert!(repairs.may_try("u-1", &one, now));
            repairs.record("u-1", one.clone(), now);
        }
        assert!(!repairs.may_try("u-1", &one, now));
        assert!(repairs.may_try("u-2", &one, now), "another object");
        assert!(repairs.may_try("u-1", &other, now), "other additions");
        assert!(repairs.may_try("u-1", &one, now + WINDOW), "later");
        repairs.record("u-1", one.clone(), now + WINDOW);
        assert!(repairs.may_try("u-1", &one, now + WINDOW), "the count begins again");
    }
}
