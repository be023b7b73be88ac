//! When things happen: the wall clock for people, a monotonic one for budgets.

use bloomery_engine::line::EventTime;
use std::time::{Duration, Instant};

/// Stamps the events of one epoch.
#[derive(Debug, Default)]
pub struct Clock {
    last: Option<Instant>,
    idle: Duration,
}

impl Clock {
    /// Stamps the next event: its work is the time since the event before, less what was spent waiting.
    pub fn stamp(&mut self) -> EventTime {
        let now = Instant::now();
        let since = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        let worked = since.saturating_sub(std::mem::take(&mut self.idle));
        self.last = Some(now);
        EventTime { time: wall_time(), elapsed_ms: u64::try_from(worked.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Takes waiting out of the work of the next event.
    pub fn waited(&mut self, time: Duration) {
        self.idle += time;
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
    fn the_first_event_of_an_epoch_has_no_work_and_waiting_is_none() {
        let mut clock = Clock::default();
        assert_eq!(clock.stamp().elapsed_ms, 0);
        clock.waited(Duration::from_hours(1));
        assert_eq!(clock.stamp().elapsed_ms, 0);
    }

    #[test]
    fn the_wall_clock_is_rfc_3339_in_utc() {
        let text = wall_time();
        assert_eq!(text.len(), "2026-01-01T00:00:00.000Z".len(), "{text}");
        assert!(text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(), "{text}");
    }
}
