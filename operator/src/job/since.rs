//! Since when this process knows of each Job that it is given up: the API server does not say when a field was set. A new
//! leader begins anew, which only gives a worker more time.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many Jobs are kept before old ones are dropped.
const REMEMBERED: usize = 4096;

/// How old is old: a Job that is being given up for so long has a pod on a lost node.
const OLD: SignedDuration = SignedDuration::from_hours(1);

/// Since when each Job is known to be given up, by its UID.
#[derive(Debug, Default)]
pub struct Since(Mutex<HashMap<String, Timestamp>>);

impl Since {
    /// Since when this Job is known to be given up: now, where it was not known before, or the clock was set back.
    pub fn of(&self, uid: &str, now: Timestamp) -> Timestamp {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, since| now.duration_since(*since) < OLD);
        }
        let since = known.entry(uid.to_owned()).or_insert(now);
        *since = now.min(*since);
        *since
    }

    /// Forgets a Job that has ended.
    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::at;

    #[test]
    fn what_is_known_first_counts_until_the_job_has_ended() {
        let known = Since::default();
        assert_eq!((known.of("a", at(1)), known.of("a", at(9)), known.of("b", at(9))), (at(1), at(1), at(9)));
        assert_eq!(known.of("a", at(-3600)), at(-3600), "a clock that was set back gives nobody more time");
        assert_eq!(known.of("a", at(10)), at(-3600));
        known.forget("a");
        assert_eq!(known.of("a", at(20)), at(20));
    }

    #[test]
    fn what_is_old_makes_room() {
        let known = Since::default();
        for job in 0..REMEMBERED {
            known.of(&job.to_string(), at(0));
        }
        known.of("late", at(3600));
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}
