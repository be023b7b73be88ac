//! The time at which this process first saw a state of an object, if the API server does not record it.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The number of remembered objects from which old ones are dropped.
const CLEANUP_THRESHOLD: usize = 4096;

/// The age at which a remembered object may be dropped: an object that stays in a state for so long is stuck or gone.
const MAX_REMEMBERED_AGE: SignedDuration = SignedDuration::from_hours(1);

/// The time at which this process first saw a state of each object, by UID. A new leader starts with an empty map.
#[derive(Debug, Default)]
pub struct FirstSeen(Mutex<HashMap<String, Timestamp>>);

impl FirstSeen {
    /// Returns when the state of this object was first seen: now, if it was not known, or if the clock was set back.
    pub fn first_seen(&self, uid: &str, now: Timestamp) -> Timestamp {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLEANUP_THRESHOLD {
            known.retain(|_, since| now.duration_since(*since) < MAX_REMEMBERED_AGE);
        }
        let since = known.entry(uid.to_owned()).or_insert(now);
        *since = now.min(*since);
        *since
    }

    /// Removes an object that is no longer in the state.
    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::at;

    #[test]
    fn the_first_time_is_kept_until_the_object_is_forgotten() {
        let known = FirstSeen::default();
        let first = |uid, seconds| known.first_seen(uid, at(seconds));
        assert_eq!((first("a", 1), first("a", 9), first("b", 9)), (at(1), at(1), at(9)));
        assert_eq!(first("a", -3600), at(-3600), "a clock that was set back does not extend the time");
        assert_eq!(first("a", 10), at(-3600));
        known.forget("a");
        assert_eq!(first("a", 20), at(20));
    }

    #[test]
    fn old_objects_are_dropped_at_the_limit() {
        let known = FirstSeen::default();
        for object in 0..CLEANUP_THRESHOLD {
            known.first_seen(&object.to_string(), at(0));
        }
        known.first_seen("late", at(3600));
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}
