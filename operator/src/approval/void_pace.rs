//! The pace at which Approvals are replaced.
//!
//! A changed admission policy can make every open Approval void at once. Each replacement deletes an object, and starts a
//! worker that reports its call again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum time between two replacements.
const INTERVAL: Duration = Duration::from_millis(200);

/// The next free slot, and the slots of the Jobs that wait, by UID.
#[derive(Debug, Default)]
pub struct VoidPace(Mutex<(Option<Instant>, HashMap<String, Instant>)>);

impl VoidPace {
    /// Returns how long a Job must wait before its Approvals may be replaced; none if they may be replaced now.
    pub fn wait(&self, job_uid: &str, now: Instant) -> Option<Duration> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, waiting) = &mut *slots;
        let slot = *waiting.entry(job_uid.to_owned()).or_insert_with(|| {
            let slot = next.map_or(now, |next| next.max(now));
            *next = Some(slot + INTERVAL);
            slot
        });
        let left = slot.checked_duration_since(now).filter(|left| !left.is_zero());
        if left.is_none() {
            waiting.remove(job_uid);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_gets_a_slot_and_keeps_it_until_it_is_used() {
        let (pace, start) = (VoidPace::default(), Instant::now());
        assert_eq!(pace.wait("a", start), None, "the first Job does not wait");
        assert_eq!(pace.wait("b", start), Some(INTERVAL));
        assert_eq!(pace.wait("c", start), Some(2 * INTERVAL));
        assert_eq!(pace.wait("b", start + INTERVAL / 2), Some(INTERVAL / 2), "asking again costs no slot");
        assert_eq!(pace.wait("c", start + 2 * INTERVAL), None);
        assert_eq!(pace.wait("b", start + 2 * INTERVAL), None);
        assert!(pace.0.lock().unwrap().1.is_empty());
    }
}
