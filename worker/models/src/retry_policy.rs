//! How often, and for how long, a Model is asked.

use crate::attempt::RetryDelay;
use bloomery_http::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// How long a client retries, and the delays between its attempts.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long a Model that does not answer is asked again, from its first failure on. A running request is not cut short.
    pub total: Duration,
    /// Delays after failures that disappear by themselves: rate limits, overload, a lost connection.
    pub short_delays: Backoff,
    /// Delays after failures that a person has to fix: a key, a model's name, an address.
    pub long_delays: Backoff,
    /// Delays while a key does not exist. An attempt then costs only the read of a file.
    pub secret_delays: Backoff,
}

impl Patience {
    /// Retries for `total`, with the usual delays.
    pub fn new(total: Duration) -> Self {
        let seconds = Duration::from_secs;
        Self {
            total,
            short_delays: Backoff::new(seconds(1), seconds(30)),
            long_delays: Backoff::new(seconds(5), seconds(60)),
            secret_delays: Backoff::new(seconds(1), seconds(5)),
        }
    }
}

/// The attempts at one request, and the time that is left for them.
pub(crate) struct Attempts {
    patience: Patience,
    /// The time that requests may take, pauses not counted.
    within: Duration,
    began: Instant,
    first_failure: Option<Instant>,
    count: u32,
}

impl Attempts {
    pub(crate) fn new(patience: Patience, within: Duration, now: Instant) -> Self {
        Self { patience, within, began: now, first_failure: None, count: 0 }
    }

    /// Returns the time left for requests. `paused` is how long no request was running so far.
    pub(crate) fn remaining(&self, now: Instant, paused: Duration) -> Duration {
        self.within.saturating_sub(now.saturating_duration_since(self.began).saturating_sub(paused))
    }

    /// Counts a failed attempt, and returns the delay before the next one; `None` if it was the last. A delay that would exceed the
    /// patience is shortened: one more attempt at its end costs nothing.
    pub(crate) fn next_delay(&mut self, delay: RetryDelay, now: Instant, paused: Duration) -> Option<Duration> {
        self.count += 1;
        let elapsed = now.saturating_duration_since(*self.first_failure.get_or_insert(now));
        let left = self.patience.total.saturating_sub(elapsed);
        let delay = match delay {
            RetryDelay::Short => self.patience.short_delays.next_delay(),
            RetryDelay::Long => self.patience.long_delays.next_delay(),
            RetryDelay::SecretMissing => self.patience.secret_delays.next_delay(),
            RetryDelay::RetryAfter(delay) => delay.max(self.patience.short_delays.next_delay()),
        };
        (!left.is_zero() && !self.remaining(now, paused).is_zero()).then(|| delay.min(left))
    }
}

impl std::fmt::Display for Attempts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        write!(f, "{times} in {} s", self.began.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests;
