//! The times of events: wall-clock time for people, monotonic time for budgets.

use bloomery_engine::line::EventTime;
use std::time::{Duration, Instant};

/// The clock that stamps the events of one epoch.
#[derive(Debug, Default)]
pub struct Clock {
    /// The time of the last stamp.
    last: Option<Instant>,
    /// The time since the last stamp that does not count as work.
    excluded: Duration,
}

impl Clock {
    /// Returns the stamp of the next event. Its working time is the time since the last stamp, without excluded waits.
    pub fn stamp(&mut self) -> EventTime {
        let now = Instant::now();
        let since_last = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        let worked = since_last.saturating_sub(std::mem::take(&mut self.excluded));
        self.last = Some(now);
        EventTime { time: wall_time(), elapsed_ms: u64::try_from(worked.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Excludes a wait from the working time of the next event.
    pub fn exclude_wait(&mut self, time: Duration) {
        self.excluded += time;
    }
}

/// Returns the current time: RFC 3339 in UTC, to the millisecond.
pub fn wall_time() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_of_an_epoch_and_excluded_waits_count_no_work() {
        let mut clock = Clock::default();
        assert_eq!(clock.stamp().elapsed_ms, 0);
        clock.exclude_wait(Duration::from_hours(1));
        assert_eq!(clock.stamp().elapsed_ms, 0);
    }

    #[test]
    fn the_wall_clock_is_rfc_3339_in_utc() {
        let text = wall_time();
        assert_eq!(text.len(), "2026-01-01T00:00:00.000Z".len(), "{text}");
        assert!(text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(), "{text}");
    }
}
