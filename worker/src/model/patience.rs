//! How long and how often a model is asked.

use super::trouble::Pace;
use crate::backoff::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// How long and how often the client tries.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long a model that gives no answer is asked again, from its first failure on. A request under way is not cut
    /// short by it.
    pub whole: Duration,
    /// The pauses after what passes by itself: rate limits, overload, a lost connection.
    pub brisk: Backoff,
    /// The pauses after what a person has to mend: a key, a model's name, an address.
    pub slow: Backoff,
    /// The pauses while a key is not there: looking costs a read of a file.
    pub missing: Backoff,
}

impl Patience {
    /// Asks again for so long.
    pub fn of(whole: Duration) -> Self {
        let seconds = Duration::from_secs;
        Self {
            whole,
            brisk: Backoff::new(seconds(1), seconds(30)),
            slow: Backoff::new(seconds(5), seconds(60)),
            missing: Backoff::new(seconds(1), seconds(5)),
        }
    }
}

/// The tries of one question, and the time that is left for them.
pub(super) struct Tries {
    patience: Patience,
    within: Duration,
    began: Instant,
    failed: Option<Instant>,
    count: u32,
}

impl Tries {
    pub(super) fn new(patience: Patience, within: Duration, now: Instant) -> Self {
        Self { patience, within, began: now, failed: None, count: 0 }
    }

    /// What is left for requests, where for so long none was under way.
    pub(super) fn remaining(&self, now: Instant, idle: Duration) -> Duration {
        self.within.saturating_sub(now.saturating_duration_since(self.began).saturating_sub(idle))
    }

    /// How long to pause before the next try; none where it was the last. A pause that would outlast the
    /// patience is shortened to it: one more try at its end costs nothing.
    pub(super) fn pause(&mut self, pace: Pace, now: Instant, idle: Duration) -> Option<Duration> {
        self.count += 1;
        let waited = now.saturating_duration_since(*self.failed.get_or_insert(now));
        let left = self.patience.whole.saturating_sub(waited);
        let pause = match pace {
            Pace::Brisk => self.patience.brisk.pause(),
            Pace::Slow => self.patience.slow.pause(),
            Pace::Missing => self.patience.missing.pause(),
            Pace::Asked(pause) => pause.max(self.patience.brisk.pause()),
        };
        (!left.is_zero() && !self.remaining(now, idle).is_zero()).then(|| pause.min(left))
    }
}

impl std::fmt::Display for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        write!(f, "{times} in {} s", self.began.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests;
