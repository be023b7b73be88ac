//! Decides which logs of ended runs exceed the bounds of an installation: pure.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

/// The bounds of the logs of ended runs in a skill directory. The outcome records of the runs are not counted: they stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The age from which on a log is pruned.
    pub max_age: Duration,
    /// The largest number of logs.
    pub max_count: usize,
    /// The largest sum of their sizes, in bytes.
    pub max_bytes: u64,
}

/// The log of a run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedLog {
    /// The run key.
    pub key: String,
    /// The time at which the run ended.
    pub ended: SystemTime,
    /// The sum of the sizes of its files, in bytes.
    pub bytes: u64,
}

/// Returns the run keys of the logs that exceed the bounds, the oldest first.
pub fn exceeding(mut logs: Vec<EndedLog>, bounds: Bounds, now: SystemTime) -> Vec<String> {
    logs.sort_by(|one, other| (Reverse(one.ended), &one.key).cmp(&(Reverse(other.ended), &other.key)));
    let mut bytes = 0_u64;
    let mut exceeding: Vec<String> = Vec::new();
    for (count, log) in logs.into_iter().enumerate() {
        bytes = bytes.saturating_add(log.bytes);
        // A log that is dated in the future is new.
        let is_old = now.duration_since(log.ended).is_ok_and(|age| age > bounds.max_age);
        if is_old || count >= bounds.max_count || bytes > bounds.max_bytes {
            exceeding.push(log.key);
        }
    }
    exceeding.reverse();
    exceeding
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + 1000 * HOUR
    }

    /// A log that ended this number of hours ago.
    fn log(key: &str, hours: u32, bytes: u64) -> EndedLog {
        EndedLog { key: key.into(), ended: now() - hours * HOUR, bytes }
    }

    fn keys(bounds: Bounds) -> Vec<String> {
        let logs = vec![log("b", 2, 10), log("d", 4, 10), log("a", 1, 10), log("c", 3, 10)];
        exceeding(logs, bounds, now())
    }

    const WIDE: Bounds = Bounds { max_age: Duration::from_hours(100), max_count: 100, max_bytes: 100 };

    #[test]
    fn the_oldest_logs_exceed_each_bound() {
        assert_eq!(keys(WIDE), [""; 0]);
        assert_eq!(keys(Bounds { max_age: 2 * HOUR, ..WIDE }), ["d", "c"]);
        assert_eq!(keys(Bounds { max_count: 3, ..WIDE }), ["d"]);
        assert_eq!(keys(Bounds { max_bytes: 25, ..WIDE }), ["d", "c"]);
        assert_eq!(keys(Bounds { max_count: 0, ..WIDE }), ["d", "c", "b", "a"]);
    }

    #[test]
    fn a_log_that_is_dated_in_the_future_is_the_newest() {
        let future = EndedLog { key: "f".into(), ended: now() + HOUR, bytes: 1 };
        let bounds = Bounds { max_count: 1, ..WIDE };
        assert_eq!(exceeding(vec![future, log("a", 1, 1)], bounds, now()), ["a"]);
    }

    proptest! {
        #[test]
        fn the_remaining_logs_are_within_the_bounds_and_newer_than_the_others(
            found in prop::collection::vec((0_u32..50, 0_u64..40), 0..20),
            max_hours in 0_u32..50, max_count in 0_usize..20, max_bytes in 0_u64..200,
        ) {
            let logs: Vec<EndedLog> =
                found.iter().enumerate().map(|(at, (hours, bytes))| log(&format!("{at:02}"), *hours, *bytes)).collect();
            let bounds = Bounds { max_age: max_hours * HOUR, max_count, max_bytes };
            let gone = exceeding(logs.clone(), bounds, now());
            let kept: Vec<&EndedLog> = logs.iter().filter(|log| !gone.contains(&log.key)).collect();
            prop_assert!(kept.len() <= max_count);
            prop_assert!(kept.iter().map(|log| log.bytes).sum::<u64>() <= max_bytes);
            let oldest_kept = kept.iter().map(|log| log.ended).min();
            let newest_gone = logs.iter().filter(|log| gone.contains(&log.key)).map(|log| log.ended).max();
            if let (Some(kept), Some(gone)) = (oldest_kept, newest_gone) {
                prop_assert!(gone <= kept);
            }
        }
    }
}
