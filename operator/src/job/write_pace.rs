//! The time of the last status write of each Job, so that writes that are not urgent can be delayed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum interval between a write and the next one that is not urgent (docs/explanation/design.md, section 7:
/// one write for each ten seconds).
pub const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// The number of remembered Jobs from which expired entries are dropped.
const CLEANUP_THRESHOLD_JOBS: usize = 4096;

/// The time of the last status write of each Job by this process. `T` describes a change that waits for the next write.
#[derive(Debug)]
pub struct WritePace<T = ()>(Mutex<HashMap<String, (Instant, Option<T>)>>);

impl<T> Default for WritePace<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> WritePace<T> {
    /// Records a write of the Job with this UID.
    pub fn record_write(&self, uid: &str, now: Instant) {
        let mut last_writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last_writes.len() >= CLEANUP_THRESHOLD_JOBS {
            last_writes.retain(|_, (then, _)| now.saturating_duration_since(*then) < MIN_WRITE_INTERVAL);
        }
        last_writes.insert(uid.to_owned(), (now, None));
    }

    /// Returns how long a write that is not urgent still has to wait; none if it may happen now.
    pub fn remaining(&self, uid: &str, now: Instant) -> Option<Duration> {
        let last_writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(last_writes.get(uid)?.0);
        MIN_WRITE_INTERVAL.checked_sub(passed).filter(|left| !left.is_zero())
    }

    /// Records a change that waits for the next write of the Job.
    pub fn defer(&self, uid: &str, change: T) {
        let mut last_writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, deferred)) = last_writes.get_mut(uid) {
            *deferred = Some(change);
        }
    }

    /// Returns the latest change that waits for the next write of the Job.
    pub fn deferred(&self, uid: &str) -> Option<T> {
        let last_writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last_writes.get(uid)?.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_message_waits_for_the_rest_of_the_interval() {
        let (pace, start) = (WritePace::<u8>::default(), Instant::now());
        assert_eq!(pace.remaining("a", start), None);
        pace.record_write("a", start);
        assert_eq!(pace.remaining("a", start + Duration::from_secs(3)), Some(Duration::from_secs(7)));
        assert_eq!(pace.remaining("b", start), None);
        assert_eq!(pace.remaining("a", start + MIN_WRITE_INTERVAL), None);
    }

    #[test]
    fn a_deferred_change_is_known_until_the_next_write() {
        let (pace, start) = (WritePace::default(), Instant::now());
        pace.record_write("a", start);
        pace.defer("a", 1);
        pace.defer("a", 2);
        assert_eq!((pace.deferred("a"), pace.deferred("b")), (Some(2), None));
        pace.record_write("a", start);
        assert_eq!(pace.deferred("a"), None);
    }

    #[test]
    fn expired_entries_are_dropped_at_the_limit() {
        let (pace, start) = (WritePace::<u8>::default(), Instant::now());
        for job in 0..CLEANUP_THRESHOLD_JOBS {
            pace.record_write(&job.to_string(), start);
        }
        pace.record_write("late", start + MIN_WRITE_INTERVAL);
        assert_eq!(pace.0.lock().unwrap().len(), 1);
    }
}
