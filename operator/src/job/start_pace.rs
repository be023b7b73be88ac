//! The pace of attempts whose log makes no progress. A fault that no other limit covers, such as decisions that the operator
//! counts and the worker does not accept, must not start one pod after another.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The events of an attempt that makes no progress: `epoch.started` and `parked`.
const EVENTS_WITHOUT_PROGRESS: u64 = 2;

/// The longest time between the starts of two attempts. The first one is 1 s, and each is twice as long as the one before.
const MAX_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The number of remembered Jobs from which old ones are dropped.
const CLEANUP_THRESHOLD_JOBS: usize = 4096;

/// The latest start of an attempt of a Job.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Timestamp,
    /// The number of events in the log, as the status recorded it.
    events: u64,
    /// The number of attempts before it, in a row, whose log made no progress.
    idle: u32,
}

/// The latest start of each Job, by UID. A new leader starts with an empty map, so it starts at most one more attempt.
#[derive(Debug, Default)]
pub struct StartPace(Mutex<HashMap<String, Start>>);

impl StartPace {
    /// Returns how long the next attempt of a Job has to wait; none if it may start now. `events` is the number of events in
    /// the log.
    pub fn remaining(&self, uid: &str, events: u64, now: Timestamp) -> Option<SignedDuration> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = starts.get(uid)?;
        let passed = now.duration_since(last.at);
        let interval = MAX_INTERVAL.min(SignedDuration::from_secs(1 << last.idle.min(6)));
        // If the clock was set back, there is no wait.
        (!last.has_progressed(events) && !passed.is_negative() && passed < interval).then(|| interval - passed)
    }

    /// Records the start of an attempt.
    pub fn record(&self, uid: &str, events: u64, now: Timestamp) {
        let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if starts.len() >= CLEANUP_THRESHOLD_JOBS {
            starts.retain(|_, start| now.duration_since(start.at) < MAX_INTERVAL);
        }
        let idle = starts.get(uid).filter(|last| !last.has_progressed(events)).map_or(0, |last| last.idle + 1);
        starts.insert(uid.to_owned(), Start { at: now, events, idle });
    }
}

impl Start {
    fn has_progressed(&self, events: u64) -> bool {
        events > self.events.saturating_add(EVENTS_WITHOUT_PROGRESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::at;

    #[test]
    fn attempts_without_progress_start_ever_more_slowly() {
        let (pace, mut starts) = (StartPace::default(), Vec::new());
        // Each attempt ends at once, and adds two events.
        for second in 0..600 {
            let events = 20 + 2 * starts.len() as u64;
            if pace.remaining("a", events, at(second)).is_none() {
                pace.record("a", events, at(second));
                starts.push(second);
            }
        }
        assert_eq!(starts, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363, 423, 483, 543]);
        assert_eq!(pace.remaining("b", 20, at(0)), None, "another Job");
    }

    #[test]
    fn progress_resets_the_pace() {
        let pace = StartPace::default();
        for second in 0..4 {
            pace.record("a", 20, at(second));
        }
        let seconds = |left: Option<SignedDuration>| left.map(|left| left.as_secs());
        assert_eq!(seconds(pace.remaining("a", 22, at(3))), Some(8));
        assert_eq!(pace.remaining("a", 23, at(3)), None);
        assert_eq!(pace.remaining("a", 20, at(-3600)), None, "the clock was set back");
        pace.record("a", 23, at(4));
        assert_eq!(seconds(pace.remaining("a", 23, at(4))), Some(1));
    }

    #[test]
    fn old_jobs_are_dropped_at_the_limit() {
        let pace = StartPace::default();
        for job in 0..CLEANUP_THRESHOLD_JOBS {
            pace.record(&job.to_string(), 0, at(0));
        }
        pace.record("late", 0, at(60));
        assert_eq!(pace.0.lock().unwrap().len(), 1);
    }
}
